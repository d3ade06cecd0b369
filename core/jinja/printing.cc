// str(), repr() and json.dumps(): values to text. Quotes, brackets and escapes
// count as data, because they stand between data; a control token must never
// be put together from them.

#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/jinja/evaluator.h"
#include "core/jinja/python.h"
#include "core/jinja/unicode.h"
#include "fucina/diag/status_macros.h"

namespace fucina::jinja {
namespace {

using absl::string_view;

// Text under construction, charged as it grows: a small structure that refers
// to itself often can print very large.
class Writer {
 public:
  explicit Writer(Evaluator& evaluator) : evaluator_(evaluator) {}

  absl::Status Add(string_view text) {
    FUCINA_RETURN_IF_ERROR(evaluator_.ChargeBytes(text.size()));
    out_.Append(text, Origin::kData);
    return absl::OkStatus();
  }
  absl::Status Add(const Text& text) {
    FUCINA_RETURN_IF_ERROR(evaluator_.ChargeBytes(text.size()));
    out_.Append(text);
    return absl::OkStatus();
  }
  Evaluator& evaluator() { return evaluator_; }
  Text Take() { return std::move(out_); }

 private:
  Evaluator& evaluator_;
  Text out_;
};

// Copies `text` in quotes; `escape` gives the replacement of a character, or
// nothing to keep it.
template <typename Escape>
absl::Status AddQuoted(Writer& writer, const Text& text, string_view quote,
                       Escape escape) {
  FUCINA_RETURN_IF_ERROR(writer.evaluator().ChargeBytes(text.size()));
  Text out;
  const std::string& bytes = text.bytes();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < bytes.size();) {
    const Char c = DecodeChar(bytes, i);
    const std::string replacement = escape(c.code);
    if (!replacement.empty()) {
      out.AppendRange(text, kept, i);
      out.Append(replacement, text.OriginAt(i));
      kept = i + c.size;
    }
    i += c.size;
  }
  out.AppendRange(text, kept, bytes.size());
  FUCINA_RETURN_IF_ERROR(writer.Add(quote));
  FUCINA_RETURN_IF_ERROR(writer.Add(out));
  return writer.Add(quote);
}

absl::Status AddRepr(Writer& writer, const Var& value);

absl::Status AddReprText(Writer& writer, const Text& text) {
  const std::string& bytes = text.bytes();
  const bool double_quotes = bytes.find('\'') != std::string::npos &&
                             bytes.find('"') == std::string::npos;
  return AddQuoted(writer, text, double_quotes ? "\"" : "'",
                   [&](std::uint32_t c) -> std::string {
                     if (c == '\\') return "\\\\";
                     if (c == '\'' && !double_quotes) return "\\'";
                     if (c == '\n') return "\\n";
                     if (c == '\r') return "\\r";
                     if (c == '\t') return "\\t";
                     if (IsPrintable(c)) return "";
                     // An undecodable byte is what Python would carry as a
                     // surrogate.
                     if (c >= kInvalidByte) {
                       return absl::StrFormat("\\udc%02x", c - kInvalidByte);
                     }
                     if (c < 0x100) return absl::StrFormat("\\x%02x", c);
                     if (c < 0x10000) return absl::StrFormat("\\u%04x", c);
                     return absl::StrFormat("\\U%08x", c);
                   });
}

absl::Status AddReprItems(Writer& writer, const std::vector<Var>& items,
                          string_view open, string_view close) {
  FUCINA_RETURN_IF_ERROR(writer.Add(open));
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) FUCINA_RETURN_IF_ERROR(writer.Add(", "));
    FUCINA_RETURN_IF_ERROR(AddRepr(writer, items[i]));
  }
  return writer.Add(close);
}

absl::Status AddReprSequence(Writer& writer, const Sequence& sequence) {
  switch (sequence.flavor) {
    case Sequence::Flavor::kList:
      return AddReprItems(writer, sequence.items, "[", "]");
    case Sequence::Flavor::kTuple:
      return AddReprItems(writer, sequence.items, "(",
                          sequence.items.size() == 1 ? ",)" : ")");
    case Sequence::Flavor::kView:
      return AddReprItems(writer, sequence.items,
                          absl::StrCat(sequence.type_name, "(["), "])");
    case Sequence::Flavor::kRange:
    case Sequence::Flavor::kIterator:
      break;
  }
  return TypeError(absl::StrCat(
      "a ",
      TypeName(Var::Of(VarKind::kSequence, const_cast<Sequence*>(&sequence))),
      " cannot be printed; make a list of it"));
}

absl::Status AddRepr(Writer& writer, const Var& value) {
  const Evaluator::Depth depth(writer.evaluator());
  FUCINA_RETURN_IF_ERROR(depth.status());
  FUCINA_RETURN_IF_ERROR(writer.evaluator().Charge(1));
  switch (value.kind()) {
    case VarKind::kUndefined:
      return writer.Add("Undefined");
    case VarKind::kNone:
      return writer.Add("None");
    case VarKind::kBool:
      return writer.Add(value.bool_value() ? "True" : "False");
    case VarKind::kInt:
      return writer.Add(absl::StrCat(value.integer()));
    case VarKind::kNumber:
      return writer.Add(value.note());
    case VarKind::kFloat:
      return writer.Add(FloatRepr(value.real()));
    case VarKind::kString:
      return AddReprText(writer, value.text());
    case VarKind::kSequence:
      return AddReprSequence(writer, value.sequence());
    case VarKind::kDict: {
      FUCINA_RETURN_IF_ERROR(writer.Add("{"));
      const auto& entries = value.dict().entries;
      for (std::size_t i = 0; i < entries.size(); ++i) {
        if (i > 0) FUCINA_RETURN_IF_ERROR(writer.Add(", "));
        FUCINA_RETURN_IF_ERROR(AddRepr(writer, entries[i].first));
        FUCINA_RETURN_IF_ERROR(writer.Add(": "));
        FUCINA_RETURN_IF_ERROR(AddRepr(writer, entries[i].second));
      }
      return writer.Add("}");
    }
    default:
      return TypeError(
          absl::StrCat("a ", TypeName(value), " cannot be printed"));
  }
}

// --- JSON -------------------------------------------------------------------

absl::Status AddJsonText(Writer& writer, const Text& text, bool ensure_ascii) {
  return AddQuoted(writer, text, "\"", [&](std::uint32_t c) -> std::string {
    switch (c) {
      case '"':
        return "\\\"";
      case '\\':
        return "\\\\";
      case '\n':
        return "\\n";
      case '\r':
        return "\\r";
      case '\t':
        return "\\t";
      case '\b':
        return "\\b";
      case '\f':
        return "\\f";
      default:
        break;
    }
    if (c < 0x20) return absl::StrFormat("\\u%04x", c);
    if (!ensure_ascii || c < 0x7F) return "";
    if (c >= kInvalidByte) {
      return absl::StrFormat("\\udc%02x", c - kInvalidByte);
    }
    if (c < 0x10000) return absl::StrFormat("\\u%04x", c);
    return absl::StrFormat("\\u%04x\\u%04x", 0xD800 + ((c - 0x10000) >> 10),
                           0xDC00 + ((c - 0x10000) & 0x3FF));
  });
}

class JsonWriter {
 public:
  JsonWriter(Evaluator& evaluator, const JsonOptions& options)
      : writer_(evaluator), options_(options) {}

  absl::Status Write(const Var& value, int level) {
    const Evaluator::Depth depth(writer_.evaluator());
    FUCINA_RETURN_IF_ERROR(depth.status());
    FUCINA_RETURN_IF_ERROR(writer_.evaluator().Charge(1));
    switch (value.kind()) {
      case VarKind::kNone:
        return writer_.Add("null");
      case VarKind::kBool:
        return writer_.Add(value.bool_value() ? "true" : "false");
      case VarKind::kInt:
        return writer_.Add(absl::StrCat(value.integer()));
      case VarKind::kNumber:
        return writer_.Add(value.note());
      case VarKind::kFloat:
        return writer_.Add(JsonFloat(value.real()));
      case VarKind::kString:
        return AddJsonText(writer_, value.text(), options_.ensure_ascii);
      case VarKind::kSequence: {
        const Sequence& sequence = value.sequence();
        if (sequence.flavor == Sequence::Flavor::kList ||
            sequence.flavor == Sequence::Flavor::kTuple) {
          return WriteList(sequence, level);
        }
        break;
      }
      case VarKind::kDict:
        return WriteDict(value.dict(), level);
      case VarKind::kUndefined:
        if (!value.note().empty()) {
          return TypeError(
              absl::StrCat(value.note(), "; it cannot be written as JSON"));
        }
        break;
      default:
        break;
    }
    return TypeError(
        absl::StrCat("a ", TypeName(value), " cannot be written as JSON"));
  }

  Text Take() { return writer_.Take(); }

 private:
  static std::string JsonFloat(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return FloatRepr(value);
  }

  absl::Status NewLine(int level) {
    if (!options_.indent.has_value()) return absl::OkStatus();
    FUCINA_RETURN_IF_ERROR(writer_.Add("\n"));
    for (int i = 0; i < level; ++i) {
      FUCINA_RETURN_IF_ERROR(writer_.Add(*options_.indent));
    }
    return absl::OkStatus();
  }

  absl::Status WriteList(const Sequence& sequence, int level) {
    if (sequence.items.empty()) return writer_.Add("[]");
    FUCINA_RETURN_IF_ERROR(writer_.Add("["));
    for (std::size_t i = 0; i < sequence.items.size(); ++i) {
      if (i > 0) FUCINA_RETURN_IF_ERROR(writer_.Add(options_.item_separator));
      FUCINA_RETURN_IF_ERROR(NewLine(level + 1));
      FUCINA_RETURN_IF_ERROR(Write(sequence.items[i], level + 1));
    }
    FUCINA_RETURN_IF_ERROR(NewLine(level));
    return writer_.Add("]");
  }

  absl::Status WriteKey(const Var& key) {
    switch (key.kind()) {
      case VarKind::kString:
        return AddJsonText(writer_, key.text(), options_.ensure_ascii);
      case VarKind::kNone:
        return writer_.Add("\"null\"");
      case VarKind::kBool:
        return writer_.Add(key.bool_value() ? "\"true\"" : "\"false\"");
      case VarKind::kInt:
        return writer_.Add(absl::StrCat("\"", key.integer(), "\""));
      case VarKind::kNumber:
        return writer_.Add(absl::StrCat("\"", key.note(), "\""));
      case VarKind::kFloat:
        return writer_.Add(absl::StrCat("\"", JsonFloat(key.real()), "\""));
      default:
        return TypeError(
            absl::StrCat("a ", TypeName(key), " cannot be a key in JSON"));
    }
  }

  absl::Status WriteDict(const Dict& dict, int level) {
    if (dict.entries.empty()) return writer_.Add("{}");
    std::vector<Var> keys, values;
    for (const auto& [key, value] : dict.entries) {
      keys.push_back(key);
      values.push_back(value);
    }
    if (options_.sort_keys) {
      std::vector<Var> order = keys;
      std::vector<Var> sorted_keys = keys;
      FUCINA_RETURN_IF_ERROR(
          SortByKey(writer_.evaluator(), &order, &values, false));
      FUCINA_RETURN_IF_ERROR(
          SortByKey(writer_.evaluator(), &sorted_keys, &keys, false));
    }
    FUCINA_RETURN_IF_ERROR(writer_.Add("{"));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (i > 0) FUCINA_RETURN_IF_ERROR(writer_.Add(options_.item_separator));
      FUCINA_RETURN_IF_ERROR(NewLine(level + 1));
      FUCINA_RETURN_IF_ERROR(WriteKey(keys[i]));
      FUCINA_RETURN_IF_ERROR(writer_.Add(options_.key_separator));
      FUCINA_RETURN_IF_ERROR(Write(values[i], level + 1));
    }
    FUCINA_RETURN_IF_ERROR(NewLine(level));
    return writer_.Add("}");
  }

  Writer writer_;
  const JsonOptions& options_;
};

}  // namespace

absl::StatusOr<Text> Str(Evaluator& evaluator, const Var& value) {
  switch (value.kind()) {
    case VarKind::kString:
      return value.text();
    case VarKind::kUndefined:
      return Text();
    // Numbers come from arithmetic as often as from data, and their spelling
    // is harmless: they count as template text.
    case VarKind::kInt:
      return Text(absl::StrCat(value.integer()), Origin::kTemplate);
    case VarKind::kNone:
      return Text("None", Origin::kTemplate);
    case VarKind::kBool:
      return Text(value.bool_value() ? "True" : "False", Origin::kTemplate);
    case VarKind::kFloat:
      return Text(FloatRepr(value.real()), Origin::kTemplate);
    default:
      return Repr(evaluator, value);
  }
}

absl::StatusOr<Text> Repr(Evaluator& evaluator, const Var& value) {
  Writer writer(evaluator);
  FUCINA_RETURN_IF_ERROR(AddRepr(writer, value));
  return writer.Take();
}

std::string FloatRepr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  // Shortest digits that read back as this value: d.ddde±xx.
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value,
                                 std::chars_format::scientific)
                       .ptr;
  const string_view scientific(buffer, static_cast<std::size_t>(end - buffer));
  const std::size_t e = scientific.find('e');
  std::string digits;
  std::string out;
  for (const char c : scientific.substr(0, e)) {
    if (c == '-') {
      out.push_back('-');
    } else if (c != '.') {
      digits.push_back(c);
    }
  }
  int exponent = 0;
  const char* exponent_start = scientific.data() + e + 1;
  if (*exponent_start == '+') ++exponent_start;
  std::from_chars(exponent_start, end, exponent);
  // Python writes positional notation for exponents from -4 to 15.
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (digits.size() > 1) absl::StrAppend(&out, ".", digits.substr(1));
    absl::StrAppendFormat(&out, "e%c%02d", exponent < 0 ? '-' : '+',
                          std::abs(exponent));
    return out;
  }
  if (exponent < 0) {
    absl::StrAppend(&out, "0.",
                    std::string(static_cast<std::size_t>(-exponent - 1), '0'),
                    digits);
    return out;
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) {
    digits.append(whole - digits.size(), '0');
    return absl::StrCat(out, digits, ".0");
  }
  return absl::StrCat(out, digits.substr(0, whole), ".", digits.substr(whole));
}

absl::StatusOr<Text> ToJson(Evaluator& evaluator, const Var& value,
                            const JsonOptions& options) {
  JsonWriter writer(evaluator, options);
  FUCINA_RETURN_IF_ERROR(writer.Write(value, 0));
  return writer.Take();
}

}  // namespace fucina::jinja
