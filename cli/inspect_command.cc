#include "cli/inspect_command.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/exit_code.h"
#include "fucina/diag/printable.h"
#include "fucina/diag/status_macros.h"
#include "fucina/gguf/gguf_file.h"

namespace fucina::cli {
namespace {

using Json = nlohmann::ordered_json;

// Elements of a list that are shown; a vocabulary has some 10^5.
constexpr std::uint64_t kListed = 8;
constexpr std::size_t kTextBytes = 72;

struct InspectOptions {
  std::string path;
  bool keys = false;
  bool tensors = false;
  bool json = false;
  bool help = false;
};

absl::StatusOr<InspectOptions> ParseArgs(std::span<const std::string> args) {
  InspectOptions options;
  bool flags_end = false;
  bool given = false;
  for (const std::string& arg : args) {
    if (!flags_end && arg == "--") {
      flags_end = true;
    } else if (!flags_end && arg == "--keys") {
      options.keys = true;
    } else if (!flags_end && arg == "--tensors") {
      options.tensors = true;
    } else if (!flags_end && arg == "--json") {
      options.json = true;
    } else if (!flags_end && (arg == "--help" || arg == "-h")) {
      options.help = true;
    } else if (!flags_end && arg.size() > 1 && arg[0] == '-') {
      return absl::InvalidArgumentError(absl::StrCat(
          "inspect: unknown flag '", Printable(arg),
          "'; known are --keys, --tensors, --json and --help (a file whose "
          "name begins with a dash goes after --)"));
    } else if (!options.path.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "inspect: expected one file, found '", Printable(options.path),
          "' and '", Printable(arg), "'"));
    } else {
      options.path = arg;
      given = true;
    }
  }
  if (given && options.path.empty()) {
    return absl::InvalidArgumentError("inspect: expected a file, found ''");
  }
  if (options.path.empty() && !options.help) {
    return absl::InvalidArgumentError(
        "inspect: expected a file, found none; usage: fucina inspect FILE "
        "[--keys] [--tensors] [--json]");
  }
  return options;
}

// --- values -----------------------------------------------------------------

// One scalar of a value, or element `index` of an array of numbers.
Json NumberAt(GgufType type, absl::string_view bytes, std::uint64_t index) {
  const auto load = [&](auto value) -> Json {
    std::memcpy(&value, bytes.data() + index * sizeof(value), sizeof(value));
    return value;
  };
  const auto load_float = [&](auto value) -> Json {
    std::memcpy(&value, bytes.data() + index * sizeof(value), sizeof(value));
    // JSON has no such numbers, and silence would read as null.
    if (!std::isfinite(value)) return absl::StrCat(value);
    return value;
  };
  switch (type) {
    case GgufType::kU8:
      return load(std::uint8_t{});
    case GgufType::kI8:
      return load(std::int8_t{});
    case GgufType::kU16:
      return load(std::uint16_t{});
    case GgufType::kI16:
      return load(std::int16_t{});
    case GgufType::kU32:
      return load(std::uint32_t{});
    case GgufType::kI32:
      return load(std::int32_t{});
    case GgufType::kU64:
      return load(std::uint64_t{});
    case GgufType::kI64:
      return load(std::int64_t{});
    case GgufType::kF32:
      return load_float(float{});
    case GgufType::kF64:
      return load_float(double{});
    case GgufType::kBool:
      return bytes[static_cast<std::size_t>(index)] != 0;
    case GgufType::kString:
    case GgufType::kArray:
      break;
  }
  return nullptr;
}

bool IsUtf8(absl::string_view text) {
  try {
    (void)Json(std::string(text)).dump();
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

// Text as it is; bytes that are no text with escapes, and marked.
Json TextValue(absl::string_view text) {
  if (IsUtf8(text)) return std::string(text);
  return Json{{"escaped", Printable(text, text.size() * 4)}};
}

// The first elements of an array.
std::vector<Json> Elements(const GgufValue& value, std::uint64_t limit) {
  std::vector<Json> elements;
  const std::uint64_t count = std::min(value.count, limit);
  absl::string_view bytes = value.bytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (value.element_type != GgufType::kString) {
      elements.push_back(NumberAt(value.element_type, value.bytes, i));
      continue;
    }
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof(length));
    bytes.remove_prefix(sizeof(length));
    elements.push_back(TextValue(bytes.substr(0, length)));
    bytes.remove_prefix(length);
  }
  return elements;
}

Json ValueAsJson(const GgufValue& value) {
  Json json;
  json["type"] = std::string(Name(value.type));
  if (value.type == GgufType::kArray) {
    json["element_type"] = std::string(Name(value.element_type));
    json["count"] = value.count;
    json[value.count > kListed ? "first" : "value"] = Elements(value, kListed);
  } else if (value.type == GgufType::kString) {
    json["value"] = TextValue(value.bytes);
  } else {
    json["value"] = NumberAt(value.type, value.bytes, 0);
  }
  return json;
}

// A JSON scalar for people: text shortened and safe for a terminal.
std::string Shown(const Json& scalar) {
  if (scalar.is_object()) {
    return absl::StrCat(
        "\"", Printable(scalar["escaped"].get<std::string>(), kTextBytes),
        "\"");
  }
  if (scalar.is_string()) {
    return absl::StrCat("\"", Printable(scalar.get<std::string>(), kTextBytes),
                        "\"");
  }
  return scalar.dump();
}

std::string ValueAsText(const GgufValue& value) {
  if (value.type == GgufType::kString) return Shown(TextValue(value.bytes));
  if (value.type != GgufType::kArray) {
    return Shown(NumberAt(value.type, value.bytes, 0));
  }
  std::vector<std::string> elements;
  for (const Json& element : Elements(value, kListed)) {
    elements.push_back(Shown(element));
  }
  if (value.count > kListed) elements.push_back("...");
  return absl::StrCat("[", absl::StrJoin(elements, ", "), "]");
}

std::string TypeAsText(const GgufValue& value) {
  if (value.type != GgufType::kArray) return std::string(Name(value.type));
  return absl::StrCat(Name(value.element_type), "[", value.count, "]");
}

// --- tensors ----------------------------------------------------------------

std::uint64_t NumElements(const GgufTensorInfo& info) {
  return info.ne[0] * info.ne[1] * info.ne[2] * info.ne[3];
}

// Outermost first, as in the rest of the program.
std::vector<std::uint64_t> Shape(const GgufTensorInfo& info) {
  std::vector<std::uint64_t> shape(info.ne, info.ne + info.rank);
  std::reverse(shape.begin(), shape.end());
  return shape;
}

struct TypeTotal {
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
};

// By type number, so that the order is that of the format.
std::map<DType, TypeTotal> TypeTotals(const GgufFile& file) {
  std::map<DType, TypeTotal> totals;
  for (const GgufTensorInfo& info : file.tensors()) {
    TypeTotal& total = totals[info.dtype];
    ++total.tensors;
    total.elements += NumElements(info);
    total.bytes += info.size_bytes;
  }
  return totals;
}

TypeTotal Sum(const std::map<DType, TypeTotal>& totals) {
  TypeTotal sum;
  for (const auto& [dtype, total] : totals) {
    sum.tensors += total.tensors;
    sum.elements += total.elements;
    sum.bytes += total.bytes;
  }
  return sum;
}

std::string HumanBytes(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? absl::StrFormat("%d B", bytes)
                   : absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

// --- reports ----------------------------------------------------------------

// Keys that say what the model is, in the order of the file; tokenizer lists
// and the rest need --keys.
bool IsSummaryKey(absl::string_view key, absl::string_view architecture) {
  if (absl::StartsWith(key, "general.")) return true;
  if (absl::StartsWith(key, "split.")) return true;
  if (absl::StartsWith(key, "tokenizer.")) return true;
  return !architecture.empty() &&
         absl::StartsWith(key, absl::StrCat(architecture, "."));
}

std::string ArchitectureOf(const GgufFile& file) {
  const GgufValue* value = file.Find("general.architecture");
  if (value == nullptr || value->type != GgufType::kString) return "";
  return std::string(value->bytes);
}

void PrintText(const GgufFile& file, const InspectOptions& options,
               std::ostream& out) {
  const std::string architecture = ArchitectureOf(file);
  const std::map<DType, TypeTotal> totals = TypeTotals(file);
  const TypeTotal sum = Sum(totals);
  out << "file          " << file.display_name() << "\n";
  out << "format        GGUF version " << file.version() << ", "
      << HumanBytes(file.file_bytes());
  if (file.num_parts() > 1) out << " in " << file.num_parts() << " parts";
  out << "\narchitecture  "
      << (architecture.empty() ? "(none)" : Printable(architecture, kTextBytes))
      << "\n";
  out << "parameters    " << sum.elements << " in " << sum.tensors
      << " tensors, " << HumanBytes(sum.bytes) << "\n";

  out << "\nweights by type\n";
  for (const auto& [dtype, total] : totals) {
    out << absl::StrFormat("  %-8s %6d tensors  %15d parameters  %s\n",
                           Name(dtype), total.tensors, total.elements,
                           HumanBytes(total.bytes));
  }

  std::size_t hidden_keys = 0;
  out << "\nmetadata\n";
  for (const absl::string_view key : file.keys()) {
    if (!options.keys && !IsSummaryKey(key, architecture)) {
      ++hidden_keys;
      continue;
    }
    const GgufValue& value = *file.Find(key);
    out << absl::StrFormat("  %-44s %-16s %s\n", Printable(key),
                           TypeAsText(value), ValueAsText(value));
  }
  if (hidden_keys > 0) {
    out << "  and " << hidden_keys << " other keys (--keys shows them)\n";
  }

  if (options.tensors) {
    out << "\ntensors (shape outermost first; byte offset in the file)\n";
    for (const GgufTensorInfo& info : file.tensors()) {
      out << absl::StrFormat(
          "  %-44s %-8s %-22s %14d", Printable(info.name), Name(info.dtype),
          absl::StrCat("[", absl::StrJoin(Shape(info), ", "), "]"),
          info.file_offset);
      if (file.num_parts() > 1) out << "  part " << info.part + 1;
      out << "\n";
    }
  }

  if (!file.notes().empty()) {
    out << "\nnotes\n";
    for (const std::string& note : file.notes()) out << "  " << note << "\n";
  }
}

void PrintJson(const GgufFile& file, const InspectOptions& options,
               std::ostream& out) {
  const std::string architecture = ArchitectureOf(file);
  const std::map<DType, TypeTotal> totals = TypeTotals(file);
  const TypeTotal sum = Sum(totals);
  Json json;
  json["file"] = file.display_name();
  json["version"] = file.version();
  json["bytes"] = file.file_bytes();
  json["parts"] = file.num_parts();
  json["architecture"] =
      architecture.empty() ? Json(nullptr) : TextValue(architecture);
  json["parameters"] = sum.elements;
  json["tensor_count"] = sum.tensors;
  json["tensor_bytes"] = sum.bytes;
  json["types"] = Json::object();
  for (const auto& [dtype, total] : totals) {
    json["types"][std::string(Name(dtype))] = {{"tensors", total.tensors},
                                               {"parameters", total.elements},
                                               {"bytes", total.bytes}};
  }
  json["metadata"] = Json::object();
  for (const absl::string_view key : file.keys()) {
    if (!options.keys && !IsSummaryKey(key, architecture)) continue;
    json["metadata"][Printable(key)] = ValueAsJson(*file.Find(key));
  }
  if (options.tensors) {
    json["tensors"] = Json::array();
    for (const GgufTensorInfo& info : file.tensors()) {
      json["tensors"].push_back({{"name", TextValue(info.name)},
                                 {"type", std::string(Name(info.dtype))},
                                 {"shape", Shape(info)},
                                 {"part", info.part + 1},
                                 {"offset", info.file_offset},
                                 {"bytes", info.size_bytes}});
    }
  }
  json["notes"] = Json::array();
  for (const std::string& note : file.notes()) json["notes"].push_back(note);
  out << json.dump(2) << "\n";
}

}  // namespace

absl::string_view InspectUsage() {
  return "usage: fucina inspect FILE [--keys] [--tensors] [--json]\n"
         "\n"
         "Shows what a GGUF file, any part of a split model or the folder that "
         "holds one says\nabout itself: format, architecture, sizes, weight "
         "types, metadata, and what is unusual.\nNo weight is read.\n"
         "\n"
         "  --keys     all metadata, not only that of the model and tokenizer\n"
         "  --tensors  every tensor with its type, shape and offset\n"
         "  --json     the same as JSON\n"
         "\n"
         "Long lists show their first elements.\n";
}

absl::Status RunInspect(std::span<const std::string> args, std::ostream& out) {
  FUCINA_ASSIGN_OR_RETURN(const InspectOptions options, ParseArgs(args));
  if (options.help) {
    out << InspectUsage();
    return absl::OkStatus();
  }
  const absl::StatusOr<std::unique_ptr<GgufFile>> file =
      GgufFile::Open(options.path);
  if (!file.ok()) return WithExitCode(file.status(), ExitCode::kFile);
  if (options.json) {
    PrintJson(**file, options, out);
  } else {
    PrintText(**file, options, out);
  }
  return absl::OkStatus();
}

}  // namespace fucina::cli
