#include "core/text/json_value.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace fucina {
namespace {

using jinja::Value;
using Json = nlohmann::json;

constexpr std::size_t kMaxDepth = 100;

// Takes the parser's events; the parser keeps its own stack and never recurses.
class Builder {
 public:
  bool null() { return Put(Value::None()); }
  bool boolean(bool value) { return Put(Value::Bool(value)); }
  bool number_integer(Json::number_integer_t value) {
    return Put(Value::Int(value));
  }
  bool number_unsigned(Json::number_unsigned_t value) {
    if (value <= static_cast<std::uint64_t>(INT64_MAX)) {
      return Put(Value::Int(static_cast<std::int64_t>(value)));
    }
    return Put(Value::Number(absl::StrCat(value)));
  }
  bool number_float(Json::number_float_t value, const std::string& text) {
    // Integers past 64 bits arrive here.
    if (text.find_first_of(".eE") == std::string::npos) {
      return Put(Value::Number(text));
    }
    return Put(Value::Float(value));
  }
  bool string(std::string& value) { return Put(Value::Data(value)); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return Open(true); }
  bool key(std::string& value) {
    open_.back().key = std::move(value);
    return true;
  }
  bool end_object() { return Close(); }
  bool start_array(std::size_t) { return Open(false); }
  bool end_array() { return Close(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) {
    position_ = position;
    return false;
  }

  Value Take() { return std::move(root_); }
  bool too_deep() const { return too_deep_; }
  std::size_t position() const { return position_; }

 private:
  struct Container {
    bool is_object = false;
    std::string key;
    Value::List list;
    Value::Map map;
    absl::flat_hash_map<std::string, std::size_t> index;
  };

  bool Open(bool is_object) {
    if (open_.size() >= kMaxDepth) {
      too_deep_ = true;
      return false;
    }
    open_.emplace_back();
    open_.back().is_object = is_object;
    return true;
  }

  bool Close() {
    Container done = std::move(open_.back());
    open_.pop_back();
    return Put(done.is_object ? Value::MakeMap(std::move(done.map))
                              : Value::MakeList(std::move(done.list)));
  }

  bool Put(Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Container& into = open_.back();
    if (!into.is_object) {
      into.list.push_back(std::move(value));
      return true;
    }
    const auto [found, is_new] = into.index.emplace(into.key, into.map.size());
    if (is_new) {
      into.map.emplace_back(std::move(into.key), std::move(value));
    } else {
      into.map[found->second].second = std::move(value);
    }
    return true;
  }

  std::vector<Container> open_;
  Value root_;
  bool too_deep_ = false;
  std::size_t position_ = 0;
};

void AppendText(absl::string_view text, std::string* out) {
  out->push_back('"');
  for (const char c : text) {
    switch (c) {
      case '"':
        out->append("\\\"");
        break;
      case '\\':
        out->append("\\\\");
        break;
      case '\n':
        out->append("\\n");
        break;
      case '\r':
        out->append("\\r");
        break;
      case '\t':
        out->append("\\t");
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          absl::StrAppendFormat(out, "\\u%04x", static_cast<unsigned char>(c));
        } else {
          out->push_back(c);
        }
    }
  }
  out->push_back('"');
}

void Append(const Value& value, std::string* out) {
  switch (value.kind()) {
    case Value::Kind::kNone:
      out->append("null");
      return;
    case Value::Kind::kBool:
      out->append(value.bool_value() ? "true" : "false");
      return;
    case Value::Kind::kInt:
      absl::StrAppend(out, value.int_value());
      return;
    case Value::Kind::kNumber:
      out->append(value.text());
      return;
    case Value::Kind::kFloat:
      // The library writes the shortest digits, with ".0" where integral.
      out->append(std::isfinite(value.float_value())
                      ? Json(value.float_value()).dump()
                      : "null");
      return;
    case Value::Kind::kString:
      AppendText(value.text(), out);
      return;
    case Value::Kind::kList: {
      out->push_back('[');
      bool first = true;
      for (const Value& item : value.list()) {
        if (!std::exchange(first, false)) out->push_back(',');
        Append(item, out);
      }
      out->push_back(']');
      return;
    }
    case Value::Kind::kMap: {
      out->push_back('{');
      bool first = true;
      for (const auto& [key, item] : value.map()) {
        if (!std::exchange(first, false)) out->push_back(',');
        AppendText(key, out);
        out->push_back(':');
        Append(item, out);
      }
      out->push_back('}');
      return;
    }
  }
}

}  // namespace

absl::StatusOr<Value> ParseJson(absl::string_view what,
                                absl::string_view text) {
  Builder builder;
  if (Json::sax_parse(text.begin(), text.end(), &builder)) {
    return builder.Take();
  }
  if (builder.too_deep()) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": nests deeper than the ", kMaxDepth, " levels allowed"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": expected JSON, found something else at byte ",
                   builder.position() == 0 ? 0 : builder.position() - 1));
}

std::string WriteJson(const Value& value) {
  std::string out;
  Append(value, &out);
  return out;
}

}  // namespace fucina
