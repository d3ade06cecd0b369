// The 192 bytes of the format document's smallest model, read field by field.

#include "tests/core/gguf/worked_example.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/escaping.h"
#include "fucina/gguf/gguf_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fucina {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// CRC-32 (reflected 0xEDB88320), bit by bit.
std::uint32_t Crc32(absl::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

TEST(WorkedExample, HasThePublishedChecksum) {
  EXPECT_EQ(WorkedExample().size(), 192u);
  EXPECT_EQ(Crc32(WorkedExample()), 0x683d7366u);
}

TEST(WorkedExample, IsReadFieldByField) {
  const std::string bytes = WorkedExample();
  const auto file = GgufFile::Parse("example", std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->version(), 3);
  EXPECT_EQ((*file)->num_parts(), 1);
  EXPECT_EQ((*file)->file_bytes(), 192u);
  EXPECT_THAT((*file)->notes(), IsEmpty());
  EXPECT_THAT((*file)->keys(),
              ElementsAre("general.architecture", "general.alignment"));
  EXPECT_EQ((*file)->GetString("general.architecture").value(), "t");
  EXPECT_EQ((*file)->GetInt("general.alignment", 0, 100).value(), 32);
  ASSERT_EQ((*file)->tensors().size(), 1u);
  const GgufTensorInfo& info = (*file)->tensors()[0];
  EXPECT_EQ(info.name, "a");
  EXPECT_EQ(info.dtype, DType::kF32);
  EXPECT_EQ(info.rank, 1);
  EXPECT_THAT(info.ne, ElementsAre(2, 1, 1, 1));
  EXPECT_EQ(info.size_bytes, 8u);
  EXPECT_EQ(info.file_offset, 160u);
  float values[2];
  std::memcpy(values, info.data, sizeof(values));
  EXPECT_THAT(values, ElementsAre(1.0f, 2.0f));
  EXPECT_EQ((*file)->FindTensor("a"), &info);
  EXPECT_EQ((*file)->FindTensor("b"), nullptr);
}

}  // namespace
}  // namespace fucina
