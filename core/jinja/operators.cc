// Truth, comparison, membership, arithmetic and sorting, as Python defines
// them.

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/jinja/evaluator.h"
#include "core/jinja/python.h"
#include "core/jinja/string_ops.h"
#include "core/jinja/unicode.h"
#include "fucina/diag/status_macros.h"

namespace fucina::jinja {
namespace {

using absl::string_view;

absl::string_view Spelling(Operator op) {
  switch (op) {
    case Operator::kAdd:
      return "+";
    case Operator::kSubtract:
      return "-";
    case Operator::kMultiply:
      return "*";
    case Operator::kDivide:
      return "/";
    case Operator::kFloorDivide:
      return "//";
    case Operator::kModulo:
      return "%";
    case Operator::kPower:
      return "**";
    case Operator::kLess:
      return "<";
    case Operator::kLessEqual:
      return "<=";
    case Operator::kGreater:
      return ">";
    case Operator::kGreaterEqual:
      return ">=";
    default:
      return "?";
  }
}

absl::Status OperandError(Operator op, const Var& a, const Var& b) {
  if (a.is_undefined()) return UndefinedError(a);
  if (b.is_undefined()) return UndefinedError(b);
  return TypeError(absl::StrCat("'", Spelling(op), "' does not work on ",
                                TypeName(a), " and ", TypeName(b)));
}

absl::Status OverflowError() {
  return TypeError("the result does not fit a 64-bit integer");
}

bool IsPlainSequence(const Var& value) {
  return value.is_sequence() &&
         (value.sequence().flavor == Sequence::Flavor::kList ||
          value.sequence().flavor == Sequence::Flavor::kTuple);
}

// Integers and floats compare by value; long double holds every int64.
long double Wide(const Var& value) {
  return value.kind() == VarKind::kFloat
             ? static_cast<long double>(value.real())
             : static_cast<long double>(value.integer());
}

// --- arithmetic -------------------------------------------------------------

absl::StatusOr<Var> IntArithmetic(Operator op, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  switch (op) {
    case Operator::kAdd:
      if (__builtin_add_overflow(a, b, &out)) return OverflowError();
      return Var::Int(out);
    case Operator::kSubtract:
      if (__builtin_sub_overflow(a, b, &out)) return OverflowError();
      return Var::Int(out);
    case Operator::kMultiply:
      if (__builtin_mul_overflow(a, b, &out)) return OverflowError();
      return Var::Int(out);
    case Operator::kDivide:
      if (b == 0) return TypeError("division by zero");
      return Var::Float(static_cast<double>(a) / static_cast<double>(b));
    case Operator::kFloorDivide:
    case Operator::kModulo: {
      if (b == 0) return TypeError("division by zero");
      if (b == -1) {  // the one quotient that can overflow
        if (op == Operator::kModulo) return Var::Int(0);
        if (__builtin_sub_overflow(std::int64_t{0}, a, &out)) {
          return OverflowError();
        }
        return Var::Int(out);
      }
      std::int64_t quotient = a / b;
      std::int64_t rest = a % b;
      if (rest != 0 && (rest < 0) != (b < 0)) {
        --quotient;
        rest += b;
      }
      return Var::Int(op == Operator::kModulo ? rest : quotient);
    }
    case Operator::kPower: {
      if (b < 0) {
        if (a == 0) return TypeError("division by zero");
        return Var::Float(
            std::pow(static_cast<double>(a), static_cast<double>(b)));
      }
      std::int64_t base = a;
      out = 1;
      for (std::uint64_t rest = static_cast<std::uint64_t>(b); rest != 0;) {
        if ((rest & 1) != 0 && __builtin_mul_overflow(out, base, &out)) {
          return OverflowError();
        }
        rest >>= 1;
        if (rest != 0 && __builtin_mul_overflow(base, base, &base)) {
          return OverflowError();
        }
      }
      return Var::Int(out);
    }
    default:
      return absl::InternalError("no arithmetic operator");
  }
}

absl::StatusOr<Var> FloatArithmetic(Operator op, double a, double b) {
  switch (op) {
    case Operator::kAdd:
      return Var::Float(a + b);
    case Operator::kSubtract:
      return Var::Float(a - b);
    case Operator::kMultiply:
      return Var::Float(a * b);
    case Operator::kDivide:
      if (b == 0) return TypeError("division by zero");
      return Var::Float(a / b);
    case Operator::kFloorDivide:
    case Operator::kModulo: {
      if (b == 0) return TypeError("division by zero");
      double rest = std::fmod(a, b);
      double quotient = (a - rest) / b;
      if (rest != 0) {
        if ((b < 0) != (rest < 0)) {
          rest += b;
          quotient -= 1;
        }
      } else {
        rest = std::copysign(0.0, b);
      }
      if (op == Operator::kModulo) return Var::Float(rest);
      if (quotient == 0) return Var::Float(std::copysign(0.0, a / b));
      double floored = std::floor(quotient);
      if (quotient - floored > 0.5) floored += 1;
      return Var::Float(floored);
    }
    case Operator::kPower: {
      if (a == 0 && b < 0) return TypeError("division by zero");
      if (a < 0 && std::isfinite(b) && std::floor(b) != b) {
        return TypeError("the power is not a real number");
      }
      const double out = std::pow(a, b);
      if (std::isinf(out) && std::isfinite(a) && std::isfinite(b)) {
        return TypeError("the power is too large");
      }
      return Var::Float(out);
    }
    default:
      return absl::InternalError("no arithmetic operator");
  }
}

absl::StatusOr<Var> Repeat(Evaluator& evaluator, const Var& value,
                           std::int64_t times) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
  const std::size_t size = value.is_string()
                               ? value.text().size()
                               : value.sequence().items.size() * sizeof(Var);
  if (size != 0 && count > std::numeric_limits<std::size_t>::max() / size) {
    return evaluator.ChargeBytes(std::numeric_limits<std::size_t>::max());
  }
  // Before anything is made.
  FUCINA_RETURN_IF_ERROR(evaluator.ChargeBytes(size * count));
  if (value.is_string()) {
    Text out;
    for (std::size_t i = 0; i < count && size != 0; ++i) {
      out.Append(value.text());
    }
    return evaluator.NewString(std::move(out));
  }
  std::vector<Var> items;
  const std::vector<Var>& source = value.sequence().items;
  for (std::size_t i = 0; i < count && size != 0; ++i) {
    items.insert(items.end(), source.begin(), source.end());
  }
  return evaluator.NewSequence(value.sequence().flavor, std::move(items));
}

// Python's markup type escapes what is added to it. Where that would change
// the text, the difference must not pass unnoticed.
absl::Status CheckMarkup(const Var& a, const Var& b) {
  const bool escapes_b = a.is_markup() && !b.is_markup() &&
                         b.bytes().find_first_of("<>&\"'") != std::string::npos;
  const bool escapes_a = b.is_markup() && !a.is_markup() &&
                         a.bytes().find_first_of("<>&\"'") != std::string::npos;
  if (!escapes_a && !escapes_b) return absl::OkStatus();
  return TypeError(
      "unsupported: text with HTML characters added to a result of 'safe'");
}

// --- comparison -------------------------------------------------------------

absl::StatusOr<bool> EqualDicts(Evaluator& evaluator, Dict& a, Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  // In the dict's order, not the index's, so that an error is always the same.
  for (const auto& [key, value] : a.entries) {
    const Var* other = b.Find(HashKey(key));
    if (other == nullptr) return false;
    FUCINA_ASSIGN_OR_RETURN(const bool equal, Equal(evaluator, value, *other));
    if (!equal) return false;
  }
  return true;
}

}  // namespace

absl::Status TypeError(string_view message) {
  return absl::InvalidArgumentError(message);
}

absl::Status UndefinedError(const Var& value) {
  return absl::InvalidArgumentError(value.note().empty() ? "value is undefined"
                                                         : value.note());
}

bool Truthy(const Var& value) {
  switch (value.kind()) {
    case VarKind::kAbsent:
    case VarKind::kUndefined:
    case VarKind::kNone:
      return false;
    case VarKind::kBool:
    case VarKind::kInt:
      return value.integer() != 0;
    case VarKind::kFloat:
      return value.real() != 0;
    case VarKind::kString:
      return !value.text().empty();
    case VarKind::kSequence:
      return value.sequence().flavor == Sequence::Flavor::kIterator ||
             !value.sequence().items.empty();
    case VarKind::kDict:
      return !value.dict().entries.empty();
    default:
      return true;
  }
}

absl::StatusOr<bool> Equal(Evaluator& evaluator, const Var& a, const Var& b) {
  const Evaluator::Depth depth(evaluator);
  FUCINA_RETURN_IF_ERROR(depth.status());
  FUCINA_RETURN_IF_ERROR(evaluator.Charge(1));
  if (a.is_numeric() && b.is_numeric()) return Wide(a) == Wide(b);
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case VarKind::kUndefined:
    case VarKind::kNone:
      return true;
    case VarKind::kNumber:
      return a.note() == b.note();
    case VarKind::kString:
      FUCINA_RETURN_IF_ERROR(evaluator.Charge(a.text().size() / 256));
      return a.bytes() == b.bytes();
    case VarKind::kDict:
      return EqualDicts(evaluator, a.dict(), b.dict());
    case VarKind::kSequence: {
      const Sequence& x = a.sequence();
      const Sequence& y = b.sequence();
      if (&x == &y) return true;
      if (x.flavor != y.flavor || x.flavor == Sequence::Flavor::kIterator) {
        return false;
      }
      if (x.flavor == Sequence::Flavor::kView) {
        return TypeError("dict views cannot be compared; make lists of them");
      }
      if (x.items.size() != y.items.size()) return false;
      for (std::size_t i = 0; i < x.items.size(); ++i) {
        FUCINA_ASSIGN_OR_RETURN(const bool equal,
                                Equal(evaluator, x.items[i], y.items[i]));
        if (!equal) return false;
      }
      return true;
    }
    default:
      return a.object() == b.object();
  }
}

absl::StatusOr<bool> Less(Evaluator& evaluator, const Var& a, const Var& b) {
  return Compare(evaluator, Operator::kLess, a, b);
}

absl::StatusOr<bool> Compare(Evaluator& evaluator, Operator op, const Var& a,
                             const Var& b) {
  switch (op) {
    case Operator::kEqual:
      return Equal(evaluator, a, b);
    case Operator::kNotEqual: {
      FUCINA_ASSIGN_OR_RETURN(const bool equal, Equal(evaluator, a, b));
      return !equal;
    }
    case Operator::kIn:
      return Contains(evaluator, b, a);
    case Operator::kNotIn: {
      FUCINA_ASSIGN_OR_RETURN(const bool inside, Contains(evaluator, b, a));
      return !inside;
    }
    default:
      break;
  }
  const Evaluator::Depth depth(evaluator);
  FUCINA_RETURN_IF_ERROR(depth.status());
  FUCINA_RETURN_IF_ERROR(evaluator.Charge(1));
  auto ordered = [&](const auto& x, const auto& y) {
    switch (op) {
      case Operator::kLess:
        return x < y;
      case Operator::kLessEqual:
        return x <= y;
      case Operator::kGreater:
        return x > y;
      default:
        return x >= y;
    }
  };
  if (a.is_numeric() && b.is_numeric()) return ordered(Wide(a), Wide(b));
  if (a.is_string() && b.is_string()) {
    // Byte order of UTF-8 is code point order.
    FUCINA_RETURN_IF_ERROR(evaluator.Charge(a.text().size() / 256));
    return ordered(a.bytes(), b.bytes());
  }
  if (IsPlainSequence(a) && IsPlainSequence(b) &&
      a.sequence().flavor == b.sequence().flavor) {
    const std::vector<Var>& x = a.sequence().items;
    const std::vector<Var>& y = b.sequence().items;
    for (std::size_t i = 0; i < x.size() && i < y.size(); ++i) {
      FUCINA_ASSIGN_OR_RETURN(const bool equal, Equal(evaluator, x[i], y[i]));
      if (!equal) return Compare(evaluator, op, x[i], y[i]);
    }
    return ordered(x.size(), y.size());
  }
  return OperandError(op, a, b);
}

absl::StatusOr<bool> Contains(Evaluator& evaluator, const Var& container,
                              const Var& item) {
  switch (container.kind()) {
    case VarKind::kUndefined:
      return false;
    case VarKind::kString:
      if (!item.is_string()) {
        if (item.is_undefined()) return UndefinedError(item);
        return TypeError(
            absl::StrCat("'in' a text needs a text, found ", TypeName(item)));
      }
      FUCINA_RETURN_IF_ERROR(evaluator.Charge(
          1 + (container.text().size() + item.text().size()) / 256));
      return FindBytes(container.bytes(), item.bytes(), 0) != kNotFound;
    case VarKind::kDict: {
      const std::string hash = HashKey(item);
      if (hash.empty() && !item.is_undefined()) {
        return TypeError(
            absl::StrCat("a ", TypeName(item), " cannot be a key"));
      }
      return !hash.empty() && container.dict().Find(hash) != nullptr;
    }
    case VarKind::kSequence: {
      Sequence& sequence = container.sequence();
      const bool takes = sequence.flavor == Sequence::Flavor::kIterator;
      for (std::size_t i = takes ? sequence.consumed : 0;
           i < sequence.items.size(); ++i) {
        if (takes) sequence.consumed = i + 1;
        FUCINA_ASSIGN_OR_RETURN(const bool equal,
                                Equal(evaluator, sequence.items[i], item));
        if (equal) return true;
      }
      return false;
    }
    default:
      return TypeError(absl::StrCat("'in' needs a text, list or dict, found ",
                                    TypeName(container)));
  }
}

absl::StatusOr<Var> Arithmetic(Evaluator& evaluator, Operator op, const Var& a,
                               const Var& b) {
  if (a.is_numeric() && b.is_numeric()) {
    if (a.is_integral() && b.is_integral()) {
      return IntArithmetic(op, a.integer(), b.integer());
    }
    return FloatArithmetic(op, a.AsDouble(), b.AsDouble());
  }
  if (op == Operator::kAdd && a.is_string() && b.is_string()) {
    FUCINA_RETURN_IF_ERROR(CheckMarkup(a, b));
    Text out = a.text();
    out.Append(b.text());
    return evaluator.NewString(std::move(out));
  }
  if (op == Operator::kAdd && IsPlainSequence(a) && IsPlainSequence(b) &&
      a.sequence().flavor == b.sequence().flavor) {
    std::vector<Var> items = a.sequence().items;
    const std::vector<Var>& more = b.sequence().items;
    items.insert(items.end(), more.begin(), more.end());
    return evaluator.NewSequence(a.sequence().flavor, std::move(items));
  }
  if (op == Operator::kMultiply) {
    const bool left = a.is_string() || IsPlainSequence(a);
    const bool right = b.is_string() || IsPlainSequence(b);
    if (left && b.is_integral()) return Repeat(evaluator, a, b.integer());
    if (right && a.is_integral()) return Repeat(evaluator, b, a.integer());
  }
  if (op == Operator::kModulo && a.is_string()) {
    return TypeError("unsupported: '%' formatting of text");
  }
  return OperandError(op, a, b);
}

absl::StatusOr<Var> Negate(const Var& value) {
  if (value.is_undefined()) return UndefinedError(value);
  if (value.kind() == VarKind::kFloat) return Var::Float(-value.real());
  if (!value.is_integral()) {
    return TypeError(
        absl::StrCat("unary - needs a number, found ", TypeName(value)));
  }
  if (value.integer() == std::numeric_limits<std::int64_t>::min()) {
    return OverflowError();
  }
  return Var::Int(-value.integer());
}

// --- numbers from text ------------------------------------------------------

absl::StatusOr<std::optional<std::int64_t>> ParseInt(string_view text,
                                                     int base) {
  text = StripSpace(text);
  bool negative = false;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text.size() > 2 && text[0] == '0') {
    const char mark = absl::ascii_tolower(text[1]);
    if ((base == 16 && mark == 'x') || (base == 8 && mark == 'o') ||
        (base == 2 && mark == 'b')) {
      text.remove_prefix(2);
      if (text[0] == '_') text.remove_prefix(1);
    }
  }
  if (text.empty()) return std::optional<std::int64_t>();
  std::int64_t out = 0;
  bool overflow = false;
  bool after_digit = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = absl::ascii_tolower(text[i]);
    if (c == '_') {
      if (!after_digit || i + 1 == text.size()) {
        return std::optional<std::int64_t>();
      }
      after_digit = false;
      continue;
    }
    const int digit = absl::ascii_isdigit(c)   ? c - '0'
                      : absl::ascii_isalpha(c) ? c - 'a' + 10
                                               : 99;
    if (digit >= base) return std::optional<std::int64_t>();
    overflow = overflow || __builtin_mul_overflow(out, base, &out) ||
               (negative ? __builtin_sub_overflow(out, digit, &out)
                         : __builtin_add_overflow(out, digit, &out));
    after_digit = true;
  }
  if (overflow) return OverflowError();
  return std::optional<std::int64_t>(out);
}

std::optional<double> ParseFloat(string_view text) {
  text = StripSpace(text);
  std::string clean;
  std::size_t at = 0;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) {
    if (text[at] == '-') clean.push_back('-');
    ++at;
  }
  const std::string word = absl::AsciiStrToLower(text.substr(at));
  double out = 0;
  if (word == "inf" || word == "infinity") {
    out = std::numeric_limits<double>::infinity();
    return clean.empty() ? out : -out;
  }
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  // Digits, single underscores between digits, one point, one exponent.
  bool digits = false, point = false, exponent = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    const bool before = at > 0 && absl::ascii_isdigit(text[at - 1]);
    if (absl::ascii_isdigit(c)) {
      digits = true;
    } else if (c == '_') {
      if (!before || at + 1 >= text.size() ||
          !absl::ascii_isdigit(text[at + 1])) {
        return std::nullopt;
      }
      continue;
    } else if (c == '.') {
      if (point || exponent) return std::nullopt;
      point = true;
    } else if (c == 'e' || c == 'E') {
      if (exponent || !digits) return std::nullopt;
      exponent = true;
      digits = false;
      clean.push_back('e');
      if (at + 1 < text.size() &&
          (text[at + 1] == '+' || text[at + 1] == '-')) {
        clean.push_back(text[++at]);
      }
      continue;
    } else {
      return std::nullopt;
    }
    clean.push_back(c);
  }
  if (!digits || !absl::SimpleAtod(clean, &out)) return std::nullopt;
  return out;
}

// --- sorting ----------------------------------------------------------------

absl::Status SortByKey(Evaluator& evaluator, std::vector<Var>* keys,
                       std::vector<Var>* items, bool reverse) {
  const std::size_t n = keys->size();
  std::vector<std::size_t> order(n), merged(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = i;
  // A merge sort of our own: comparing may fail, and an order that is none
  // (NaN) must not confuse a library's sort.
  for (std::size_t width = 1; width < n; width *= 2) {
    for (std::size_t begin = 0; begin < n; begin += 2 * width) {
      const std::size_t middle = std::min(begin + width, n);
      const std::size_t end = std::min(begin + 2 * width, n);
      std::size_t left = begin, right = middle;
      for (std::size_t out = begin; out < end; ++out) {
        bool take_right = left == middle;
        if (left < middle && right < end) {
          const Var& x = (*keys)[order[left]];
          const Var& y = (*keys)[order[right]];
          // Equal keys keep their order, reversed or not, as in Python.
          FUCINA_ASSIGN_OR_RETURN(take_right, reverse ? Less(evaluator, x, y)
                                                      : Less(evaluator, y, x));
        }
        merged[out] = take_right ? order[right++] : order[left++];
      }
    }
    std::swap(order, merged);
  }
  std::vector<Var> sorted_keys, sorted_items;
  for (const std::size_t i : order) {
    sorted_keys.push_back(std::move((*keys)[i]));
    sorted_items.push_back(std::move((*items)[i]));
  }
  *keys = std::move(sorted_keys);
  *items = std::move(sorted_items);
  return absl::OkStatus();
}

}  // namespace fucina::jinja
