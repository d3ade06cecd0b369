#ifndef FUCINA_PLUGINS_LLGUIDANCE_COMPILE_H_
#define FUCINA_PLUGINS_LLGUIDANCE_COMPILE_H_

// From a grammar's text to a matcher, whatever the text: on a thread of its own
// with a stack that the engine's recursion cannot use up, and with a deadline.

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine.h"
#include "grammar_text.h"

namespace fucina::llguidance {

struct Compiled {
  MatcherHandle matcher;  // at the start of a reply
  std::string warning;    // of the engine; empty for none
};

// Of the thread's own work.
inline constexpr std::chrono::milliseconds kCompileTime{2000};

// Compiles `grammar` for the tokens of `engine`.
//
// InvalidArgument "invalid json schema: …" with the engine's own diagnostic, or
// when the deadline passes. Then the tokenizer's bridge is disconnected and the
// thread left to finish, which the engine's own limits see to.
absl::StatusOr<Compiled> Compile(std::shared_ptr<const EngineTokenizer> engine,
                                 const Grammar& grammar,
                                 std::chrono::milliseconds time = kCompileTime);

}  // namespace fucina::llguidance

#endif  // FUCINA_PLUGINS_LLGUIDANCE_COMPILE_H_
