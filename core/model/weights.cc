#include "fucina/model/weights.h"

#include <cstring>
#include <span>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fucina/diag/check.h"
#include "fucina/diag/log.h"
#include "fucina/diag/status_macros.h"
#include "fucina/kernels/quantize.h"
#include "fucina/tensor/dtype.h"

namespace fucina {
namespace {

constexpr int kListedLeftovers = 5;

std::string ShapeText(std::span<const std::int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

// The shape of the file's tensor as we write it, outermost first.
std::string FoundText(const GgufTensorInfo& info) {
  std::vector<std::uint64_t> shape;
  for (int i = info.rank - 1; i >= 0; --i) shape.push_back(info.ne[i]);
  return absl::StrCat(Name(info.dtype), " [", absl::StrJoin(shape, ", "), "]");
}

bool SameShape(const GgufTensorInfo& info,
               std::span<const std::int64_t> shape) {
  // Compared over all four dimensions: a trailing 1 is no difference.
  for (std::size_t i = 0; i < 4; ++i) {
    const std::int64_t expected =
        i < shape.size() ? shape[shape.size() - 1 - i] : 1;
    if (info.ne[i] != static_cast<std::uint64_t>(expected)) return false;
  }
  return true;
}

bool IsPlainFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

}  // namespace

std::string NameInFile(const GgufFile& file, absl::string_view name) {
  const absl::string_view bare = name.substr(0, name.rfind('.'));
  const bool only_bare =
      file.FindTensor(name) == nullptr && file.FindTensor(bare) != nullptr;
  return std::string(only_bare ? bare : name);
}

Weights::Weights(const GgufFile& file)
    : file_(file), seen_(file.tensors().size()) {}

Weights::~Weights() = default;

bool Weights::Has(absl::string_view name) const {
  return file_.FindTensor(name) != nullptr;
}

absl::StatusOr<const GgufTensorInfo*> Weights::Find(absl::string_view name,
                                                    Shape shape,
                                                    absl::string_view what,
                                                    bool vector) const {
  const std::span<const std::int64_t> expected(shape.begin(), shape.size());
  FUCINA_CHECK(expected.size() <= 4) << name;
  const GgufTensorInfo* info = file_.FindTensor(name);
  if (info == nullptr) {
    return absl::NotFoundError(absl::StrCat(file_.display_name(), ": tensor '",
                                            name, "' is missing; expected ",
                                            what, " ", ShapeText(expected)));
  }
  const bool type_fits = vector ? IsPlainFloat(info->dtype)
                                : Traits(info->dtype).use == DTypeUse::kWeight;
  if (!type_fits || !SameShape(*info, expected)) {
    return absl::InvalidArgumentError(absl::StrCat(
        file_.display_name(), ": tensor '", name, "': expected ", what, " ",
        ShapeText(expected), ", file has ", FoundText(*info)));
  }
  seen_[static_cast<std::size_t>(info - file_.tensors().data())].store(
      true, std::memory_order_relaxed);
  return info;
}

absl::StatusOr<const GgufTensorInfo*> Weights::Matrix(absl::string_view name,
                                                      Shape shape) const {
  return Find(name, shape, "a weight of any type", /*vector=*/false);
}

absl::StatusOr<std::vector<float>> Weights::Vector(absl::string_view name,
                                                   std::int64_t size) const {
  FUCINA_ASSIGN_OR_RETURN(
      const GgufTensorInfo* info,
      Find(name, {size}, "f32, f16 or bf16", /*vector=*/true));
  std::vector<float> values(static_cast<std::size_t>(size));
  DequantizeRow(info->dtype, info->data, values.data(), size);
  return values;
}

int Weights::Ignore(absl::string_view prefix) const {
  const std::span<const GgufTensorInfo> tensors = file_.tensors();
  int count = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (absl::StartsWith(tensors[i].name, prefix)) {
      seen_[i].store(true, std::memory_order_relaxed);
      ++count;
    }
  }
  return count;
}

std::vector<absl::string_view> Weights::Leftovers() const {
  const std::span<const GgufTensorInfo> tensors = file_.tensors();
  std::vector<absl::string_view> names;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!seen_[i].load(std::memory_order_relaxed)) {
      names.push_back(tensors[i].name);
    }
  }
  return names;
}

absl::Status Weights::Finish(bool strict) const {
  const std::vector<absl::string_view> left = Leftovers();
  if (left.empty()) return absl::OkStatus();
  std::string list;
  for (std::size_t i = 0; i < left.size() && i < kListedLeftovers; ++i) {
    absl::StrAppend(&list, i == 0 ? "'" : ", '",
                    absl::Utf8SafeCHexEscape(left[i]), "'");
  }
  if (left.size() > kListedLeftovers) {
    absl::StrAppend(&list, " and ", left.size() - kListedLeftovers, " more");
  }
  const std::string text =
      absl::StrCat(file_.display_name(), ": ", left.size(),
                   left.size() == 1 ? " tensor is" : " tensors are",
                   " not used by this architecture: ", list);
  if (strict) {
    return absl::InvalidArgumentError(
        absl::StrCat(text, "; loading is strict, so the file is refused"));
  }
  FUCINA_LOG(WARNING) << text;
  return absl::OkStatus();
}

}  // namespace fucina
