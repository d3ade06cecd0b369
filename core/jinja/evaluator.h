#ifndef FUCINA_JINJA_EVALUATOR_H_
#define FUCINA_JINJA_EVALUATOR_H_

// Runs a parsed template once. Owns everything that the run makes, and the
// budget that bounds it: every node evaluated, element touched and byte made
// goes through Charge or ChargeBytes.
//
// Errors leave as InvalidArgument or ResourceExhausted with the place of the
// innermost expression that failed.

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/jinja/ast.h"
#include "core/jinja/builtins.h"
#include "core/jinja/object.h"
#include "fucina/jinja/template.h"
#include "fucina/jinja/value.h"

namespace fucina::jinja {

class Evaluator {
 public:
  Evaluator(const ParsedTemplate& parsed, const RenderOptions& options);
  ~Evaluator();

  absl::StatusOr<std::vector<Segment>> Run(const Value& context);

  // --- budget ---------------------------------------------------------------
  absl::Status Charge(std::size_t steps);
  absl::Status ChargeBytes(std::size_t bytes);
  // Enters one level of nested evaluation while it lives; check status().
  class Depth {
   public:
    explicit Depth(Evaluator& evaluator) : depth_(&evaluator.depth_) {
      ++*depth_;
    }
    ~Depth() { --*depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    absl::Status status() const;

   private:
    int* depth_;
  };

  // --- new values -----------------------------------------------------------
  absl::StatusOr<Var> NewString(Text text);
  absl::StatusOr<Var> NewString(absl::string_view bytes, Origin origin) {
    return NewString(Text(bytes, origin));
  }
  absl::StatusOr<Var> NewSequence(Sequence::Flavor flavor,
                                  std::vector<Var> items,
                                  const char* type_name = "");
  absl::StatusOr<Var> NewList(std::vector<Var> items) {
    return NewSequence(Sequence::Flavor::kList, std::move(items));
  }
  absl::StatusOr<Var> NewIterator(std::vector<Var> items) {
    return NewSequence(Sequence::Flavor::kIterator, std::move(items),
                       "generator");
  }
  absl::StatusOr<Var> NewDict();
  // Adds to a dict; an error for keys that Python cannot hash.
  absl::Status SetKey(Dict& dict, Var key, Var value);
  template <typename T>
  T* New() {
    auto owned = std::make_unique<T>();
    T* object = owned.get();
    arena_.push_back(std::move(owned));
    return object;
  }

  // --- access ---------------------------------------------------------------
  // `object.name`: methods first, then keys, as Jinja looks it up.
  absl::StatusOr<Var> GetAttribute(const Var& object, absl::string_view name);
  // `object[key]`: keys and indices first, then attributes.
  absl::StatusOr<Var> GetItem(const Var& object, const Var& key);
  absl::StatusOr<Var> GetSlice(const Var& object, const Var& start,
                               const Var& stop, const Var& step);
  // Everything that iterating over `value` gives; takes what is left of an
  // iterator. Characters of a string, keys of a dict, nothing of undefined.
  absl::StatusOr<std::vector<Var>> Items(const Var& value);

  // --- calls ----------------------------------------------------------------
  absl::StatusOr<Var> Call(const Var& callee, Arguments arguments);
  absl::StatusOr<Var> CallMethod(const Var& self, absl::string_view name,
                                 Arguments arguments);
  absl::StatusOr<Var> CallFunction(Function function, Arguments arguments);

  const RenderOptions& options() const { return options_; }

 private:
  enum class Flow : std::uint8_t { kNormal, kBreak, kContinue };

  // --- statements -----------------------------------------------------------
  absl::StatusOr<Flow> RunBody(const Body& body);
  absl::StatusOr<Flow> RunStmt(const Stmt& stmt);
  absl::Status RunPrint(const Stmt& stmt);
  absl::StatusOr<Flow> RunIf(const Stmt& stmt);
  absl::StatusOr<Flow> RunFor(const Stmt& stmt);
  absl::StatusOr<Flow> RunLoop(const Stmt& stmt, Var iterable, int depth0);
  absl::StatusOr<Flow> RunSetBlock(const Stmt& stmt);
  absl::StatusOr<Flow> RunFilter(const Stmt& stmt);
  absl::StatusOr<Flow> RunWith(const Stmt& stmt);
  absl::Status RunCallBlock(const Stmt& stmt);
  void DefineMacro(const Stmt& stmt);
  absl::Status Assign(const Target& target, Var value);
  // Runs `body` in a new scope and keeps its output out of the current one.
  absl::StatusOr<Flow> Capture(const Body& body, Text* output);
  absl::Status Emit(const Text& text);
  absl::StatusOr<Var> CallMacro(const Macro& macro, Arguments arguments);

  // --- loops ----------------------------------------------------------------
  // Makes sure that loop.ready has an item at ready_at + `ahead`, if there is
  // one; returns whether.
  absl::StatusOr<bool> Fetch(Loop& loop, std::size_t ahead);
  absl::StatusOr<Var> LoopAttribute(Loop& loop, absl::string_view name);
  absl::StatusOr<std::int64_t> LoopLength(Loop& loop);
  absl::StatusOr<Var> CallLoop(Loop& loop, Arguments arguments);

  // --- expressions ----------------------------------------------------------
  absl::StatusOr<Var> Eval(const Expr& expr);
  absl::StatusOr<Var> EvalInner(const Expr& expr);
  absl::StatusOr<Var> EvalName(const Expr& expr);
  absl::StatusOr<Var> EvalItems(const Expr& expr, Sequence::Flavor flavor);
  absl::StatusOr<Var> EvalDict(const Expr& expr);
  absl::StatusOr<Var> EvalUnary(const Expr& expr);
  absl::StatusOr<Var> EvalBinary(const Expr& expr);
  absl::StatusOr<Var> EvalCompare(const Expr& expr);
  absl::StatusOr<Var> EvalConcat(const Expr& expr);
  absl::StatusOr<Var> EvalCondition(const Expr& expr);
  absl::StatusOr<Var> EvalSlice(const Expr& expr);
  absl::StatusOr<Var> EvalCall(const Expr& expr);
  absl::StatusOr<Var> EvalBuiltin(const Expr& expr);
  absl::StatusOr<Arguments> EvalArguments(const Expr& expr, std::size_t first);

  absl::StatusOr<Var> FromValue(const Value& value, int depth);
  // Adds the place to an error that has none yet.
  absl::Status Locate(absl::Status status, Place place);

  // Scopes are made per iteration; those that nothing captured are used again.
  Scope* PushScope(Scope* parent);
  void PopScope();
  static void CaptureScopes(Scope* scope);

  const ParsedTemplate& parsed_;
  const RenderOptions& options_;
  std::vector<std::unique_ptr<Object>> arena_;
  std::vector<Scope*> free_scopes_;
  Scope* scope_ = nullptr;
  Dict* context_ = nullptr;
  std::vector<Var> globals_;  // by symbol; absent where there is none
  std::vector<Var> inputs_;   // what kInput stands for, innermost last
  Text output_;
  bool capturing_ = false;
  bool located_ = false;  // the error on its way out has a place
  std::size_t steps_ = 0;
  std::size_t next_clock_check_ = 0;
  std::size_t work_bytes_ = 0;
  std::int64_t cpu_start_ns_ = 0;
  int depth_ = 0;
  int call_depth_ = 0;
};

}  // namespace fucina::jinja

#endif  // FUCINA_JINJA_EVALUATOR_H_
