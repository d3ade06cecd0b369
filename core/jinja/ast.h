#ifndef FUCINA_JINJA_AST_H_
#define FUCINA_JINJA_AST_H_

// A parsed template: statements and expressions as plain nodes. The parser
// makes them, the evaluator reads them, nobody else sees them.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fucina::jinja {

// Line and column count from 1; columns count characters.
struct Place {
  int line = 1;
  int column = 1;
};

// A filter or a test; see builtins.h.
struct Builtin;

// Index of an interned name in ParsedTemplate::symbols.
using Symbol = int;

enum class Operator : std::uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kNegate,
  kPlus,
  kNot,
  kAnd,
  kOr,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

// Which fields a kind uses stands beside it; `args` are operands in order.
struct Expr {
  enum class Kind : std::uint8_t {
    kNone,
    kBool,       // integer
    kInt,        // integer
    kFloat,      // real
    kString,     // text
    kName,       // symbol
    kList,       // args
    kTuple,      // args
    kDict,       // args: key, value, key, value …
    kUnary,      // op, args[0]
    kBinary,     // op, args[0..1]; `and` and `or` included
    kCompare,    // args[0], then args[i + 1] under ops[i]
    kConcat,     // args
    kCondition,  // args: value, condition, alternative or null
    kAttribute,  // args[0], text
    kItem,       // args[0..1]
    kSlice,      // args: object, start, stop, step; the last three may be null
    kCall,       // args[0] callee, then positional ones; keywords
    kFilter,     // text, args[0] input, then positional ones; keywords
    kTest,       // text, args[0] input, then positional ones
    kInput,      // what a filter block or a filtered set block is applied to
  };
  Kind kind = Kind::kNone;
  Operator op = Operator::kAdd;
  Place place;
  int depth = 1;  // of the tree below, this node included
  Symbol symbol = -1;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
  const Builtin* builtin = nullptr;  // of a filter or test
  std::vector<ExprPtr> args;
  std::vector<Operator> ops;
  std::vector<std::pair<std::string, ExprPtr>> keywords;
  // `*values` and `**values` of a call; null for none.
  ExprPtr more_args, more_keywords;
};

// What `set` and `for` assign to: a name, an attribute of a namespace, or a
// tuple of targets.
struct Target {
  Place place;
  Symbol symbol = -1;
  std::string attribute;      // of the namespace `symbol`; empty for none
  std::vector<Target> parts;  // of a tuple
  bool is_tuple = false;
};

struct Stmt;
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

struct Parameter {
  Symbol symbol = -1;
  std::string name;
  ExprPtr default_value;  // null for none
};

// A macro, or the body of a call block, which is a macro named "caller".
struct MacroInfo {
  std::string name;
  Place place;
  std::vector<Parameter> parameters;
  Body body;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};

struct Stmt {
  enum class Kind : std::uint8_t {
    kText,       // text
    kPrint,      // expr
    kIf,         // branches: condition (null for else) and body
    kFor,        // target, expr, test or null, body, otherwise, recursive
    kSet,        // target, expr
    kSetBlock,   // target, body, expr: filters over kInput, or null
    kMacro,      // macro, symbol
    kCallBlock,  // expr (a call), macro: the caller
    kFilter,     // expr: filters over kInput; body
    kWith,       // assignments, body
    kScope,      // body in its own scope: a generation block
    kBreak,
    kContinue,
  };
  struct Branch {
    ExprPtr condition;
    Body body;
  };
  Kind kind = Kind::kText;
  Place place;
  std::string text;
  Symbol symbol = -1;
  ExprPtr expr, test;
  Target target;
  Body body, otherwise;
  bool recursive = false;
  std::vector<Branch> branches;
  std::vector<std::pair<Target, ExprPtr>> assignments;
  std::unique_ptr<MacroInfo> macro;
};

struct ParsedTemplate {
  std::string name;
  Body body;
  std::vector<std::string> symbols;
  std::vector<std::string> variables;  // sorted
};

}  // namespace fucina::jinja

#endif  // FUCINA_JINJA_AST_H_
