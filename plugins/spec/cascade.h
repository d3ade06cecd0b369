#ifndef FUCINA_PLUGINS_SPEC_CASCADE_H_
#define FUCINA_PLUGINS_SPEC_CASCADE_H_

// Drafts from text that is there already: the conversation so far, attached
// documents, and what the model thought likely after each token. The longest
// match speaks; without one the recycling table does. A source that is mostly
// wrong is muted for a while.

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "fucina/contract/drafter.h"
#include "recycling_table.h"
#include "suffix_index.h"

namespace fucina::spec {

struct CascadeOptions {
  bool conversation = true;
  bool recycling = true;
  int min_match = 2;  // tokens; shorter matches say nothing
  int beta = 4;       // drafts per matched token, and that many more
  std::size_t max_index_tokens = std::size_t{4} << 20;
};

// How often one source was right lately, and whether it may speak.
class SourceRecord {
 public:
  void Record(int accepted, int drafted);
  void Elapse(int tokens) { mute_left_ = std::max(0, mute_left_ - tokens); }
  bool muted() const { return mute_left_ > 0; }
  int mute_left() const { return mute_left_; }
  // "12/20", and " muted".
  std::string Report() const;

 private:
  static constexpr int kWindow = 64;  // drafts

  std::array<bool, kWindow> hits_ = {};
  int count_ = 0;
  int next_ = 0;
  int mute_left_ = 0;  // tokens
  long accepted_ = 0;
  long drafted_ = 0;
};

class Cascade final : public Drafter {
 public:
  static constexpr int kMaxReferences = 8;

  // May throw std::bad_alloc.
  Cascade(int vocab_size, const CascadeOptions& options);

  int Propose(std::span<const TokenId> context,
              std::span<TokenId> draft) override;
  int draft_class() const override { return draft_class_; }
  void Cut(int count) override;
  void Commit(std::span<const TokenId> tokens) override;
  void Rewind(int length) override;
  int wants_candidates() const override {
    return table_.has_value() ? RecyclingTable::kSuccessors : 0;
  }
  void OnCandidates(TokenId token,
                    std::span<const TokenId> candidates) override;
  absl::Status AddReference(std::span<const TokenId> tokens) override;
  std::string Report() const override;

  const SourceRecord& conversation_record() const { return conversation_; }
  const SourceRecord& recycling_record() const { return recycling_; }

 private:
  struct Reference {
    SuffixIndex index;
    SuffixIndex::Cursor cursor;
    SourceRecord record;
  };

  int Note(SourceRecord& source, int draft_class,
           std::span<const TokenId> draft);

  const CascadeOptions options_;
  SuffixIndex index_;
  SourceRecord conversation_;
  std::vector<std::unique_ptr<Reference>> references_;
  std::optional<RecyclingTable> table_;
  SourceRecord recycling_;

  SourceRecord* asked_ = nullptr;  // whose draft waits to be judged
  int draft_class_ = 0;
  std::vector<TokenId> draft_;  // that draft
  // The last committed tokens, oldest first: what followed what is learned
  // again after the model's candidates have replaced a row.
  std::vector<TokenId> recent_;
};

}  // namespace fucina::spec

#endif  // FUCINA_PLUGINS_SPEC_CASCADE_H_
