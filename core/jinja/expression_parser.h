#ifndef FUCINA_JINJA_EXPRESSION_PARSER_H_
#define FUCINA_JINJA_EXPRESSION_PARSER_H_

// The half of the parser that reads expressions, and the book-keeping that both
// halves share: the token stream, interned names, and which names are bound
// where.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/jinja/ast.h"
#include "core/jinja/lexer.h"

namespace fucina::jinja {

// Nesting of brackets, prefix operators and statements: ten times what chat
// templates use, and it keeps the parser inside a small stack.
inline constexpr int kMaxNesting = 100;
// Depth of one expression's tree; a chain of operators is a deep tree.
inline constexpr int kMaxExpressionDepth = 400;

class ExpressionParser {
 public:
  ExpressionParser(absl::string_view name, std::vector<Token> tokens)
      : name_(name), tokens_(std::move(tokens)) {}

 protected:
  // Counts one level of nesting while it lives.
  class Level {
   public:
    explicit Level(int* level) : level_(level) { ++*level_; }
    ~Level() { --*level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    int* level_;
  };

  // --- tokens ---------------------------------------------------------------
  const Token& Current() const { return tokens_[at_]; }
  const Token& Next() const {
    return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_];
  }
  Token Take();
  bool Is(TokenKind kind) const { return Current().kind == kind; }
  bool IsOperator(absl::string_view spelling) const;
  bool IsWord(absl::string_view word) const;
  bool SkipOperator(absl::string_view spelling);
  bool SkipWord(absl::string_view word);
  absl::Status ExpectOperator(absl::string_view spelling);
  absl::Status Fail(Place place, absl::string_view message) const;
  // "expected WANTED, found …" at the current token.
  absl::Status Unexpected(absl::string_view wanted) const;
  absl::Status CheckNesting() const;

  // --- names ----------------------------------------------------------------
  Symbol Intern(absl::string_view name);
  void NoteRead(Symbol symbol);
  void Bind(Symbol symbol) { scopes_.back().insert(symbol); }

  // --- expressions ----------------------------------------------------------
  absl::StatusOr<ExprPtr> ParseExpression();  // with inline if
  absl::StatusOr<ExprPtr> ParseOr();          // without inline if
  // One expression, or a tuple of several with commas between them.
  absl::StatusOr<ExprPtr> ParseTuple(bool with_condition);
  // `name(args) | name(args) …` applied to `input`, with or without a bar in
  // front.
  absl::StatusOr<ExprPtr> ParseFilter(ExprPtr input);
  absl::StatusOr<ExprPtr> ParseUnary(bool with_filter);
  ExprPtr Make(Expr::Kind kind, Place place);

  const absl::string_view name_;
  std::vector<std::string> symbols_;
  std::set<std::string> free_variables_;
  std::vector<std::set<Symbol>> scopes_;
  // Macros around the current place, innermost last.
  std::vector<MacroInfo*> macros_;
  int nesting_ = 0;

 private:
  absl::StatusOr<ExprPtr> ParseAnd();
  absl::StatusOr<ExprPtr> ParseNot();
  absl::StatusOr<ExprPtr> ParseCompare();
  absl::StatusOr<ExprPtr> ParseSum();
  absl::StatusOr<ExprPtr> ParseConcat();
  absl::StatusOr<ExprPtr> ParseProduct();
  absl::StatusOr<ExprPtr> ParsePower();
  absl::StatusOr<ExprPtr> ParsePrimary();
  absl::StatusOr<ExprPtr> ParseList();
  absl::StatusOr<ExprPtr> ParseDict();
  absl::StatusOr<ExprPtr> ParseParentheses();
  absl::StatusOr<ExprPtr> ParsePostfix(ExprPtr object);
  absl::StatusOr<ExprPtr> ParseFilterExpression(ExprPtr object);
  absl::StatusOr<ExprPtr> ParseTest(ExprPtr object);
  absl::StatusOr<ExprPtr> ParseSubscript(ExprPtr object);
  absl::StatusOr<ExprPtr> ParseCall(ExprPtr function);
  absl::Status ParseArguments(Expr* call);
  absl::StatusOr<ExprPtr> Binary(Operator op, Place place, ExprPtr left,
                                 ExprPtr right);
  // Sets the node's depth from its children; fails past the bound.
  absl::StatusOr<ExprPtr> Finish(ExprPtr node) const;
  bool AtTupleEnd() const;

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::map<std::string, Symbol, std::less<>> interned_;
};

}  // namespace fucina::jinja

#endif  // FUCINA_JINJA_EXPRESSION_PARSER_H_
