#include "suffix_index.h"

#include <algorithm>

namespace fucina::spec {
namespace {

// On a stream of one repeated token the chain of links is as long as the
// stream; on real text it stays below this.
constexpr int kMaxRefreshes = 16;

}  // namespace

void SuffixIndex::Clear() {
  tokens_.Clear();
  states_.Clear();
  edges_.Clear();
  table_.Clear();
  table_used_ = 0;
  num_transitions_ = 0;
  last_ = 0;
  degraded_ = false;
}

void SuffixIndex::Truncate(std::size_t length) {
  const GrowingArray<TokenId> tokens = std::move(tokens_);
  Clear();
  for (const TokenId token : tokens.span().first(length)) {
    if (!Append(token)) return;
  }
}

void SuffixIndex::Expect(std::size_t num_tokens) {
  // Of text about 1.5 states and half an edge beside them; room that is not
  // used costs nothing where it matters. What fails here fails again when it
  // is needed.
  if (num_tokens > max_tokens_) return;
  (void)(tokens_.Reserve(num_tokens) && states_.Reserve(2 * num_tokens) &&
         edges_.Reserve(num_tokens));
}

std::size_t SuffixIndex::bytes() const {
  return tokens_.bytes() + states_.bytes() + edges_.bytes() + table_.bytes();
}

// --- edges ------------------------------------------------------------------

std::size_t SuffixIndex::FirstSlot(std::uint32_t state, TokenId token) const {
  std::uint64_t key =
      (std::uint64_t{state} << 32) | static_cast<std::uint32_t>(token);
  key *= 0x9E3779B97F4A7C15U;
  return static_cast<std::size_t>(key >> 32) & (table_.size() - 1);
}

const std::uint32_t* SuffixIndex::FindTarget(std::uint32_t state,
                                             TokenId token) const {
  const State& from = states_[state];
  if (from.token == token) return &from.target;
  int seen = 0;
  for (std::uint32_t e = from.more; e != kNone; e = edges_[e].next) {
    if (edges_[e].token == token) return &edges_[e].target;
    if (++seen < kLongList) continue;
    // Every edge of a long list is in the table.
    if (edges_[e].next == kNone) return nullptr;
    for (std::size_t i = FirstSlot(state, token);; ++i) {
      const Slot& slot = table_[i & (table_.size() - 1)];
      if (slot.edge == 0) return nullptr;
      if (slot.state == state && slot.token == token) {
        return &edges_[slot.edge - 1].target;
      }
    }
  }
  return nullptr;
}

// REQUIRES: the table has an empty slot.
void SuffixIndex::Insert(const Slot& slot) {
  std::size_t i = FirstSlot(slot.state, slot.token);
  while (table_[i & (table_.size() - 1)].edge != 0) ++i;
  table_[i & (table_.size() - 1)] = slot;
}

bool SuffixIndex::GrowTable() {
  GrowingArray<Slot> old = std::move(table_);
  if (!table_.AssignZeros(std::max<std::size_t>(64, old.size() * 2))) {
    return false;
  }
  for (const Slot& slot : old.span()) {
    if (slot.edge != 0) Insert(slot);
  }
  return true;
}

bool SuffixIndex::Index(std::uint32_t state, std::uint32_t edge) {
  if ((table_used_ + 1) * 10 > table_.size() * 7 && !GrowTable()) return false;
  Insert({state, edges_[edge].token, edge + 1});
  ++table_used_;
  return true;
}

// REQUIRES: the state has no edge of this token.
bool SuffixIndex::AddEdge(std::uint32_t state, TokenId token,
                          std::uint32_t target) {
  ++num_transitions_;
  if (states_[state].target == kNone) {
    states_[state].token = token;
    states_[state].target = target;
    return true;
  }
  const auto edge = static_cast<std::uint32_t>(edges_.size());
  if (!edges_.Append({token, target, states_[state].more})) return false;
  states_[state].more = edge;
  int length = 0;
  for (std::uint32_t e = edge; e != kNone && length <= kLongList + 1;
       e = edges_[e].next) {
    ++length;
  }
  if (length <= kLongList) return true;
  if (length > kLongList + 1) return Index(state, edge);
  // The list has just become long.
  for (std::uint32_t e = edge; e != kNone; e = edges_[e].next) {
    if (!Index(state, e)) return false;
  }
  return true;
}

bool SuffixIndex::CopyEdges(std::uint32_t from, std::uint32_t to) {
  if (states_[from].target == kNone) return true;
  if (!AddEdge(to, states_[from].token, states_[from].target)) return false;
  for (std::uint32_t e = states_[from].more; e != kNone; e = edges_[e].next) {
    if (!AddEdge(to, edges_[e].token, edges_[e].target)) return false;
  }
  return true;
}

// --- growing ----------------------------------------------------------------

bool SuffixIndex::Append(TokenId token) {
  if (degraded_) return false;
  // What is half built is never looked at again.
  degraded_ = token < 0 || tokens_.size() >= max_tokens_ || !Extend(token);
  return !degraded_;
}

bool SuffixIndex::Extend(TokenId token) {
  if (states_.empty() && !states_.Append({})) return false;  // the root
  const auto position = static_cast<std::uint32_t>(tokens_.size());
  // Every string that ends at the newest token so far has its latest place
  // there. Done one token late, so that the end of a stream does not shadow
  // earlier places, which have a continuation.
  std::uint32_t state = last_;
  for (int hop = 0; hop < kMaxRefreshes && state != 0; ++hop) {
    states_[state].end = position - 1;
    state = states_[state].link;
  }

  const auto whole = static_cast<std::uint32_t>(states_.size());
  if (!states_.Append({.length = states_[last_].length + 1, .end = position})) {
    return false;
  }
  std::uint32_t p = last_;
  std::uint32_t* target = nullptr;
  while (p != kNone && (target = FindTarget(p, token)) == nullptr) {
    if (!AddEdge(p, token, whole)) return false;
    p = states_[p].link;
  }
  if (p == kNone) {
    states_[whole].link = 0;
  } else if (const std::uint32_t q = *target;
             states_[p].length + 1 == states_[q].length) {
    states_[whole].link = q;
  } else {
    const auto clone = static_cast<std::uint32_t>(states_.size());
    if (!states_.Append({.link = states_[q].link,
                         .length = states_[p].length + 1,
                         .end = states_[q].end}) ||
        !CopyEdges(q, clone)) {
      return false;
    }
    while (p != kNone && (target = FindTarget(p, token)) != nullptr &&
           *target == q) {
      *target = clone;
      p = states_[p].link;
    }
    states_[q].link = clone;
    states_[whole].link = clone;
  }
  last_ = whole;
  return tokens_.Append(token);
}

// --- asking -----------------------------------------------------------------

int SuffixIndex::match_length() const {
  if (degraded_ || tokens_.empty()) return 0;
  return static_cast<int>(states_[states_[last_].link].length);
}

// Where the stream repeats itself at its end, and the match is no longer than
// that repetition, an earlier one says nothing but where it ended: its latest
// place is always its end. Then the repetition goes on. It takes two periods
// and a third to be one.
const SuffixIndex::State& SuffixIndex::Match() const {
  const State& longest = states_[states_[last_].link];
  const auto period = [&](const State& state) {
    return static_cast<std::uint32_t>(tokens_.size()) - (state.end + 1);
  };
  if (longest.length >= period(longest)) return longest;
  const State* inner = &longest;
  for (int hop = 0; hop < kMaxRefreshes && inner->length > 0; ++hop) {
    inner = &states_[inner->link];
    const std::uint32_t p = period(*inner);
    if (inner->length >= 2 * p && longest.length <= inner->length + p) {
      return *inner;
    }
  }
  return longest;
}

int SuffixIndex::Continue(std::span<TokenId> draft) const {
  if (match_length() == 0) return 0;
  const State& match = Match();
  const std::size_t start = match.end + 1;
  const std::size_t period = tokens_.size() - start;
  const bool periodic = match.length >= period;
  const std::size_t count =
      periodic ? draft.size() : std::min(draft.size(), period);
  for (std::size_t i = 0; i < count; ++i) {
    draft[i] = tokens_[start + i % period];
  }
  return static_cast<int>(count);
}

void SuffixIndex::Advance(Cursor& cursor, TokenId token) const {
  if (degraded_ || states_.empty() || token < 0) {
    cursor = {};
    return;
  }
  const std::uint32_t* target = FindTarget(cursor.state, token);
  while (target == nullptr && cursor.state != 0) {
    cursor.state = states_[cursor.state].link;
    cursor.length = static_cast<int>(states_[cursor.state].length);
    target = FindTarget(cursor.state, token);
  }
  if (target == nullptr) {
    cursor = {};
  } else {
    cursor.state = *target;
    ++cursor.length;
  }
}

int SuffixIndex::ContinueFrom(const Cursor& cursor,
                              std::span<TokenId> draft) const {
  if (degraded_ || cursor.length == 0) return 0;
  const std::size_t start = states_[cursor.state].end + 1;
  const std::size_t count = std::min(draft.size(), tokens_.size() - start);
  std::copy_n(tokens_.span().begin() + static_cast<std::ptrdiff_t>(start),
              count, draft.begin());
  return static_cast<int>(count);
}

}  // namespace fucina::spec
