// GgufWriter: the bytes of the format document's example, refusals, and
// replacement of files in one step.

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "fucina/gguf/gguf_error.h"
#include "fucina/gguf/gguf_file.h"
#include "fucina/gguf/gguf_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/gguf/raw_gguf.h"
#include "tests/core/gguf/temp_folder.h"
#include "tests/core/gguf/worked_example.h"

namespace fucina {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using Dims = std::vector<std::uint64_t>;

GgufWriter ExampleWriter() {
  GgufWriter writer;
  writer.AddU32("general.alignment", 32);
  writer.AddString("general.architecture", "t");
  writer.AddF32Tensor("a", Dims{2}, std::vector<float>{1, 2});
  return writer;
}

TEST(Writer, WritesTheWorkedExampleByteForByte) {
  EXPECT_EQ(ExampleWriter().Serialize().value(), WorkedExample());
  TempFolder folder;
  const std::string path = folder.File("example.gguf");
  ASSERT_TRUE(ExampleWriter().Write(path).ok());
  EXPECT_EQ(ReadWholeFile(path), WorkedExample());
  EXPECT_EQ(folder.List(), "example.gguf ");
}

TEST(Writer, WhatIsWrittenIsReadBack) {
  GgufWriter writer;
  writer.AddU8("k.u8", 200);
  writer.AddI8("k.i8", -100);
  writer.AddU16("k.u16", 60000);
  writer.AddI16("k.i16", -30000);
  writer.AddU32("k.u32", 4000000000u);
  writer.AddI32("k.i32", -2000000000);
  writer.AddU64("k.u64", std::uint64_t{1} << 62);
  writer.AddI64("k.i64", std::numeric_limits<std::int64_t>::min());
  writer.AddF32("k.f32", 1e-6f);
  writer.AddF64("k.f64", 0.1);
  writer.AddBool("k.bool", true);
  writer.AddString("k.text", absl::string_view("a\0\xff", 3));
  writer.AddU32s("k.u32s", std::vector<std::uint32_t>{1, 2});
  writer.AddI32s("k.i32s", std::vector<std::int32_t>{-1, 2});
  writer.AddF32s("k.f32s", std::vector<float>{0.5f});
  const bool flags[] = {true, false};
  writer.AddBools("k.bools", flags);
  writer.AddStrings("k.strings", std::vector<std::string>{"x", ""});
  writer.AddStrings("k.none", std::vector<absl::string_view>{});
  writer.AddU32("general.alignment", 64);
  writer.AddString("general.architecture", "t");
  writer.AddF32Tensor("f", Dims{3}, std::vector<float>{1, 2, 3});
  const std::vector<std::byte> blocks(2 * 34, std::byte{7});
  writer.AddTensor("q", DType::kQ8_0, Dims{32, 2}, blocks);
  const std::string bytes = writer.Serialize().value();
  EXPECT_EQ(bytes.size() % 64, 0u);

  const auto parsed = ParseRaw(bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const GgufFile& file = **parsed;
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(file.notes(), IsEmpty());
  EXPECT_EQ(file.version(), 3);
  EXPECT_EQ(file.keys()[0], "general.architecture");
  EXPECT_EQ(file.keys()[1], "k.u8");
  EXPECT_EQ(file.keys().back(), "general.quantization_version");
  EXPECT_EQ(file.GetInt("general.quantization_version", 0, 9).value(), 2);
  EXPECT_EQ(file.GetInt("k.u8", kMin, kMax).value(), 200);
  EXPECT_EQ(file.GetInt("k.i8", kMin, kMax).value(), -100);
  EXPECT_EQ(file.GetInt("k.u16", kMin, kMax).value(), 60000);
  EXPECT_EQ(file.GetInt("k.i16", kMin, kMax).value(), -30000);
  EXPECT_EQ(file.GetInt("k.u32", kMin, kMax).value(), 4000000000);
  EXPECT_EQ(file.GetInt("k.i32", kMin, kMax).value(), -2000000000);
  EXPECT_EQ(file.GetInt("k.u64", kMin, kMax).value(), std::int64_t{1} << 62);
  EXPECT_EQ(file.GetInt("k.i64", kMin, kMax).value(), kMin);
  EXPECT_EQ(file.GetFloat("k.f32").value(), static_cast<double>(1e-6f));
  EXPECT_EQ(file.GetFloat("k.f64").value(), 0.1);
  EXPECT_EQ(file.GetBool("k.bool").value(), true);
  EXPECT_EQ(file.GetString("k.text").value(), absl::string_view("a\0\xff", 3));
  EXPECT_THAT(*file.GetInts("k.u32s").value(), ElementsAre(1, 2));
  EXPECT_THAT(*file.GetInts("k.i32s").value(), ElementsAre(-1, 2));
  EXPECT_THAT(*file.GetFloats("k.f32s").value(), ElementsAre(0.5f));
  EXPECT_EQ(file.Find("k.bools")->bytes, absl::string_view("\1\0", 2));
  EXPECT_THAT(*file.GetStrings("k.strings").value(), ElementsAre("x", ""));
  EXPECT_THAT(*file.GetStrings("k.none").value(), IsEmpty());
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0].name, "f");
  EXPECT_EQ(file.tensors()[1].dtype, DType::kQ8_0);
  EXPECT_EQ(file.tensors()[1].size_bytes, 68u);
  EXPECT_EQ(file.tensors()[1].file_offset - file.tensors()[0].file_offset, 64u);
}

TEST(Writer, CopiesValuesOfAnotherFile) {
  GgufWriter first;
  first.AddString("general.architecture", "t");
  first.AddStrings("k.strings", std::vector<std::string>{"x", "yy"});
  first.AddI64("k.i64", -7);
  first.AddU32("general.alignment", 128);
  const std::string bytes = first.Serialize().value();
  const auto file = ParseRaw(bytes);
  ASSERT_TRUE(file.ok());
  GgufWriter second;
  for (const absl::string_view key : (*file)->keys()) {
    second.AddValue(key, *(*file)->Find(key));
  }
  EXPECT_EQ(second.Serialize().value(), bytes);
}

TEST(Writer, KeepsAQuantizationVersionThatWasGiven) {
  GgufWriter writer;
  writer.AddU32("general.quantization_version", 1);
  const std::vector<std::byte> block(34);
  writer.AddTensor("q", DType::kQ8_0, Dims{32}, block);
  const std::string bytes = writer.Serialize().value();
  const auto file = ParseRaw(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->GetInt("general.quantization_version", 0, 9).value(), 1);
}

struct Mistake {
  const char* name;
  void (*make)(GgufWriter*);
  GgufError error;
  const char* in_message;
};

class Refuses : public ::testing::TestWithParam<Mistake> {};

TEST_P(Refuses, WithTheNameOfWhatIsWrong) {
  GgufWriter writer = ExampleWriter();
  GetParam().make(&writer);
  // Later mistakes do not hide the first.
  writer.AddString("", "");
  const auto bytes = writer.Serialize();
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FindGgufError(bytes.status()), GetParam().error) << bytes.status();
  EXPECT_THAT(std::string(bytes.status().message()),
              HasSubstr(GetParam().in_message));
  TempFolder folder;
  EXPECT_EQ(writer.Write(folder.File("x.gguf")), bytes.status());
  EXPECT_EQ(folder.List(), "");
}

const float kFour[] = {1, 2, 3, 4};

INSTANTIATE_TEST_SUITE_P(
    Mistakes, Refuses,
    ::testing::Values(
        Mistake{"KeyTwice",
                [](GgufWriter* w) {
                  w->AddU8("k.a", 1);
                  w->AddString("k.a", "x");
                },
                GgufError::kDuplicateKey, "key 'k.a' was added twice"},
        Mistake{"EmptyKey", [](GgufWriter* w) { w->AddU8("", 1); },
                GgufError::kBadKey, "expected 1 to 65535 bytes"},
        Mistake{"KeyWithSpace", [](GgufWriter* w) { w->AddU8("k a", 1); },
                GgufError::kBadKey, "key 'k a'"},
        Mistake{"AlignmentThree",
                [](GgufWriter* w) {
                  *w = GgufWriter();
                  w->AddU32("general.alignment", 3);
                },
                GgufError::kBadAlignment, "found 3"},
        Mistake{"AlignmentOfAnotherType",
                [](GgufWriter* w) {
                  *w = GgufWriter();
                  w->AddU64("general.alignment", 64);
                },
                GgufError::kBadAlignment, "found another type"},
        Mistake{"TensorTwice",
                [](GgufWriter* w) { w->AddF32Tensor("a", Dims{4}, kFour); },
                GgufError::kDuplicateTensor, "tensor 'a' was added twice"},
        Mistake{"NameOf64Bytes",
                [](GgufWriter* w) {
                  w->AddF32Tensor(std::string(64, 'n'), Dims{4}, kFour);
                },
                GgufError::kBadTensorName, "64 bytes, expected 1 to 63"},
        Mistake{"EmptyName",
                [](GgufWriter* w) { w->AddF32Tensor("", Dims{4}, kFour); },
                GgufError::kBadTensorName, "0 bytes"},
        Mistake{"NoDimensions",
                [](GgufWriter* w) { w->AddF32Tensor("b", Dims{}, kFour); },
                GgufError::kBadNDims, "tensor 'b': 0 dimensions"},
        Mistake{"FiveDimensions",
                [](GgufWriter* w) {
                  w->AddF32Tensor("b", Dims{1, 1, 1, 1, 4}, kFour);
                },
                GgufError::kBadNDims, "5 dimensions, expected 1 to 4"},
        Mistake{"ZeroDimension",
                [](GgufWriter* w) {
                  w->AddF32Tensor("b", Dims{4, 0}, kFour);
                },
                GgufError::kZeroDim, "dimension 1 is 0"},
        Mistake{"TooFewValues",
                [](GgufWriter* w) { w->AddF32Tensor("b", Dims{5}, kFour); },
                GgufError::kValueRange, "given 16 bytes, expected 20"},
        Mistake{"HalfABlock",
                [](GgufWriter* w) {
                  w->AddTensor("b", DType::kQ4_0, Dims{16},
                               std::as_bytes(std::span(kFour)));
                },
                GgufError::kRowNotBlockMultiple, "multiple of 32"}),
    [](const auto& mistake_info) {
      return std::string(mistake_info.param.name);
    });

TEST(WriterFiles, ReplaceTheOldContentInOneStep) {
  TempFolder folder;
  const std::string path = folder.Put("model.gguf", WorkedExample());
  const auto old = GgufFile::Open(path);
  ASSERT_TRUE(old.ok());
  GgufWriter writer;
  writer.AddString("general.architecture", "new");
  ASSERT_TRUE(writer.Write(path).ok());
  // Who has the old file open keeps it.
  EXPECT_EQ((*old)->GetString("general.architecture").value(), "t");
  EXPECT_TRUE((*old)->CheckUnchanged().ok());
  const auto replaced = GgufFile::Open(path);
  EXPECT_EQ((*replaced)->GetString("general.architecture").value(), "new");
  EXPECT_EQ(folder.List(), "model.gguf ");
}

TEST(WriterFiles, RespectTheUsersMask) {
  TempFolder folder;
  const mode_t before = umask(027);
  const absl::Status status = ExampleWriter().Write(folder.File("m.gguf"));
  umask(before);
  ASSERT_TRUE(status.ok()) << status;
  struct stat info = {};
  ASSERT_EQ(stat(folder.File("m.gguf").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST(WriterFiles, NamesAsLongAsTheSystemAllows) {
  TempFolder folder;
  const std::string path = folder.File(std::string(255, 'n'));
  EXPECT_TRUE(ExampleWriter().Write(path).ok());
  EXPECT_EQ(ReadWholeFile(path), WorkedExample());
}

TEST(WriterFiles, ErrorsNameThePathAndLeaveNothingBehind) {
  TempFolder folder;
  const absl::Status missing =
      ExampleWriter().Write(folder.File("absent/m.gguf"));
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()),
              HasSubstr("absent/m.gguf: cannot create: No such file"));

  const absl::Status onto_folder = ExampleWriter().Write(folder.path());
  EXPECT_THAT(std::string(onto_folder.message()),
              StartsWith(folder.path() + ": exists and is no regular file"));
  EXPECT_THAT(std::string(ExampleWriter().Write("").message()),
              HasSubstr("expected a path"));
  EXPECT_EQ(folder.List(), "");
}

// A full disk, in small: the system refuses bytes past a limit.
TEST(WriterFiles, WhenTheDiskIsFullTheOldFileStays) {
  TempFolder folder;
  const std::string path = folder.Put("model.gguf", WorkedExample());
  EXPECT_EXIT(
      {
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit limit;
        limit.rlim_cur = limit.rlim_max = 4096;
        setrlimit(RLIMIT_FSIZE, &limit);
        GgufWriter writer;
        writer.AddF32Tensor("a", Dims{100000}, std::vector<float>(100000));
        const absl::Status status = writer.Write(path);
        fprintf(stderr, "%s\n", status.ToString().c_str());
        _exit(status.ok() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0),
      "RESOURCE_EXHAUSTED: .*model.gguf: cannot write: File too large");
  EXPECT_EQ(ReadWholeFile(path), WorkedExample());
  EXPECT_EQ(folder.List(), "model.gguf ");
}

// Random keys and tensors: what the writer accepts, the reader reads.
TEST(WriterProperty, RandomFilesRoundTrip) {
  std::mt19937 random(20240601);
  const auto draw = [&](std::uint64_t below) { return random() % below; };
  for (int round = 0; round < 200; ++round) {
    GgufWriter writer;
    const std::uint32_t alignment = 8u << draw(6);
    writer.AddU32("general.alignment", alignment);
    const std::uint64_t num_keys = draw(10);
    for (std::uint64_t i = 0; i < num_keys; ++i) {
      writer.AddString("k." + std::to_string(i), std::string(draw(40), 'x'));
    }
    std::vector<std::vector<std::byte>> data;
    const std::uint64_t num_tensors = draw(10);
    for (std::uint64_t i = 0; i < num_tensors; ++i) {
      const DTypeTraits& traits = AllDTypes()[draw(AllDTypes().size())];
      Dims ne = {(1 + draw(3)) * static_cast<std::uint64_t>(traits.block_size)};
      std::uint64_t rows = 1;
      for (std::uint64_t d = draw(4); d > 0; --d) {
        ne.push_back(1 + draw(4));
        rows *= ne.back();
      }
      const auto row_bytes = static_cast<std::uint64_t>(
          RowBytes(traits.dtype, static_cast<std::int64_t>(ne[0])));
      std::vector<std::byte>& bytes = data.emplace_back(rows * row_bytes);
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(draw(256));
      writer.AddTensor("t." + std::to_string(i), traits.dtype, ne, bytes);
    }
    const std::string bytes = writer.Serialize().value();
    const auto file = ParseRaw(bytes);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_THAT((*file)->notes(), IsEmpty());
    ASSERT_EQ((*file)->tensors().size(), num_tensors);
    for (std::size_t i = 0; i < num_tensors; ++i) {
      const GgufTensorInfo& info = (*file)->tensors()[i];
      ASSERT_EQ(info.size_bytes, data[i].size());
      EXPECT_EQ(info.file_offset % alignment, 0u);
      EXPECT_TRUE(std::equal(data[i].begin(), data[i].end(), info.data));
    }
  }
}

}  // namespace
}  // namespace fucina
