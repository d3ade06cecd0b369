// Any bytes as a model file: opened, every value and every tensor looked at.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "fucina/diag/check.h"
#include "fucina/gguf/gguf_error.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/gguf/gguf_writer.h"

namespace fucina {
namespace {

// What a getter returned is not the question; that it returns is.
void ReadValue(const GgufFile& file, absl::string_view key) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  int num_readable = file.GetInt(key, kMin, kMax).ok() ? 1 : 0;
  num_readable += file.GetFloat(key).ok() ? 1 : 0;
  num_readable += file.GetBool(key).ok() ? 1 : 0;
  num_readable += file.GetString(key).ok() ? 1 : 0;
  num_readable += file.GetInts(key).ok() ? 1 : 0;
  num_readable += file.GetFloats(key).ok() ? 1 : 0;
  num_readable += file.GetStrings(key).ok() ? 1 : 0;
  // Only arrays of bools, and of integers above the i64 range, have none.
  const GgufValue* value = file.Find(key);
  FUCINA_CHECK(num_readable > 0 || value->element_type == GgufType::kBool ||
               value->element_type == GgufType::kU64);
}

// The promise of Open: every byte of a tensor may be read.
std::uint64_t SumBytes(const GgufFile& file) {
  std::uint64_t sum = 0;
  for (const GgufTensorInfo& info : file.tensors()) {
    for (std::uint64_t i = 0; i < info.size_bytes; ++i) {
      sum += static_cast<std::uint64_t>(info.data[i]);
    }
    FUCINA_CHECK_EQ(file.FindTensor(info.name), &info);
    FUCINA_CHECK_EQ(GgufFile::View(info).rank(), info.rank);
  }
  return sum;
}

// What was read is written and read again. Names that only the reader takes
// make the writer refuse, which is fine; a file that it writes must open.
void RoundTrip(const GgufFile& file) {
  GgufWriter writer;
  for (const absl::string_view key : file.keys()) {
    writer.AddValue(key, *file.Find(key));
  }
  for (const GgufTensorInfo& info : file.tensors()) {
    writer.AddTensor(info.name, info.dtype,
                     std::span(info.ne, static_cast<std::size_t>(info.rank)),
                     std::span(info.data, info.size_bytes));
  }
  const absl::StatusOr<std::string> bytes = writer.Serialize();
  if (!bytes.ok()) return;
  const auto again = GgufFile::Parse("again", std::as_bytes(std::span(*bytes)));
  FUCINA_CHECK(again.ok()) << again.status().ToString();
  FUCINA_CHECK_EQ((*again)->tensors().size(), file.tensors().size());
  FUCINA_CHECK_EQ(SumBytes(**again), SumBytes(file));
}

}  // namespace
}  // namespace fucina

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const auto file =
      fucina::GgufFile::Parse("input", std::as_bytes(std::span(data, size)));
  if (!file.ok()) {
    FUCINA_CHECK(fucina::FindGgufError(file.status()).has_value())
        << file.status().ToString();
    return 0;
  }
  for (const absl::string_view key : (*file)->keys()) {
    fucina::ReadValue(**file, key);
  }
  fucina::RoundTrip(**file);
  return 0;
}
