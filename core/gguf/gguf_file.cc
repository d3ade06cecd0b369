#include "fucina/gguf/gguf_file.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/gguf/file_mapping.h"
#include "core/gguf/gguf_parser.h"
#include "core/gguf/gguf_status.h"
#include "core/gguf/gguf_value.h"
#include "core/gguf/split_files.h"
#include "fucina/diag/check.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"

namespace fucina {

using gguf::BadFile;
using gguf::FileMapping;
using gguf::ParsedPart;
using gguf::SplitName;
using gguf::WithPrefix;

struct GgufFile::Impl {
  std::string display_name;
  std::uint64_t file_bytes = 0;
  std::vector<std::string> part_names;  // printable
  std::vector<FileMapping> mappings;    // none for Parse
  ParsedPart first;                     // metadata of the whole model
  std::vector<GgufTensorInfo> tensors;
  absl::flat_hash_map<absl::string_view, std::size_t> tensor_index;

  absl::Status AddPart(absl::string_view path, ParsedPart part);
  absl::Status OpenPart(const std::string& path, ParsedPart* part);
  absl::Status OpenRemainingParts(const std::string& path);
  absl::Status CheckPartKeys(const ParsedPart& part, int number,
                             const SplitName& name) const;
};

namespace {

constexpr absl::string_view kSplitNo = "split.no";
constexpr absl::string_view kSplitCount = "split.count";
constexpr absl::string_view kSplitTensors = "split.tensors.count";
// Part numbers are stored in 16 bits and named with five digits.
constexpr std::int64_t kMaxParts = 65535;

// The value of an integer key of the split protocol, `absent` without it.
absl::StatusOr<std::int64_t> SplitInt(const ParsedPart& part,
                                      absl::string_view key, std::int64_t max,
                                      std::int64_t absent) {
  const GgufValue* value = part.Find(key);
  if (value == nullptr) return absent;
  return gguf::ToInt(key, *value, 0, max);
}

// The keys that a later part may carry beside those of the split protocol.
std::size_t NumForeignKeys(const ParsedPart& part) {
  return static_cast<std::size_t>(std::count_if(
      part.keys.begin(), part.keys.end(), [](absl::string_view key) {
        return !absl::StartsWith(key, "split.") &&
               !absl::StartsWith(key, "general.");
      }));
}

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

}  // namespace

absl::Status GgufFile::Impl::OpenPart(const std::string& path,
                                      ParsedPart* part) {
  const std::string shown = Printable(path);
  absl::StatusOr<FileMapping> mapping = FileMapping::Open(path);
  if (!mapping.ok()) return WithPrefix(shown, mapping.status());
  absl::StatusOr<ParsedPart> parsed = gguf::ParsePart(mapping->bytes());
  if (!parsed.ok()) return WithPrefix(shown, parsed.status());
  // A download or a conversion may still be going on.
  const absl::Status unchanged = mapping->CheckSize();
  if (!unchanged.ok()) return WithPrefix(shown, unchanged);
  file_bytes += mapping->bytes().size();
  mappings.push_back(*std::move(mapping));
  *part = *std::move(parsed);
  return absl::OkStatus();
}

absl::Status GgufFile::Impl::AddPart(absl::string_view path, ParsedPart part) {
  const int number = static_cast<int>(part_names.size());
  part_names.push_back(Printable(path));
  for (GgufTensorInfo& info : part.tensors) {
    info.part = number;
    const auto [it, inserted] = tensor_index.emplace(info.name, tensors.size());
    if (!inserted) {
      return BadFile(GgufError::kDuplicateTensor, part_names.back(),
                     ": tensor '", Printable(info.name), "' is also in part ",
                     tensors[it->second].part + 1);
    }
    tensors.push_back(info);
  }
  part.tensors.clear();
  if (number == 0) {
    first = std::move(part);
    return absl::OkStatus();
  }
  for (const std::string& note : part.notes) {
    first.notes.push_back(absl::StrCat("part ", number + 1, ": ", note));
  }
  if (const std::size_t count = NumForeignKeys(part); count > 0) {
    first.notes.push_back(absl::StrCat("part ", number + 1,
                                       ": metadata keys that only the "
                                       "first part may have, not used: ",
                                       count));
  }
  return absl::OkStatus();
}

absl::Status GgufFile::Impl::CheckPartKeys(const ParsedPart& part, int number,
                                           const SplitName& name) const {
  FUCINA_ASSIGN_OR_RETURN(const std::int64_t no,
                          SplitInt(part, kSplitNo, kMaxParts, -1));
  FUCINA_ASSIGN_OR_RETURN(const std::int64_t count,
                          SplitInt(part, kSplitCount, kMaxParts, -1));
  const auto text = [](std::int64_t value) {
    return value < 0 ? std::string("absent") : absl::StrCat(value);
  };
  if (count != name.count) {
    return BadFile(GgufError::kSplitMismatch, "key '", kSplitCount, "' is ",
                   text(count), ", expected ", name.count,
                   " as the file name says");
  }
  if (no != number - 1) {
    return BadFile(GgufError::kSplitMismatch, "key '", kSplitNo, "' is ",
                   text(no), ", expected ", number - 1, " for part ", number,
                   " of ", name.count, "; was the file renamed?");
  }
  return absl::OkStatus();
}

// REQUIRES: `first` holds the part that the user named, and nothing else was
// added. Replaces it by all parts in order.
absl::Status GgufFile::Impl::OpenRemainingParts(const std::string& path) {
  const std::string shown = Printable(path);
  const auto named = [&](const absl::StatusOr<std::int64_t>& value) {
    return value.ok() ? absl::OkStatus() : WithPrefix(shown, value.status());
  };
  const auto no = SplitInt(first, kSplitNo, kMaxParts, 0);
  FUCINA_RETURN_IF_ERROR(named(no));
  const auto count = SplitInt(first, kSplitCount, kMaxParts, 0);
  FUCINA_RETURN_IF_ERROR(named(count));
  const std::optional<SplitName> name = gguf::ParseSplitName(path);
  if (*count <= 1 && *no == 0) {
    if (name.has_value() && name->count > 1) {
      first.notes.push_back(
          absl::StrCat("the name says part ", name->number, " of ", name->count,
                       ", but the file says that it is whole"));
    }
    return AddPart(path, std::move(first));
  }
  if (!name.has_value()) {
    return BadFile(GgufError::kSplitName, shown, ": is part ", *no + 1, " of ",
                   *count,
                   " of a split model, expected a name that ends in -NNNNN-of-"
                   "NNNNN.gguf, by which the other parts are found");
  }
  const absl::Status keys_agree = CheckPartKeys(first, name->number, *name);
  if (!keys_agree.ok()) return WithPrefix(shown, keys_agree);

  // Before any is opened: a missing part is the usual trouble.
  std::vector<int> missing;
  for (int part = 1; part <= name->count; ++part) {
    if (!Exists(name->PartPath(part))) missing.push_back(part);
  }
  if (!missing.empty()) {
    return gguf::MakeError(
        absl::StatusCode::kNotFound, GgufError::kSplitMissingPart,
        absl::StrCat(Printable(name->PartPath(missing[0])), ": part ",
                     missing[0], " of ", name->count, " is missing",
                     missing.size() > 1
                         ? absl::StrCat(" (and ", missing.size() - 1, " more)")
                         : "",
                     "; put all parts into one folder"));
  }

  FileMapping entry_mapping = std::move(mappings[0]);
  ParsedPart entry = std::move(first);
  mappings.clear();
  for (int part = 1; part <= name->count; ++part) {
    const std::string part_path = name->PartPath(part);
    if (part == name->number) {
      mappings.push_back(std::move(entry_mapping));
      FUCINA_RETURN_IF_ERROR(AddPart(part_path, std::move(entry)));
      continue;
    }
    ParsedPart parsed;
    FUCINA_RETURN_IF_ERROR(OpenPart(part_path, &parsed));
    const absl::Status agree = CheckPartKeys(parsed, part, *name);
    if (!agree.ok()) return WithPrefix(Printable(part_path), agree);
    FUCINA_RETURN_IF_ERROR(AddPart(part_path, std::move(parsed)));
  }

  const auto total = SplitInt(first, kSplitTensors,
                              std::numeric_limits<std::int64_t>::max(), -1);
  FUCINA_RETURN_IF_ERROR(named(total));
  if (*total >= 0 && static_cast<std::size_t>(*total) != tensors.size()) {
    return BadFile(GgufError::kSplitCount, display_name, ": key '",
                   kSplitTensors, "' is ", *total, ", but the ", name->count,
                   " parts hold ", tensors.size(), " tensors");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::Open(
    absl::string_view path) {
  auto impl = std::make_unique<Impl>();
  impl->display_name = Printable(path);
  if (path.empty() || path.find('\0') != absl::string_view::npos) {
    return BadFile(GgufError::kIo, "'", impl->display_name,
                   "': expected a path, which is not empty and has no zero "
                   "byte");
  }
  std::string entry(path);
  std::error_code ignored;  // Open says what is wrong
  if (std::filesystem::is_directory(entry, ignored)) {
    absl::StatusOr<std::string> found = gguf::FindModelInFolder(entry);
    if (!found.ok()) return WithPrefix(impl->display_name, found.status());
    entry = *std::move(found);
  }
  ParsedPart named_part;
  FUCINA_RETURN_IF_ERROR(impl->OpenPart(entry, &named_part));
  impl->first = std::move(named_part);
  FUCINA_RETURN_IF_ERROR(impl->OpenRemainingParts(entry));
  return std::unique_ptr<GgufFile>(new GgufFile(std::move(impl)));
}

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::Parse(
    absl::string_view name, std::span<const std::byte> bytes) {
  auto impl = std::make_unique<Impl>();
  impl->display_name = Printable(name);
  impl->file_bytes = bytes.size();
  absl::StatusOr<ParsedPart> part = gguf::ParsePart(bytes);
  if (!part.ok()) return WithPrefix(impl->display_name, part.status());
  const auto no = SplitInt(*part, kSplitNo, kMaxParts, 0);
  if (!no.ok()) return WithPrefix(impl->display_name, no.status());
  const auto count = SplitInt(*part, kSplitCount, kMaxParts, 0);
  if (!count.ok()) return WithPrefix(impl->display_name, count.status());
  if (*count > 1 || *no > 0) {
    return BadFile(GgufError::kSplitName, impl->display_name, ": is part ",
                   *no + 1, " of ", *count,
                   " of a split model, which must be opened by its path");
  }
  FUCINA_RETURN_IF_ERROR(impl->AddPart(name, *std::move(part)));
  return std::unique_ptr<GgufFile>(new GgufFile(std::move(impl)));
}

GgufFile::GgufFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GgufFile::~GgufFile() = default;

const std::string& GgufFile::display_name() const {
  return impl_->display_name;
}
int GgufFile::version() const { return static_cast<int>(impl_->first.version); }
int GgufFile::num_parts() const {
  return static_cast<int>(impl_->part_names.size());
}
std::uint64_t GgufFile::file_bytes() const { return impl_->file_bytes; }
const std::string& GgufFile::part_name(int part) const {
  FUCINA_CHECK(part >= 0 && part < num_parts()) << "part " << part;
  return impl_->part_names[static_cast<std::size_t>(part)];
}
std::span<const std::string> GgufFile::notes() const {
  return impl_->first.notes;
}

std::span<const absl::string_view> GgufFile::keys() const {
  return impl_->first.keys;
}
bool GgufFile::Has(absl::string_view key) const { return Find(key) != nullptr; }
const GgufValue* GgufFile::Find(absl::string_view key) const {
  return impl_->first.Find(key);
}

namespace {

// Applies `convert` to the value of a key, if there is one.
template <typename T, typename Convert>
absl::StatusOr<std::optional<T>> Get(const GgufFile& file,
                                     absl::string_view key, Convert convert) {
  const GgufValue* value = file.Find(key);
  if (value == nullptr) return std::optional<T>();
  absl::StatusOr<T> result = convert(key, *value);
  if (!result.ok()) return WithPrefix(file.display_name(), result.status());
  return std::optional<T>(*std::move(result));
}

}  // namespace

absl::StatusOr<std::optional<std::int64_t>> GgufFile::GetInt(
    absl::string_view key, std::int64_t min, std::int64_t max) const {
  return Get<std::int64_t>(*this, key,
                           [&](absl::string_view k, const GgufValue& value) {
                             return gguf::ToInt(k, value, min, max);
                           });
}

absl::StatusOr<std::optional<double>> GgufFile::GetFloat(
    absl::string_view key) const {
  return Get<double>(*this, key, gguf::ToFloat);
}

absl::StatusOr<std::optional<bool>> GgufFile::GetBool(
    absl::string_view key) const {
  return Get<bool>(*this, key, gguf::ToBool);
}

absl::StatusOr<std::optional<absl::string_view>> GgufFile::GetString(
    absl::string_view key) const {
  return Get<absl::string_view>(*this, key, gguf::ToString);
}

absl::StatusOr<std::optional<std::vector<std::int64_t>>> GgufFile::GetInts(
    absl::string_view key) const {
  return Get<std::vector<std::int64_t>>(*this, key, gguf::ToInts);
}

absl::StatusOr<std::optional<std::vector<float>>> GgufFile::GetFloats(
    absl::string_view key) const {
  return Get<std::vector<float>>(*this, key, gguf::ToFloats);
}

absl::StatusOr<std::optional<std::vector<absl::string_view>>>
GgufFile::GetStrings(absl::string_view key) const {
  return Get<std::vector<absl::string_view>>(*this, key, gguf::ToStrings);
}

std::span<const GgufTensorInfo> GgufFile::tensors() const {
  return impl_->tensors;
}

const GgufTensorInfo* GgufFile::FindTensor(absl::string_view name) const {
  const auto it = impl_->tensor_index.find(name);
  return it == impl_->tensor_index.end() ? nullptr
                                         : &impl_->tensors[it->second];
}

Tensor GgufFile::View(const GgufTensorInfo& info) {
  const auto ne = [&](int i) { return static_cast<std::int64_t>(info.ne[i]); };
  const void* data = info.data;
  switch (info.rank) {
    case 1:
      return Tensor(info.dtype, {ne(0)}, data);
    case 2:
      return Tensor(info.dtype, {ne(1), ne(0)}, data);
    case 3:
      return Tensor(info.dtype, {ne(2), ne(1), ne(0)}, data);
    default:
      FUCINA_CHECK_EQ(info.rank, 4);
      return Tensor(info.dtype, {ne(3), ne(2), ne(1), ne(0)}, data);
  }
}

void GgufFile::Release(std::span<const std::byte> bytes) const {
  for (const gguf::FileMapping& mapping : impl_->mappings) {
    const std::span<const std::byte> all = mapping.bytes();
    if (bytes.data() < all.data() || bytes.data() >= all.data() + all.size()) {
      continue;
    }
    mapping.Release(static_cast<std::uint64_t>(bytes.data() - all.data()),
                    bytes.size());
  }
}

absl::Status GgufFile::ReadAt(const GgufTensorInfo& info, std::uint64_t offset,
                              std::span<std::byte> out) const {
  FUCINA_CHECK(offset <= info.size_bytes &&
               out.size() <= info.size_bytes - offset)
      << "bytes " << offset << " + " << out.size() << " of " << info.size_bytes;
  if (impl_->mappings.empty()) {
    std::copy_n(info.data + offset, out.size(), out.begin());
    return absl::OkStatus();
  }
  const auto part = static_cast<std::size_t>(info.part);
  const absl::Status status =
      impl_->mappings[part].ReadAt(info.file_offset + offset, out);
  if (status.ok()) return status;
  return WithPrefix(absl::StrCat(impl_->part_names[part], ": tensor '",
                                 Printable(info.name), "'"),
                    status);
}

absl::Status GgufFile::CheckUnchanged() const {
  for (std::size_t i = 0; i < impl_->mappings.size(); ++i) {
    const absl::Status status = impl_->mappings[i].CheckSize();
    if (!status.ok()) return WithPrefix(impl_->part_names[i], status);
  }
  return absl::OkStatus();
}

}  // namespace fucina
