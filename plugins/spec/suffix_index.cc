#include "suffix_index.h"

#include <algorithm>
#include <new>

namespace fucina::spec {
namespace {

// On a stream of one repeated token the chain of links is as long as the
// stream; on real text it stays below this.
constexpr int kMaxRefreshes = 16;

// Doubling would hold up to twice what is needed.
template <typename T>
void MakeRoom(std::vector<T>& list) {
  if (list.size() == list.capacity()) {
    list.reserve(list.size() + list.size() / 8 + 64);
  }
}

}  // namespace

void SuffixIndex::Clear() {
  tokens_.clear();
  states_.clear();
  edges_.clear();
  table_.clear();
  table_used_ = 0;
  num_transitions_ = 0;
  last_ = 0;
  degraded_ = false;
}

std::size_t SuffixIndex::bytes() const {
  return tokens_.capacity() * sizeof(TokenId) +
         states_.capacity() * sizeof(State) + edges_.capacity() * sizeof(Edge) +
         table_.capacity() * sizeof(Slot);
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
      if (slot.state == kNone) return nullptr;
      if (slot.state == state && slot.token == token) {
        return &edges_[slot.edge].target;
      }
    }
  }
  return nullptr;
}

void SuffixIndex::GrowTable() {
  std::vector<Slot> old(std::max<std::size_t>(64, table_.size() * 2));
  old.swap(table_);
  for (const Slot& slot : old) {
    if (slot.state == kNone) continue;
    std::size_t i = FirstSlot(slot.state, slot.token);
    while (table_[i & (table_.size() - 1)].state != kNone) ++i;
    table_[i & (table_.size() - 1)] = slot;
  }
}

void SuffixIndex::Index(std::uint32_t state, std::uint32_t edge) {
  if ((table_used_ + 1) * 10 > table_.size() * 7) GrowTable();
  const TokenId token = edges_[edge].token;
  std::size_t i = FirstSlot(state, token);
  while (table_[i & (table_.size() - 1)].state != kNone) ++i;
  table_[i & (table_.size() - 1)] = {state, token, edge};
  ++table_used_;
}

// REQUIRES: the state has no edge of this token.
void SuffixIndex::AddEdge(std::uint32_t state, TokenId token,
                          std::uint32_t target) {
  ++num_transitions_;
  if (states_[state].target == kNone) {
    states_[state].token = token;
    states_[state].target = target;
    return;
  }
  MakeRoom(edges_);
  const auto edge = static_cast<std::uint32_t>(edges_.size());
  edges_.push_back({token, target, states_[state].more});
  states_[state].more = edge;
  int length = 0;
  for (std::uint32_t e = edge; e != kNone && length <= kLongList + 1;
       e = edges_[e].next) {
    ++length;
  }
  if (length <= kLongList) return;
  if (length > kLongList + 1) {
    Index(state, edge);
    return;
  }
  // The list has just become long.
  for (std::uint32_t e = edge; e != kNone; e = edges_[e].next) Index(state, e);
}

void SuffixIndex::CopyEdges(std::uint32_t from, std::uint32_t to) {
  if (states_[from].target == kNone) return;
  AddEdge(to, states_[from].token, states_[from].target);
  for (std::uint32_t e = states_[from].more; e != kNone; e = edges_[e].next) {
    AddEdge(to, edges_[e].token, edges_[e].target);
  }
}

// --- growing ----------------------------------------------------------------

bool SuffixIndex::Append(TokenId token) {
  if (degraded_) return false;
  bool done = false;
  if (token >= 0 && tokens_.size() < max_tokens_) {
    try {
      done = Extend(token);
    } catch (const std::bad_alloc&) {
      // What is half built is never looked at again.
    }
  }
  degraded_ = !done;
  return done;
}

bool SuffixIndex::Extend(TokenId token) {
  if (states_.empty()) {
    MakeRoom(states_);
    states_.emplace_back();  // the root
  }
  const auto position = static_cast<std::uint32_t>(tokens_.size());
  // Every string that ends at the newest token so far has its latest place
  // there. Done one token late, so that the end of a stream does not shadow
  // earlier places, which have a continuation.
  std::uint32_t state = last_;
  for (int hop = 0; hop < kMaxRefreshes && state != 0; ++hop) {
    states_[state].end = position - 1;
    state = states_[state].link;
  }

  MakeRoom(tokens_);
  MakeRoom(states_);
  const auto whole = static_cast<std::uint32_t>(states_.size());
  states_.push_back({.length = states_[last_].length + 1, .end = position});
  std::uint32_t p = last_;
  std::uint32_t* target = nullptr;
  while (p != kNone && (target = FindTarget(p, token)) == nullptr) {
    AddEdge(p, token, whole);
    p = states_[p].link;
  }
  if (p == kNone) {
    states_[whole].link = 0;
  } else if (const std::uint32_t q = *target;
             states_[p].length + 1 == states_[q].length) {
    states_[whole].link = q;
  } else {
    MakeRoom(states_);
    const auto clone = static_cast<std::uint32_t>(states_.size());
    states_.push_back({.link = states_[q].link,
                       .length = states_[p].length + 1,
                       .end = states_[q].end});
    CopyEdges(q, clone);
    while (p != kNone && (target = FindTarget(p, token)) != nullptr &&
           *target == q) {
      *target = clone;
      p = states_[p].link;
    }
    states_[q].link = clone;
    states_[whole].link = clone;
  }
  last_ = whole;
  tokens_.push_back(token);
  return true;
}

// --- asking -----------------------------------------------------------------

int SuffixIndex::match_length() const {
  if (degraded_ || tokens_.empty()) return 0;
  return static_cast<int>(states_[states_[last_].link].length);
}

int SuffixIndex::Continue(std::span<TokenId> draft) const {
  const int length = match_length();
  if (length == 0) return 0;
  const std::size_t start = states_[states_[last_].link].end + 1;
  const std::size_t period = tokens_.size() - start;
  const bool periodic = static_cast<std::size_t>(length) >= period;
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
  std::copy_n(tokens_.begin() + static_cast<std::ptrdiff_t>(start), count,
              draft.begin());
  return static_cast<int>(count);
}

}  // namespace fucina::spec
