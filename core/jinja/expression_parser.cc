#include "core/jinja/expression_parser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/jinja/builtins.h"
#include "fucina/diag/status_macros.h"

namespace fucina::jinja {
namespace {

using absl::string_view;

std::string Describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kText:
      return "template text";
    case TokenKind::kPrintBegin:
      return "'{{'";
    case TokenKind::kPrintEnd:
      return "'}}'";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kInt:
      return absl::StrCat(token.integer);
    case TokenKind::kFloat:
      return absl::StrCat(token.real);
    case TokenKind::kEnd:
      return "the end of the template";
    case TokenKind::kName:
    case TokenKind::kOperator:
      break;
  }
  return absl::StrCat("'", token.text, "'");
}

}  // namespace

Token ExpressionParser::Take() {
  Token token = Current();
  if (token.kind != TokenKind::kEnd) ++at_;
  return token;
}

bool ExpressionParser::IsOperator(string_view spelling) const {
  return Is(TokenKind::kOperator) && Current().text == spelling;
}

bool ExpressionParser::IsWord(string_view word) const {
  return Is(TokenKind::kName) && Current().text == word;
}

bool ExpressionParser::SkipOperator(string_view spelling) {
  if (!IsOperator(spelling)) return false;
  ++at_;
  return true;
}

bool ExpressionParser::SkipWord(string_view word) {
  if (!IsWord(word)) return false;
  ++at_;
  return true;
}

absl::Status ExpressionParser::ExpectOperator(string_view spelling) {
  if (SkipOperator(spelling)) return absl::OkStatus();
  return Unexpected(absl::StrCat("'", spelling, "'"));
}

absl::Status ExpressionParser::Fail(Place place, string_view message) const {
  return ErrorAt(name_, place, message);
}

absl::Status ExpressionParser::Unexpected(string_view wanted) const {
  return Fail(Current().place, absl::StrCat("expected ", wanted, ", found ",
                                            Describe(Current())));
}

absl::Status ExpressionParser::CheckNesting() const {
  if (nesting_ <= kMaxNesting) return absl::OkStatus();
  return Fail(Current().place,
              absl::StrCat("nests deeper than ", kMaxNesting, " levels"));
}

Symbol ExpressionParser::Intern(string_view name) {
  const auto found = interned_.find(name);
  if (found != interned_.end()) return found->second;
  const auto symbol = static_cast<Symbol>(symbols_.size());
  symbols_.emplace_back(name);
  interned_.emplace(std::string(name), symbol);
  return symbol;
}

void ExpressionParser::NoteRead(Symbol symbol) {
  for (const auto& scope : scopes_) {
    if (scope.count(symbol) != 0) return;
  }
  const std::string& name = symbols_[static_cast<std::size_t>(symbol)];
  for (MacroInfo* macro : macros_) {
    if (name == "caller") macro->uses_caller = true;
    if (name == "varargs") macro->uses_varargs = true;
    if (name == "kwargs") macro->uses_kwargs = true;
  }
  if (!macros_.empty() &&
      (name == "caller" || name == "varargs" || name == "kwargs")) {
    return;
  }
  free_variables_.insert(name);
}

ExprPtr ExpressionParser::Make(Expr::Kind kind, Place place) {
  auto node = std::make_unique<Expr>();
  node->kind = kind;
  node->place = place;
  return node;
}

absl::StatusOr<ExprPtr> ExpressionParser::Finish(ExprPtr node) const {
  int depth = 0;
  auto see = [&](const ExprPtr& child) {
    if (child != nullptr) depth = std::max(depth, child->depth);
  };
  for (const ExprPtr& child : node->args) see(child);
  for (const auto& keyword : node->keywords) see(keyword.second);
  see(node->more_args);
  see(node->more_keywords);
  node->depth = depth + 1;
  if (node->depth > kMaxExpressionDepth) {
    return Fail(node->place, absl::StrCat("expression is deeper than ",
                                          kMaxExpressionDepth, " operations"));
  }
  return node;
}

absl::StatusOr<ExprPtr> ExpressionParser::Binary(Operator op, Place place,
                                                 ExprPtr left, ExprPtr right) {
  ExprPtr node = Make(Expr::Kind::kBinary, place);
  node->op = op;
  node->args.push_back(std::move(left));
  node->args.push_back(std::move(right));
  return Finish(std::move(node));
}

bool ExpressionParser::AtTupleEnd() const {
  return Is(TokenKind::kPrintEnd) || Is(TokenKind::kBlockEnd) ||
         IsOperator(")") || IsWord("recursive");
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseTuple(bool with_condition) {
  const Place place = Current().place;
  auto element = [&] { return with_condition ? ParseExpression() : ParseOr(); };
  FUCINA_ASSIGN_OR_RETURN(ExprPtr first, element());
  if (!IsOperator(",")) return first;
  ExprPtr tuple = Make(Expr::Kind::kTuple, place);
  tuple->args.push_back(std::move(first));
  while (SkipOperator(",")) {
    if (AtTupleEnd()) break;
    FUCINA_ASSIGN_OR_RETURN(ExprPtr next, element());
    tuple->args.push_back(std::move(next));
  }
  return Finish(std::move(tuple));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseExpression() {
  const Level level(&nesting_);
  FUCINA_RETURN_IF_ERROR(CheckNesting());
  FUCINA_ASSIGN_OR_RETURN(ExprPtr value, ParseOr());
  while (IsWord("if")) {
    ExprPtr node = Make(Expr::Kind::kCondition, Take().place);
    FUCINA_ASSIGN_OR_RETURN(ExprPtr condition, ParseOr());
    ExprPtr alternative;
    if (SkipWord("else")) {
      FUCINA_ASSIGN_OR_RETURN(alternative, ParseExpression());
    }
    node->args.push_back(std::move(value));
    node->args.push_back(std::move(condition));
    node->args.push_back(std::move(alternative));
    FUCINA_ASSIGN_OR_RETURN(value, Finish(std::move(node)));
  }
  return value;
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseOr() {
  FUCINA_ASSIGN_OR_RETURN(ExprPtr left, ParseAnd());
  while (IsWord("or")) {
    const Place place = Take().place;
    FUCINA_ASSIGN_OR_RETURN(ExprPtr right, ParseAnd());
    FUCINA_ASSIGN_OR_RETURN(
        left, Binary(Operator::kOr, place, std::move(left), std::move(right)));
  }
  return left;
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseAnd() {
  FUCINA_ASSIGN_OR_RETURN(ExprPtr left, ParseNot());
  while (IsWord("and")) {
    const Place place = Take().place;
    FUCINA_ASSIGN_OR_RETURN(ExprPtr right, ParseNot());
    FUCINA_ASSIGN_OR_RETURN(
        left, Binary(Operator::kAnd, place, std::move(left), std::move(right)));
  }
  return left;
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseNot() {
  if (!IsWord("not")) return ParseCompare();
  const Level level(&nesting_);
  FUCINA_RETURN_IF_ERROR(CheckNesting());
  ExprPtr node = Make(Expr::Kind::kUnary, Take().place);
  node->op = Operator::kNot;
  FUCINA_ASSIGN_OR_RETURN(ExprPtr operand, ParseNot());
  node->args.push_back(std::move(operand));
  return Finish(std::move(node));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseCompare() {
  static constexpr std::pair<string_view, Operator> kComparisons[] = {
      {"==", Operator::kEqual},  {"!=", Operator::kNotEqual},
      {"<", Operator::kLess},    {"<=", Operator::kLessEqual},
      {">", Operator::kGreater}, {">=", Operator::kGreaterEqual},
  };
  FUCINA_ASSIGN_OR_RETURN(ExprPtr first, ParseSum());
  ExprPtr node;
  for (;;) {
    const Place place = Current().place;
    std::optional<Operator> op;
    for (const auto& [spelling, value] : kComparisons) {
      if (IsOperator(spelling)) op = value;
    }
    if (op.has_value()) {
      Take();
    } else if (SkipWord("in")) {
      op = Operator::kIn;
    } else if (IsWord("not") && Next().kind == TokenKind::kName &&
               Next().text == "in") {
      Take();
      Take();
      op = Operator::kNotIn;
    } else {
      break;
    }
    if (node == nullptr) {
      node = Make(Expr::Kind::kCompare, place);
      node->args.push_back(std::move(first));
    }
    FUCINA_ASSIGN_OR_RETURN(ExprPtr right, ParseSum());
    node->ops.push_back(*op);
    node->args.push_back(std::move(right));
  }
  if (node == nullptr) return first;
  return Finish(std::move(node));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseSum() {
  FUCINA_ASSIGN_OR_RETURN(ExprPtr left, ParseConcat());
  while (IsOperator("+") || IsOperator("-")) {
    const Operator op = IsOperator("+") ? Operator::kAdd : Operator::kSubtract;
    const Place place = Take().place;
    FUCINA_ASSIGN_OR_RETURN(ExprPtr right, ParseConcat());
    FUCINA_ASSIGN_OR_RETURN(
        left, Binary(op, place, std::move(left), std::move(right)));
  }
  return left;
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseConcat() {
  FUCINA_ASSIGN_OR_RETURN(ExprPtr first, ParseProduct());
  if (!IsOperator("~")) return first;
  ExprPtr node = Make(Expr::Kind::kConcat, Current().place);
  node->args.push_back(std::move(first));
  while (SkipOperator("~")) {
    FUCINA_ASSIGN_OR_RETURN(ExprPtr next, ParseProduct());
    node->args.push_back(std::move(next));
  }
  return Finish(std::move(node));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseProduct() {
  static constexpr std::pair<string_view, Operator> kProducts[] = {
      {"*", Operator::kMultiply},
      {"/", Operator::kDivide},
      {"//", Operator::kFloorDivide},
      {"%", Operator::kModulo},
  };
  FUCINA_ASSIGN_OR_RETURN(ExprPtr left, ParsePower());
  for (;;) {
    std::optional<Operator> op;
    for (const auto& [spelling, value] : kProducts) {
      if (IsOperator(spelling)) op = value;
    }
    if (!op.has_value()) return left;
    const Place place = Take().place;
    FUCINA_ASSIGN_OR_RETURN(ExprPtr right, ParsePower());
    FUCINA_ASSIGN_OR_RETURN(
        left, Binary(*op, place, std::move(left), std::move(right)));
  }
}

absl::StatusOr<ExprPtr> ExpressionParser::ParsePower() {
  FUCINA_ASSIGN_OR_RETURN(ExprPtr left, ParseUnary(/*with_filter=*/true));
  while (IsOperator("**")) {
    const Place place = Take().place;
    FUCINA_ASSIGN_OR_RETURN(ExprPtr right, ParseUnary(/*with_filter=*/true));
    FUCINA_ASSIGN_OR_RETURN(left, Binary(Operator::kPower, place,
                                         std::move(left), std::move(right)));
  }
  return left;
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseUnary(bool with_filter) {
  const Level level(&nesting_);
  FUCINA_RETURN_IF_ERROR(CheckNesting());
  ExprPtr node;
  if (IsOperator("-") || IsOperator("+")) {
    const Operator op = IsOperator("-") ? Operator::kNegate : Operator::kPlus;
    node = Make(Expr::Kind::kUnary, Take().place);
    node->op = op;
    FUCINA_ASSIGN_OR_RETURN(ExprPtr operand, ParseUnary(false));
    node->args.push_back(std::move(operand));
    FUCINA_ASSIGN_OR_RETURN(node, Finish(std::move(node)));
  } else {
    FUCINA_ASSIGN_OR_RETURN(node, ParsePrimary());
  }
  FUCINA_ASSIGN_OR_RETURN(node, ParsePostfix(std::move(node)));
  if (!with_filter) return node;
  return ParseFilterExpression(std::move(node));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParsePrimary() {
  const Place place = Current().place;
  if (Is(TokenKind::kName)) {
    const std::string name = Take().text;
    if (name == "true" || name == "True" || name == "false" ||
        name == "False") {
      ExprPtr node = Make(Expr::Kind::kBool, place);
      node->integer = name == "true" || name == "True" ? 1 : 0;
      return node;
    }
    if (name == "none" || name == "None") {
      return Make(Expr::Kind::kNone, place);
    }
    ExprPtr node = Make(Expr::Kind::kName, place);
    node->symbol = Intern(name);
    NoteRead(node->symbol);
    return node;
  }
  if (Is(TokenKind::kString)) {
    ExprPtr node = Make(Expr::Kind::kString, place);
    while (Is(TokenKind::kString)) node->text += Take().text;
    return node;
  }
  if (Is(TokenKind::kInt)) {
    ExprPtr node = Make(Expr::Kind::kInt, place);
    node->integer = Take().integer;
    return node;
  }
  if (Is(TokenKind::kFloat)) {
    ExprPtr node = Make(Expr::Kind::kFloat, place);
    node->real = Take().real;
    return node;
  }
  if (IsOperator("(")) return ParseParentheses();
  if (IsOperator("[")) return ParseList();
  if (IsOperator("{")) return ParseDict();
  return Unexpected("an expression");
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseParentheses() {
  const Place place = Take().place;
  if (SkipOperator(")")) return Make(Expr::Kind::kTuple, place);
  FUCINA_ASSIGN_OR_RETURN(ExprPtr inner, ParseTuple(/*with_condition=*/true));
  FUCINA_RETURN_IF_ERROR(ExpectOperator(")"));
  return inner;
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseList() {
  ExprPtr list = Make(Expr::Kind::kList, Take().place);
  while (!IsOperator("]")) {
    if (!list->args.empty()) {
      FUCINA_RETURN_IF_ERROR(ExpectOperator(","));
      if (IsOperator("]")) break;
    }
    FUCINA_ASSIGN_OR_RETURN(ExprPtr item, ParseExpression());
    list->args.push_back(std::move(item));
  }
  FUCINA_RETURN_IF_ERROR(ExpectOperator("]"));
  return Finish(std::move(list));
}

absl::StatusOr<ExprPtr> ExpressionParser::ParseDict() {
  ExprPtr dict = Make(Expr::Kind::kDict, Take().place);
  while (!IsOperator("}")) {
    if (!dict->args.empty()) {
      FUCINA_RETURN_IF_ERROR(ExpectOperator(","));
      if (IsOperator("}")) break;
    }
    FUCINA_ASSIGN_OR_RETURN(ExprPtr key, ParseExpression());
    FUCINA_RETURN_IF_ERROR(ExpectOperator(":"));
    FUCINA_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
    dict->args.push_back(std::move(key));
    dict->args.push_back(std::move(value));
  }
  FUCINA_RETURN_IF_ERROR(ExpectOperator("}"));
  return Finish(std::move(dict));
}

}  // namespace fucina::jinja
