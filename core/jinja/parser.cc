#include "core/jinja/parser.h"

#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/jinja/expression_parser.h"
#include "fucina/diag/status_macros.h"

namespace fucina::jinja {
namespace {

using absl::string_view;

constexpr std::size_t kMaxSourceBytes = std::size_t{1} << 20;

// Names that exist without being set or given; a template that uses them does
// not read a variable.
constexpr string_view kGlobals[] = {"cycler",      "dict",  "joiner",
                                    "namespace",   "range", "raise_exception",
                                    "strftime_now"};

bool IsConstantName(string_view name) {
  return name == "true" || name == "True" || name == "false" ||
         name == "False" || name == "none" || name == "None";
}

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  absl::StatusOr<ParsedTemplate> Run() {
    ParsedTemplate out;
    out.name = std::string(name_);
    scopes_.emplace_back();
    FUCINA_ASSIGN_OR_RETURN(out.body, ParseBody({}, ""));
    for (const string_view global : kGlobals) {
      free_variables_.erase(std::string(global));
    }
    out.variables.assign(free_variables_.begin(), free_variables_.end());
    out.symbols = std::move(symbols_);
    return out;
  }

 private:
  using Ends = std::span<const string_view>;

  // Statements up to one of the tags in `ends`, whose name stays the current
  // token; up to the end of the template when there are none. `opener` names
  // the block in messages.
  absl::StatusOr<Body> ParseBody(Ends ends, string_view opener) {
    const Level level(&nesting_);
    FUCINA_RETURN_IF_ERROR(CheckNesting());
    const Place opened = Current().place;
    Body body;
    for (;;) {
      const Token& token = Current();
      if (token.kind == TokenKind::kEnd) {
        if (ends.empty()) return body;
        return Fail(opened,
                    absl::StrCat("'", opener, "' is never closed with '",
                                 ends.back(), "'"));
      }
      if (token.kind == TokenKind::kText) {
        auto text = NewStmt(Stmt::Kind::kText, token.place);
        text->text = Take().text;
        body.push_back(std::move(text));
      } else if (token.kind == TokenKind::kPrintBegin) {
        auto print = NewStmt(Stmt::Kind::kPrint, Take().place);
        FUCINA_ASSIGN_OR_RETURN(print->expr, ParseTuple(true));
        if (!Is(TokenKind::kPrintEnd)) return Unexpected("'}}'");
        Take();
        body.push_back(std::move(print));
      } else {
        const Place place = Take().place;  // {%
        if (!Is(TokenKind::kName)) return Unexpected("the name of a statement");
        for (const string_view end : ends) {
          if (IsWord(end)) return body;
        }
        FUCINA_RETURN_IF_ERROR(ParseStatement(place, &body));
      }
    }
  }

  StmtPtr NewStmt(Stmt::Kind kind, Place place) {
    auto stmt = std::make_unique<Stmt>();
    stmt->kind = kind;
    stmt->place = place;
    return stmt;
  }

  absl::Status ExpectBlockEnd() {
    if (!Is(TokenKind::kBlockEnd)) return Unexpected("'%}'");
    Take();
    return absl::OkStatus();
  }

  // Body and closing tag of a block that ends with `end`.
  absl::StatusOr<Body> ParseBlock(string_view end, string_view opener) {
    FUCINA_RETURN_IF_ERROR(ExpectBlockEnd());
    FUCINA_ASSIGN_OR_RETURN(Body body, ParseBody({&end, 1}, opener));
    Take();
    FUCINA_RETURN_IF_ERROR(ExpectBlockEnd());
    return body;
  }

  absl::Status ParseStatement(Place place, Body* body) {
    const Token tag = Take();
    const std::string& name = tag.text;
    absl::StatusOr<StmtPtr> stmt = absl::InternalError("unset");
    if (name == "if") {
      stmt = ParseIf(place);
    } else if (name == "for") {
      stmt = ParseFor(place);
    } else if (name == "set") {
      stmt = ParseSet(place);
    } else if (name == "macro") {
      stmt = ParseMacro(place);
    } else if (name == "call") {
      stmt = ParseCallBlock(place);
    } else if (name == "filter") {
      stmt = ParseFilterBlock(place);
    } else if (name == "with") {
      stmt = ParseWith(place);
    } else if (name == "generation") {
      stmt = ParseGeneration(place);
    } else if (name == "break" || name == "continue") {
      if (loops_ == 0) {
        return Fail(tag.place, absl::StrCat("'", name, "' outside of a loop"));
      }
      FUCINA_RETURN_IF_ERROR(ExpectBlockEnd());
      stmt = NewStmt(
          name == "break" ? Stmt::Kind::kBreak : Stmt::Kind::kContinue, place);
    } else if (name == "elif" || name == "else" || name.rfind("end", 0) == 0) {
      return Fail(tag.place,
                  absl::StrCat("unexpected '", name, "' without its opening"));
    } else {
      return Fail(tag.place,
                  absl::StrCat("unsupported statement '", name, "'"));
    }
    if (!stmt.ok()) return stmt.status();
    body->push_back(*std::move(stmt));
    return absl::OkStatus();
  }

  absl::StatusOr<StmtPtr> ParseIf(Place place) {
    static constexpr string_view kEnds[] = {"elif", "else", "endif"};
    StmtPtr stmt = NewStmt(Stmt::Kind::kIf, place);
    bool has_else = false;
    for (bool first = true;; first = false) {
      Stmt::Branch branch;
      if (first || SkipWord("elif")) {
        FUCINA_ASSIGN_OR_RETURN(branch.condition, ParseTuple(false));
      } else {
        Take();  // else
        has_else = true;
      }
      FUCINA_RETURN_IF_ERROR(ExpectBlockEnd());
      FUCINA_ASSIGN_OR_RETURN(branch.body, ParseBody(kEnds, "if"));
      stmt->branches.push_back(std::move(branch));
      if (SkipWord("endif")) break;
      if (has_else) return Unexpected("'endif'");
    }
    FUCINA_RETURN_IF_ERROR(ExpectBlockEnd());
    return stmt;
  }

  // --- targets --------------------------------------------------------------
  absl::StatusOr<Target> ParseTargetName(bool with_namespace) {
    Target target;
    target.place = Current().place;
    if (SkipOperator("(")) {
      FUCINA_ASSIGN_OR_RETURN(target, ParseTarget(/*with_namespace=*/false));
      FUCINA_RETURN_IF_ERROR(ExpectOperator(")"));
      return target;
    }
    if (!Is(TokenKind::kName)) return Unexpected("a name to assign to");
    const std::string name = Take().text;
    if (IsConstantName(name)) {
      return Fail(target.place, absl::StrCat("cannot assign to '", name, "'"));
    }
    target.symbol = Intern(name);
    if (with_namespace && SkipOperator(".")) {
      if (!Is(TokenKind::kName)) return Unexpected("the name of an attribute");
      target.attribute = Take().text;
      NoteRead(target.symbol);
    }
    return target;
  }

  absl::StatusOr<Target> ParseTarget(bool with_namespace) {
    const Level level(&nesting_);
    FUCINA_RETURN_IF_ERROR(CheckNesting());
    FUCINA_ASSIGN_OR_RETURN(Target first, ParseTargetName(with_namespace));
    if (!IsOperator(",")) return first;
    Target tuple;
    tuple.place = first.place;
    tuple.is_tuple = true;
    tuple.parts.push_back(std::move(first));
    while (SkipOperator(",")) {
      if (IsWord("in") || IsOperator("=") || IsOperator(")")) break;
      FUCINA_ASSIGN_OR_RETURN(Target next, ParseTargetName(with_namespace));
      tuple.parts.push_back(std::move(next));
    }
    return tuple;
  }

  void BindTarget(const Target& target) {
    if (target.symbol >= 0 && target.attribute.empty()) Bind(target.symbol);
    for (const Target& part : target.parts) BindTarget(part);
  }

  bool Assigns(const Target& target, Symbol symbol) const {
    if (target.symbol == symbol) return true;
    for (const Target& part : target.parts) {
      if (Assigns(part, symbol)) return true;
    }
    return false;
  }

  // --- blocks ---------------------------------------------------------------
  absl::StatusOr<StmtPtr> ParseFor(Place place) {
    static constexpr string_view kEnds[] = {"else", "endfor"};
    StmtPtr stmt = NewStmt(Stmt::Kind::kFor, place);
    const Symbol loop = Intern("loop");
    stmt->symbol = loop;
    FUCINA_ASSIGN_OR_RETURN(stmt->target, ParseTarget(false));
    if (Assigns(stmt->target, loop)) {
      return Fail(stmt->target.place, "cannot assign to 'loop' in a for");
    }
    if (!SkipWord("in")) return Unexpected("'in'");
    FUCINA_ASSIGN_OR_RETURN(stmt->expr, ParseTuple(false));
    scopes_.emplace_back();
    BindTarget(stmt->target);
    if (SkipWord("if")) {
      FUCINA_ASSIGN_OR_RETURN(stmt->test, ParseExpression());
    }
    stmt->recursive = SkipWord("recursive");
    FUCINA_RETURN_IF_ERROR(ExpectBlockEnd());
    Bind(loop);
    ++loops_;
    FUCINA_ASSIGN_OR_RETURN(stmt->body, ParseBody(kEnds, "for"));
    --loops_;
    scopes_.pop_back();
    if (SkipWord("else")) {
      FUCINA_RETURN_IF_ERROR(ExpectBlockEnd());
      scopes_.emplace_back();
      FUCINA_ASSIGN_OR_RETURN(stmt->otherwise,
                              ParseBody({&kEnds[1], 1}, "for"));
      scopes_.pop_back();
    }
    Take();  // endfor
    FUCINA_RETURN_IF_ERROR(ExpectBlockEnd());
    return stmt;
  }

  absl::StatusOr<StmtPtr> ParseSet(Place place) {
    StmtPtr stmt = NewStmt(Stmt::Kind::kSet, place);
    FUCINA_ASSIGN_OR_RETURN(stmt->target, ParseTarget(true));
    if (SkipOperator("=")) {
      FUCINA_ASSIGN_OR_RETURN(stmt->expr, ParseTuple(true));
      FUCINA_RETURN_IF_ERROR(ExpectBlockEnd());
      BindTarget(stmt->target);
      return stmt;
    }
    if (stmt->target.is_tuple) return Unexpected("'='");
    stmt->kind = Stmt::Kind::kSetBlock;
    if (IsOperator("|")) {
      FUCINA_ASSIGN_OR_RETURN(
          stmt->expr, ParseFilter(Make(Expr::Kind::kInput, Current().place)));
    }
    scopes_.emplace_back();
    FUCINA_ASSIGN_OR_RETURN(stmt->body, ParseBlock("endset", "set"));
    scopes_.pop_back();
    BindTarget(stmt->target);
    return stmt;
  }

  absl::Status ParseParameters(MacroInfo* macro) {
    FUCINA_RETURN_IF_ERROR(ExpectOperator("("));
    bool has_default = false;
    while (!IsOperator(")")) {
      if (!macro->parameters.empty()) {
        FUCINA_RETURN_IF_ERROR(ExpectOperator(","));
        if (IsOperator(")")) break;
      }
      const Place place = Current().place;
      if (!Is(TokenKind::kName)) return Unexpected("the name of a parameter");
      Parameter parameter;
      parameter.name = Take().text;
      if (IsConstantName(parameter.name)) {
        return Fail(place,
                    absl::StrCat("cannot assign to '", parameter.name, "'"));
      }
      parameter.symbol = Intern(parameter.name);
      for (const Parameter& other : macro->parameters) {
        if (other.symbol == parameter.symbol) {
          return Fail(place,
                      absl::StrCat("parameter '", parameter.name, "' twice"));
        }
      }
      if (SkipOperator("=")) {
        FUCINA_ASSIGN_OR_RETURN(parameter.default_value, ParseExpression());
        has_default = true;
      } else if (has_default) {
        return Fail(place, absl::StrCat("parameter '", parameter.name,
                                        "' needs a default like those before"));
      }
      Bind(parameter.symbol);
      macro->parameters.push_back(std::move(parameter));
    }
    return ExpectOperator(")");
  }

  // The body of a macro is a function: it is in no loop.
  absl::Status ParseMacroBody(MacroInfo* macro, string_view end,
                              string_view opener) {
    const int outer_loops = std::exchange(loops_, 0);
    macros_.push_back(macro);
    FUCINA_ASSIGN_OR_RETURN(macro->body, ParseBlock(end, opener));
    macros_.pop_back();
    loops_ = outer_loops;
    return absl::OkStatus();
  }

  absl::StatusOr<StmtPtr> ParseMacro(Place place) {
    StmtPtr stmt = NewStmt(Stmt::Kind::kMacro, place);
    if (!Is(TokenKind::kName)) return Unexpected("the name of a macro");
    stmt->macro = std::make_unique<MacroInfo>();
    stmt->macro->place = place;
    stmt->macro->name = Take().text;
    if (IsConstantName(stmt->macro->name)) {
      return Fail(place,
                  absl::StrCat("cannot assign to '", stmt->macro->name, "'"));
    }
    stmt->symbol = Intern(stmt->macro->name);
    Bind(stmt->symbol);  // before the body, which may call itself
    scopes_.emplace_back();
    FUCINA_RETURN_IF_ERROR(ParseParameters(stmt->macro.get()));
    FUCINA_RETURN_IF_ERROR(
        ParseMacroBody(stmt->macro.get(), "endmacro", "macro"));
    scopes_.pop_back();
    return stmt;
  }

  absl::StatusOr<StmtPtr> ParseCallBlock(Place place) {
    StmtPtr stmt = NewStmt(Stmt::Kind::kCallBlock, place);
    stmt->macro = std::make_unique<MacroInfo>();
    stmt->macro->place = place;
    stmt->macro->name = "caller";
    scopes_.emplace_back();
    if (IsOperator("(")) {
      FUCINA_RETURN_IF_ERROR(ParseParameters(stmt->macro.get()));
    }
    // The call itself does not see the parameters.
    std::set<Symbol> parameters = std::move(scopes_.back());
    scopes_.pop_back();
    const Place callee = Current().place;
    FUCINA_ASSIGN_OR_RETURN(stmt->expr, ParseExpression());
    if (stmt->expr->kind != Expr::Kind::kCall) {
      return Fail(callee, "a call block needs a call");
    }
    scopes_.push_back(std::move(parameters));
    FUCINA_RETURN_IF_ERROR(
        ParseMacroBody(stmt->macro.get(), "endcall", "call"));
    scopes_.pop_back();
    return stmt;
  }

  absl::StatusOr<StmtPtr> ParseFilterBlock(Place place) {
    StmtPtr stmt = NewStmt(Stmt::Kind::kFilter, place);
    FUCINA_ASSIGN_OR_RETURN(
        stmt->expr, ParseFilter(Make(Expr::Kind::kInput, Current().place)));
    scopes_.emplace_back();
    FUCINA_ASSIGN_OR_RETURN(stmt->body, ParseBlock("endfilter", "filter"));
    scopes_.pop_back();
    return stmt;
  }

  absl::StatusOr<StmtPtr> ParseWith(Place place) {
    StmtPtr stmt = NewStmt(Stmt::Kind::kWith, place);
    while (!Is(TokenKind::kBlockEnd)) {
      if (!stmt->assignments.empty()) {
        FUCINA_RETURN_IF_ERROR(ExpectOperator(","));
      }
      FUCINA_ASSIGN_OR_RETURN(Target target, ParseTargetName(false));
      FUCINA_RETURN_IF_ERROR(ExpectOperator("="));
      FUCINA_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
      stmt->assignments.emplace_back(std::move(target), std::move(value));
    }
    scopes_.emplace_back();
    for (const auto& assignment : stmt->assignments) {
      BindTarget(assignment.first);
    }
    FUCINA_ASSIGN_OR_RETURN(stmt->body, ParseBlock("endwith", "with"));
    scopes_.pop_back();
    return stmt;
  }

  // Hugging Face's marker of what an assistant wrote; only training reads it.
  absl::StatusOr<StmtPtr> ParseGeneration(Place place) {
    StmtPtr stmt = NewStmt(Stmt::Kind::kScope, place);
    const int outer_loops = std::exchange(loops_, 0);
    scopes_.emplace_back();
    FUCINA_ASSIGN_OR_RETURN(stmt->body,
                            ParseBlock("endgeneration", "generation"));
    scopes_.pop_back();
    loops_ = outer_loops;
    return stmt;
  }

  int loops_ = 0;  // around the current place, inside the current function
};

}  // namespace

absl::StatusOr<ParsedTemplate> ParseTemplate(string_view name,
                                             string_view source,
                                             const ParseOptions& options) {
  if (source.size() > kMaxSourceBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": template of ", source.size(), " bytes, at most ",
                     kMaxSourceBytes, " are allowed"));
  }
  FUCINA_ASSIGN_OR_RETURN(std::vector<Token> tokens,
                          Tokenize(name, source, options));
  return Parser(name, std::move(tokens)).Run();
}

}  // namespace fucina::jinja
