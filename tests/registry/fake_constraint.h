#ifndef FUCINA_TESTS_REGISTRY_FAKE_CONSTRAINT_H_
#define FUCINA_TESTS_REGISTRY_FAKE_CONSTRAINT_H_

// A constraint whose replies are "id=" and one to four digits, byte by byte.
// Honest by default; with a lie it breaks one promise, to see whether
// fucina-conformance notices.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "fucina/contract/constraint.h"
#include "fucina/plugin/registrar.h"
#include "fucina/text/tokenizer.h"

namespace fucina::fake {

enum class ConstraintLie {
  kNone,
  kLooksNotAhead,      // no lie: it leaves the look-aheads as they are
  kMakesNothing,       // OK, and a null pointer
  kLeavesNothing,      // behind "id=" no token is allowed
  kRescales,           // changes the logits that it allows
  kLooksAtLogits,      // forbids a digit where its logit is low
  kMaskMoves,          // the second mask of a state is another one
  kPaddingAllowed,     // rows that are no tokens keep their logits
  kRefusesAllowed,     // does not accept one of the digits at one place
  kCompleteAtOnce,     // is complete before there is anything
  kNeverComplete,      // a stop token is allowed and it is not complete
  kCompleteMoves,      // asking whether it is complete forbids a digit
  kForcedMoves,        // asking for forced tokens forbids a digit
  kForcedGuesses,      // a digit is said to be forced
  kForcedOverruns,     // writes more forced tokens than there is room for
  kPrefixMoves,        // asking for the valid prefix forbids a digit
  kPrefixTooLong,      // one token too many is valid
  kPrefixTooShort,     // one token is valid at most
  kGarbageIsValid,     // ids outside the vocabulary are valid
  kGarbagePoisons,     // and are an error from then on
  kResetKeeps,         // a reset keeps the first token
  kErrorSticks,        // a reset does not mend an error
  kCannotClone,        // says so
  kClonesShare,        // clones have one state
  kThreadBound,        // works on the thread that made it only
  kMakesAnother,       // the second one that is made allows less
  kStopTokensIgnored,  // the option is taken and does nothing
  kOptionsUnnamed,     // refuses a value and does not say of which option
};

inline constexpr OptionSpec kConstraintOptions[] = {
    {.name = "digits",
     .type = OptionType::kInt,
     .default_value = "4",
     .doc = "most digits; 1 to 9"},
    {.name = kStopTokensOption,
     .type = OptionType::kStringList,
     .doc = "token ids that end a reply besides the model's own"},
};

// Of one sequence; a lie lets clones share it.
struct ConstraintState {
  std::mutex mutex;
  std::vector<TokenId> accepted;
  bool stopped = false;
  bool failed = false;
  bool moved = false;  // a look-ahead left a trace
  std::thread::id thread = std::this_thread::get_id();
};

class FakeConstraint final : public Constraint {
 public:
  struct Grammar {
    int vocab_size = 0;
    std::vector<TokenId> prefix;  // "id="
    std::vector<TokenId> digits;
    std::size_t most_digits = 0;
    std::vector<TokenId> stops;
    ConstraintLie lie = ConstraintLie::kNone;
    bool no_zero = false;
  };
  FakeConstraint(std::shared_ptr<const Grammar> grammar,
                 std::shared_ptr<ConstraintState> state)
      : grammar_(std::move(grammar)), state_(std::move(state)) {}

  absl::Status Mask(std::span<float> logits) override {
    const std::lock_guard lock(state_->mutex);
    if (Lies(ConstraintLie::kThreadBound) &&
        state_->thread != std::this_thread::get_id()) {
      return absl::InternalError("on another thread");
    }
    if (state_->failed) return absl::InternalError("failed");
    const auto known = static_cast<TokenId>(Lies(ConstraintLie::kPaddingAllowed)
                                                ? grammar_->vocab_size
                                                : logits.size());
    for (TokenId token = 0; token < known; ++token) {
      float& logit = logits[static_cast<std::size_t>(token)];
      const bool low = Lies(ConstraintLie::kLooksAtLogits) && logit < 0 &&
                       token == grammar_->digits[8];
      if (low || !Allows(token)) {
        logit = -std::numeric_limits<float>::infinity();
      } else if (Lies(ConstraintLie::kRescales)) {
        logit += 1;
      }
    }
    if (Lies(ConstraintLie::kMaskMoves)) state_->moved = true;
    return absl::OkStatus();
  }

  absl::Status Accept(TokenId token) override {
    const std::lock_guard lock(state_->mutex);
    const bool refused = Lies(ConstraintLie::kRefusesAllowed) &&
                         state_->accepted.size() == 3 &&
                         token == grammar_->digits[kRefusedDigit];
    if (state_->failed || refused || !Allows(token)) {
      state_->failed = true;
      return absl::InternalError("not of the grammar");
    }
    state_->stopped = IsStop(token);
    state_->accepted.push_back(token);
    state_->moved = false;
    return absl::OkStatus();
  }

  absl::Status Reset() override {
    const std::lock_guard lock(state_->mutex);
    const bool keeps =
        Lies(ConstraintLie::kResetKeeps) && !state_->accepted.empty();
    state_->accepted.resize(keeps ? 1 : 0);
    state_->stopped = state_->moved = false;
    state_->failed = state_->failed && Lies(ConstraintLie::kErrorSticks);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Constraint>> Clone() const override {
    if (Lies(ConstraintLie::kCannotClone)) {
      return absl::UnimplementedError("one of a kind");
    }
    return std::make_unique<FakeConstraint>(
        grammar_, Lies(ConstraintLie::kClonesShare)
                      ? state_
                      : std::make_shared<ConstraintState>());
  }

  int ForcedTokens(std::span<TokenId> tokens) override {
    if (Lies(ConstraintLie::kLooksNotAhead)) {
      return Constraint::ForcedTokens(tokens);
    }
    const std::lock_guard lock(state_->mutex);
    if (Lies(ConstraintLie::kForcedMoves)) state_->moved = true;
    std::size_t count = 0;
    for (std::size_t at = state_->accepted.size();
         at < grammar_->prefix.size() && count < tokens.size(); ++at) {
      tokens[count++] = grammar_->prefix[at];
    }
    if (Lies(ConstraintLie::kForcedGuesses) && count < tokens.size() &&
        !IsComplete(state_->accepted)) {
      tokens[count++] = grammar_->digits[1];
    }
    if (Lies(ConstraintLie::kForcedOverruns) && count == 1) {
      tokens.data()[count++] = grammar_->digits[1];
    }
    return static_cast<int>(count);
  }

  int ValidPrefix(std::span<const TokenId> tokens) override {
    if (Lies(ConstraintLie::kLooksNotAhead)) {
      return Constraint::ValidPrefix(tokens);
    }
    const std::lock_guard lock(state_->mutex);
    if (Lies(ConstraintLie::kPrefixMoves)) state_->moved = true;
    std::vector<TokenId> reply = state_->accepted;
    std::size_t count = 0;
    for (const TokenId token : tokens) {
      const bool garbage = token < 0 || token >= grammar_->vocab_size;
      if (garbage && Lies(ConstraintLie::kGarbagePoisons)) {
        state_->failed = true;
      }
      const bool valid = garbage ? Lies(ConstraintLie::kGarbageIsValid)
                                 : !state_->stopped && !IsStop(token) &&
                                       MayFollow(reply, token);
      if (!valid) break;
      reply.push_back(token);
      ++count;
    }
    if (Lies(ConstraintLie::kPrefixTooLong) && count > 0 &&
        count < tokens.size()) {
      ++count;
    }
    if (Lies(ConstraintLie::kPrefixTooShort) && count > 1) count = 1;
    return static_cast<int>(count);
  }

  bool IsComplete() override {
    const std::lock_guard lock(state_->mutex);
    if (Lies(ConstraintLie::kCompleteMoves)) state_->moved = true;
    if (Lies(ConstraintLie::kCompleteAtOnce)) return true;
    if (Lies(ConstraintLie::kNeverComplete)) return false;
    return state_->stopped || IsComplete(state_->accepted);
  }

 private:
  // One that the suite's walks do not come across and its other draws do.
  static constexpr std::size_t kRefusedDigit = 2;

  bool Lies(ConstraintLie lie) const { return grammar_->lie == lie; }
  bool IsStop(TokenId token) const {
    return std::find(grammar_->stops.begin(), grammar_->stops.end(), token) !=
           grammar_->stops.end();
  }
  bool IsComplete(const std::vector<TokenId>& reply) const {
    return reply.size() > grammar_->prefix.size();
  }
  bool MayFollow(const std::vector<TokenId>& reply, TokenId token) const {
    const std::size_t written = reply.size();
    const std::size_t marks = grammar_->prefix.size();
    if (written < marks) return token == grammar_->prefix[written];
    if (Lies(ConstraintLie::kLeavesNothing)) return false;
    if (IsStop(token)) return written > marks;
    if (token == grammar_->digits[0] && (grammar_->no_zero || state_->moved)) {
      return false;
    }
    return written < marks + grammar_->most_digits &&
           std::find(grammar_->digits.begin(), grammar_->digits.end(), token) !=
               grammar_->digits.end();
  }
  bool Allows(TokenId token) const {
    return state_->stopped ? IsStop(token) : MayFollow(state_->accepted, token);
  }

  std::shared_ptr<const Grammar> grammar_;
  std::shared_ptr<ConstraintState> state_;
};

template <ConstraintLie kLie>
absl::StatusOr<std::unique_ptr<Constraint>> MakeFakeConstraint(
    const Tokenizer& tokenizer, const Options& options) {
  if (kLie == ConstraintLie::kMakesNothing) return nullptr;
  auto grammar = std::make_shared<FakeConstraint::Grammar>();
  grammar->lie = kLie;
  grammar->vocab_size = tokenizer.vocab_size();
  for (const auto& [text, tokens] :
       {std::pair{"id=", &grammar->prefix},
        std::pair{"0123456789", &grammar->digits}}) {
    for (const char* byte = text; *byte != '\0'; ++byte) {
      const auto ids = tokenizer.Encode(absl::string_view(byte, 1));
      if (!ids.ok()) return ids.status();
      tokens->push_back(ids->front());
    }
  }
  const std::int64_t digits = options.GetInt("digits");
  if (digits < 1 || digits > 9) {
    return absl::InvalidArgumentError(
        kLie == ConstraintLie::kOptionsUnnamed
            ? std::string("a value out of range")
            : absl::StrCat("option 'digits': expected 1 to 9, found ", digits));
  }
  grammar->most_digits = static_cast<std::size_t>(digits);
  const auto own = tokenizer.stop_tokens();
  grammar->stops.assign(own.begin(), own.end());
  for (const std::string& text : options.GetStringList(kStopTokensOption)) {
    TokenId token = 0;
    if (!absl::SimpleAtoi(text, &token) || token < 0 ||
        token >= tokenizer.vocab_size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(kStopTokensOption, ": no token ", text));
    }
    if (kLie != ConstraintLie::kStopTokensIgnored) {
      grammar->stops.push_back(token);
    }
  }
  if (kLie == ConstraintLie::kMakesAnother) {
    static bool made = false;
    grammar->no_zero = made;
    made = true;
  }
  return std::make_unique<FakeConstraint>(std::move(grammar),
                                          std::make_shared<ConstraintState>());
}

}  // namespace fucina::fake

#endif  // FUCINA_TESTS_REGISTRY_FAKE_CONSTRAINT_H_
