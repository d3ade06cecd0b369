// What may follow an operand: subscripts, calls, filters and tests.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/jinja/builtins.h"
#include "core/jinja/expression_parser.h"
#include "fucina/diag/status_macros.h"

namespace fucina::jinja {

using absl::string_view;

absl::StatusOr<ExprPtr> ExpressionParser::ParsePostfix(ExprPtr object) {
  for (;;) {
    if (IsOperator(".") || IsOperator("[")) {
      FUCINA_ASSIGN_OR_RETURN(object, ParseSubscript(std::move(object)));
    } else if (IsOperator("(")) {
      FUCINA_ASSIGN_OR_RETURN(object, ParseCall(std::move(object)));
    } else {
      return object;
    }
  }
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseCall(ExprPtr function) {
  ExprPtr call = Make(Expr::Kind::kCall, Current().place);
  call->args.push_back(std::move(function));
  FUCINA_RETURN_IF_ERROR(ParseArguments(call.get()));
  return Finish(std::move(call));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseFilterExpression(
    ExprPtr object) {
  for (;;) {
    if (IsOperator("|")) {
      FUCINA_ASSIGN_OR_RETURN(object, ParseFilter(std::move(object)));
    } else if (IsWord("is")) {
      FUCINA_ASSIGN_OR_RETURN(object, ParseTest(std::move(object)));
    } else if (IsOperator("(")) {
      FUCINA_ASSIGN_OR_RETURN(object, ParseCall(std::move(object)));
    } else {
      return object;
    }
  }
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseFilter(ExprPtr input) {
  do {
    SkipOperator("|");
    const Place place = Current().place;
    if (!Is(TokenKind::kName)) return Unexpected("the name of a filter");
    ExprPtr filter = Make(Expr::Kind::kFilter, place);
    filter->text = Take().text;
    while (SkipOperator(".")) {
      if (!Is(TokenKind::kName)) return Unexpected("the name of a filter");
      absl::StrAppend(&filter->text, ".", Take().text);
    }
    filter->builtin = FindFilter(filter->text);
    if (filter->builtin == nullptr) {
      return Fail(place,
                  absl::StrCat("unsupported filter '", filter->text, "'"));
    }
    filter->args.push_back(std::move(input));
    if (IsOperator("(")) {
      FUCINA_RETURN_IF_ERROR(ParseArguments(filter.get()));
      if (filter->more_args != nullptr || filter->more_keywords != nullptr) {
        return Fail(place, "unsupported '*' argument of a filter");
      }
    }
    FUCINA_ASSIGN_OR_RETURN(input, Finish(std::move(filter)));
  } while (IsOperator("|"));
  return input;
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseTest(ExprPtr object) {
  const Place is_place = Take().place;
  const bool negated = SkipWord("not");
  const Place place = Current().place;
  if (!Is(TokenKind::kName)) return Unexpected("the name of a test");
  ExprPtr test = Make(Expr::Kind::kTest, place);
  test->text = Take().text;
  test->builtin = FindTest(test->text);
  if (test->builtin == nullptr) {
    return Fail(place, absl::StrCat("unsupported test '", test->text, "'"));
  }
  test->args.push_back(std::move(object));
  const bool starts_argument = (Is(TokenKind::kName) && !IsWord("else") &&
                                !IsWord("or") && !IsWord("and")) ||
                               Is(TokenKind::kString) || Is(TokenKind::kInt) ||
                               Is(TokenKind::kFloat) || IsOperator("[") ||
                               IsOperator("{");
  if (IsOperator("(")) {
    FUCINA_RETURN_IF_ERROR(ParseArguments(test.get()));
    if (!test->keywords.empty() || test->more_args != nullptr ||
        test->more_keywords != nullptr) {
      return Fail(place, "unsupported keyword or '*' argument of a test");
    }
  } else if (starts_argument) {
    if (IsWord("is")) {
      return Fail(Current().place, "tests cannot be chained with 'is'");
    }
    FUCINA_ASSIGN_OR_RETURN(ExprPtr argument, ParsePrimary());
    FUCINA_ASSIGN_OR_RETURN(argument, ParsePostfix(std::move(argument)));
    test->args.push_back(std::move(argument));
  }
  FUCINA_ASSIGN_OR_RETURN(test, Finish(std::move(test)));
  if (!negated) return test;
  ExprPtr node = Make(Expr::Kind::kUnary, is_place);
  node->op = Operator::kNot;
  node->args.push_back(std::move(test));
  return Finish(std::move(node));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseSubscript(ExprPtr object) {
  const Token token = Take();
  if (token.text == "[" && IsOperator("]")) {
    return Unexpected("an index or a slice");
  }
  if (token.text == ".") {
    if (Is(TokenKind::kName)) {
      ExprPtr node = Make(Expr::Kind::kAttribute, Current().place);
      node->text = Take().text;
      node->args.push_back(std::move(object));
      return Finish(std::move(node));
    }
    if (!Is(TokenKind::kInt)) return Unexpected("a name or a number");
    ExprPtr node = Make(Expr::Kind::kItem, Current().place);
    ExprPtr index = Make(Expr::Kind::kInt, Current().place);
    index->integer = Take().integer;
    node->args.push_back(std::move(object));
    node->args.push_back(std::move(index));
    return Finish(std::move(node));
  }
  std::vector<ExprPtr> keys;
  bool is_tuple = false;
  ExprPtr slice;
  while (!IsOperator("]")) {
    if (!keys.empty() || slice != nullptr) {
      FUCINA_RETURN_IF_ERROR(ExpectOperator(","));
      is_tuple = true;
      if (IsOperator("]")) break;
    }
    if (slice != nullptr) break;
    if (!IsOperator(":")) {
      FUCINA_ASSIGN_OR_RETURN(ExprPtr key, ParseExpression());
      if (!IsOperator(":")) {
        keys.push_back(std::move(key));
        continue;
      }
      slice = Make(Expr::Kind::kSlice, token.place);
      slice->args.push_back(nullptr);  // the object comes below
      slice->args.push_back(std::move(key));
    } else {
      slice = Make(Expr::Kind::kSlice, token.place);
      slice->args.push_back(nullptr);
      slice->args.push_back(nullptr);
    }
    Take();  // the first colon
    for (int part = 0; part < 2; ++part) {
      ExprPtr bound;
      if (!IsOperator("]") && !IsOperator(":") && !IsOperator(",")) {
        FUCINA_ASSIGN_OR_RETURN(bound, ParseExpression());
      }
      slice->args.push_back(std::move(bound));
      if (part == 0 && !SkipOperator(":")) {
        slice->args.push_back(nullptr);
        break;
      }
    }
  }
  if (slice != nullptr) {
    if (is_tuple || !keys.empty()) {
      return Fail(token.place, "unsupported subscript with several slices");
    }
    FUCINA_RETURN_IF_ERROR(ExpectOperator("]"));
    slice->args[0] = std::move(object);
    return Finish(std::move(slice));
  }
  FUCINA_RETURN_IF_ERROR(ExpectOperator("]"));
  ExprPtr key;
  if (keys.size() == 1 && !is_tuple) {
    key = std::move(keys[0]);
  } else {
    key = Make(Expr::Kind::kTuple, token.place);
    key->args = std::move(keys);
    FUCINA_ASSIGN_OR_RETURN(key, Finish(std::move(key)));
  }
  ExprPtr node = Make(Expr::Kind::kItem, token.place);
  node->args.push_back(std::move(object));
  node->args.push_back(std::move(key));
  return Finish(std::move(node));
}

absl::Status ExpressionParser::ParseArguments(Expr* call) {
  FUCINA_RETURN_IF_ERROR(ExpectOperator("("));
  bool first = true;
  while (!IsOperator(")")) {
    if (!first) {
      FUCINA_RETURN_IF_ERROR(ExpectOperator(","));
      if (IsOperator(")")) break;
    }
    first = false;
    const Place place = Current().place;
    if (SkipOperator("*")) {
      if (call->more_args != nullptr || call->more_keywords != nullptr) {
        return Fail(place, "a call takes one '*' argument, before any '**'");
      }
      FUCINA_ASSIGN_OR_RETURN(call->more_args, ParseExpression());
    } else if (SkipOperator("**")) {
      if (call->more_keywords != nullptr) {
        return Fail(place, "a call takes one '**' argument");
      }
      FUCINA_ASSIGN_OR_RETURN(call->more_keywords, ParseExpression());
    } else if (Is(TokenKind::kName) && Next().kind == TokenKind::kOperator &&
               Next().text == "=") {
      if (call->more_keywords != nullptr) {
        return Fail(place, "a keyword argument cannot follow '**'");
      }
      const std::string name = Take().text;
      for (const auto& keyword : call->keywords) {
        if (keyword.first == name) {
          return Fail(place, absl::StrCat("argument '", name, "' twice"));
        }
      }
      Take();
      FUCINA_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
      call->keywords.emplace_back(name, std::move(value));
    } else {
      if (!call->keywords.empty() || call->more_args != nullptr ||
          call->more_keywords != nullptr) {
        return Fail(place, "a positional argument cannot follow others");
      }
      FUCINA_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
      call->args.push_back(std::move(value));
    }
  }
  return ExpectOperator(")");
}

}  // namespace fucina::jinja
