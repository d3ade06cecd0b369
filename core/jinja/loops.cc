// The for statement and its loop variable. Items are fetched as the loop needs
// them, one ahead when `last` or `nextitem` is asked, all when `length` is, so
// that a test which looks at a namespace sees what Python's would see.

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/jinja/evaluator.h"
#include "core/jinja/python.h"
#include "fucina/diag/status_macros.h"

namespace fucina::jinja {

absl::StatusOr<Evaluator::Flow> Evaluator::RunFor(const Stmt& stmt) {
  FUCINA_ASSIGN_OR_RETURN(Var iterable, Eval(*stmt.expr));
  return RunLoop(stmt, std::move(iterable), 0);
}

absl::StatusOr<Evaluator::Flow> Evaluator::RunLoop(const Stmt& stmt,
                                                   Var iterable, int depth0) {
  auto* loop = New<Loop>();
  FUCINA_RETURN_IF_ERROR(ChargeBytes(sizeof(Loop)));
  loop->stmt = &stmt;
  loop->outer = scope_;
  loop->depth0 = depth0;
  if (iterable.is_sequence()) {
    loop->source = &iterable.sequence();
    loop->counted = stmt.test == nullptr &&
                    loop->source->flavor != Sequence::Flavor::kIterator;
  } else {
    FUCINA_ASSIGN_OR_RETURN(std::vector<Var> items, Items(iterable));
    FUCINA_ASSIGN_OR_RETURN(const Var copy, NewList(std::move(items)));
    loop->source = &copy.sequence();
    loop->counted = stmt.test == nullptr;
  }

  Scope* const outer = scope_;
  // loop(…) may be called from where the variable was carried to, after this
  // scope has ended.
  if (stmt.recursive) CaptureScopes(outer);
  bool completed = false;  // a round that `continue` cut does not count
  for (;;) {
    FUCINA_ASSIGN_OR_RETURN(const bool more, Fetch(*loop, 0));
    if (!more) break;
    Var item = std::move(loop->ready[loop->ready_at++]);
    if (loop->ready_at == loop->ready.size()) {
      loop->ready.clear();
      loop->ready_at = 0;
    }
    loop->previous = std::exchange(loop->current, item);
    ++loop->index0;
    PushScope(outer)->Set(stmt.symbol, Var::Of(VarKind::kLoop, loop));
    FUCINA_RETURN_IF_ERROR(Assign(stmt.target, std::move(item)));
    FUCINA_ASSIGN_OR_RETURN(const Flow flow, RunBody(stmt.body));
    PopScope();
    if (flow == Flow::kBreak) break;
    if (flow == Flow::kNormal) completed = true;
  }
  loop->finished = true;
  if (completed || stmt.otherwise.empty()) return Flow::kNormal;
  PushScope(outer);
  FUCINA_ASSIGN_OR_RETURN(const Flow flow, RunBody(stmt.otherwise));
  PopScope();
  return flow;
}

absl::StatusOr<bool> Evaluator::Fetch(Loop& loop, std::size_t ahead) {
  while (loop.ready.size() - loop.ready_at <= ahead) {
    Sequence& source = *loop.source;
    std::size_t& next = source.flavor == Sequence::Flavor::kIterator
                            ? source.consumed
                            : loop.next;
    if (loop.finished || next >= source.items.size()) return false;
    Var item = source.items[next++];
    FUCINA_RETURN_IF_ERROR(Charge(1));
    if (loop.stmt->test != nullptr) {
      Scope* const current = scope_;
      PushScope(loop.outer);
      FUCINA_RETURN_IF_ERROR(Assign(loop.stmt->target, item));
      FUCINA_ASSIGN_OR_RETURN(const Var wanted, Eval(*loop.stmt->test));
      PopScope();
      scope_ = current;
      if (!Truthy(wanted)) continue;
    }
    loop.ready.push_back(std::move(item));
  }
  return true;
}

absl::StatusOr<std::int64_t> Evaluator::LoopLength(Loop& loop) {
  if (loop.length >= 0) return loop.length;
  if (loop.counted) {
    loop.length = static_cast<std::int64_t>(loop.source->items.size());
    return loop.length;
  }
  for (std::size_t ahead = 0;; ++ahead) {
    FUCINA_ASSIGN_OR_RETURN(const bool more, Fetch(loop, ahead));
    if (!more) break;
  }
  loop.length = loop.index0 + 1 +
                static_cast<std::int64_t>(loop.ready.size() - loop.ready_at);
  return loop.length;
}

absl::StatusOr<Var> Evaluator::LoopAttribute(Loop& loop,
                                             absl::string_view name) {
  if (name == "index0") return Var::Int(loop.index0);
  if (name == "index") return Var::Int(loop.index0 + 1);
  if (name == "first") return Var::Bool(loop.index0 == 0);
  if (name == "depth0") return Var::Int(loop.depth0);
  if (name == "depth") return Var::Int(loop.depth0 + 1);
  if (name == "last") {
    FUCINA_ASSIGN_OR_RETURN(const bool more, Fetch(loop, 0));
    return Var::Bool(!more);
  }
  if (name == "nextitem") {
    FUCINA_ASSIGN_OR_RETURN(const bool more, Fetch(loop, 0));
    if (more) return loop.ready[loop.ready_at];
    return Var::Undefined("there is no next item");
  }
  if (name == "previtem") {
    if (loop.index0 > 0) return loop.previous;
    return Var::Undefined("there is no previous item");
  }
  if (name == "length" || name == "revindex" || name == "revindex0") {
    FUCINA_ASSIGN_OR_RETURN(const std::int64_t length, LoopLength(loop));
    if (name == "length") return Var::Int(length);
    return Var::Int(length - loop.index0 - (name == "revindex0" ? 1 : 0));
  }
  if (name == "cycle" || name == "changed") {
    auto* method = New<Method>();
    method->self = Var::Of(VarKind::kLoop, &loop);
    method->name = std::string(name);
    return Var::Of(VarKind::kMethod, method);
  }
  return Var::Undefined(absl::StrCat("loop has no attribute '", name, "'"));
}

absl::StatusOr<Var> Evaluator::CallLoop(Loop& loop, Arguments arguments) {
  if (!loop.stmt->recursive) {
    return TypeError("loop() needs a for with 'recursive'");
  }
  if (arguments.positional.size() != 1 || !arguments.keywords.empty()) {
    return TypeError("loop() takes one argument");
  }
  if (call_depth_ >= options_.limits.max_call_depth) {
    return absl::ResourceExhaustedError(
        absl::StrCat("recursive loops nest deeper than the ",
                     options_.limits.max_call_depth, " allowed"));
  }
  Scope* const current = scope_;
  scope_ = loop.outer;
  ++call_depth_;
  Text text;
  std::swap(output_, text);
  const bool was_capturing = std::exchange(capturing_, true);
  absl::StatusOr<Flow> flow =
      RunLoop(*loop.stmt, std::move(arguments.positional[0]), loop.depth0 + 1);
  capturing_ = was_capturing;
  std::swap(output_, text);
  --call_depth_;
  scope_ = current;
  if (!flow.ok()) return flow.status();
  return NewString(std::move(text));
}

}  // namespace fucina::jinja
