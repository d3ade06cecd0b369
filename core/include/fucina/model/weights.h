#ifndef FUCINA_MODEL_WEIGHTS_H_
#define FUCINA_MODEL_WEIGHTS_H_

// The tensors of a model file by exact name, with the shape the caller expects
// or a message that shows both. What a loader asked for is remembered, so that
// what nobody asked for can be named at the end: a wrong variant of a family
// shows itself there.
//
// Thread-safe: layers may be loaded in parallel.

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fucina/export.h"
#include "fucina/gguf/gguf_file.h"

namespace fucina {

// `name`, or `name` without its last suffix (".weight", ".bias") when only that
// is in the file: some converters drop it from the tensors that not every
// family has.
FUCINA_API std::string NameInFile(const GgufFile& file, absl::string_view name);

class FUCINA_API Weights {
 public:
  // Shapes are written outermost first: GGUF ne {in, out} is {out, in} here.
  using Shape = std::initializer_list<std::int64_t>;

  // Borrows `file`, which must outlive this object.
  explicit Weights(const GgufFile& file);
  ~Weights();
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

  const GgufFile& file() const { return file_; }
  // Whether the file has the tensor. Marks nothing.
  bool Has(absl::string_view name) const;
  // The tensor's name with or without suffix, as NameInFile says.
  std::string NameOf(absl::string_view name) const {
    return NameInFile(file_, name);
  }

  // A matrix (or a stack of matrices) of any weight type.
  // NotFound when it is missing, InvalidArgument when type or shape are not as
  // expected; either message names the tensor, the expected and the found.
  absl::StatusOr<const GgufTensorInfo*> Matrix(absl::string_view name,
                                               Shape shape) const;

  // A vector stored as f32, f16 or bf16, converted to f32. Errors as Matrix.
  absl::StatusOr<std::vector<float>> Vector(absl::string_view name,
                                            std::int64_t size) const;

  // Says that these tensors are known and not wanted: all whose name begins
  // with `prefix`. Returns how many.
  int Ignore(absl::string_view prefix) const;

  // Every tensor that was neither read nor ignored, in file order.
  std::vector<absl::string_view> Leftovers() const;
  // Call when everything is loaded. Leftovers are listed once, by the names of
  // the first five and a count: as a warning, or as InvalidArgument under
  // `strict`.
  absl::Status Finish(bool strict) const;

 private:
  absl::StatusOr<const GgufTensorInfo*> Find(absl::string_view name,
                                             Shape shape,
                                             absl::string_view what,
                                             bool vector) const;

  const GgufFile& file_;
  // One mark per tensor of the file, in its order.
  mutable std::vector<std::atomic<bool>> seen_;
};

}  // namespace fucina

#endif  // FUCINA_MODEL_WEIGHTS_H_
