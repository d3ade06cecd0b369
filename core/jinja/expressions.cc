// Expressions: one function per kind of node.

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/jinja/evaluator.h"
#include "core/jinja/python.h"
#include "fucina/diag/check.h"
#include "fucina/diag/status_macros.h"

namespace fucina::jinja {

absl::StatusOr<Var> Evaluator::Eval(const Expr& expr) {
  const Depth depth(*this);
  absl::Status status = depth.status();
  if (status.ok()) status = Charge(1);
  if (!status.ok()) return Locate(std::move(status), expr.place);
  absl::StatusOr<Var> value = EvalInner(expr);
  if (!value.ok()) return Locate(value.status(), expr.place);
  return value;
}

absl::StatusOr<Var> Evaluator::EvalInner(const Expr& expr) {
  switch (expr.kind) {
    case Expr::Kind::kNone:
      return Var::None();
    case Expr::Kind::kBool:
      return Var::Bool(expr.integer != 0);
    case Expr::Kind::kInt:
      return Var::Int(expr.integer);
    case Expr::Kind::kFloat:
      return Var::Float(expr.real);
    case Expr::Kind::kString:
      return NewString(expr.text, Origin::kTemplate);
    case Expr::Kind::kName:
      return EvalName(expr);
    case Expr::Kind::kList:
      return EvalItems(expr, Sequence::Flavor::kList);
    case Expr::Kind::kTuple:
      return EvalItems(expr, Sequence::Flavor::kTuple);
    case Expr::Kind::kDict:
      return EvalDict(expr);
    case Expr::Kind::kUnary:
      return EvalUnary(expr);
    case Expr::Kind::kBinary:
      return EvalBinary(expr);
    case Expr::Kind::kCompare:
      return EvalCompare(expr);
    case Expr::Kind::kConcat:
      return EvalConcat(expr);
    case Expr::Kind::kCondition:
      return EvalCondition(expr);
    case Expr::Kind::kAttribute: {
      FUCINA_ASSIGN_OR_RETURN(const Var object, Eval(*expr.args[0]));
      return GetAttribute(object, expr.text);
    }
    case Expr::Kind::kItem: {
      FUCINA_ASSIGN_OR_RETURN(const Var object, Eval(*expr.args[0]));
      FUCINA_ASSIGN_OR_RETURN(const Var key, Eval(*expr.args[1]));
      return GetItem(object, key);
    }
    case Expr::Kind::kSlice:
      return EvalSlice(expr);
    case Expr::Kind::kCall:
      return EvalCall(expr);
    case Expr::Kind::kFilter:
    case Expr::Kind::kTest:
      return EvalBuiltin(expr);
    case Expr::Kind::kInput:
      FUCINA_CHECK(!inputs_.empty());
      return inputs_.back();
  }
  return absl::InternalError("unknown expression");
}

absl::StatusOr<Var> Evaluator::EvalName(const Expr& expr) {
  for (Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    if (const Var* value = scope->Find(expr.symbol)) return *value;
  }
  const auto symbol = static_cast<std::size_t>(expr.symbol);
  const std::string& name = parsed_.symbols[symbol];
  if (const Var* value = context_->FindText(name)) return *value;
  if (!globals_[symbol].is_absent()) return globals_[symbol];
  return Var::Undefined(absl::StrCat("'", name, "' is undefined"));
}

absl::StatusOr<Var> Evaluator::EvalItems(const Expr& expr,
                                         Sequence::Flavor flavor) {
  std::vector<Var> items;
  items.reserve(expr.args.size());
  for (const ExprPtr& arg : expr.args) {
    FUCINA_ASSIGN_OR_RETURN(Var item, Eval(*arg));
    items.push_back(std::move(item));
  }
  return NewSequence(flavor, std::move(items));
}

absl::StatusOr<Var> Evaluator::EvalDict(const Expr& expr) {
  FUCINA_ASSIGN_OR_RETURN(Var dict, NewDict());
  for (std::size_t i = 0; i < expr.args.size(); i += 2) {
    FUCINA_ASSIGN_OR_RETURN(Var key, Eval(*expr.args[i]));
    FUCINA_ASSIGN_OR_RETURN(Var value, Eval(*expr.args[i + 1]));
    FUCINA_RETURN_IF_ERROR(
        SetKey(dict.dict(), std::move(key), std::move(value)));
  }
  return dict;
}

absl::StatusOr<Var> Evaluator::EvalUnary(const Expr& expr) {
  FUCINA_ASSIGN_OR_RETURN(const Var value, Eval(*expr.args[0]));
  if (expr.op == Operator::kNot) return Var::Bool(!Truthy(value));
  if (expr.op == Operator::kNegate) return Negate(value);
  if (value.is_undefined()) return UndefinedError(value);
  if (!value.is_numeric()) {
    return TypeError(
        absl::StrCat("unary + needs a number, found ", TypeName(value)));
  }
  if (value.kind() == VarKind::kFloat) return value;
  return Var::Int(value.integer());
}

absl::StatusOr<Var> Evaluator::EvalBinary(const Expr& expr) {
  FUCINA_ASSIGN_OR_RETURN(Var left, Eval(*expr.args[0]));
  if (expr.op == Operator::kAnd || expr.op == Operator::kOr) {
    // The deciding operand itself is the result, as in Python.
    if (Truthy(left) == (expr.op == Operator::kOr)) return left;
    return Eval(*expr.args[1]);
  }
  FUCINA_ASSIGN_OR_RETURN(const Var right, Eval(*expr.args[1]));
  return Arithmetic(*this, expr.op, left, right);
}

absl::StatusOr<Var> Evaluator::EvalCompare(const Expr& expr) {
  FUCINA_ASSIGN_OR_RETURN(Var left, Eval(*expr.args[0]));
  for (std::size_t i = 0; i < expr.ops.size(); ++i) {
    FUCINA_ASSIGN_OR_RETURN(Var right, Eval(*expr.args[i + 1]));
    FUCINA_ASSIGN_OR_RETURN(const bool holds,
                            Compare(*this, expr.ops[i], left, right));
    if (!holds) return Var::Bool(false);
    left = std::move(right);
  }
  return Var::Bool(true);
}

absl::StatusOr<Var> Evaluator::EvalConcat(const Expr& expr) {
  Text out;
  for (const ExprPtr& arg : expr.args) {
    FUCINA_ASSIGN_OR_RETURN(const Var value, Eval(*arg));
    FUCINA_ASSIGN_OR_RETURN(const Text text, Str(*this, value));
    FUCINA_RETURN_IF_ERROR(ChargeBytes(text.size()));
    out.Append(text);
  }
  return NewString(std::move(out));
}

absl::StatusOr<Var> Evaluator::EvalCondition(const Expr& expr) {
  FUCINA_ASSIGN_OR_RETURN(const Var condition, Eval(*expr.args[1]));
  if (Truthy(condition)) return Eval(*expr.args[0]);
  if (expr.args[2] != nullptr) return Eval(*expr.args[2]);
  return Var::Undefined(
      "an 'if' expression without 'else' whose condition is false is "
      "undefined");
}

absl::StatusOr<Var> Evaluator::EvalSlice(const Expr& expr) {
  FUCINA_ASSIGN_OR_RETURN(const Var object, Eval(*expr.args[0]));
  Var bounds[3] = {Var::None(), Var::None(), Var::None()};
  for (std::size_t i = 0; i < 3; ++i) {
    if (expr.args[i + 1] == nullptr) continue;
    FUCINA_ASSIGN_OR_RETURN(bounds[i], Eval(*expr.args[i + 1]));
  }
  return GetSlice(object, bounds[0], bounds[1], bounds[2]);
}

absl::StatusOr<Arguments> Evaluator::EvalArguments(const Expr& expr,
                                                   std::size_t first) {
  Arguments out;
  for (std::size_t i = first; i < expr.args.size(); ++i) {
    FUCINA_ASSIGN_OR_RETURN(Var value, Eval(*expr.args[i]));
    out.positional.push_back(std::move(value));
  }
  for (const auto& [name, arg] : expr.keywords) {
    FUCINA_ASSIGN_OR_RETURN(Var value, Eval(*arg));
    out.keywords.emplace_back(name, std::move(value));
  }
  if (expr.more_args != nullptr) {
    FUCINA_ASSIGN_OR_RETURN(const Var more, Eval(*expr.more_args));
    FUCINA_ASSIGN_OR_RETURN(std::vector<Var> items, Items(more));
    for (Var& item : items) out.positional.push_back(std::move(item));
  }
  if (expr.more_keywords != nullptr) {
    FUCINA_ASSIGN_OR_RETURN(const Var more, Eval(*expr.more_keywords));
    if (!more.is_dict()) {
      return TypeError(
          absl::StrCat("'**' needs a dict, found ", TypeName(more)));
    }
    for (const auto& [key, value] : more.dict().entries) {
      if (!key.is_string()) return TypeError("'**' needs keys that are text");
      FUCINA_RETURN_IF_ERROR(Charge(1 + out.keywords.size()));
      for (const auto& given : out.keywords) {
        if (given.first == key.bytes()) {
          return TypeError(
              absl::StrCat("argument '", key.bytes(), "' given twice"));
        }
      }
      out.keywords.emplace_back(key.bytes(), value);
    }
  }
  return out;
}

absl::StatusOr<Var> Evaluator::EvalCall(const Expr& expr) {
  FUCINA_ASSIGN_OR_RETURN(const Var function, Eval(*expr.args[0]));
  FUCINA_ASSIGN_OR_RETURN(Arguments arguments, EvalArguments(expr, 1));
  return Call(function, std::move(arguments));
}

absl::StatusOr<Var> Evaluator::EvalBuiltin(const Expr& expr) {
  FUCINA_ASSIGN_OR_RETURN(Arguments arguments, EvalArguments(expr, 0));
  return CallBuiltin(*this,
                     expr.kind == Expr::Kind::kFilter ? "filter" : "test",
                     *expr.builtin, std::move(arguments));
}

absl::StatusOr<Var> Evaluator::Call(const Var& callee, Arguments arguments) {
  FUCINA_RETURN_IF_ERROR(Charge(1));
  switch (callee.kind()) {
    case VarKind::kMacro:
      return CallMacro(*static_cast<const Macro*>(callee.object()),
                       std::move(arguments));
    case VarKind::kFunction:
      return CallFunction(
          static_cast<const FunctionObject*>(callee.object())->function,
          std::move(arguments));
    case VarKind::kMethod: {
      const auto& method = *static_cast<const Method*>(callee.object());
      return CallMethod(method.self, method.name, std::move(arguments));
    }
    case VarKind::kLoop:
      return CallLoop(*static_cast<Loop*>(callee.object()),
                      std::move(arguments));
    case VarKind::kJoiner: {
      auto& joiner = *static_cast<Joiner*>(callee.object());
      if (!arguments.positional.empty() || !arguments.keywords.empty()) {
        return TypeError("a joiner takes no arguments");
      }
      if (std::exchange(joiner.used, true)) return joiner.separator;
      return NewString("", Origin::kTemplate);
    }
    case VarKind::kUndefined:
      return UndefinedError(callee);
    default:
      return TypeError(
          absl::StrCat("a ", TypeName(callee), " cannot be called"));
  }
}

}  // namespace fucina::jinja
