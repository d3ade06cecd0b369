#ifndef FUCINA_PLUGINS_SPEC_SUFFIX_INDEX_H_
#define FUCINA_PLUGINS_SPEC_SUFFIX_INDEX_H_

// A suffix automaton over a stream of tokens, built token by token. After each
// one it knows the longest suffix of the stream that also ends earlier, and
// where the latest such place is: what followed there is a guess of what
// follows now.
//
// A state stands for all strings that end at the same places. `link` leads to
// the longest suffix that ends at more places; the state of the whole stream
// ends only at its end, so its link is the match that is looked for.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "fucina/contract/decoder.h"
#include "growing_array.h"

namespace fucina::spec {

class SuffixIndex {
 public:
  // Appends a token; false when `max_tokens` are held or memory lacks. From
  // then on the index is degraded: it answers nothing and takes nothing.
  bool Append(TokenId token);
  void Clear();  // also makes a degraded index whole again
  // Forgets everything from `length` on, or degrades. An automaton cannot
  // forget: this makes it anew. REQUIRES: length <= tokens().size().
  void Truncate(std::size_t length);
  // So many tokens will come. They may still be more.
  void Expect(std::size_t num_tokens);

  void set_max_tokens(std::size_t max_tokens) { max_tokens_ = max_tokens; }
  bool degraded() const { return degraded_; }
  std::span<const TokenId> tokens() const { return tokens_.span(); }

  // Length of the longest suffix that also ends earlier; 0 for none. The two
  // may overlap.
  int match_length() const;
  // Continues the match into `draft`; how many tokens were written, 0 without a
  // match. A match of at least one whole period is continued periodically when
  // the stream ends before the draft does; a stream that goes in circles goes
  // on so, also where it once left them.
  int Continue(std::span<TokenId> draft) const;

  // A place in this index of somebody else's stream. The index must not grow
  // while one is in use.
  struct Cursor {
    std::uint32_t state = 0;
    int length = 0;  // of the longest suffix that occurs here
  };
  void Advance(Cursor& cursor, TokenId token) const;
  // What follows the latest occurrence; 0 at the end of the stream.
  int ContinueFrom(const Cursor& cursor, std::span<TokenId> draft) const;

  std::size_t num_states() const { return states_.size(); }
  std::size_t num_transitions() const { return num_transitions_; }
  std::size_t bytes() const;  // held

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  // Lists of more edges than this are found through the table.
  static constexpr int kLongList = 6;

  // Most states have one outgoing edge, which is stored in the state.
  struct State {
    std::uint32_t link = kNone;
    std::uint32_t length = 0;  // of its longest string
    std::uint32_t end = 0;     // position where its latest known place ends
    TokenId token = -1;        // of the first edge
    std::uint32_t target = kNone;
    std::uint32_t more = kNone;  // further edges, a list
  };
  struct Edge {
    TokenId token;
    std::uint32_t target;
    std::uint32_t next;
  };
  // An open-addressing table from (state, token) to an edge.
  struct Slot {
    std::uint32_t state = 0;
    TokenId token = 0;
    std::uint32_t edge = 0;  // counted from 1; 0: empty
  };

  bool Extend(TokenId token);
  // The match whose continuation is drafted. REQUIRES: there is one.
  const State& Match() const;
  const std::uint32_t* FindTarget(std::uint32_t state, TokenId token) const;
  std::uint32_t* FindTarget(std::uint32_t state, TokenId token) {
    return const_cast<std::uint32_t*>(
        std::as_const(*this).FindTarget(state, token));
  }
  // These are false when memory lacks; the index is then half built.
  bool AddEdge(std::uint32_t state, TokenId token, std::uint32_t target);
  bool CopyEdges(std::uint32_t from, std::uint32_t to);
  bool Index(std::uint32_t state, std::uint32_t edge);
  bool GrowTable();
  void Insert(const Slot& slot);
  std::size_t FirstSlot(std::uint32_t state, TokenId token) const;

  GrowingArray<TokenId> tokens_;
  GrowingArray<State> states_;
  GrowingArray<Edge> edges_;
  GrowingArray<Slot> table_;  // a power of two
  std::size_t table_used_ = 0;
  std::size_t num_transitions_ = 0;
  std::uint32_t last_ = 0;  // the state of the whole stream
  std::size_t max_tokens_ = std::size_t{1} << 29;
  bool degraded_ = false;
};

}  // namespace fucina::spec

#endif  // FUCINA_PLUGINS_SPEC_SUFFIX_INDEX_H_
