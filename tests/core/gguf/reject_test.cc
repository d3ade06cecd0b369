// What a reader must refuse: each kind of bad content in a file of a few
// hundred bytes. The error must be the right one, its text must name the key or
// tensor with what was found and what was expected, and refusing must be quick
// and cheap.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "fucina/gguf/gguf_error.h"
#include "fucina/gguf/gguf_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/gguf/raw_gguf.h"
#include "tests/core/gguf/worked_example.h"

namespace fucina {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::uint64_t kTwo63 = std::uint64_t{1} << 63;
constexpr std::uint64_t kMax64 = std::numeric_limits<std::uint64_t>::max();

struct BadCase {
  const char* name;
  std::string bytes;
  GgufError error;
  std::vector<std::string> in_message;
};

std::string WithU32Alignment(std::uint32_t alignment) {
  return FileWithKey(RawKeyValue("general.alignment", kRawU32, Raw(alignment)));
}

std::string TwoTensors(const RawTensor& first, const RawTensor& second) {
  return RawFile{.infos = {first.Bytes(), second.Bytes()},
                 .data = std::string(256, '\x11')}
      .Bytes();
}

// A file that ends after `size` bytes.
std::string Cut(std::string bytes, std::size_t size) {
  bytes.resize(size);
  return bytes;
}

// A tensor directory entry that announces `n_dims` and holds one.
std::string InfoWithNDims(std::uint32_t n_dims) {
  return RawString("blk.0.attn_q.weight") + Raw(n_dims) +
         Raw<std::uint64_t>(4) + Raw<std::uint32_t>(0) + Raw<std::uint64_t>(0);
}

std::vector<BadCase> HeaderCases() {
  const std::string example = WorkedExample();
  std::string version1 = example, version0 = example, version4 = example,
              swapped = example, no_magic = example;
  version1[4] = 1;
  version0[4] = 0;
  version4[4] = 4;
  swapped[4] = 0;
  swapped[7] = 3;
  no_magic[0] = '\x01';
  return {
      {"Empty", "", GgufError::kTruncated, {"the file is empty"}},
      {"ShorterThanTheHeader",
       Cut(example, 23),
       GgufError::kTruncated,
       {"23 bytes", "at least 24"}},
      {"WrongMagic",
       no_magic,
       GgufError::kBadMagic,
       {"not a GGUF file", "\\x01GUF", "expected \"GGUF\""}},
      {"Version1",
       version1,
       GgufError::kUnsupportedVersion,
       {"version 1 is obsolete", "2 or 3", "convert"}},
      {"Version0",
       version0,
       GgufError::kUnsupportedVersion,
       {"version 0", "expected 2 or 3"}},
      {"Version4",
       version4,
       GgufError::kUnsupportedVersion,
       {"version 4", "expected 2 or 3"}},
      {"BigEndian",
       swapped,
       GgufError::kWrongEndian,
       {"big-endian", "of 3 in the other byte order"}},
      {"TensorCount2To63",
       "GGUF" + Raw<std::uint32_t>(3) + Raw(kTwo63) + Raw<std::uint64_t>(0),
       GgufError::kCountLimit,
       {"9223372036854775808 tensors", "0 bytes", "at most 0"}},
      {"KeyCount2To63",
       "GGUF" + Raw<std::uint32_t>(3) + Raw<std::uint64_t>(0) + Raw(kTwo63) +
           std::string(140, '\0'),
       GgufError::kCountLimit,
       {"9223372036854775808 metadata keys", "140 bytes", "at most 10"}},
      {"TensorCountOneTooMany",
       RawFile{.data = std::string(64, '\0'), .tensor_count = 3}.Bytes(),
       GgufError::kCountLimit,
       {"3 tensors", "72 bytes", "at most 2"}},
  };
}

std::vector<BadCase> KeyCases() {
  const auto key_of_length = [](std::uint64_t length, std::size_t present) {
    return FileWithKey(Raw(length) + std::string(present, 'k'));
  };
  const std::string two_keys =
      RawFile{.key_values = {RawKeyValue("a.b", kRawU8, Raw<std::uint8_t>(1)),
                             RawKeyValue("a.b", kRawU8, Raw<std::uint8_t>(2))}}
          .Bytes();
  const auto array = [](std::uint32_t type, std::uint64_t count,
                        const std::string& elements) {
    return FileWithKey(
        RawKeyValue("a.list", kRawArray, RawArrayValue(type, count, elements)));
  };
  return {
      {"EmptyKey",
       FileWithKey(RawKeyValue("", kRawU32, Raw<std::uint32_t>(1))),
       GgufError::kBadKey,
       {"metadata key 1 of 1", "0 bytes", "1 to 65535"}},
      {"KeyWithZeroByte",
       FileWithKey(RawKeyValue(absl::string_view("a\0b", 3), kRawU32,
                               Raw<std::uint32_t>(1))),
       GgufError::kBadKey,
       {"'a\\x00b'", "control byte 0x00"}},
      {"KeyWithNewline",
       FileWithKey(RawKeyValue("a\nb", kRawU32, Raw<std::uint32_t>(1))),
       GgufError::kBadKey,
       {"'a\\nb'", "control byte 0x0a"}},
      {"KeyTooLong",
       key_of_length(65536, 65536),
       GgufError::kBadKey,
       {"65536 bytes", "1 to 65535"}},
      {"KeyLengthHuge",
       key_of_length(kMax64, 32),
       GgufError::kBadKey,
       {"18446744073709551615 bytes"}},
      {"KeyEndsWithTheFile",
       Cut(key_of_length(200, 32), 64),
       GgufError::kTruncated,
       {"ends inside metadata key 1 of 1", "byte 64"}},
      {"ScalarEndsWithTheFile",
       Cut(FileWithKey(RawKeyValue("a.long", kRawU64, Raw<std::uint64_t>(1))),
           44),
       GgufError::kTruncated,
       {"ends inside the value of key 'a.long'", "download incomplete"}},
      {"StringLength1GiB",
       FileWithKey(RawKeyValue("a.text", kRawString,
                               Raw<std::uint64_t>(std::uint64_t{1} << 30))),
       GgufError::kStringLimit,
       {"key 'a.text'", "1073741824 bytes", "only"}},
      {"StringLength2To63",
       FileWithKey(RawKeyValue("a.text", kRawString, Raw(kTwo63))),
       GgufError::kStringLimit,
       {"key 'a.text'", "9223372036854775808", "at most 1073741824"}},
      {"StringLengthWraps",
       FileWithKey(RawKeyValue("a.text", kRawString, Raw(kMax64))),
       GgufError::kStringLimit,
       {"key 'a.text'", "18446744073709551615"}},
      {"ArrayLength2To63",
       array(kRawU8, kTwo63, ""),
       GgufError::kArrayLimit,
       {"key 'a.list'", "9223372036854775808 elements", "at most 1073741824"}},
      {"ArrayLongerThanTheFile",
       array(kRawU64, 1000, ""),
       GgufError::kArrayLimit,
       {"key 'a.list'", "array of 1000 u64", "only"}},
      {"ArrayOfStringsLongerThanTheFile",
       array(kRawString, 1000, ""),
       GgufError::kArrayLimit,
       {"key 'a.list'", "array of 1000 string", "only"}},
      {"StringInArrayTooLong",
       array(kRawString, 2, RawString("ok") + Raw(kMax64)),
       GgufError::kStringLimit,
       {"key 'a.list'", "string 1 has 18446744073709551615 bytes"}},
      {"ArrayOfArrays",
       array(kRawArray, 1, RawArrayValue(kRawU8, 1, "\x01")),
       GgufError::kNestedArray,
       {"key 'a.list'", "array of arrays"}},
      {"UnknownValueType",
       FileWithKey(RawKeyValue("a.b", 13, "        ")),
       GgufError::kBadValueType,
       {"key 'a.b'", "unknown value type 13", "0 to 12"}},
      {"UnknownElementType",
       array(77, 1, "        "),
       GgufError::kBadValueType,
       {"key 'a.list'", "element type 77"}},
      {"BoolByte2",
       FileWithKey(RawKeyValue("a.flag", kRawBool, "\x02")),
       GgufError::kBadBool,
       {"key 'a.flag'", "byte 2", "0 or 1"}},
      {"BoolByteInArray",
       array(kRawBool, 3, std::string("\x00\x01\xff", 3)),
       GgufError::kBadBool,
       {"key 'a.list'", "bool 2 has the byte 255"}},
      {"DuplicateKey",
       two_keys,
       GgufError::kDuplicateKey,
       {"key 'a.b'", "occurs twice"}},
  };
}

std::vector<BadCase> AlignmentCases() {
  std::vector<BadCase> cases;
  const auto add = [&](const char* name, const std::string& bytes,
                       const std::string& found) {
    cases.push_back({name,
                     bytes,
                     GgufError::kBadAlignment,
                     {"general.alignment", "power of two from 8 to 1048576",
                      "found " + found}});
  };
  add("Alignment0", WithU32Alignment(0), "u32 0");
  add("Alignment3", WithU32Alignment(3), "u32 3");
  add("Alignment4", WithU32Alignment(4), "u32 4");
  add("Alignment2To30", WithU32Alignment(1u << 30), "u32 1073741824");
  add("Alignment2To32Minus1", WithU32Alignment(0xFFFFFFFFu), "u32 4294967295");
  add("AlignmentAsString",
      FileWithKey(
          RawKeyValue("general.alignment", kRawString, RawString("32"))),
      "string \"32\"");
  add("AlignmentNegative",
      FileWithKey(
          RawKeyValue("general.alignment", kRawI32, Raw<std::int32_t>(-32))),
      "i32 -32");
  add("AlignmentAsFloat",
      FileWithKey(RawKeyValue("general.alignment", kRawF32, Raw(32.0f))),
      "f32 32");
  return cases;
}

std::vector<BadCase> DirectoryCases() {
  const RawTensor q = {.name = "blk.0.attn_q.weight"};
  const auto with_dims = [&](std::vector<std::uint64_t> dims,
                             std::uint32_t type = 0) {
    return FileWithTensor(
        {.name = q.name, .dims = std::move(dims), .type = type});
  };
  const auto with_type = [&](std::uint32_t type) {
    return FileWithTensor({.name = q.name, .dims = {256}, .type = type}, 4096);
  };
  const std::string quoted = "tensor 'blk.0.attn_q.weight'";
  const std::uint64_t two32 = std::uint64_t{1} << 32;
  const std::uint64_t two42 = std::uint64_t{1} << 42;
  return {
      {"EmptyTensorName",
       FileWithTensor({.name = ""}),
       GgufError::kBadTensorName,
       {"tensor 1 of 1", "0 bytes", "1 to 64"}},
      {"TensorNameOf65Bytes",
       FileWithTensor({.name = std::string(65, 'n')}),
       GgufError::kBadTensorName,
       {"tensor 1 of 1", "65 bytes", "1 to 64"}},
      {"TensorNameWithZeroByte",
       FileWithTensor({.name = std::string("a\0b", 3)}),
       GgufError::kBadTensorName,
       {"'a\\x00b'", "zero byte"}},
      {"DuplicateTensor",
       TwoTensors(q, {.name = q.name, .offset = 32}),
       GgufError::kDuplicateTensor,
       {quoted, "occurs twice"}},
      {"NDims0",
       RawFile{.infos = {InfoWithNDims(0)}}.Bytes(),
       GgufError::kBadNDims,
       {quoted, "0 dimensions", "1 to 4"}},
      {"NDims5",
       RawFile{.infos = {InfoWithNDims(5)}}.Bytes(),
       GgufError::kBadNDims,
       {quoted, "5 dimensions", "1 to 4"}},
      {"NDims2To32Minus1",
       RawFile{.infos = {InfoWithNDims(0xFFFFFFFFu)}}.Bytes(),
       GgufError::kBadNDims,
       {quoted, "4294967295 dimensions"}},
      {"DimensionOfZero",
       with_dims({4, 0}),
       GgufError::kZeroDim,
       {quoted, "dimension 1 is 0"}},
      {"Dimension2To63",
       with_dims({4, kTwo63}),
       GgufError::kDimOverflow,
       {quoted, "dimension 1 is 9223372036854775808", "less than 2^63"}},
      {"DimensionAllOnesTimes2",
       with_dims({kMax64, 2}),
       GgufError::kDimOverflow,
       {quoted, "dimension 0 is 18446744073709551615"}},
      {"ProductWrapsToZero",
       with_dims({two32, two32}),
       GgufError::kDimOverflow,
       {quoted, "{4294967296, 4294967296}", "2^63 or more elements"}},
      {"ProductTimesElementWraps",
       with_dims({1152, two42 + 1, 1024}),
       GgufError::kDimOverflow,
       {quoted, "1152, 4398046511105"}},
      {"BytesWrap",  // 2^62 elements of four bytes
       with_dims({two32, std::uint64_t{1} << 30}),
       GgufError::kDimOverflow,
       {quoted, "f32", "2^63 or more bytes"}},
      {"BytesWrapForBlocks",  // just under 2^63 elements of 34 / 32 bytes
       with_dims({std::uint64_t{1} << 31, two32 - 1}, 8),
       GgufError::kDimOverflow,
       {quoted, "q8_0", "2^63 or more bytes"}},
      {"HugeButRepresentable",
       with_dims({1152, two42 + 1}),
       GgufError::kOffsetOutOfRange,
       {quoted, "plus size 20266198323171840", "the file is damaged"}},
      {"UnknownType",
       with_type(999),
       GgufError::kUnknownTensorType,
       {quoted, "type 999 is unknown", "supported are f32, f16, q4_0"}},
      {"PrivateType",
       with_type(40),
       GgufError::kUnknownTensorType,
       {quoted, "type 40 (nvfp4)", "not supported in this version"}},
      {"RemovedType4",
       with_type(4),
       GgufError::kRemovedTensorType,
       {quoted, "type 4 (q4_2)", "removed"}},
      {"RemovedType31",
       with_type(31),
       GgufError::kRemovedTensorType,
       {quoted, "type 31 (q4_0_4_4)", "download the plain file"}},
      {"RemovedType38",
       with_type(38),
       GgufError::kRemovedTensorType,
       {quoted, "type 38 (iq4_nl_8_8)"}},
      {"RowOfHalfABlock",
       with_dims({48, 2}, 8),
       GgufError::kRowNotBlockMultiple,
       {quoted, "48 elements", "multiple of 32", "q8_0"}},
      {"RowOfHalfASuperBlock",
       with_dims({1408}, 12),
       GgufError::kRowNotBlockMultiple,
       {quoted, "1408 elements", "multiple of 256", "q4_k"}},
      {"OffsetUnaligned",
       FileWithTensor({.name = q.name, .offset = 8}),
       GgufError::kOffsetUnaligned,
       {quoted, "offset 8", "alignment 32"}},
      {"OffsetPastTheEnd",
       FileWithTensor({.name = q.name, .offset = 6400}),
       GgufError::kOffsetOutOfRange,
       {quoted, "offset 6400 plus size 16", "64 bytes of the data section"}},
      {"LastByteMissing",
       FileWithTensor({.name = q.name}, 15),
       GgufError::kOffsetOutOfRange,
       {quoted, "1 bytes are missing at the end of the file",
        "download is probably incomplete"}},
      {"OffsetPlusSizeWraps",
       FileWithTensor({.name = q.name, .dims = {16}, .offset = kMax64 - 31}),
       GgufError::kOffsetOverflow,
       {quoted, "offset 18446744073709551584", "does not fit 64 bits"}},
      {"TensorsShareBytes",
       TwoTensors({.name = "first", .dims = {16}},
                  {.name = "second", .offset = 32}),
       GgufError::kTensorOverlap,
       {"'first'", "'second'", "share bytes", "offset 0 plus size 64",
        "past offset 32"}},
      {"TensorsAtTheSamePlace",
       TwoTensors({.name = "first"}, {.name = "second"}),
       GgufError::kTensorOverlap,
       {"'first'", "'second'"}},
      {"DirectoryEndsWithTheFile",
       Cut(FileWithTensor(q), 24 + 8 + 19 + 4 + 8 + 4 + 4),
       GgufError::kTruncated,
       {"ends inside tensor 'blk.0.attn_q.weight'"}},
      {"PaddingEndsWithTheFile",
       Cut(FileWithTensor(q), 24 + 8 + 19 + 4 + 8 + 4 + 8),
       GgufError::kTruncated,
       {"ends inside the padding before the tensor data"}},
  };
}

std::vector<BadCase> AllCases() {
  std::vector<BadCase> cases;
  for (auto part :
       {HeaderCases(), KeyCases(), AlignmentCases(), DirectoryCases()}) {
    cases.insert(cases.end(), part.begin(), part.end());
  }
  return cases;
}

class Rejects : public ::testing::TestWithParam<BadCase> {};

TEST_P(Rejects, WithTheRightErrorAndText) {
  const BadCase& bad = GetParam();
  const auto begin = std::chrono::steady_clock::now();
  const auto file = ParseRaw(bad.bytes);
  const auto elapsed = std::chrono::steady_clock::now() - begin;
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FindGgufError(file.status()), bad.error) << file.status();
  const std::string message(file.status().message());
  EXPECT_THAT(message, StartsWith("model.gguf: "));
  for (const std::string& part : bad.in_message) {
    EXPECT_THAT(message, HasSubstr(part));
  }
  EXPECT_LT(elapsed, std::chrono::seconds(1));
}

INSTANTIATE_TEST_SUITE_P(All, Rejects, ::testing::ValuesIn(AllCases()),
                         [](const auto& case_info) {
                           return std::string(case_info.param.name);
                         });

// Peak resident memory of a child that runs `work`, in KiB.
template <typename Work>
long ChildPeakKib(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  int wait_status = 0;
  struct rusage usage = {};
  EXPECT_EQ(wait4(child, &wait_status, 0, &usage), child);
  EXPECT_TRUE(WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0);
  return usage.ru_maxrss;
}

// A child inherits what its parent had, so only the difference counts.
TEST(RejectsCheaply, NoCaseTakesMemoryByItsClaims) {
  const std::vector<BadCase> cases = AllCases();
  const long idle = ChildPeakKib([] {});
  const long busy = ChildPeakKib([&] {
    for (const BadCase& bad : cases) {
      if (ParseRaw(bad.bytes).ok()) _exit(1);
    }
  });
  EXPECT_LT(busy - idle, 64 * 1024);
}

// A cut anywhere is an error, never a crash and never a smaller model.
TEST(RejectsCuts, AtEveryByteOfASmallFile) {
  const std::string whole =
      RawFile{.key_values = {RawKeyValue("general.architecture", kRawString,
                                         RawString("qwen3")),
                             RawKeyValue("a.list", kRawArray,
                                         RawArrayValue(kRawString, 2,
                                                       RawString("one") +
                                                           RawString("two")))},
              .infos = {RawTensor{.name = "first", .dims = {16}}.Bytes(),
                        RawTensor{.name = "second",
                                  .dims = {32, 2},
                                  .type = 8,
                                  .offset = 64}
                            .Bytes()},
              .data = std::string(64 + 68, '\x11')}
          .Bytes();
  ASSERT_TRUE(ParseRaw(whole).ok()) << ParseRaw(whole).status();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto file = ParseRaw(whole.substr(0, size));
    ASSERT_FALSE(file.ok()) << "cut at " << size;
    ASSERT_TRUE(FindGgufError(file.status()).has_value()) << file.status();
    if (size >= whole.size() - 68) {
      EXPECT_THAT(std::string(file.status().message()), HasSubstr("'second'"));
      EXPECT_THAT(std::string(file.status().message()),
                  HasSubstr(std::to_string(whole.size() - size) +
                            " bytes are missing at the end of the file; the "
                            "download is probably incomplete"));
    }
  }
}

TEST(RejectsDamage, AnyByteChangedNeverCrashes) {
  const std::string whole = WorkedExample();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(value);
      const auto file = ParseRaw(bytes);
      if (!file.ok()) {
        ASSERT_TRUE(FindGgufError(file.status()).has_value());
      }
    }
  }
}

TEST(Accepts, UnusualButHarmlessContentWithANote) {
  const auto notes_of = [](const std::string& bytes) {
    const auto file = ParseRaw(bytes);
    EXPECT_TRUE(file.ok()) << file.status();
    std::string all;
    if (file.ok()) {
      for (const std::string& note : (*file)->notes()) all += note + "\n";
    }
    return all;
  };
  // In canonical order and complete: nothing to say.
  EXPECT_EQ(notes_of(TwoTensors({.name = "a", .dims = {32}},
                                {.name = "b", .dims = {32}, .offset = 128})),
            "");
  EXPECT_EQ(notes_of(TwoTensors({.name = "a", .dims = {32}, .offset = 128},
                                {.name = "b", .dims = {32}})),
            "tensors that lie in another order than the directory: 2\n");
  EXPECT_EQ(notes_of(TwoTensors({.name = "a"},
                                {.name = "b", .dims = {32}, .offset = 128})),
            "gaps between tensors: 1 (96 bytes)\n");
  EXPECT_EQ(notes_of(FileWithTensor({.name = "a"}, 100)),
            "unused bytes after the last tensor: 68\n");
  EXPECT_THAT(notes_of(FileWithTensor({.name = std::string(64, 'n')}, 16)),
              HasSubstr("has a name of 64 bytes"));
  // No padding after the last tensor, as some writers leave it.
  EXPECT_EQ(notes_of(FileWithTensor({.name = "a"}, 16)), "");
  // Vocabulary-only files end with their metadata.
  std::string no_padding =
      FileWithKey(RawKeyValue("a.b", kRawU8, Raw<std::uint8_t>(1)));
  no_padding.resize(24 + 8 + 3 + 4 + 1);
  EXPECT_EQ(notes_of(no_padding), "no padding after the metadata\n");
}

TEST(Accepts, EveryIntegerTypeForTheAlignment) {
  for (const auto& [type, value] :
       std::vector<std::pair<std::uint32_t, std::string>>{
           {kRawU8, Raw<std::uint8_t>(64)},
           {kRawI16, Raw<std::int16_t>(64)},
           {kRawU64, Raw<std::uint64_t>(64)},
           {kRawI64, Raw<std::int64_t>(64)}}) {
    const std::string bytes =
        RawFile{.key_values = {RawKeyValue("general.alignment", type, value)},
                .infos = {RawTensor{}.Bytes()},
                .data = std::string(16, '\x11'),
                .alignment = 64}
            .Bytes();
    const auto file = ParseRaw(bytes);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ((*file)->tensors()[0].file_offset % 64, 0u);
  }
}

TEST(Accepts, Version2) {
  const auto file = ParseRaw(RawFile{.version = 2}.Bytes());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->version(), 2);
}

TEST(GgufErrorName, IsUniqueAndReadable) {
  EXPECT_EQ(Name(GgufError::kIo), "io");
  EXPECT_EQ(Name(GgufError::kBadMagic), "bad_magic");
  EXPECT_EQ(Name(GgufError::kRowNotBlockMultiple), "row_not_block_multiple");
  EXPECT_EQ(Name(GgufError::kSplitName), "split_name");
  EXPECT_FALSE(FindGgufError(absl::OkStatus()).has_value());
  EXPECT_FALSE(FindGgufError(absl::InternalError("x")).has_value());
}

}  // namespace
}  // namespace fucina
