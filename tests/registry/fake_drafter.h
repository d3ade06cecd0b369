#ifndef FUCINA_TESTS_REGISTRY_FAKE_DRAFTER_H_
#define FUCINA_TESTS_REGISTRY_FAKE_DRAFTER_H_

// A drafter that repeats what followed the newest token the last time. Honest
// by default; with a lie it breaks one promise, to see whether
// fucina-conformance notices.

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fucina/contract/drafter.h"
#include "fucina/plugin/registrar.h"

namespace fucina::fake {

enum class DrafterLie {
  kNone,
  kReadsHidden,         // no lie: it has a tap and does nothing with it
  kMakesNothing,        // OK, and a null pointer
  kMakesOne,            // and no second one
  kOverruns,            // writes one token more than there is room for
  kOutsideVocabulary,   // drafts an id that is no token
  kClassOutside,        // a class of 16
  kForgetful,           // no two drafts are made alike
  kPiecesMatter,        // sees the last piece of a prompt only
  kEmptyPiece,          // takes an empty commit for the end
  kCutIsForgotten,      // mutes itself for drafts that nobody verified
  kRewindForgetsAll,    // whatever the length
  kRewindIgnored,       // goes on with tokens that are gone
  kLongHistory,         // counts wrong in long texts
  kTapWrites,           // changes the hidden states that it is shown
  kShares,              // all have one history
  kThreadBound,         // works on the thread that made it only
  kWantsTooMany,        // candidates than there are tokens
  kTapChanges,          // wants other rows after the first draft
  kTapMoves,            // has another tap after the first draft
  kDocumentIsInternal,  // refuses documents as Internal
  kReportsLines,        // more than one
  kForeignIsInvalid,    // refuses another family as InvalidArgument
  kOptionsUnnamed,      // refuses a value and does not say of which option
};

inline constexpr OptionSpec kDrafterOptions[] = {
    {.name = "most",
     .type = OptionType::kInt,
     .default_value = "8",
     .doc = "longest draft; 1 to 64"},
};

class FakeTap final : public LayerTap {
 public:
  FakeTap(DrafterLie lie, const std::atomic<bool>& drafted)
      : lie_(lie), drafted_(drafted) {}
  TapRows Wants(int) const override {
    return lie_ == DrafterLie::kTapChanges && drafted_ ? TapRows::kLast
                                                       : TapRows::kAll;
  }
  void OnLayer(int, int, const Tensor& residual) override {
    if (lie_ == DrafterLie::kTapWrites) residual.mutable_row_f32(0)[0] = 7;
  }

 private:
  DrafterLie lie_;
  const std::atomic<bool>& drafted_;
};

class FakeDrafter final : public Drafter {
 public:
  // A lie lets all drafters have one.
  struct History {
    std::mutex mutex;
    std::vector<TokenId> tokens;
  };
  FakeDrafter(DrafterLie lie, int vocab_size, std::size_t most,
              std::shared_ptr<History> history)
      : lie_(lie),
        vocab_size_(vocab_size),
        most_(most),
        history_(std::move(history)) {}

  int Propose(std::span<const TokenId> context,
              std::span<TokenId> draft) override {
    const std::lock_guard lock(history_->mutex);
    const std::vector<TokenId>& tokens = history_->tokens;
    if (Lies(DrafterLie::kThreadBound) &&
        thread_ != std::this_thread::get_id()) {
      return 0;
    }
    if (tokens.empty() || tokens.size() != context.size() || mute_) return 0;
    std::size_t at = tokens.size() - 1;
    while (at > 0 && tokens[at - 1] != tokens.back()) --at;
    if (at == 0) return 0;
    std::size_t room = std::min(draft.size(), most_);
    if (Lies(DrafterLie::kForgetful)) room = std::min(room, Count() % 5);
    std::size_t count = 0;
    for (; count < room && at + count < tokens.size(); ++count) {
      draft[count] = tokens[at + count];
    }
    if (count == 0) return 0;
    if (Lies(DrafterLie::kOverruns) && count == draft.size()) {
      draft.data()[count++] = tokens[0];
    }
    if (Lies(DrafterLie::kOutsideVocabulary)) draft[0] = vocab_size_;
    if (Lies(DrafterLie::kLongHistory) && tokens.size() > 50000) return -1;
    asked_.assign(draft.begin(),
                  draft.begin() + static_cast<std::ptrdiff_t>(count));
    drafted_ = true;
    return static_cast<int>(count);
  }

  int draft_class() const override {
    return Lies(DrafterLie::kClassOutside) ? kMaxDraftClasses : 3;
  }

  void Cut(int count) override {
    if (Lies(DrafterLie::kCutIsForgotten)) return;
    asked_.resize(std::min(asked_.size(), static_cast<std::size_t>(count)));
  }

  void Commit(std::span<const TokenId> tokens) override {
    const std::lock_guard lock(history_->mutex);
    if (Lies(DrafterLie::kCutIsForgotten) && asked_.size() > tokens.size() &&
        ++wrong_ > 5) {
      mute_ = true;
    }
    asked_.clear();
    if (Lies(DrafterLie::kEmptyPiece) && tokens.empty()) mute_ = true;
    if (Lies(DrafterLie::kPiecesMatter) && tokens.size() > 1) {
      // As many as before, and none of them of use.
      std::fill(history_->tokens.begin(), history_->tokens.end(), -1);
    }
    history_->tokens.insert(history_->tokens.end(), tokens.begin(),
                            tokens.end());
  }

  void Rewind(int length) override {
    const std::lock_guard lock(history_->mutex);
    std::vector<TokenId>& tokens = history_->tokens;
    if (Lies(DrafterLie::kRewindIgnored)) return;
    const auto kept = Lies(DrafterLie::kRewindForgetsAll)
                          ? std::size_t{0}
                          : static_cast<std::size_t>(length);
    tokens.resize(std::min(tokens.size(), kept));
    asked_.clear();
  }

  int wants_candidates() const override {
    return Lies(DrafterLie::kWantsTooMany) ? vocab_size_ + 1 : 2;
  }

  LayerTap* tap() override {
    switch (lie_) {
      case DrafterLie::kReadsHidden:
      case DrafterLie::kTapWrites:
      case DrafterLie::kTapChanges:
        return &tap_;
      case DrafterLie::kTapMoves:
        return drafted_ ? &other_tap_ : &tap_;
      default:
        return nullptr;
    }
  }

  std::string Report() const override {
    return Lies(DrafterLie::kReportsLines) ? "one\ntwo" : "repeats";
  }

  absl::Status AddReference(std::span<const TokenId> tokens) override {
    if (Lies(DrafterLie::kDocumentIsInternal)) {
      return absl::InternalError("no documents today");
    }
    return tokens.empty() ? absl::InvalidArgumentError("an empty document")
                          : absl::OkStatus();
  }

 private:
  bool Lies(DrafterLie lie) const { return lie_ == lie; }
  static std::size_t Count() {
    static std::atomic<std::size_t> count = 0;
    return count++;
  }

  const DrafterLie lie_;
  const int vocab_size_;
  const std::size_t most_;
  const std::shared_ptr<History> history_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::vector<TokenId> asked_;
  int wrong_ = 0;
  bool mute_ = false;
  std::atomic<bool> drafted_ = false;
  FakeTap tap_{lie_, drafted_};
  FakeTap other_tap_{lie_, drafted_};
};

template <DrafterLie kLie>
absl::StatusOr<std::unique_ptr<Drafter>> MakeFakeDrafter(
    const Decoder& target, const Options& options) {
  if (kLie == DrafterLie::kMakesNothing) return nullptr;
  if (kLie == DrafterLie::kMakesOne) {
    static bool made = false;
    if (std::exchange(made, true)) {
      return absl::UnimplementedError("one is enough");
    }
  }
  if (target.info().architecture != "fake") {
    return kLie == DrafterLie::kForeignIsInvalid
               ? absl::InvalidArgumentError("not this model")
               : absl::UnimplementedError("drafts for fake models only");
  }
  const std::int64_t most = options.GetInt("most");
  if (most < 1 || most > 64) {
    return absl::InvalidArgumentError(
        kLie == DrafterLie::kOptionsUnnamed
            ? std::string("a value out of range")
            : absl::StrCat("option 'most': expected 1 to 64, found ", most));
  }
  auto history = std::make_shared<FakeDrafter::History>();
  if (kLie == DrafterLie::kShares) {
    static const auto one = std::make_shared<FakeDrafter::History>();
    history = one;
  }
  return std::make_unique<FakeDrafter>(kLie, target.info().vocab_size,
                                       static_cast<std::size_t>(most),
                                       std::move(history));
}

}  // namespace fucina::fake

#endif  // FUCINA_TESTS_REGISTRY_FAKE_DRAFTER_H_
