#include "core/jinja/object.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace fucina::jinja {

Object::~Object() = default;

Var Var::Bool(bool value) {
  Var out(VarKind::kBool);
  out.integer_ = value ? 1 : 0;
  return out;
}

Var Var::Int(std::int64_t value) {
  Var out(VarKind::kInt);
  out.integer_ = value;
  return out;
}

Var Var::Float(double value) {
  Var out(VarKind::kFloat);
  out.real_ = value;
  return out;
}

Var Var::Number(std::string digits) {
  Var out(VarKind::kNumber);
  out.text_ = std::make_shared<Text>(digits, Origin::kTemplate);
  return out;
}

Var Var::Undefined(std::string message) {
  Var out(VarKind::kUndefined);
  out.text_ = std::make_shared<Text>(message, Origin::kTemplate);
  return out;
}

Var Var::String(std::shared_ptr<const Text> text) {
  Var out(VarKind::kString);
  out.text_ = std::move(text);
  return out;
}

Var Var::Of(VarKind kind, Object* object) {
  Var out(kind);
  out.object_ = object;
  return out;
}

absl::string_view Var::note() const {
  return text_ == nullptr ? absl::string_view() : text_->bytes();
}

Sequence& Var::sequence() const { return *static_cast<Sequence*>(object_); }
Dict& Var::dict() const { return *static_cast<Dict*>(object_); }

Var Var::AsMarkup() const {
  Var out = *this;
  out.markup_ = true;
  return out;
}

Var* Dict::Find(const std::string& hash) {
  const auto found = index.find(hash);
  return found == index.end() ? nullptr : &entries[found->second].second;
}

Var* Dict::FindText(absl::string_view key) {
  return Find(absl::StrCat("s", key));
}

void Dict::Set(std::string hash, Var key, Var value) {
  const auto [found, is_new] = index.emplace(std::move(hash), entries.size());
  if (is_new) {
    entries.emplace_back(std::move(key), std::move(value));
  } else {
    entries[found->second].second = std::move(value);
  }
}

void Dict::Erase(std::size_t position) {
  entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(position));
  for (auto it = index.begin(); it != index.end();) {
    if (it->second == position) {
      index.erase(it++);
      continue;
    }
    if (it->second > position) --it->second;
    ++it;
  }
}

Var* Scope::Find(Symbol symbol) {
  for (auto& [name, value] : names) {
    if (name == symbol) return &value;
  }
  return nullptr;
}

void Scope::Set(Symbol symbol, Var value) {
  if (Var* old = Find(symbol)) {
    *old = std::move(value);
  } else {
    names.emplace_back(symbol, std::move(value));
  }
}

absl::string_view TypeName(const Var& value) {
  switch (value.kind()) {
    case VarKind::kAbsent:
    case VarKind::kUndefined:
      return "undefined";
    case VarKind::kNone:
      return "none";
    case VarKind::kBool:
      return "bool";
    case VarKind::kInt:
    case VarKind::kNumber:
      return "int";
    case VarKind::kFloat:
      return "float";
    case VarKind::kString:
      return "str";
    case VarKind::kDict:
      return "dict";
    case VarKind::kNamespace:
      return "namespace";
    case VarKind::kLoop:
      return "loop";
    case VarKind::kMacro:
      return "macro";
    case VarKind::kFunction:
      return "function";
    case VarKind::kMethod:
      return "method";
    case VarKind::kCycler:
      return "cycler";
    case VarKind::kJoiner:
      return "joiner";
    case VarKind::kSequence:
      break;
  }
  const Sequence& sequence = value.sequence();
  switch (sequence.flavor) {
    case Sequence::Flavor::kList:
      return "list";
    case Sequence::Flavor::kTuple:
      return "tuple";
    case Sequence::Flavor::kRange:
      return "range";
    case Sequence::Flavor::kView:
    case Sequence::Flavor::kIterator:
      break;
  }
  return sequence.type_name;
}

std::string HashKey(const Var& key) {
  switch (key.kind()) {
    case VarKind::kNone:
      return "n";
    case VarKind::kBool:
    case VarKind::kInt:
      return absl::StrCat("i", key.integer());
    case VarKind::kNumber:
      return absl::StrCat("i", key.note());
    case VarKind::kFloat: {
      const double real = key.real();
      if (std::floor(real) == real && std::fabs(real) < 9.2e18) {
        return absl::StrCat("i", static_cast<std::int64_t>(real));
      }
      std::uint64_t bits;
      std::memcpy(&bits, &real, sizeof bits);
      return absl::StrCat("f", bits);
    }
    case VarKind::kString:
      return absl::StrCat("s", key.bytes());
    case VarKind::kSequence: {
      const Sequence& sequence = key.sequence();
      if (sequence.flavor != Sequence::Flavor::kTuple) return "";
      std::string out = "t";
      for (const Var& item : sequence.items) {
        // Tuples of tuples are no keys that templates use, and would recurse.
        if (item.is_sequence()) return "";
        const std::string part = HashKey(item);
        if (part.empty()) return "";
        absl::StrAppend(&out, part.size(), ":", part);
      }
      return out;
    }
    default:
      return "";
  }
}

}  // namespace fucina::jinja
