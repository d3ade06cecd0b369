#ifndef FUCINA_OPS_PACK_PLAN_H_
#define FUCINA_OPS_PACK_PLAN_H_

// Packs all matrices of a model together: into one memory area, which therefore
// lies on huge pages from end to end, and in one parallel pass without a
// barrier between matrices. A one-row product that walks pages of 4 KiB runs at
// half the speed of memory, and most matrices are too small, or have too long a
// tail, to fill huge pages of their own.
//
// First every matrix is registered, then Run packs. One thread at a time.

#include <cstddef>
#include <memory>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "fucina/export.h"
#include "fucina/ops/experts.h"
#include "fucina/ops/linear.h"
#include "fucina/parallel/thread_pool.h"
#include "fucina/tensor/buffer.h"
#include "fucina/tensor/tensor.h"

namespace fucina::ops {

class FUCINA_API PackPlan {
 public:
  PackPlan();
  ~PackPlan();
  PackPlan(const PackPlan&) = delete;
  PackPlan& operator=(const PackPlan&) = delete;

  // Each registers what the function of the same name of PackedLinear or
  // PackedExperts packs, with the same requirements. `packed` has its shape and
  // size at once and may be read from once Run has returned; until then it, and
  // the memory behind the sources, must stay where they are.
  void Pack(std::span<const LinearPart> parts, PackedLinear& packed);
  void PackGated(const LinearPart& gate, const LinearPart& up,
                 PackedLinear& packed);
  void PackExperts(const Tensor& gate, const Tensor& up, const Tensor& down,
                   PackedExperts& packed);
  // gate_up [experts, 2 * ffn, hidden]: of each expert first the rows of the
  // gate, then those of up.
  void PackMergedExperts(const Tensor& gate_up, const Tensor& down,
                         PackedExperts& packed);

  // Memory that Run allocates.
  std::size_t size_bytes() const;

  // Called with bytes of a source that have been read for the last time, from
  // any thread of the team, several at once.
  using SourceRead =
      absl::FunctionRef<void(const void* data, std::size_t size_bytes)>;

  // Packs everything, roughly in the order of registration. The result is the
  // memory of all the matrices and must outlive them. ResourceExhausted, naming
  // the size, when memory is refused; the matrices are then not to be used.
  absl::StatusOr<Buffer> Run(ThreadPool& pool, SourceRead source_read);

 private:
  struct Matrix;
  struct Impl;
  void Add(Matrix matrix);
  static void ReportRead(const Matrix& matrix, std::int64_t begin,
                         std::int64_t end, SourceRead source_read);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fucina::ops

#endif  // FUCINA_OPS_PACK_PLAN_H_
