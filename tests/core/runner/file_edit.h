#ifndef FUCINA_TESTS_CORE_RUNNER_FILE_EDIT_H_
#define FUCINA_TESTS_CORE_RUNNER_FILE_EDIT_H_

// A model file with some of its keys and tensors changed.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "fucina/diag/check.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/gguf/gguf_writer.h"
#include "tests/tiny_models/tiny_models.h"

namespace fucina::testing {

// A parsed file that owns its bytes.
struct OwnedFile {
  explicit OwnedFile(std::string content) : bytes(std::move(content)) {
    auto parsed = GgufFile::Parse(
        "model.gguf", std::as_bytes(std::span(bytes.data(), bytes.size())));
    FUCINA_CHECK(parsed.ok()) << parsed.status().ToString();
    file = *std::move(parsed);
  }
  std::string bytes;
  std::unique_ptr<GgufFile> file;
};

class FileEdit {
 public:
  explicit FileEdit(const TinyModelSpec& spec) : base_(TinyModelBytes(spec)) {}

  FileEdit& Int(absl::string_view key, std::int64_t value) {
    writer_.AddI64(key, value);
    return Drop(key);
  }
  FileEdit& Ints(absl::string_view key, std::vector<std::int32_t> values) {
    writer_.AddI32s(key, values);
    return Drop(key);
  }
  FileEdit& Float(absl::string_view key, double value) {
    writer_.AddF64(key, value);
    return Drop(key);
  }
  FileEdit& Bool(absl::string_view key, bool value) {
    writer_.AddBool(key, value);
    return Drop(key);
  }
  FileEdit& Text(absl::string_view key, absl::string_view value) {
    writer_.AddString(key, value);
    return Drop(key);
  }
  FileEdit& Tokens(int count) {
    writer_.AddStrings("tokenizer.ggml.tokens",
                       std::vector<std::string>(count, "x"));
    return *this;
  }
  FileEdit& Drop(absl::string_view key) {
    dropped_keys_.insert(std::string(key));
    return *this;
  }
  FileEdit& DropTensor(absl::string_view name) {
    renamed_[std::string(name)] = "";
    return *this;
  }
  FileEdit& Rename(absl::string_view name, absl::string_view other) {
    renamed_[std::string(name)] = std::string(other);
    return *this;
  }
  // Gives a tensor of the base another shape and zeros, or adds one.
  FileEdit& Zeros(absl::string_view name, std::vector<std::uint64_t> ne) {
    std::size_t count = 1;
    for (std::uint64_t n : ne) count *= n;
    return Tensor(name, std::move(ne), std::vector<float>(count));
  }
  FileEdit& Tensor(absl::string_view name, std::vector<std::uint64_t> ne,
                   std::vector<float> values) {
    writer_.AddF32Tensor(name, ne, values);
    return DropTensor(name);
  }

  OwnedFile Make() {
    for (absl::string_view key : base_.file->keys()) {
      if (dropped_keys_.contains(std::string(key))) continue;
      writer_.AddValue(key, *base_.file->Find(key));
    }
    for (const GgufTensorInfo& info : base_.file->tensors()) {
      std::string name(info.name);
      const auto found = renamed_.find(name);
      if (found != renamed_.end()) name = found->second;
      if (name.empty()) continue;
      writer_.AddTensor(name, info.dtype,
                        std::span(info.ne, static_cast<std::size_t>(info.rank)),
                        std::span(info.data, info.size_bytes));
    }
    auto bytes = writer_.Serialize();
    FUCINA_CHECK(bytes.ok()) << bytes.status().ToString();
    return OwnedFile(*std::move(bytes));
  }

 private:
  OwnedFile base_;
  GgufWriter writer_;
  std::set<std::string> dropped_keys_;
  std::map<std::string, std::string> renamed_;
};

}  // namespace fucina::testing

#endif  // FUCINA_TESTS_CORE_RUNNER_FILE_EDIT_H_
