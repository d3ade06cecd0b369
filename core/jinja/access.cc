// Attributes, items, slices and iteration: how a template reaches into values.
// Methods are the only attributes that values have; nothing of the host is
// reachable.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/jinja/evaluator.h"
#include "core/jinja/methods.h"
#include "core/jinja/python.h"
#include "core/jinja/unicode.h"
#include "fucina/diag/status_macros.h"

namespace fucina::jinja {
namespace {

std::string Missing(const Var& object, absl::string_view name) {
  return absl::StrCat("a ", TypeName(object), " has no attribute '", name, "'");
}

// Python's slice rule: which positions start:stop:step takes of `size`.
struct SliceRange {
  std::int64_t start = 0, stop = 0, step = 1;
};

absl::StatusOr<std::int64_t> SliceBound(const Var& bound, std::int64_t missing,
                                        std::int64_t size, std::int64_t step) {
  if (bound.is_none()) return missing;
  if (bound.is_undefined()) return UndefinedError(bound);
  if (!bound.is_integral()) {
    return TypeError(
        absl::StrCat("a slice needs integers, found ", TypeName(bound)));
  }
  const std::int64_t low = step < 0 ? -1 : 0;
  const std::int64_t high = step < 0 ? size - 1 : size;
  std::int64_t at = bound.integer();
  if (at < 0) {
    at = at < -size ? low : at + size;
  }
  return std::clamp(at, low, std::max(high, low));
}

absl::StatusOr<SliceRange> ResolveSlice(const Var& start, const Var& stop,
                                        const Var& step, std::int64_t size) {
  SliceRange out;
  if (!step.is_none()) {
    if (step.is_undefined()) return UndefinedError(step);
    if (!step.is_integral()) {
      return TypeError(
          absl::StrCat("a slice needs integers, found ", TypeName(step)));
    }
    out.step = step.integer();
    if (out.step == 0) return TypeError("the step of a slice cannot be 0");
  }
  const bool down = out.step < 0;
  FUCINA_ASSIGN_OR_RETURN(
      out.start, SliceBound(start, down ? size - 1 : 0, size, out.step));
  FUCINA_ASSIGN_OR_RETURN(out.stop,
                          SliceBound(stop, down ? -1 : size, size, out.step));
  return out;
}

std::vector<std::size_t> SlicePositions(const SliceRange& range) {
  std::vector<std::size_t> out;
  if (range.step > 0) {
    for (std::int64_t i = range.start; i < range.stop;) {
      out.push_back(static_cast<std::size_t>(i));
      if (range.step > range.stop - i) break;
      i += range.step;
    }
  } else {
    for (std::int64_t i = range.start; i > range.stop;) {
      out.push_back(static_cast<std::size_t>(i));
      if (range.step < range.stop - i) break;
      i += range.step;
    }
  }
  return out;
}

// Where each character starts, and the end.
std::vector<std::size_t> CharStarts(const std::string& bytes) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < bytes.size(); i += DecodeChar(bytes, i).size) {
    out.push_back(i);
  }
  out.push_back(bytes.size());
  return out;
}

// Offset of character `index`, which may count from the end; kAbsent past it.
std::optional<std::size_t> CharAt(const std::string& bytes,
                                  std::int64_t index) {
  if (index >= 0) {
    for (std::size_t i = 0; i < bytes.size(); i += DecodeChar(bytes, i).size) {
      if (index-- == 0) return i;
    }
    return std::nullopt;
  }
  for (std::size_t end = bytes.size(); end > 0;) {
    end -= DecodeCharBefore(bytes, end).size;
    if (++index == 0) return end;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<Var> Evaluator::GetAttribute(const Var& object,
                                            absl::string_view name) {
  switch (object.kind()) {
    case VarKind::kUndefined:
      return UndefinedError(object);
    case VarKind::kLoop:
      return LoopAttribute(*static_cast<Loop*>(object.object()), name);
    case VarKind::kNamespace:
      if (const Var* value = object.dict().FindText(name)) return *value;
      return Var::Undefined(
          absl::StrCat("the namespace has no attribute '", name, "'"));
    case VarKind::kCycler: {
      const auto& cycler = *static_cast<Cycler*>(object.object());
      if (name == "current") return cycler.items[cycler.at];
      break;
    }
    default:
      break;
  }
  if (HasMethod(object, name)) {
    FUCINA_RETURN_IF_ERROR(ChargeBytes(sizeof(Method)));
    auto* method = New<Method>();
    method->self = object;
    method->name = std::string(name);
    return Var::Of(VarKind::kMethod, method);
  }
  if (object.is_dict()) {
    if (const Var* value = object.dict().FindText(name)) return *value;
  }
  return Var::Undefined(Missing(object, name));
}

absl::StatusOr<Var> Evaluator::GetItem(const Var& object, const Var& key) {
  if (object.is_undefined()) return UndefinedError(object);
  if (object.is_dict()) {
    const std::string hash = HashKey(key);
    if (!hash.empty()) {
      if (const Var* value = object.dict().Find(hash)) return *value;
    }
  } else if (object.is_sequence() && key.is_integral() &&
             object.sequence().flavor != Sequence::Flavor::kView &&
             object.sequence().flavor != Sequence::Flavor::kIterator) {
    const std::vector<Var>& items = object.sequence().items;
    const auto size = static_cast<std::int64_t>(items.size());
    std::int64_t index = key.integer();
    if (index < 0) index += size;
    if (index >= 0 && index < size) {
      return items[static_cast<std::size_t>(index)];
    }
  } else if (object.is_string() && key.is_integral()) {
    const std::string& bytes = object.bytes();
    FUCINA_RETURN_IF_ERROR(Charge(bytes.size() / 64));
    if (const auto at = CharAt(bytes, key.integer())) {
      return NewString(
          object.text().Substr(*at, *at + DecodeChar(bytes, *at).size));
    }
  }
  if (key.is_string()) return GetAttribute(object, key.bytes());
  if (key.is_integral()) {
    return Var::Undefined(absl::StrCat("a ", TypeName(object),
                                       " has no element ", key.integer()));
  }
  return Var::Undefined(absl::StrCat("a ", TypeName(object),
                                     " has no element for a ", TypeName(key)));
}

absl::StatusOr<Var> Evaluator::GetSlice(const Var& object, const Var& start,
                                        const Var& stop, const Var& step) {
  if (object.is_undefined()) return UndefinedError(object);
  if (object.is_string()) {
    const Text& text = object.text();
    FUCINA_RETURN_IF_ERROR(ChargeBytes(text.size() * sizeof(std::size_t)));
    const std::vector<std::size_t> starts = CharStarts(text.bytes());
    FUCINA_ASSIGN_OR_RETURN(
        const SliceRange range,
        ResolveSlice(start, stop, step,
                     static_cast<std::int64_t>(starts.size()) - 1));
    if (range.step == 1) {
      if (range.start >= range.stop) return NewString("", Origin::kTemplate);
      return NewString(
          text.Substr(starts[static_cast<std::size_t>(range.start)],
                      starts[static_cast<std::size_t>(range.stop)]));
    }
    Text out;
    for (const std::size_t i : SlicePositions(range)) {
      out.AppendRange(text, starts[i], starts[i + 1]);
    }
    return NewString(std::move(out));
  }
  if (!object.is_sequence() ||
      object.sequence().flavor == Sequence::Flavor::kView ||
      object.sequence().flavor == Sequence::Flavor::kIterator) {
    return TypeError(absl::StrCat("a ", TypeName(object), " cannot be sliced"));
  }
  const Sequence& sequence = object.sequence();
  FUCINA_ASSIGN_OR_RETURN(
      const SliceRange range,
      ResolveSlice(start, stop, step,
                   static_cast<std::int64_t>(sequence.items.size())));
  std::vector<Var> items;
  for (const std::size_t i : SlicePositions(range)) {
    items.push_back(sequence.items[i]);
  }
  return NewSequence(sequence.flavor, std::move(items));
}

absl::StatusOr<std::vector<Var>> Evaluator::Items(const Var& value) {
  std::vector<Var> out;
  switch (value.kind()) {
    case VarKind::kUndefined:
      return out;
    case VarKind::kString: {
      const Text& text = value.text();
      for (std::size_t i = 0; i < text.size();) {
        const std::size_t size = DecodeChar(text.bytes(), i).size;
        FUCINA_ASSIGN_OR_RETURN(Var c, NewString(text.Substr(i, i + size)));
        out.push_back(std::move(c));
        i += size;
      }
      return out;
    }
    case VarKind::kSequence: {
      Sequence& sequence = value.sequence();
      FUCINA_RETURN_IF_ERROR(Charge(sequence.items.size()));
      FUCINA_RETURN_IF_ERROR(ChargeBytes(sequence.items.size() * sizeof(Var)));
      if (sequence.flavor != Sequence::Flavor::kIterator) {
        return sequence.items;
      }
      for (; sequence.consumed < sequence.items.size(); ++sequence.consumed) {
        out.push_back(sequence.items[sequence.consumed]);
      }
      return out;
    }
    case VarKind::kDict:
      FUCINA_RETURN_IF_ERROR(Charge(value.dict().entries.size()));
      for (const auto& entry : value.dict().entries) {
        out.push_back(entry.first);
      }
      return out;
    default:
      return TypeError(
          absl::StrCat("a ", TypeName(value), " cannot be iterated"));
  }
}

absl::StatusOr<std::int64_t> Length(Evaluator&, const Var& value) {
  switch (value.kind()) {
    case VarKind::kUndefined:
      return 0;
    case VarKind::kString:
      return static_cast<std::int64_t>(CountChars(value.bytes()));
    case VarKind::kSequence:
      if (value.sequence().flavor != Sequence::Flavor::kIterator) {
        return static_cast<std::int64_t>(value.sequence().items.size());
      }
      break;
    case VarKind::kDict:
      return static_cast<std::int64_t>(value.dict().entries.size());
    default:
      break;
  }
  return TypeError(absl::StrCat("a ", TypeName(value), " has no length"));
}

}  // namespace fucina::jinja
