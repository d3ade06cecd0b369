#ifndef FUCINA_JINJA_OBJECT_H_
#define FUCINA_JINJA_OBJECT_H_

// The values that a running template handles. Containers live in the arena of
// one evaluation and are pointed to, so a template may build cycles; strings
// are immutable and counted. Nothing here outlives its evaluation.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/jinja/ast.h"
#include "core/jinja/text.h"

namespace fucina::jinja {

struct Object;
struct Sequence;
struct Dict;
struct Loop;
struct Macro;
struct Method;

enum class VarKind : std::uint8_t {
  kAbsent,  // an argument that was not given; never seen by a template
  kUndefined,
  kNone,
  kBool,
  kInt,
  kNumber,  // an integer past 64 bits: its literal text
  kFloat,
  kString,
  kSequence,  // list, tuple, range, dict view, iterator
  kDict,
  kNamespace,
  kLoop,
  kMacro,
  kFunction,  // a global function
  kMethod,    // of a string, list, dict, loop
  kCycler,
  kJoiner,
};

class Var {
 public:
  Var() = default;  // undefined, without a message

  static Var Absent() { return Var(VarKind::kAbsent); }
  static Var None() { return Var(VarKind::kNone); }
  static Var Bool(bool value);
  static Var Int(std::int64_t value);
  static Var Float(double value);
  static Var Number(std::string digits);
  // An undefined value; `message` says what using it would have needed.
  static Var Undefined(std::string message);
  // Through Evaluator::NewString, which charges the budget.
  static Var String(std::shared_ptr<const Text> text);
  static Var Of(VarKind kind, Object* object);

  VarKind kind() const { return kind_; }
  bool is_absent() const { return kind_ == VarKind::kAbsent; }
  bool is_undefined() const { return kind_ == VarKind::kUndefined; }
  bool is_none() const { return kind_ == VarKind::kNone; }
  bool is_string() const { return kind_ == VarKind::kString; }
  bool is_sequence() const { return kind_ == VarKind::kSequence; }
  bool is_dict() const { return kind_ == VarKind::kDict; }
  // Bools are integers in Python, here too.
  bool is_integral() const {
    return kind_ == VarKind::kInt || kind_ == VarKind::kBool;
  }
  bool is_numeric() const { return is_integral() || kind_ == VarKind::kFloat; }

  bool bool_value() const { return integer_ != 0; }
  std::int64_t integer() const { return integer_; }  // bool or int
  double real() const { return real_; }              // float
  // Any numeric kind as a double.
  double AsDouble() const {
    return kind_ == VarKind::kFloat ? real_ : static_cast<double>(integer_);
  }
  const Text& text() const { return *text_; }  // string
  const std::string& bytes() const { return text_->bytes(); }
  // Of kNumber the digits, of kUndefined the message, which may be empty.
  absl::string_view note() const;
  Object* object() const { return object_; }
  Sequence& sequence() const;
  Dict& dict() const;  // of kDict and kNamespace
  // A result of the `safe` filter: Python's markup type.
  bool is_markup() const { return markup_; }
  Var AsMarkup() const;

 private:
  explicit Var(VarKind kind) : kind_(kind) {}

  VarKind kind_ = VarKind::kUndefined;
  bool markup_ = false;
  union {
    std::int64_t integer_ = 0;
    double real_;
    Object* object_;
  };
  std::shared_ptr<const Text> text_;
};

// Base of everything in an arena.
struct Object {
  virtual ~Object();
};

struct Sequence : Object {
  enum class Flavor : std::uint8_t { kList, kTuple, kRange, kView, kIterator };
  Flavor flavor = Flavor::kList;
  std::vector<Var> items;
  std::size_t consumed = 0;    // of an iterator: items already taken
  const char* type_name = "";  // of a view or an iterator
};

struct Dict : Object {
  std::vector<std::pair<Var, Var>> entries;  // insertion order
  absl::flat_hash_map<std::string, std::size_t> index;

  // Null when absent. `hash` is HashKey(key).
  Var* Find(const std::string& hash);
  Var* FindText(absl::string_view key);
  void Set(std::string hash, Var key, Var value);
  void Erase(std::size_t position);
};

// Where a name is looked up: one per loop iteration, macro call and block.
struct Scope : Object {
  Scope* parent = nullptr;
  std::vector<std::pair<Symbol, Var>> names;
  bool captured = false;  // a macro may still look here

  Var* Find(Symbol symbol);
  void Set(Symbol symbol, Var value);
};

struct Loop : Object {
  const Stmt* stmt = nullptr;
  Scope* outer = nullptr;      // where the test is evaluated
  Sequence* source = nullptr;  // a list is read live, as Python does
  bool counted = false;        // len(source) is the number of rounds
  std::size_t next = 0;        // next item of the source to look at
  std::vector<Var> ready;      // found ahead: at most one, or all for `length`
  std::size_t ready_at = 0;
  bool finished = false;  // the loop is over; nothing more is fetched
  int index0 = -1;
  int depth0 = 0;
  Var previous, current;     // absent where there is none
  std::int64_t length = -1;  // once known
  std::vector<Var> changed;  // last arguments of changed()
  bool has_changed = false;
};

struct Macro : Object {
  const MacroInfo* info = nullptr;
  Scope* scope = nullptr;
};

enum class Function : std::uint8_t {
  kCycler,
  kDict,
  kJoiner,
  kNamespace,
  kRaiseException,
  kRange,
  kStrftimeNow,
};

struct FunctionObject : Object {
  Function function = Function::kRange;
};

struct Method : Object {
  Var self;
  std::string name;
};

struct Cycler : Object {
  std::vector<Var> items;
  std::size_t at = 0;
};

struct Joiner : Object {
  Var separator;
  bool used = false;
};

// Python's name of the type, for messages: "str", "int", "dict" …
absl::string_view TypeName(const Var& value);

// A text that is equal exactly for keys that Python's dict takes as one:
// 1, 1.0 and True are one key. Empty for what cannot be a key.
std::string HashKey(const Var& key);

}  // namespace fucina::jinja

#endif  // FUCINA_JINJA_OBJECT_H_
