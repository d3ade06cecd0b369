#ifndef FUCINA_TESTS_CONFORMANCE_DRAFTER_RUN_H_
#define FUCINA_TESTS_CONFORMANCE_DRAFTER_RUN_H_

// One sequence driven as the generator drives it, with the text known before:
// what is committed are the tokens of a script, whatever the drafter says.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fucina/contract/decoder.h"
#include "fucina/contract/drafter.h"

namespace fucina::conformance {

// Phrases that come again and again, so that there is something to draft.
std::vector<TokenId> RepetitiveText(int vocab_size, std::uint32_t seed,
                                    std::size_t length);

// The longest draft that is asked for.
inline constexpr std::size_t kMaxRoom = 64;

struct Draft {
  std::vector<TokenId> tokens;
  int draft_class = 0;
  bool operator==(const Draft&) const = default;
};

class DrafterRun {
 public:
  // The script is borrowed and may be replaced by one with the same beginning.
  DrafterRun(const Decoder& decoder, Drafter& drafter,
             std::span<const TokenId> script)
      : decoder_(decoder), drafter_(drafter), script_(script) {}

  // Begins: makes the state, when hidden states are read, and rewinds to
  // nothing.
  absl::Status Begin();
  // Reads the script up to `length` as a prompt in pieces of `chunk` tokens,
  // then commits the token that follows it.
  absl::Status Read(std::size_t length, std::size_t chunk);
  // A draft with `room` for it. Internal when it does not keep to the room, or
  // proposes what is no token.
  absl::StatusOr<Draft> Ask(std::size_t room);
  // Verifies the tokens against the script and commits what is right and one
  // more. How many were right.
  absl::StatusOr<std::size_t> Verify(std::span<const TokenId> draft);
  // As a new turn does it: forgets everything from `length` on, and the script
  // goes on as in `script`, of which nothing behind `length` is read yet.
  absl::Status Rewind(std::size_t length, std::span<const TokenId> script);

  // Asks and verifies until `length` tokens are committed. Every draft, and
  // into `right` how many of their tokens were.
  absl::StatusOr<std::vector<Draft>> StepsTo(std::size_t length,
                                             std::size_t* right = nullptr);

  std::size_t committed() const { return committed_; }

 private:
  absl::Status Forward(std::span<const TokenId> tokens);
  void Tell(std::size_t first, std::size_t count);

  const Decoder& decoder_;
  Drafter& drafter_;
  std::span<const TokenId> script_;
  std::unique_ptr<DecodeState> state_;  // null: no hidden states are read
  std::size_t committed_ = 0;
};

}  // namespace fucina::conformance

#endif  // FUCINA_TESTS_CONFORMANCE_DRAFTER_RUN_H_
