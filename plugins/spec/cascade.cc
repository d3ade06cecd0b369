#include "cascade.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace fucina::spec {
namespace {

constexpr double kMuteBelow = 0.20;  // share of right drafts
constexpr int kMuteTokens = 128;
constexpr int kMaxChain = 8;
constexpr std::size_t kMaxDraft = 64;
constexpr std::size_t kMaxRecent = kMaxDraft + 2;

// Classes of drafts: the longer the match, the more often it goes on.
constexpr int kLengths = 5;
constexpr int kReferenceClasses = kLengths;
constexpr int kRecyclingClass = 2 * kLengths;
static_assert(kRecyclingClass < kMaxDraftClasses);

int LengthClass(int match) {
  int of_length = 0;
  for (int bound = 4; bound <= match && of_length < kLengths - 1; bound *= 2) {
    ++of_length;
  }
  return of_length;
}

}  // namespace

void SourceRecord::Record(int accepted, int drafted) {
  accepted_ += accepted;
  drafted_ += drafted;
  for (int i = 0; i < drafted; ++i) {
    hits_[static_cast<std::size_t>(next_)] = i < accepted;
    next_ = (next_ + 1) % kWindow;
  }
  count_ = std::min(count_ + drafted, kWindow);
  const auto hits = std::count(hits_.begin(), hits_.end(), true);
  if (count_ == kWindow && static_cast<double>(hits) < kMuteBelow * kWindow) {
    mute_left_ = kMuteTokens;
    count_ = next_ = 0;
    hits_ = {};
  }
}

std::string SourceRecord::Report() const {
  return absl::StrCat(accepted_, "/", drafted_, muted() ? " muted" : "");
}

Cascade::Cascade(int vocab_size, const CascadeOptions& options)
    : options_(options) {
  index_.set_max_tokens(options_.max_index_tokens);
  if (options_.recycling) table_.emplace(vocab_size);
  draft_.reserve(kMaxDraft);
  recent_.reserve(kMaxRecent);
}

int Cascade::Note(SourceRecord& source, int draft_class,
                  std::span<const TokenId> draft) {
  if (draft.empty()) return 0;
  asked_ = &source;
  draft_class_ = draft_class;
  draft_.assign(draft.begin(), draft.end());
  return static_cast<int>(draft.size());
}

int Cascade::Propose(std::span<const TokenId> context,
                     std::span<TokenId> draft) {
  asked_ = nullptr;
  if (context.empty() || draft.empty()) return 0;
  if (draft.size() > kMaxDraft) draft = draft.first(kMaxDraft);

  int best = 0;
  const Reference* reference = nullptr;
  SourceRecord* source = nullptr;
  const std::span<const TokenId> stream = index_.tokens();
  if (options_.conversation && !conversation_.muted() && !stream.empty() &&
      stream.size() == context.size() && stream.back() == context.back() &&
      index_.match_length() >= options_.min_match) {
    best = index_.match_length();
    source = &conversation_;
  }
  for (const auto& candidate : references_) {
    const int length = candidate->cursor.length;
    if (candidate->record.muted() || length < options_.min_match ||
        length <= best) {
      continue;
    }
    best = length;
    reference = candidate.get();
    source = &candidate->record;
  }
  if (source != nullptr) {
    const auto budget = static_cast<std::size_t>(options_.beta) *
                        (1 + static_cast<std::size_t>(best));
    const std::span<TokenId> part = draft.first(std::min(draft.size(), budget));
    const int count = reference != nullptr ? reference->index.ContinueFrom(
                                                 reference->cursor, part)
                                           : index_.Continue(part);
    if (count > 0) {
      const int of_length = LengthClass(best);
      return Note(
          *source,
          reference != nullptr ? kReferenceClasses + of_length : of_length,
          part.first(static_cast<std::size_t>(count)));
    }
  }
  if (!table_.has_value() || recycling_.muted()) return 0;
  const std::span<TokenId> part =
      draft.first(std::min<std::size_t>(draft.size(), kMaxChain));
  const int count = table_->Chain(context.back(), part);
  return Note(recycling_, kRecyclingClass,
              part.first(static_cast<std::size_t>(count)));
}

void Cascade::Cut(int count) {
  draft_.resize(std::min(draft_.size(), static_cast<std::size_t>(count)));
  if (draft_.empty()) asked_ = nullptr;
}

void Cascade::Commit(std::span<const TokenId> tokens) {
  if (asked_ != nullptr && !tokens.empty()) {
    const auto right = std::mismatch(tokens.begin(), tokens.end(),
                                     draft_.begin(), draft_.end())
                           .first -
                       tokens.begin();
    asked_->Record(static_cast<int>(right), static_cast<int>(draft_.size()));
  }
  asked_ = nullptr;
  const auto elapsed = static_cast<int>(tokens.size());
  conversation_.Elapse(elapsed);
  recycling_.Elapse(elapsed);
  for (const auto& reference : references_) {
    reference->record.Elapse(elapsed);
    for (const TokenId token : tokens) {
      reference->index.Advance(reference->cursor, token);
    }
  }
  if (table_.has_value() && !tokens.empty()) {
    // The last token of the call before joins these.
    if (recent_.size() > 1) recent_.erase(recent_.begin(), recent_.end() - 1);
    const auto kept = std::min(tokens.size(), kMaxRecent - 1);
    if (kept < tokens.size()) recent_.clear();
    TokenId before = recent_.empty() ? -1 : recent_.back();
    for (const TokenId token : tokens) {
      table_->Promote(before, token);
      before = token;
    }
    recent_.insert(recent_.end(),
                   tokens.end() - static_cast<std::ptrdiff_t>(kept),
                   tokens.end());
  }
  // Also for references alone: one that comes later catches up from it.
  for (const TokenId token : tokens) {
    if (!index_.Append(token)) break;
  }
}

void Cascade::OnCandidates(TokenId token, std::span<const TokenId> candidates) {
  if (!table_.has_value()) return;
  table_->Replace(token, candidates);
  // What really followed goes first.
  for (std::size_t i = 1; i < recent_.size(); ++i) {
    if (recent_[i - 1] == token) table_->Promote(token, recent_[i]);
  }
}

void Cascade::Rewind(int length) {
  asked_ = nullptr;
  const auto kept = static_cast<std::size_t>(std::max(0, length));
  if (kept == index_.tokens().size() && !index_.degraded()) return;
  recent_.clear();
  if (kept > index_.tokens().size()) return;  // the index had no room for them
  index_.Truncate(kept);
  for (const auto& reference : references_) {
    reference->cursor = {};
    for (const TokenId token : index_.tokens()) {
      reference->index.Advance(reference->cursor, token);
    }
  }
}

absl::Status Cascade::AddReference(std::span<const TokenId> tokens) {
  if (tokens.empty()) {
    return absl::InvalidArgumentError("the document is empty");
  }
  if (references_.size() == kMaxReferences) {
    return absl::InvalidArgumentError(absl::StrCat(
        "too many reference documents (max ", kMaxReferences, ")"));
  }
  auto reference = std::make_unique<Reference>();
  reference->index.Expect(tokens.size());
  for (const TokenId token : tokens) {
    if (!reference->index.Append(token)) {
      return absl::ResourceExhaustedError(absl::StrFormat(
          "no memory for an index of %d tokens; it takes about %d MiB",
          tokens.size(), tokens.size() * 64 / (1 << 20) + 1));
    }
  }
  if (!index_.degraded()) {
    for (const TokenId token : index_.tokens()) {
      reference->index.Advance(reference->cursor, token);
    }
  }
  references_.push_back(std::move(reference));
  return absl::OkStatus();
}

std::string Cascade::Report() const {
  std::string text;
  const auto add = [&](absl::string_view name, const SourceRecord& record) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", name, " ",
                    record.Report());
  };
  std::size_t bytes = index_.bytes();
  if (options_.conversation) {
    add(index_.degraded() ? "conversation (index full)" : "conversation",
        conversation_);
  }
  for (std::size_t i = 0; i < references_.size(); ++i) {
    add(absl::StrCat("reference ", i + 1), references_[i]->record);
    bytes += references_[i]->index.bytes();
  }
  if (table_.has_value()) add("recycling", recycling_);
  return absl::StrCat(text,
                      absl::StrFormat(", index %.1f MiB",
                                      static_cast<double>(bytes) / (1 << 20)));
}

}  // namespace fucina::spec
