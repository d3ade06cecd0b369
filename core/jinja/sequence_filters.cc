// Filters of sequences and dicts. Those that Python's Jinja writes as
// generators give iterators here too: they are read once and have no length.

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/jinja/evaluator.h"
#include "core/jinja/filters.h"
#include "core/jinja/python.h"
#include "core/jinja/string_ops.h"
#include "fucina/diag/status_macros.h"

namespace fucina::jinja {
namespace {

using absl::string_view;

// --- attributes -------------------------------------------------------------

// "a.b.0" as a way into a value; an integer is one index.
class Path {
 public:
  static absl::StatusOr<Path> Of(Evaluator& evaluator, const Var& attribute) {
    Path out;
    if (attribute.is_integral()) {
      out.keys_.push_back(attribute);
      return out;
    }
    if (!attribute.is_string()) {
      return TypeError(absl::StrCat("an attribute must be a text, found ",
                                    TypeName(attribute)));
    }
    return Of(evaluator, attribute.bytes());
  }

  static absl::StatusOr<Path> Of(Evaluator& evaluator, string_view dotted) {
    Path out;
    for (const string_view part : absl::StrSplit(dotted, '.')) {
      std::int64_t index = 0;
      if (!part.empty() &&
          part.find_first_not_of("0123456789") == string_view::npos &&
          absl::SimpleAtoi(part, &index)) {
        out.keys_.push_back(Var::Int(index));
        continue;
      }
      FUCINA_ASSIGN_OR_RETURN(Var key,
                              evaluator.NewString(part, Origin::kTemplate));
      out.keys_.push_back(std::move(key));
    }
    return out;
  }

  absl::StatusOr<Var> Get(Evaluator& evaluator, Var value) const {
    FUCINA_RETURN_IF_ERROR(evaluator.Charge(1));
    for (const Var& key : keys_) {
      FUCINA_ASSIGN_OR_RETURN(value, evaluator.GetItem(value, key));
    }
    return value;
  }

 private:
  std::vector<Var> keys_;
};

absl::StatusOr<Var> FoldCase(Evaluator& evaluator, Var value,
                             bool case_sensitive) {
  if (case_sensitive || !value.is_string()) return value;
  return evaluator.NewString(MapCase(value.text(), Case::kLower));
}

// The keys to sort `items` by: the items or an attribute of them, in lower
// case unless `case_sensitive`. "a,b" sorts by both.
absl::StatusOr<std::vector<Var>> SortKeys(Evaluator& evaluator,
                                          const std::vector<Var>& items,
                                          const Var& attribute,
                                          bool case_sensitive) {
  std::vector<Path> paths;
  if (!attribute.is_absent() && !attribute.is_none()) {
    if (attribute.is_string()) {
      for (const string_view one : absl::StrSplit(attribute.bytes(), ',')) {
        FUCINA_ASSIGN_OR_RETURN(Path path, Path::Of(evaluator, one));
        paths.push_back(std::move(path));
      }
    } else {
      FUCINA_ASSIGN_OR_RETURN(Path path, Path::Of(evaluator, attribute));
      paths.push_back(std::move(path));
    }
  }
  std::vector<Var> keys;
  for (const Var& item : items) {
    if (paths.empty()) {
      FUCINA_ASSIGN_OR_RETURN(Var key,
                              FoldCase(evaluator, item, case_sensitive));
      keys.push_back(std::move(key));
      continue;
    }
    std::vector<Var> parts;
    for (const Path& path : paths) {
      FUCINA_ASSIGN_OR_RETURN(Var part, path.Get(evaluator, item));
      FUCINA_ASSIGN_OR_RETURN(
          part, FoldCase(evaluator, std::move(part), case_sensitive));
      parts.push_back(std::move(part));
    }
    FUCINA_ASSIGN_OR_RETURN(Var key, evaluator.NewList(std::move(parts)));
    keys.push_back(std::move(key));
  }
  return keys;
}

// --- filters ----------------------------------------------------------------

absl::StatusOr<Var> Batch(Evaluator& evaluator, Arguments& arguments) {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Var> items,
                          evaluator.Items(arguments.positional[0]));
  FUCINA_ASSIGN_OR_RETURN(const std::int64_t size,
                          IntArgument("batch", arguments, 1, 0));
  if (size < 1) return TypeError("'batch' needs a size of at least 1");
  std::vector<Var> out;
  for (std::size_t i = 0; i < items.size();) {
    std::vector<Var> row;
    for (; i < items.size() && static_cast<std::int64_t>(row.size()) < size;
         ++i) {
      row.push_back(items[i]);
    }
    if (Given(arguments, 2)) {
      while (static_cast<std::int64_t>(row.size()) < size) {
        FUCINA_RETURN_IF_ERROR(evaluator.ChargeBytes(sizeof(Var)));
        row.push_back(arguments.positional[2]);
      }
    }
    FUCINA_ASSIGN_OR_RETURN(Var list, evaluator.NewList(std::move(row)));
    out.push_back(std::move(list));
  }
  return evaluator.NewIterator(std::move(out));
}

absl::StatusOr<Var> Slice(Evaluator& evaluator, Arguments& arguments) {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Var> items,
                          evaluator.Items(arguments.positional[0]));
  FUCINA_ASSIGN_OR_RETURN(const std::int64_t slices,
                          IntArgument("slice", arguments, 1, 0));
  if (slices < 1) return TypeError("'slice' needs a number of at least 1");
  FUCINA_RETURN_IF_ERROR(evaluator.Charge(static_cast<std::size_t>(slices)));
  const std::size_t count = static_cast<std::size_t>(slices);
  const std::size_t each = items.size() / count;
  const std::size_t extra = items.size() % count;
  std::vector<Var> out;
  std::size_t at = 0;
  for (std::size_t n = 0; n < count; ++n) {
    std::vector<Var> part;
    for (std::size_t i = 0; i < each + (n < extra ? 1 : 0); ++i) {
      part.push_back(items[at++]);
    }
    if (Given(arguments, 2) && n >= extra) {
      part.push_back(arguments.positional[2]);
    }
    FUCINA_ASSIGN_OR_RETURN(Var list, evaluator.NewList(std::move(part)));
    out.push_back(std::move(list));
  }
  return evaluator.NewIterator(std::move(out));
}

absl::StatusOr<Var> DictSort(Evaluator& evaluator, Arguments& arguments) {
  const Var& value = arguments.positional[0];
  if (value.is_undefined()) return UndefinedError(value);
  if (!value.is_dict()) {
    return TypeError(
        absl::StrCat("'dictsort' needs a dict, found ", TypeName(value)));
  }
  string_view by = "key";
  if (!arguments.positional[2].is_absent()) {
    const Var& name = arguments.positional[2];
    by = name.is_string() ? string_view(name.bytes()) : string_view();
  }
  if (by != "key" && by != "value") {
    return TypeError("'dictsort' sorts by key or by value");
  }
  std::vector<Var> pairs, keys;
  for (const auto& [key, entry] : value.dict().entries) {
    FUCINA_ASSIGN_OR_RETURN(Var sort_key,
                            FoldCase(evaluator, by == "key" ? key : entry,
                                     BoolArgument(arguments, 1, false)));
    FUCINA_ASSIGN_OR_RETURN(
        Var pair,
        evaluator.NewSequence(Sequence::Flavor::kTuple, {key, entry}));
    keys.push_back(std::move(sort_key));
    pairs.push_back(std::move(pair));
  }
  FUCINA_RETURN_IF_ERROR(
      SortByKey(evaluator, &keys, &pairs, BoolArgument(arguments, 3, false)));
  return evaluator.NewList(std::move(pairs));
}

absl::StatusOr<Var> First(Evaluator& evaluator, Arguments& arguments) {
  const Var& value = arguments.positional[0];
  if (value.is_sequence()) {
    Sequence& sequence = value.sequence();
    const bool takes = sequence.flavor == Sequence::Flavor::kIterator;
    const std::size_t at = takes ? sequence.consumed : 0;
    if (at < sequence.items.size()) {
      if (takes) ++sequence.consumed;
      return sequence.items[at];
    }
  } else {
    FUCINA_ASSIGN_OR_RETURN(const std::vector<Var> items,
                            evaluator.Items(value));
    if (!items.empty()) return items.front();
  }
  return Var::Undefined("there is no first item: the sequence is empty");
}

absl::StatusOr<Var> Last(Evaluator& evaluator, Arguments& arguments) {
  const Var& value = arguments.positional[0];
  if (value.is_undefined()) {
    return Var::Undefined("there is no last item: the sequence is empty");
  }
  if (value.is_sequence() &&
      value.sequence().flavor == Sequence::Flavor::kIterator) {
    return TypeError("'last' cannot go backwards through a generator");
  }
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Var> items, evaluator.Items(value));
  if (!items.empty()) return items.back();
  return Var::Undefined("there is no last item: the sequence is empty");
}

absl::StatusOr<Var> ItemsFilter(Evaluator& evaluator, Arguments& arguments) {
  const Var& value = arguments.positional[0];
  if (value.is_undefined()) return evaluator.NewIterator({});
  if (!value.is_dict()) {
    return TypeError(
        absl::StrCat("'items' needs a dict, found ", TypeName(value)));
  }
  std::vector<Var> pairs;
  for (const auto& [key, entry] : value.dict().entries) {
    FUCINA_ASSIGN_OR_RETURN(
        Var pair,
        evaluator.NewSequence(Sequence::Flavor::kTuple, {key, entry}));
    pairs.push_back(std::move(pair));
  }
  return evaluator.NewIterator(std::move(pairs));
}

absl::StatusOr<Var> Join(Evaluator& evaluator, Arguments& arguments) {
  FUCINA_ASSIGN_OR_RETURN(std::vector<Var> items,
                          evaluator.Items(arguments.positional[0]));
  Text separator;
  if (!arguments.positional[1].is_absent()) {
    FUCINA_ASSIGN_OR_RETURN(separator, Str(evaluator, arguments.positional[1]));
  }
  if (Given(arguments, 2)) {
    FUCINA_ASSIGN_OR_RETURN(const Path path,
                            Path::Of(evaluator, arguments.positional[2]));
    for (Var& item : items) {
      FUCINA_ASSIGN_OR_RETURN(item, path.Get(evaluator, item));
    }
  }
  Text out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    FUCINA_ASSIGN_OR_RETURN(const Text text, Str(evaluator, items[i]));
    FUCINA_RETURN_IF_ERROR(
        evaluator.ChargeBytes(text.size() + separator.size()));
    if (i > 0) out.Append(separator);
    out.Append(text);
  }
  return evaluator.NewString(std::move(out));
}

absl::StatusOr<Var> List(Evaluator& evaluator, Arguments& arguments) {
  FUCINA_ASSIGN_OR_RETURN(std::vector<Var> items,
                          evaluator.Items(arguments.positional[0]));
  return evaluator.NewList(std::move(items));
}

absl::StatusOr<Var> Map(Evaluator& evaluator, Arguments& arguments) {
  FUCINA_ASSIGN_OR_RETURN(std::vector<Var> items,
                          evaluator.Items(arguments.positional[0]));
  if (arguments.positional.size() == 1) {
    const Var* attribute = nullptr;
    Var fallback = Var::Absent();
    for (const auto& [name, value] : arguments.keywords) {
      if (name == "attribute") {
        attribute = &value;
      } else if (name == "default") {
        fallback = value;
      } else {
        return TypeError(
            absl::StrCat("filter 'map' takes no argument '", name, "'"));
      }
    }
    if (attribute == nullptr) {
      return TypeError("'map' needs the name of a filter or an attribute");
    }
    FUCINA_ASSIGN_OR_RETURN(const Path path, Path::Of(evaluator, *attribute));
    for (Var& item : items) {
      FUCINA_ASSIGN_OR_RETURN(item, path.Get(evaluator, item));
      if (item.is_undefined() && !fallback.is_absent()) item = fallback;
    }
    return evaluator.NewIterator(std::move(items));
  }
  const Var& name = arguments.positional[1];
  const Builtin* filter = name.is_string() ? FindFilter(name.bytes()) : nullptr;
  if (filter == nullptr) {
    return TypeError(absl::StrCat("unsupported filter '",
                                  name.is_string() ? name.bytes() : "?",
                                  "' in 'map'"));
  }
  // A filter that maps a filter that maps … is a chain the template wrote
  // down, but it is evaluated here.
  const Evaluator::Depth depth(evaluator);
  FUCINA_RETURN_IF_ERROR(depth.status());
  for (Var& item : items) {
    FUCINA_RETURN_IF_ERROR(evaluator.Charge(1));
    Arguments call;
    call.positional.push_back(std::move(item));
    call.positional.insert(call.positional.end(),
                           arguments.positional.begin() + 2,
                           arguments.positional.end());
    call.keywords = arguments.keywords;
    FUCINA_ASSIGN_OR_RETURN(
        item, CallBuiltin(evaluator, "filter", *filter, std::move(call)));
  }
  return evaluator.NewIterator(std::move(items));
}

// select, reject, selectattr, rejectattr.
template <bool kKeep, bool kAttribute>
absl::StatusOr<Var> Select(Evaluator& evaluator, Arguments& arguments) {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Var> items,
                          evaluator.Items(arguments.positional[0]));
  if (!arguments.keywords.empty()) {
    return TypeError("'select' and its kin take no keywords");
  }
  std::size_t next = 1;
  std::optional<Path> path;
  if (kAttribute) {
    if (arguments.positional.size() < 2) {
      return TypeError("'selectattr' and 'rejectattr' need an attribute");
    }
    FUCINA_ASSIGN_OR_RETURN(path,
                            Path::Of(evaluator, arguments.positional[next++]));
  }
  const Builtin* test = nullptr;
  if (next < arguments.positional.size()) {
    const Var& name = arguments.positional[next++];
    test = name.is_string() ? FindTest(name.bytes()) : nullptr;
    if (test == nullptr) {
      return TypeError(absl::StrCat("unsupported test '",
                                    name.is_string() ? name.bytes() : "?",
                                    "' in 'select' or its kin"));
    }
  }
  std::vector<Var> out;
  for (const Var& item : items) {
    FUCINA_RETURN_IF_ERROR(evaluator.Charge(1));
    Var subject = item;
    if (path.has_value()) {
      FUCINA_ASSIGN_OR_RETURN(subject, path->Get(evaluator, item));
    }
    if (test != nullptr) {
      Arguments call;
      call.positional.push_back(std::move(subject));
      call.positional.insert(
          call.positional.end(),
          arguments.positional.begin() + static_cast<std::ptrdiff_t>(next),
          arguments.positional.end());
      FUCINA_ASSIGN_OR_RETURN(
          subject, CallBuiltin(evaluator, "test", *test, std::move(call)));
    }
    if (Truthy(subject) == kKeep) out.push_back(item);
  }
  return evaluator.NewIterator(std::move(out));
}

template <bool kMax>
absl::StatusOr<Var> MinMax(Evaluator& evaluator, Arguments& arguments) {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Var> items,
                          evaluator.Items(arguments.positional[0]));
  if (items.empty()) {
    return Var::Undefined("there is no such item: the sequence is empty");
  }
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Var> keys,
                          SortKeys(evaluator, items, arguments.positional[2],
                                   BoolArgument(arguments, 1, false)));
  std::size_t best = 0;
  for (std::size_t i = 1; i < items.size(); ++i) {
    FUCINA_ASSIGN_OR_RETURN(const bool better,
                            kMax ? Less(evaluator, keys[best], keys[i])
                                 : Less(evaluator, keys[i], keys[best]));
    if (better) best = i;
  }
  return items[best];
}

absl::StatusOr<Var> Reverse(Evaluator& evaluator, Arguments& arguments) {
  const Var& value = arguments.positional[0];
  if (value.is_string()) {
    return evaluator.NewString(ReverseChars(value.text()));
  }
  FUCINA_ASSIGN_OR_RETURN(std::vector<Var> items, evaluator.Items(value));
  std::reverse(items.begin(), items.end());
  return evaluator.NewIterator(std::move(items));
}

absl::StatusOr<Var> Sort(Evaluator& evaluator, Arguments& arguments) {
  FUCINA_ASSIGN_OR_RETURN(std::vector<Var> items,
                          evaluator.Items(arguments.positional[0]));
  FUCINA_ASSIGN_OR_RETURN(std::vector<Var> keys,
                          SortKeys(evaluator, items, arguments.positional[3],
                                   BoolArgument(arguments, 2, false)));
  FUCINA_RETURN_IF_ERROR(
      SortByKey(evaluator, &keys, &items, BoolArgument(arguments, 1, false)));
  return evaluator.NewList(std::move(items));
}

absl::StatusOr<Var> Sum(Evaluator& evaluator, Arguments& arguments) {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Var> items,
                          evaluator.Items(arguments.positional[0]));
  Var total = arguments.positional[2].is_absent() ? Var::Int(0)
                                                  : arguments.positional[2];
  std::optional<Path> path;
  if (Given(arguments, 1)) {
    FUCINA_ASSIGN_OR_RETURN(path, Path::Of(evaluator, arguments.positional[1]));
  }
  for (const Var& item : items) {
    Var term = item;
    if (path.has_value()) {
      FUCINA_ASSIGN_OR_RETURN(term, path->Get(evaluator, item));
    }
    FUCINA_ASSIGN_OR_RETURN(total,
                            Arithmetic(evaluator, Operator::kAdd, total, term));
  }
  return total;
}

absl::StatusOr<Var> Unique(Evaluator& evaluator, Arguments& arguments) {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Var> items,
                          evaluator.Items(arguments.positional[0]));
  std::optional<Path> path;
  if (Given(arguments, 2)) {
    FUCINA_ASSIGN_OR_RETURN(path, Path::Of(evaluator, arguments.positional[2]));
  }
  std::set<std::string> seen;
  std::vector<Var> out;
  for (const Var& item : items) {
    Var key = item;
    if (path.has_value()) {
      FUCINA_ASSIGN_OR_RETURN(key, path->Get(evaluator, item));
    }
    FUCINA_ASSIGN_OR_RETURN(
        key, FoldCase(evaluator, key, BoolArgument(arguments, 1, false)));
    std::string hash = HashKey(key);
    if (hash.empty() && !key.is_undefined()) {
      return TypeError(
          absl::StrCat("'unique' cannot compare a ", TypeName(key)));
    }
    FUCINA_RETURN_IF_ERROR(evaluator.ChargeBytes(hash.size() + 64));
    if (seen.insert(std::move(hash)).second) out.push_back(item);
  }
  return evaluator.NewIterator(std::move(out));
}

constexpr Builtin kFilters[] = {
    {"batch", "linecount,fill_with", 1, Batch},
    {"dictsort", "case_sensitive,by,reverse", 0, DictSort},
    {"first", "", 0, First},
    {"items", "", 0, ItemsFilter},
    {"join", "d,attribute", 0, Join},
    {"last", "", 0, Last},
    {"list", "", 0, List},
    {"map", "...", 0, Map},
    {"max", "case_sensitive,attribute", 0, MinMax<true>},
    {"min", "case_sensitive,attribute", 0, MinMax<false>},
    {"reject", "...", 0, Select<false, false>},
    {"rejectattr", "...", 0, Select<false, true>},
    {"reverse", "", 0, Reverse},
    {"select", "...", 0, Select<true, false>},
    {"selectattr", "...", 0, Select<true, true>},
    {"slice", "slices,fill_with", 1, Slice},
    {"sort", "reverse,case_sensitive,attribute", 0, Sort},
    {"sum", "attribute,start", 0, Sum},
    {"unique", "case_sensitive,attribute", 0, Unique},
};

}  // namespace

std::span<const Builtin> SequenceFilters() { return kFilters; }

}  // namespace fucina::jinja
