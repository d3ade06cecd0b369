// Models in several files: any part or the folder opens the whole, and nothing
// is loaded when the parts do not fit together.

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "fucina/gguf/gguf_error.h"
#include "fucina/gguf/gguf_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/gguf/raw_gguf.h"
#include "tests/core/gguf/temp_folder.h"

namespace fucina {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct PartSpec {
  int no = 0;  // 0-based, as in files
  int count = 3;
  int total_tensors = 3;  // negative: no key
  std::vector<std::string> tensors = {};
  bool metadata = false;
  std::uint64_t alignment = 0;  // 0: no key
};

std::string PartBytes(const PartSpec& part) {
  RawFile file;
  if (part.metadata) {
    file.key_values.push_back(
        RawKeyValue("general.architecture", kRawString, RawString("qwen3")));
  }
  file.key_values.push_back(RawKeyValue(
      "split.no", kRawU16, Raw(static_cast<std::uint16_t>(part.no))));
  file.key_values.push_back(RawKeyValue(
      "split.count", kRawU16, Raw(static_cast<std::uint16_t>(part.count))));
  if (part.total_tensors >= 0) {
    file.key_values.push_back(
        RawKeyValue("split.tensors.count", kRawI32, Raw(part.total_tensors)));
  }
  if (part.alignment != 0) {
    file.alignment = part.alignment;
    file.key_values.push_back(
        RawKeyValue("general.alignment", kRawU32,
                    Raw(static_cast<std::uint32_t>(part.alignment))));
  }
  std::uint64_t offset = 0;
  for (const std::string& name : part.tensors) {
    file.infos.push_back(
        RawTensor{.name = name, .dims = {2}, .offset = offset}.Bytes());
    file.data.resize(offset, '\0');
    // The values tell which part and which tensor they belong to.
    file.data += Raw(static_cast<float>(part.no)) + Raw(name.back() * 1.0f);
    offset += file.alignment;
  }
  return file.Bytes();
}

std::string PartName(int number, int count = 3) {
  return absl::StrFormat("model-%05d-of-%05d.gguf", number, count);
}

// Part 1 holds metadata only, as the usual splitter can write it.
void PutGoodParts(const TempFolder& folder) {
  folder.Put(PartName(1), PartBytes({.no = 0, .metadata = true}));
  folder.Put(PartName(2), PartBytes({.no = 1, .tensors = {"a", "b"}}));
  folder.Put(PartName(3),
             PartBytes({.no = 2, .tensors = {"c"}, .alignment = 64}));
}

std::string ErrorText(
    const std::string& path, GgufError error,
    absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  const auto file = GgufFile::Open(path);
  EXPECT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), code) << file.status();
  EXPECT_EQ(FindGgufError(file.status()), error) << file.status();
  return std::string(file.status().message());
}

TEST(Split, AnyPartAndTheFolderOpenTheWhole) {
  TempFolder folder;
  PutGoodParts(folder);
  for (const std::string& path :
       {folder.File(PartName(1)), folder.File(PartName(2)),
        folder.File(PartName(3)), folder.path(), folder.path() + "/"}) {
    SCOPED_TRACE(path);
    const auto file = GgufFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ((*file)->num_parts(), 3);
    EXPECT_EQ((*file)->GetString("general.architecture").value(), "qwen3");
    EXPECT_THAT((*file)->notes(), IsEmpty());
    ASSERT_EQ((*file)->tensors().size(), 3u);
    std::uint64_t total = 0;
    for (int part = 1; part <= 3; ++part) {
      total += std::filesystem::file_size(folder.File(PartName(part)));
    }
    EXPECT_EQ((*file)->file_bytes(), total);
    for (const auto& [name, part] : std::vector<std::pair<std::string, int>>{
             {"a", 1}, {"b", 1}, {"c", 2}}) {
      const GgufTensorInfo* info = (*file)->FindTensor(name);
      ASSERT_NE(info, nullptr);
      EXPECT_EQ(info->part, part);
      const Tensor view = GgufFile::View(*info);
      EXPECT_THAT(std::vector<float>(view.row_f32(0), view.row_f32(0) + 2),
                  ElementsAre(static_cast<float>(part), name[0] * 1.0f));
      std::vector<float> read(2);
      ASSERT_TRUE(
          (*file)
              ->ReadAt(*info, 0, std::as_writable_bytes(std::span(read)))
              .ok());
      EXPECT_THAT(read, ElementsAre(static_cast<float>(part), name[0] * 1.0f));
    }
  }
}

TEST(Split, ThePartThatIsMissingIsNamed) {
  TempFolder folder;
  PutGoodParts(folder);
  std::filesystem::remove(folder.File(PartName(2)));
  const std::string message =
      ErrorText(folder.File(PartName(1)), GgufError::kSplitMissingPart,
                absl::StatusCode::kNotFound);
  EXPECT_THAT(message, HasSubstr(PartName(2) + ": part 2 of 3 is missing"));
  EXPECT_THAT(message, HasSubstr("put all parts into one folder"));

  std::filesystem::remove(folder.File(PartName(3)));
  EXPECT_THAT(ErrorText(folder.path(), GgufError::kSplitMissingPart,
                        absl::StatusCode::kNotFound),
              HasSubstr("part 2 of 3 is missing (and 1 more)"));
}

TEST(Split, ARenamedPartIsRefused) {
  TempFolder folder;
  const std::string renamed =
      folder.Put("part2.gguf", PartBytes({.no = 1, .tensors = {"a", "b"}}));
  EXPECT_THAT(ErrorText(renamed, GgufError::kSplitName),
              HasSubstr("is part 2 of 3 of a split model, expected a name that "
                        "ends in -NNNNN-of-NNNNN.gguf"));
  const std::string first = folder.Put("part1.gguf", PartBytes({.no = 0}));
  EXPECT_THAT(ErrorText(first, GgufError::kSplitName),
              HasSubstr("is part 1 of 3"));
  // Without a count, the number alone says that this is not the whole.
  const std::string lone = folder.Put(
      "lone.gguf", RawFile{.key_values = {RawKeyValue("split.no", kRawU16,
                                                      Raw<std::uint16_t>(4))}}
                       .Bytes());
  EXPECT_THAT(ErrorText(lone, GgufError::kSplitName), HasSubstr("part 5"));
}

TEST(Split, NamesAndKeysMustAgree) {
  TempFolder folder;
  PutGoodParts(folder);
  // Two parts that changed names.
  folder.Put(PartName(2), PartBytes({.no = 2, .tensors = {"c"}}));
  EXPECT_THAT(ErrorText(folder.File(PartName(1)), GgufError::kSplitMismatch),
              HasSubstr(PartName(2) + ": key 'split.no' is 2, expected 1 for "
                                      "part 2 of 3; was the file renamed?"));
  EXPECT_THAT(ErrorText(folder.File(PartName(2)), GgufError::kSplitMismatch),
              HasSubstr("key 'split.no' is 2, expected 1"));
  // A count that is not the one in the name.
  folder.Put(PartName(2), PartBytes({.no = 1, .count = 4}));
  EXPECT_THAT(ErrorText(folder.File(PartName(3)), GgufError::kSplitMismatch),
              HasSubstr("key 'split.count' is 4, expected 3 as the file name "
                        "says"));
  // A part that is no part.
  folder.Put(PartName(2), RawFile{}.Bytes());
  EXPECT_THAT(ErrorText(folder.File(PartName(1)), GgufError::kSplitMismatch),
              HasSubstr("key 'split.count' is absent, expected 3"));
  // A number of parts that no file has.
  const std::string huge = folder.Put(
      "huge.gguf",
      RawFile{.key_values = {RawKeyValue("split.count", kRawU32,
                                         Raw<std::uint32_t>(4000000000u))}}
          .Bytes());
  EXPECT_THAT(ErrorText(huge, GgufError::kValueRange),
              HasSubstr("key 'split.count': expected an integer from 0 to "
                        "65535, found u32 4000000000"));
}

TEST(Split, TensorsAreCountedOverAllParts) {
  TempFolder folder;
  PutGoodParts(folder);
  folder.Put(PartName(1),
             PartBytes({.no = 0, .total_tensors = 4, .metadata = true}));
  EXPECT_THAT(ErrorText(folder.File(PartName(2)), GgufError::kSplitCount),
              HasSubstr("key 'split.tensors.count' is 4, but the 3 parts hold "
                        "3 tensors"));
  folder.Put(PartName(1),
             PartBytes({.no = 0, .total_tensors = -1, .metadata = true}));
  EXPECT_TRUE(GgufFile::Open(folder.File(PartName(2))).ok());
}

TEST(Split, ATensorInTwoPartsIsRefused) {
  TempFolder folder;
  PutGoodParts(folder);
  folder.Put(PartName(3), PartBytes({.no = 2, .tensors = {"a"}}));
  EXPECT_THAT(ErrorText(folder.path(), GgufError::kDuplicateTensor),
              HasSubstr(PartName(3) + ": tensor 'a' is also in part 2"));
}

TEST(Split, ADamagedPartIsNamed) {
  TempFolder folder;
  PutGoodParts(folder);
  const std::string part = ReadWholeFile(folder.File(PartName(3)));
  folder.Put(PartName(3), part.substr(0, part.size() - 1));
  const std::string message =
      ErrorText(folder.path(), GgufError::kOffsetOutOfRange);
  EXPECT_THAT(message, HasSubstr(PartName(3) + ": tensor 'c'"));
  EXPECT_THAT(message, HasSubstr("1 bytes are missing"));
}

TEST(Split, MetadataOfLaterPartsIsReported) {
  TempFolder folder;
  folder.Put(PartName(1, 2),
             PartBytes({.no = 0, .count = 2, .total_tensors = 0}));
  folder.Put(PartName(2, 2),
             RawFile{.key_values = {RawKeyValue("split.no", kRawU16,
                                                Raw<std::uint16_t>(1)),
                                    RawKeyValue("split.count", kRawU16,
                                                Raw<std::uint16_t>(2)),
                                    RawKeyValue("qwen3.block_count", kRawU32,
                                                Raw<std::uint32_t>(2))}}
                 .Bytes());
  const auto file = GgufFile::Open(folder.path());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE((*file)->Has("qwen3.block_count"));
  EXPECT_THAT((*file)->notes(),
              ElementsAre(HasSubstr("part 2: metadata keys that only the first "
                                    "part may have, not used: 1")));
}

TEST(Split, WholeFilesMayHaveSplitNamesAndSplitKeys) {
  TempFolder folder;
  // Merged files keep the keys with a count of 0 or 1.
  for (const int count : {0, 1}) {
    const std::string merged = folder.Put(
        "merged.gguf", PartBytes({.no = 0, .count = count, .tensors = {"a"}}));
    const auto file = GgufFile::Open(merged);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ((*file)->num_parts(), 1);
  }
  const std::string named = folder.Put(PartName(1), RawFile{}.Bytes());
  const auto file = GgufFile::Open(named);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT((*file)->notes(),
              ElementsAre("the name says part 1 of 3, but the file says that "
                          "it is whole"));
}

TEST(Split, MemoryCannotHoldParts) {
  const std::string bytes = PartBytes({.no = 1, .tensors = {"a"}});
  const auto file = ParseRaw(bytes);
  EXPECT_EQ(FindGgufError(file.status()), GgufError::kSplitName);
  EXPECT_THAT(std::string(file.status().message()),
              HasSubstr("must be opened by its path"));
}

TEST(Folder, WithOneModelOpensIt) {
  TempFolder folder;
  folder.Put("only.gguf", RawFile{}.Bytes());
  folder.Put("README.md", "text");
  EXPECT_TRUE(GgufFile::Open(folder.path()).ok());
}

TEST(Folder, WithSeveralModelsListsThem) {
  TempFolder folder;
  PutGoodParts(folder);
  folder.Put("other.gguf", RawFile{}.Bytes());
  const std::string message = ErrorText(folder.path(), GgufError::kIo);
  EXPECT_THAT(message, HasSubstr("is a folder with 2 models, expected one"));
  EXPECT_THAT(message, HasSubstr(PartName(1) + ", other.gguf"));
}

TEST(Folder, WithoutModelsIsRefused) {
  TempFolder folder;
  EXPECT_THAT(
      ErrorText(folder.path(), GgufError::kIo, absl::StatusCode::kNotFound),
      HasSubstr("is a folder without .gguf files"));
}

}  // namespace
}  // namespace fucina
