#include "core/jinja/evaluator.h"

#include <algorithm>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "core/jinja/lexer.h"
#include "core/jinja/python.h"
#include "fucina/diag/check.h"
#include "fucina/diag/status_macros.h"

namespace fucina::jinja {
namespace {

// Nested evaluations of any kind. Deep enough for kMaxExpressionDepth inside
// a few macros, shallow enough for a stack of 8 MiB under sanitizers.
constexpr int kMaxDepth = 600;
// Reading the clock costs about as much as this many steps.
constexpr std::size_t kStepsPerClockCheck = 256;
constexpr std::size_t kVarBytes = sizeof(Var);
constexpr std::size_t kObjectBytes = 96;

// Time that this thread has spent on a processor: a busy machine does not make
// a template slower than its limit.
std::int64_t CpuNanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

Evaluator::Evaluator(const ParsedTemplate& parsed, const RenderOptions& options)
    : parsed_(parsed), options_(options) {}

// Objects point at each other without owning, so the arena may go in any order
// and nothing recurses.
Evaluator::~Evaluator() = default;

absl::StatusOr<std::vector<Segment>> Evaluator::Run(const Value& context) {
  cpu_start_ns_ = CpuNanoseconds();
  FUCINA_ASSIGN_OR_RETURN(const Var variables, FromValue(context, 0));
  context_ = &variables.dict();
  globals_.assign(parsed_.symbols.size(), Var::Absent());
  static constexpr std::pair<absl::string_view, Function> kFunctions[] = {
      {"cycler", Function::kCycler},
      {"dict", Function::kDict},
      {"joiner", Function::kJoiner},
      {"namespace", Function::kNamespace},
      {"raise_exception", Function::kRaiseException},
      {"range", Function::kRange},
      {"strftime_now", Function::kStrftimeNow},
  };
  for (std::size_t i = 0; i < parsed_.symbols.size(); ++i) {
    for (const auto& [name, function] : kFunctions) {
      if (parsed_.symbols[i] != name) continue;
      auto* object = New<FunctionObject>();
      object->function = function;
      globals_[i] = Var::Of(VarKind::kFunction, object);
    }
  }
  PushScope(nullptr);
  FUCINA_ASSIGN_OR_RETURN(const Flow flow, RunBody(parsed_.body));
  FUCINA_CHECK(flow == Flow::kNormal);  // the parser allows no other
  return output_.Segments();
}

// --- budget -----------------------------------------------------------------

absl::Status Evaluator::Charge(std::size_t steps) {
  steps_ += steps;
  const RenderLimits& limits = options_.limits;
  if (steps_ >
      static_cast<std::size_t>(std::max<std::int64_t>(limits.max_steps, 0))) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "template needs more than the ", limits.max_steps, " steps allowed"));
  }
  if (steps_ >= next_clock_check_) {
    next_clock_check_ = steps_ + kStepsPerClockCheck;
    if ((CpuNanoseconds() - cpu_start_ns_) / 1'000'000 > limits.max_cpu_ms) {
      return absl::ResourceExhaustedError(
          absl::StrCat("template needs more than the ", limits.max_cpu_ms,
                       " ms of processor time allowed"));
    }
  }
  return absl::OkStatus();
}

absl::Status Evaluator::ChargeBytes(std::size_t bytes) {
  const std::size_t most = options_.limits.max_work_bytes;
  if (bytes > most || work_bytes_ > most - bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "template makes more than the ", most, " bytes of data allowed"));
  }
  work_bytes_ += bytes;
  // Long texts take time without taking steps.
  return Charge(bytes / 256);
}

absl::Status Evaluator::Depth::status() const {
  if (*depth_ <= kMaxDepth) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "template nests deeper than the ", kMaxDepth, " evaluations allowed"));
}

absl::Status Evaluator::Locate(absl::Status status, Place place) {
  if (status.ok() || located_) return status;
  located_ = true;
  return absl::Status(status.code(),
                      ErrorAt(parsed_.name, place, status.message()).message());
}

// --- new values -------------------------------------------------------------

absl::StatusOr<Var> Evaluator::NewString(Text text) {
  FUCINA_RETURN_IF_ERROR(ChargeBytes(text.size() + kObjectBytes));
  return Var::String(std::make_shared<const Text>(std::move(text)));
}

absl::StatusOr<Var> Evaluator::NewSequence(Sequence::Flavor flavor,
                                           std::vector<Var> items,
                                           const char* type_name) {
  FUCINA_RETURN_IF_ERROR(Charge(items.size()));
  FUCINA_RETURN_IF_ERROR(ChargeBytes(items.size() * kVarBytes + kObjectBytes));
  auto* sequence = New<Sequence>();
  sequence->flavor = flavor;
  sequence->items = std::move(items);
  sequence->type_name = type_name;
  return Var::Of(VarKind::kSequence, sequence);
}

absl::StatusOr<Var> Evaluator::NewDict() {
  FUCINA_RETURN_IF_ERROR(ChargeBytes(kObjectBytes));
  return Var::Of(VarKind::kDict, New<Dict>());
}

absl::Status Evaluator::SetKey(Dict& dict, Var key, Var value) {
  std::string hash = HashKey(key);
  if (hash.empty()) {
    return TypeError(absl::StrCat("a ", TypeName(key), " cannot be a key"));
  }
  FUCINA_RETURN_IF_ERROR(
      ChargeBytes(2 * kVarBytes + 2 * hash.size() + kObjectBytes));
  dict.Set(std::move(hash), std::move(key), std::move(value));
  return absl::OkStatus();
}

absl::StatusOr<Var> Evaluator::FromValue(const Value& value, int depth) {
  if (depth > kMaxDepth) {
    return absl::InvalidArgumentError(absl::StrCat(
        parsed_.name, ": a variable nests deeper than ", kMaxDepth, " levels"));
  }
  FUCINA_RETURN_IF_ERROR(Charge(1));
  switch (value.kind()) {
    case Value::Kind::kNone:
      return Var::None();
    case Value::Kind::kBool:
      return Var::Bool(value.bool_value());
    case Value::Kind::kInt:
      return Var::Int(value.int_value());
    case Value::Kind::kNumber:
      return Var::Number(value.text());
    case Value::Kind::kFloat:
      return Var::Float(value.float_value());
    case Value::Kind::kString:
      return NewString(value.text(), value.origin());
    case Value::Kind::kList: {
      std::vector<Var> items;
      for (const Value& item : value.list()) {
        FUCINA_ASSIGN_OR_RETURN(Var copy, FromValue(item, depth + 1));
        items.push_back(std::move(copy));
      }
      return NewList(std::move(items));
    }
    case Value::Kind::kMap:
      break;
  }
  FUCINA_ASSIGN_OR_RETURN(Var out, NewDict());
  for (const auto& [name, item] : value.map()) {
    FUCINA_ASSIGN_OR_RETURN(Var key, NewString(name, Origin::kData));
    FUCINA_ASSIGN_OR_RETURN(Var copy, FromValue(item, depth + 1));
    FUCINA_RETURN_IF_ERROR(SetKey(out.dict(), std::move(key), std::move(copy)));
  }
  return out;
}

// --- scopes -----------------------------------------------------------------

Scope* Evaluator::PushScope(Scope* parent) {
  Scope* scope;
  if (free_scopes_.empty()) {
    scope = New<Scope>();
  } else {
    scope = free_scopes_.back();
    free_scopes_.pop_back();
  }
  scope->parent = parent;
  scope_ = scope;
  return scope;
}

void Evaluator::PopScope() {
  Scope* scope = scope_;
  scope_ = scope->parent;
  if (scope->captured) return;
  scope->names.clear();
  free_scopes_.push_back(scope);
}

void Evaluator::CaptureScopes(Scope* scope) {
  for (; scope != nullptr && !scope->captured; scope = scope->parent) {
    scope->captured = true;
  }
}

// --- statements -------------------------------------------------------------

absl::StatusOr<Evaluator::Flow> Evaluator::RunBody(const Body& body) {
  for (const StmtPtr& stmt : body) {
    absl::StatusOr<Flow> flow = RunStmt(*stmt);
    if (!flow.ok()) return Locate(flow.status(), stmt->place);
    if (*flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

absl::StatusOr<Evaluator::Flow> Evaluator::RunStmt(const Stmt& stmt) {
  const Depth depth(*this);
  FUCINA_RETURN_IF_ERROR(depth.status());
  FUCINA_RETURN_IF_ERROR(Charge(1));
  switch (stmt.kind) {
    case Stmt::Kind::kText:
      FUCINA_RETURN_IF_ERROR(Emit(Text(stmt.text, Origin::kTemplate)));
      break;
    case Stmt::Kind::kPrint:
      FUCINA_RETURN_IF_ERROR(RunPrint(stmt));
      break;
    case Stmt::Kind::kIf:
      return RunIf(stmt);
    case Stmt::Kind::kFor:
      return RunFor(stmt);
    case Stmt::Kind::kSet: {
      FUCINA_ASSIGN_OR_RETURN(Var value, Eval(*stmt.expr));
      FUCINA_RETURN_IF_ERROR(Assign(stmt.target, std::move(value)));
      break;
    }
    case Stmt::Kind::kSetBlock:
      return RunSetBlock(stmt);
    case Stmt::Kind::kMacro:
      DefineMacro(stmt);
      break;
    case Stmt::Kind::kCallBlock:
      FUCINA_RETURN_IF_ERROR(RunCallBlock(stmt));
      break;
    case Stmt::Kind::kFilter:
      return RunFilter(stmt);
    case Stmt::Kind::kWith:
      return RunWith(stmt);
    case Stmt::Kind::kScope: {
      PushScope(scope_);
      FUCINA_ASSIGN_OR_RETURN(const Flow flow, RunBody(stmt.body));
      PopScope();
      return flow;
    }
    case Stmt::Kind::kBreak:
      return Flow::kBreak;
    case Stmt::Kind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNormal;
}

absl::Status Evaluator::Emit(const Text& text) {
  if (capturing_) {
    FUCINA_RETURN_IF_ERROR(ChargeBytes(text.size()));
  } else {
    FUCINA_RETURN_IF_ERROR(Charge(text.size() / 256));
    const std::size_t most = options_.limits.max_output_bytes;
    if (text.size() > most || output_.size() > most - text.size()) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "template writes more than the ", most, " bytes allowed"));
    }
  }
  output_.Append(text);
  return absl::OkStatus();
}

absl::Status Evaluator::RunPrint(const Stmt& stmt) {
  FUCINA_ASSIGN_OR_RETURN(const Var value, Eval(*stmt.expr));
  if (value.is_string()) return Emit(value.text());
  FUCINA_ASSIGN_OR_RETURN(const Text text, Str(*this, value));
  return Emit(text);
}

absl::StatusOr<Evaluator::Flow> Evaluator::RunIf(const Stmt& stmt) {
  for (const Stmt::Branch& branch : stmt.branches) {
    if (branch.condition != nullptr) {
      FUCINA_ASSIGN_OR_RETURN(const Var value, Eval(*branch.condition));
      if (!Truthy(value)) continue;
    }
    return RunBody(branch.body);
  }
  return Flow::kNormal;
}

absl::Status Evaluator::Assign(const Target& target, Var value) {
  if (target.is_tuple) {
    FUCINA_ASSIGN_OR_RETURN(std::vector<Var> items, Items(value));
    if (items.size() != target.parts.size()) {
      return Locate(TypeError(absl::StrCat("cannot unpack ", items.size(),
                                           " values into ", target.parts.size(),
                                           " names")),
                    target.place);
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      FUCINA_RETURN_IF_ERROR(Assign(target.parts[i], std::move(items[i])));
    }
    return absl::OkStatus();
  }
  if (target.attribute.empty()) {
    FUCINA_RETURN_IF_ERROR(ChargeBytes(kVarBytes));
    scope_->Set(target.symbol, std::move(value));
    return absl::OkStatus();
  }
  Expr name;
  name.kind = Expr::Kind::kName;
  name.place = target.place;
  name.symbol = target.symbol;
  FUCINA_ASSIGN_OR_RETURN(const Var object, EvalName(name));
  if (object.kind() != VarKind::kNamespace) {
    return Locate(TypeError(absl::StrCat(
                      "cannot set attribute '", target.attribute, "' of a ",
                      TypeName(object), "; only a namespace takes attributes")),
                  target.place);
  }
  FUCINA_ASSIGN_OR_RETURN(Var key,
                          NewString(target.attribute, Origin::kTemplate));
  return SetKey(object.dict(), std::move(key), std::move(value));
}

absl::StatusOr<Evaluator::Flow> Evaluator::Capture(const Body& body,
                                                   Text* output) {
  std::swap(output_, *output);
  const bool was_capturing = std::exchange(capturing_, true);
  absl::StatusOr<Flow> flow = RunBody(body);
  capturing_ = was_capturing;
  std::swap(output_, *output);
  return flow;
}

absl::StatusOr<Evaluator::Flow> Evaluator::RunSetBlock(const Stmt& stmt) {
  Text text;
  PushScope(scope_);
  FUCINA_ASSIGN_OR_RETURN(const Flow flow, Capture(stmt.body, &text));
  PopScope();
  if (flow != Flow::kNormal) return flow;
  FUCINA_ASSIGN_OR_RETURN(Var value, NewString(std::move(text)));
  if (stmt.expr != nullptr) {
    inputs_.push_back(std::move(value));
    FUCINA_ASSIGN_OR_RETURN(value, Eval(*stmt.expr));
    inputs_.pop_back();
  }
  FUCINA_RETURN_IF_ERROR(Assign(stmt.target, std::move(value)));
  return Flow::kNormal;
}

absl::StatusOr<Evaluator::Flow> Evaluator::RunFilter(const Stmt& stmt) {
  Text text;
  PushScope(scope_);
  FUCINA_ASSIGN_OR_RETURN(const Flow flow, Capture(stmt.body, &text));
  PopScope();
  if (flow != Flow::kNormal) return flow;
  FUCINA_ASSIGN_OR_RETURN(Var value, NewString(std::move(text)));
  inputs_.push_back(std::move(value));
  FUCINA_ASSIGN_OR_RETURN(value, Eval(*stmt.expr));
  inputs_.pop_back();
  FUCINA_ASSIGN_OR_RETURN(const Text printed, Str(*this, value));
  FUCINA_RETURN_IF_ERROR(Emit(printed));
  return Flow::kNormal;
}

absl::StatusOr<Evaluator::Flow> Evaluator::RunWith(const Stmt& stmt) {
  std::vector<Var> values;
  for (const auto& assignment : stmt.assignments) {
    FUCINA_ASSIGN_OR_RETURN(Var value, Eval(*assignment.second));
    values.push_back(std::move(value));
  }
  PushScope(scope_);
  for (std::size_t i = 0; i < values.size(); ++i) {
    FUCINA_RETURN_IF_ERROR(
        Assign(stmt.assignments[i].first, std::move(values[i])));
  }
  FUCINA_ASSIGN_OR_RETURN(const Flow flow, RunBody(stmt.body));
  PopScope();
  return flow;
}

// --- macros -----------------------------------------------------------------

void Evaluator::DefineMacro(const Stmt& stmt) {
  auto* macro = New<Macro>();
  macro->info = stmt.macro.get();
  macro->scope = scope_;
  CaptureScopes(scope_);
  scope_->Set(stmt.symbol, Var::Of(VarKind::kMacro, macro));
}

absl::Status Evaluator::RunCallBlock(const Stmt& stmt) {
  auto* caller = New<Macro>();
  caller->info = stmt.macro.get();
  caller->scope = scope_;
  CaptureScopes(scope_);
  const Expr& call = *stmt.expr;
  FUCINA_ASSIGN_OR_RETURN(const Var callee, Eval(*call.args[0]));
  FUCINA_ASSIGN_OR_RETURN(Arguments arguments, EvalArguments(call, 1));
  arguments.keywords.emplace_back("caller", Var::Of(VarKind::kMacro, caller));
  absl::StatusOr<Var> result = Call(callee, std::move(arguments));
  if (!result.ok()) return Locate(result.status(), call.place);
  FUCINA_ASSIGN_OR_RETURN(const Text text, Str(*this, *result));
  return Emit(text);
}

absl::StatusOr<Var> Evaluator::CallMacro(const Macro& macro,
                                         Arguments arguments) {
  const MacroInfo& info = *macro.info;
  if (call_depth_ >= options_.limits.max_call_depth) {
    return absl::ResourceExhaustedError(
        absl::StrCat("macro '", info.name, "' calls nest deeper than the ",
                     options_.limits.max_call_depth, " allowed"));
  }
  std::vector<Var> values(info.parameters.size(), Var::Absent());
  const std::size_t by_position =
      std::min(arguments.positional.size(), info.parameters.size());
  for (std::size_t i = 0; i < by_position; ++i) {
    values[i] = std::move(arguments.positional[i]);
  }
  Var caller = Var::Absent();
  FUCINA_ASSIGN_OR_RETURN(Var kwargs, NewDict());
  for (auto& keyword : arguments.keywords) {
    const std::string& name = keyword.first;
    Var& value = keyword.second;
    const auto found = std::find_if(
        info.parameters.begin(), info.parameters.end(),
        [&](const Parameter& parameter) { return parameter.name == name; });
    if (found != info.parameters.end()) {
      Var& slot =
          values[static_cast<std::size_t>(found - info.parameters.begin())];
      if (!slot.is_absent()) {
        return TypeError(absl::StrCat("macro '", info.name, "' got argument '",
                                      name, "' twice"));
      }
      slot = std::move(value);
    } else if (name == "caller" && info.uses_caller) {
      caller = std::move(value);
    } else if (info.uses_kwargs) {
      FUCINA_ASSIGN_OR_RETURN(Var key, NewString(name, Origin::kTemplate));
      FUCINA_RETURN_IF_ERROR(
          SetKey(kwargs.dict(), std::move(key), std::move(value)));
    } else {
      return TypeError(absl::StrCat("macro '", info.name,
                                    "' takes no argument '", name, "'"));
    }
  }
  const std::size_t extra = arguments.positional.size() - by_position;
  if (extra > 0 && !info.uses_varargs) {
    return TypeError(absl::StrCat("macro '", info.name, "' takes at most ",
                                  info.parameters.size(), " arguments, got ",
                                  arguments.positional.size()));
  }

  Scope* const outer = scope_;
  const int outer_depth = call_depth_++;
  const std::vector<Var> outer_inputs = std::exchange(inputs_, {});
  Scope* scope = PushScope(macro.scope);
  auto run = [&]() -> absl::StatusOr<Var> {
    auto set = [&](absl::string_view name, Var value) {
      for (std::size_t i = 0; i < parsed_.symbols.size(); ++i) {
        if (parsed_.symbols[i] == name) {
          scope->Set(static_cast<Symbol>(i), std::move(value));
        }
      }
    };
    if (info.uses_caller) {
      set("caller", caller.is_absent()
                        ? Var::Undefined("no caller: this macro was not "
                                         "called by a call block")
                        : std::move(caller));
    }
    if (info.uses_kwargs) set("kwargs", std::move(kwargs));
    if (info.uses_varargs) {
      FUCINA_ASSIGN_OR_RETURN(
          Var rest,
          NewSequence(
              Sequence::Flavor::kTuple,
              std::vector<Var>(
                  std::make_move_iterator(
                      arguments.positional.begin() +
                      static_cast<std::ptrdiff_t>(by_position)),
                  std::make_move_iterator(arguments.positional.end()))));
      set("varargs", std::move(rest));
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Parameter& parameter = info.parameters[i];
      if (values[i].is_absent()) {
        if (parameter.default_value != nullptr) {
          FUCINA_ASSIGN_OR_RETURN(values[i], Eval(*parameter.default_value));
        } else {
          values[i] = Var::Undefined(
              absl::StrCat("argument '", parameter.name, "' was not given"));
        }
      }
      scope->Set(parameter.symbol, std::move(values[i]));
    }
    Text text;
    FUCINA_ASSIGN_OR_RETURN(const Flow flow, Capture(info.body, &text));
    FUCINA_CHECK(flow == Flow::kNormal);  // the parser allows no other
    return NewString(std::move(text));
  };
  absl::StatusOr<Var> result = run();
  if (result.ok()) PopScope();
  scope_ = outer;
  inputs_ = outer_inputs;
  call_depth_ = outer_depth;
  return result;
}

}  // namespace fucina::jinja
