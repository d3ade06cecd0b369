#include "core/jinja/methods.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/jinja/evaluator.h"
#include "core/jinja/method_table.h"
#include "core/jinja/python.h"
#include "fucina/diag/status_macros.h"

namespace fucina::jinja {
namespace {

using absl::string_view;
using Args = std::vector<Var>;

// --- list and tuple ---------------------------------------------------------

absl::Status Grow(Evaluator& evaluator, std::size_t items) {
  FUCINA_RETURN_IF_ERROR(evaluator.Charge(items));
  return evaluator.ChargeBytes(items * sizeof(Var));
}

absl::StatusOr<Var> AppendMethod(Evaluator& evaluator, Args& args) {
  FUCINA_RETURN_IF_ERROR(Grow(evaluator, 1));
  args[0].sequence().items.push_back(args[1]);
  return Var::None();
}

absl::StatusOr<Var> ExtendMethod(Evaluator& evaluator, Args& args) {
  FUCINA_ASSIGN_OR_RETURN(const std::vector<Var> more,
                          evaluator.Items(args[1]));
  FUCINA_RETURN_IF_ERROR(Grow(evaluator, more.size()));
  std::vector<Var>& items = args[0].sequence().items;
  items.insert(items.end(), more.begin(), more.end());
  return Var::None();
}

absl::StatusOr<Var> InsertMethod(Evaluator& evaluator, Args& args) {
  std::vector<Var>& items = args[0].sequence().items;
  FUCINA_RETURN_IF_ERROR(Grow(evaluator, 1 + items.size() / 16));
  if (args[1].is_none()) return TypeError("insert needs an integer");
  FUCINA_ASSIGN_OR_RETURN(std::int64_t at, IntOr("insert", args[1], 0));
  const auto size = static_cast<std::int64_t>(items.size());
  if (at < 0) at = at < -size ? 0 : at + size;
  items.insert(items.begin() + std::min(at, size), args[2]);
  return Var::None();
}

absl::StatusOr<Var> ListPopMethod(Evaluator& evaluator, Args& args) {
  std::vector<Var>& items = args[0].sequence().items;
  const auto size = static_cast<std::int64_t>(items.size());
  FUCINA_RETURN_IF_ERROR(evaluator.Charge(1 + items.size() / 16));
  FUCINA_ASSIGN_OR_RETURN(std::int64_t at, IntOr("pop", args[1], -1));
  if (at < 0 && at >= -size) at += size;
  if (at < 0 || at >= size) return TypeError("pop: no such element");
  Var out = items[static_cast<std::size_t>(at)];
  items.erase(items.begin() + at);
  return out;
}

absl::StatusOr<std::int64_t> IndexOf(Evaluator& evaluator, const Args& args) {
  const std::vector<Var>& items = args[0].sequence().items;
  for (std::size_t i = 0; i < items.size(); ++i) {
    FUCINA_ASSIGN_OR_RETURN(const bool equal,
                            Equal(evaluator, items[i], args[1]));
    if (equal) return static_cast<std::int64_t>(i);
  }
  return TypeError("the list does not hold that value");
}

absl::StatusOr<Var> ListIndexMethod(Evaluator& evaluator, Args& args) {
  FUCINA_ASSIGN_OR_RETURN(const std::int64_t at, IndexOf(evaluator, args));
  return Var::Int(at);
}

absl::StatusOr<Var> RemoveMethod(Evaluator& evaluator, Args& args) {
  FUCINA_ASSIGN_OR_RETURN(const std::int64_t at, IndexOf(evaluator, args));
  std::vector<Var>& items = args[0].sequence().items;
  items.erase(items.begin() + at);
  return Var::None();
}

absl::StatusOr<Var> ListCountMethod(Evaluator& evaluator, Args& args) {
  std::int64_t count = 0;
  for (const Var& item : args[0].sequence().items) {
    FUCINA_ASSIGN_OR_RETURN(const bool equal, Equal(evaluator, item, args[1]));
    if (equal) ++count;
  }
  return Var::Int(count);
}

absl::StatusOr<Var> ReverseMethod(Evaluator& evaluator, Args& args) {
  std::vector<Var>& items = args[0].sequence().items;
  FUCINA_RETURN_IF_ERROR(evaluator.Charge(items.size()));
  std::reverse(items.begin(), items.end());
  return Var::None();
}

absl::StatusOr<Var> ListCopyMethod(Evaluator& evaluator, Args& args) {
  return evaluator.NewList(args[0].sequence().items);
}

absl::StatusOr<Var> ListClearMethod(Evaluator&, Args& args) {
  args[0].sequence().items.clear();
  return Var::None();
}

constexpr MethodEntry kListMethods[] = {
    {"append", "-item", 1, AppendMethod},
    {"clear", "", 0, ListClearMethod},
    {"copy", "", 0, ListCopyMethod},
    {"count", "-item", 1, ListCountMethod},
    {"extend", "-items", 1, ExtendMethod},
    {"index", "-item", 1, ListIndexMethod},
    {"insert", "-position,-item", 2, InsertMethod},
    {"pop", "-position", 0, ListPopMethod},
    {"remove", "-item", 1, RemoveMethod},
    {"reverse", "", 0, ReverseMethod},
    {"sort", "", 0, nullptr},
};

constexpr MethodEntry kTupleMethods[] = {
    {"count", "-item", 1, ListCountMethod},
    {"index", "-item", 1, ListIndexMethod},
};

// --- dict -------------------------------------------------------------------

absl::StatusOr<Var> ItemsMethod(Evaluator& evaluator, Args& args) {
  std::vector<Var> items;
  for (const auto& [key, value] : args[0].dict().entries) {
    FUCINA_ASSIGN_OR_RETURN(
        Var pair,
        evaluator.NewSequence(Sequence::Flavor::kTuple, {key, value}));
    items.push_back(std::move(pair));
  }
  return evaluator.NewSequence(Sequence::Flavor::kView, std::move(items),
                               "dict_items");
}

absl::StatusOr<Var> KeysMethod(Evaluator& evaluator, Args& args) {
  std::vector<Var> keys;
  for (const auto& entry : args[0].dict().entries) keys.push_back(entry.first);
  return evaluator.NewSequence(Sequence::Flavor::kView, std::move(keys),
                               "dict_keys");
}

absl::StatusOr<Var> ValuesMethod(Evaluator& evaluator, Args& args) {
  std::vector<Var> values;
  for (const auto& entry : args[0].dict().entries) {
    values.push_back(entry.second);
  }
  return evaluator.NewSequence(Sequence::Flavor::kView, std::move(values),
                               "dict_values");
}

absl::StatusOr<Var> GetMethod(Evaluator&, Args& args) {
  if (const Var* value = args[0].dict().Find(HashKey(args[1]))) return *value;
  return args[2].is_absent() ? Var::None() : args[2];
}

absl::StatusOr<Var> SetDefaultMethod(Evaluator& evaluator, Args& args) {
  if (const Var* value = args[0].dict().Find(HashKey(args[1]))) return *value;
  Var value = args[2].is_absent() ? Var::None() : args[2];
  FUCINA_RETURN_IF_ERROR(evaluator.SetKey(args[0].dict(), args[1], value));
  return value;
}

absl::StatusOr<Var> DictPopMethod(Evaluator& evaluator, Args& args) {
  Dict& dict = args[0].dict();
  const auto found = dict.index.find(HashKey(args[1]));
  if (found == dict.index.end()) {
    if (!args[2].is_absent()) return args[2];
    return TypeError("pop: the dict has no such key");
  }
  FUCINA_RETURN_IF_ERROR(evaluator.Charge(dict.entries.size()));
  const std::size_t position = found->second;
  Var out = dict.entries[position].second;
  dict.Erase(position);
  return out;
}

absl::StatusOr<Var> DictCopyMethod(Evaluator& evaluator, Args& args) {
  FUCINA_ASSIGN_OR_RETURN(Var out, evaluator.NewDict());
  for (const auto& [key, value] : args[0].dict().entries) {
    FUCINA_RETURN_IF_ERROR(evaluator.SetKey(out.dict(), key, value));
  }
  return out;
}

absl::StatusOr<Var> DictClearMethod(Evaluator&, Args& args) {
  args[0].dict().entries.clear();
  args[0].dict().index.clear();
  return Var::None();
}

constexpr MethodEntry kDictMethods[] = {
    {"clear", "", 0, DictClearMethod},
    {"copy", "", 0, DictCopyMethod},
    {"fromkeys", "", 0, nullptr},
    {"get", "-key,-default", 1, GetMethod},
    {"items", "", 0, ItemsMethod},
    {"keys", "", 0, KeysMethod},
    {"pop", "-key,-default", 1, DictPopMethod},
    {"popitem", "", 0, nullptr},
    {"setdefault", "-key,-default", 1, SetDefaultMethod},
    {"update", "...", 0, nullptr},  // takes any keyword; see CallMethod
    {"values", "", 0, ValuesMethod},
};

constexpr MethodEntry kCyclerMethods[] = {
    {"next", "", 0,
     [](Evaluator&, Args& args) -> absl::StatusOr<Var> {
       auto& cycler = *static_cast<Cycler*>(args[0].object());
       Var out = cycler.items[cycler.at];
       cycler.at = (cycler.at + 1) % cycler.items.size();
       return out;
     }},
    {"reset", "", 0,
     [](Evaluator&, Args& args) -> absl::StatusOr<Var> {
       static_cast<Cycler*>(args[0].object())->at = 0;
       return Var::None();
     }},
};

const MethodEntry* FindMethodEntry(const Var& object, string_view name) {
  auto find = [&](const auto& table) -> const MethodEntry* {
    for (const MethodEntry& entry : table) {
      if (entry.name == name) return &entry;
    }
    return nullptr;
  };
  switch (object.kind()) {
    case VarKind::kString:
      return find(StrMethods());
    case VarKind::kDict:
      return find(kDictMethods);
    case VarKind::kCycler:
      return find(kCyclerMethods);
    case VarKind::kSequence:
      if (object.sequence().flavor == Sequence::Flavor::kList) {
        return find(kListMethods);
      }
      if (object.sequence().flavor == Sequence::Flavor::kTuple) {
        return find(kTupleMethods);
      }
      return nullptr;
    default:
      return nullptr;
  }
}

absl::StatusOr<Var> CallLoopMethod(Evaluator& evaluator, Loop& loop,
                                   string_view name, Arguments arguments) {
  std::vector<Var>& values = arguments.positional;
  if (!arguments.keywords.empty()) {
    return TypeError(absl::StrCat("loop.", name, " takes no keywords"));
  }
  if (name == "cycle") {
    if (values.empty()) return TypeError("loop.cycle needs values");
    return values[static_cast<std::size_t>(std::max(loop.index0, 0)) %
                  values.size()];
  }
  bool same = loop.has_changed && loop.changed.size() == values.size();
  for (std::size_t i = 0; same && i < values.size(); ++i) {
    FUCINA_ASSIGN_OR_RETURN(same, Equal(evaluator, loop.changed[i], values[i]));
  }
  loop.has_changed = true;
  loop.changed = std::move(values);
  return Var::Bool(!same);
}

}  // namespace

absl::Status NeedText(string_view what, const Var& value) {
  if (value.is_string()) return absl::OkStatus();
  if (value.is_undefined()) return UndefinedError(value);
  return TypeError(
      absl::StrCat(what, " needs a text, found ", TypeName(value)));
}

absl::StatusOr<std::int64_t> IntOr(string_view what, const Var& value,
                                   std::int64_t fallback) {
  if (value.is_absent() || value.is_none()) return fallback;
  if (value.is_undefined()) return UndefinedError(value);
  if (!value.is_integral()) {
    return TypeError(
        absl::StrCat(what, " needs an integer, found ", TypeName(value)));
  }
  return value.integer();
}

bool HasMethod(const Var& object, string_view name) {
  return FindMethodEntry(object, name) != nullptr;
}

absl::StatusOr<Var> Evaluator::CallMethod(const Var& self, string_view name,
                                          Arguments arguments) {
  if (self.kind() == VarKind::kLoop) {
    return CallLoopMethod(*this, *static_cast<Loop*>(self.object()), name,
                          std::move(arguments));
  }
  if (self.is_dict() && name == "update") {
    FUCINA_ASSIGN_OR_RETURN(
        const Var more, CallFunction(Function::kDict, std::move(arguments)));
    for (const auto& [key, value] : more.dict().entries) {
      FUCINA_RETURN_IF_ERROR(SetKey(self.dict(), key, value));
    }
    return Var::None();
  }
  const MethodEntry* entry = FindMethodEntry(self, name);
  if (entry == nullptr || entry->call == nullptr) {
    return TypeError(
        absl::StrCat("unsupported method '", name, "' of a ", TypeName(self)));
  }
  arguments.positional.insert(arguments.positional.begin(), self);
  FUCINA_ASSIGN_OR_RETURN(
      Args args, BindArguments(name, entry->parameters, entry->required,
                               std::move(arguments), 1));
  if (self.is_string()) FUCINA_RETURN_IF_ERROR(Charge(self.text().size() / 64));
  return entry->call(*this, args);
}

}  // namespace fucina::jinja
