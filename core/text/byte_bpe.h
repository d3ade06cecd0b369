#ifndef FUCINA_CORE_TEXT_BYTE_BPE_H_
#define FUCINA_CORE_TEXT_BYTE_BPE_H_

// Merges over bytes: turns one piece of text into token ids.
//
// A symbol is a byte string. Symbols 0 … num_tokens-1 are the vocabulary's
// tokens; bytes and intermediate results of merges that are no tokens get
// numbers behind them, so that a merge through such a string works as the file
// says. Among adjacent pairs that have a merge, the one with the lowest rank is
// merged first, the leftmost among equals, until no pair has one.
//
// Immutable once it is filled, then safe to share between threads.
// Source: Sennrich, Haddow, Birch, "Neural Machine Translation of Rare Words
// with Subword Units", 2016; the byte alphabet of GPT-2.

#include <array>
#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace fucina::text {

class ByteBpe {
 public:
  // Work space of one caller; reuse it between pieces.
  class Scratch;

  // `num_tokens` bounds the ids of AddToken, `num_merges` the number of calls
  // of AddMerge.
  ByteBpe(int num_tokens, std::size_t num_merges);
  ~ByteBpe();

  // Makes `bytes` the token `id`, unless they are one already: then returns
  // false. `bytes` must stay valid and in place. REQUIRES: bytes not empty.
  bool AddToken(std::int32_t id, absl::string_view bytes);
  // Call between the last AddToken and the first AddMerge.
  void FinishTokens();
  // `left` and `right`, side by side, become one symbol. A pair that has a
  // merge keeps it. Returns whether left, right and both together are tokens.
  // REQUIRES: neither is empty; rank grows from call to call.
  bool AddMerge(absl::string_view left, absl::string_view right,
                std::uint32_t rank);

  // The token of these bytes, -1 for none.
  std::int32_t Find(absl::string_view bytes) const;

  // Appends the ids of `piece` to `ids`. Returns npos, or the offset in
  // `piece` of a byte that no token stands for; then `ids` holds an incomplete
  // result. With `whole_first` a piece that is a token is that token.
  std::size_t Encode(absl::string_view piece, bool whole_first,
                     Scratch& scratch, std::vector<std::int32_t>& ids) const;

 private:
  struct Pair {
    std::uint64_t key = 0;  // left << 32 | right
    std::uint32_t rank = 0;
    std::int32_t merged = -1;  // -1 marks a free slot
  };
  struct Entry {
    std::uint64_t key = 0;
    std::int32_t symbol = -1;  // -1 marks a free slot
  };

  // Up to seven bytes are their own key, so that most look-ups touch one cache
  // line; a longer string has its hash and the top bit.
  std::uint64_t Key(absl::string_view bytes) const;
  std::size_t IndexSlot(std::uint64_t key) const;
  std::int32_t Lookup(absl::string_view bytes, std::uint64_t key) const;
  void Insert(std::int32_t symbol, std::uint64_t key);
  std::int32_t Intern(absl::string_view bytes);
  std::size_t PairSlot(std::uint64_t key) const;

  void LoadSymbols(absl::string_view piece, Scratch& scratch) const;
  void SetPair(Scratch& scratch, std::size_t left, std::size_t right) const;
  void MergeShort(Scratch& scratch) const;
  void MergeLong(Scratch& scratch) const;
  std::size_t EmitBytes(absl::string_view bytes,
                        std::vector<std::int32_t>& ids) const;
  std::size_t Merge(absl::string_view piece, Scratch& scratch,
                    std::vector<std::int32_t>& ids) const;
  std::size_t MergeRun(absl::string_view piece, Scratch& scratch,
                       std::vector<std::int32_t>& ids) const;
  std::size_t EncodeAnew(absl::string_view piece, std::uint64_t key,
                         bool whole_first, Scratch& scratch,
                         std::vector<std::int32_t>& ids) const;

  int num_tokens_;
  std::uint64_t seed_;  // of the hashes: files cannot aim at collisions
  std::size_t longest_token_ = 0;            // bytes
  std::vector<absl::string_view> bytes_of_;  // by symbol; empty: no such token
  // Owns the bytes of symbols that are no tokens.
  std::vector<std::unique_ptr<std::string>> extra_bytes_;
  std::vector<Entry> index_;  // open addressing, linear probing
  std::size_t num_indexed_ = 0;
  std::vector<Pair> pairs_;  // the same
  std::array<std::int32_t, 256> byte_symbol_ = {};
  std::int32_t last_merged_ = -1;
  // Two bytes that some merge puts side by side: last of left, first of right.
  std::bitset<65536> joins_;
  // What merging gives for a piece that is a token: 0 not yet known, 1 that
  // token, 2 something else. Idempotent, so races are harmless.
  mutable std::vector<std::atomic<std::uint8_t>> whole_;
};

// Symbols of the piece at hand, the queue of merges for long pieces, and, for
// long texts, the pieces met last.
class ByteBpe::Scratch {
 public:
  // `text_bytes` is the length of the text that is about to be encoded: only a
  // long one repays the making of the cache.
  explicit Scratch(std::size_t text_bytes);

 private:
  friend class ByteBpe;
  struct Symbol {
    std::int32_t symbol = 0;
    std::uint32_t rank = 0;   // of the pair with the next; kNoRank for none
    std::int32_t merged = 0;  // what that pair becomes
    std::uint32_t previous = 0;
    std::uint32_t next = 0;
  };
  static constexpr std::size_t kCachedBytes = 22;
  static constexpr std::size_t kCachedIds = 8;
  // One cache line.
  struct Cached {
    std::uint64_t key = 0;
    std::uint8_t size = 0;  // of the piece; 0 marks a free line
    std::uint8_t num_ids = 0;
    char bytes[kCachedBytes] = {};
    std::int32_t ids[kCachedIds] = {};
  };
  std::vector<Symbol> symbols_;
  std::vector<std::uint64_t> queue_;  // rank << 32 | position, least on top
  std::vector<Cached> cache_;         // by key, the newest wins; may be empty
};

}  // namespace fucina::text

#endif  // FUCINA_CORE_TEXT_BYTE_BPE_H_
