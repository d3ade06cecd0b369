#include "core/text/byte_bpe.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>

#include "fucina/diag/check.h"

namespace fucina::text {
namespace {

constexpr std::uint32_t kNoRank = 0xFFFFFFFF;
constexpr std::uint32_t kNone = 0xFFFFFFFF;  // no previous or next symbol
// Up to here scanning all pairs for the least beats a heap: the symbols fit a
// few cache lines, and real words are far shorter.
constexpr std::size_t kShortPiece = 48;

std::uint64_t Mix(std::uint64_t a, std::uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^
         static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t Read64(const char* p) {
  std::uint64_t value = 0;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

std::uint64_t Read32(const char* p) {
  std::uint32_t value = 0;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

std::size_t Joint(char left, char right) {
  return static_cast<std::size_t>(static_cast<unsigned char>(left)) << 8 |
         static_cast<unsigned char>(right);
}

std::size_t PowerOfTwoAtLeast(std::size_t n) {
  std::size_t power = 16;
  while (power < n) power *= 2;
  return power;
}

// Odd constants with about as many ones as zeros (digits of pi and e).
constexpr std::uint64_t kMixA = 0x243F6A8885A308D3;
constexpr std::uint64_t kMixB = 0xB7E151628AED2A6B;

}  // namespace

ByteBpe::ByteBpe(int num_tokens, std::size_t num_merges)
    : num_tokens_(num_tokens),
      seed_(
          Mix(static_cast<std::uint64_t>(
                  std::chrono::steady_clock::now().time_since_epoch().count()) ^
                  kMixA,
              reinterpret_cast<std::uintptr_t>(this) ^ kMixB)),
      bytes_of_(static_cast<std::size_t>(num_tokens)),
      index_(PowerOfTwoAtLeast(static_cast<std::size_t>(num_tokens) * 3 / 2)),
      pairs_(PowerOfTwoAtLeast(num_merges * 3 / 2)),
      whole_(static_cast<std::size_t>(num_tokens)) {}

ByteBpe::~ByteBpe() = default;

// --- symbols ----------------------------------------------------------------

std::uint64_t ByteBpe::Key(absl::string_view bytes) const {
  const char* p = bytes.data();
  std::size_t left = bytes.size();
  if (left <= 7) {
    const std::uint64_t size = static_cast<std::uint64_t>(left) << 56;
    if (left >= 4) {
      return size | Read32(p + left - 4) << (8 * (left - 4)) | Read32(p);
    }
    std::uint64_t packed = 0;
    for (std::size_t i = 0; i < left; ++i) {
      packed |= static_cast<std::uint64_t>(static_cast<unsigned char>(p[i]))
                << (8 * i);
    }
    return size | packed;
  }
  std::uint64_t hash = seed_ ^ left;
  while (left > 16) {
    hash = Mix(Read64(p) ^ kMixA ^ hash, Read64(p + 8) ^ kMixB);
    p += 16;
    left -= 16;
  }
  // What is left, 1 to 16 bytes; shorter than 8, it overlaps what was read.
  const std::uint64_t b = Read64(p + left - 8);
  const std::uint64_t a = left >= 8 ? Read64(p) : b;
  return Mix(a ^ kMixA ^ hash, b ^ kMixB ^ seed_) | std::uint64_t{1} << 63;
}

std::size_t ByteBpe::IndexSlot(std::uint64_t key) const {
  return Mix(key ^ seed_, kMixB) & (index_.size() - 1);
}

std::int32_t ByteBpe::Lookup(absl::string_view bytes, std::uint64_t key) const {
  const std::size_t mask = index_.size() - 1;
  for (std::size_t slot = IndexSlot(key);; slot = (slot + 1) & mask) {
    const Entry& entry = index_[slot];
    if (entry.symbol < 0) return -1;
    if (entry.key == key &&
        (bytes.size() <= 7 ||
         bytes_of_[static_cast<std::size_t>(entry.symbol)] == bytes)) {
      return entry.symbol;
    }
  }
}

void ByteBpe::Insert(std::int32_t symbol, std::uint64_t key) {
  if ((num_indexed_ + 1) * 3 > index_.size() * 2) {
    std::vector<Entry> old(index_.size() * 2);
    old.swap(index_);
    num_indexed_ = 0;
    for (const Entry& entry : old) {
      if (entry.symbol >= 0) Insert(entry.symbol, entry.key);
    }
  }
  const std::size_t mask = index_.size() - 1;
  std::size_t slot = IndexSlot(key);
  while (index_[slot].symbol >= 0) slot = (slot + 1) & mask;
  index_[slot] = {key, symbol};
  ++num_indexed_;
}

bool ByteBpe::AddToken(std::int32_t id, absl::string_view bytes) {
  FUCINA_CHECK(id >= 0 && id < num_tokens_ && !bytes.empty()) << id;
  const std::uint64_t key = Key(bytes);
  if (Lookup(bytes, key) >= 0) return false;
  bytes_of_[static_cast<std::size_t>(id)] = bytes;
  longest_token_ = std::max(longest_token_, bytes.size());
  Insert(id, key);
  return true;
}

std::int32_t ByteBpe::Intern(absl::string_view bytes) {
  const std::uint64_t key = Key(bytes);
  if (const std::int32_t symbol = Lookup(bytes, key); symbol >= 0) {
    return symbol;
  }
  const auto symbol = static_cast<std::int32_t>(bytes_of_.size());
  extra_bytes_.push_back(std::make_unique<std::string>(bytes));
  bytes_of_.push_back(*extra_bytes_.back());
  Insert(symbol, key);
  return symbol;
}

void ByteBpe::FinishTokens() {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    byte_symbol_[static_cast<std::size_t>(byte)] =
        Intern(absl::string_view(&c, 1));
  }
}

std::int32_t ByteBpe::Find(absl::string_view bytes) const {
  if (bytes.empty() || bytes.size() > longest_token_) return -1;
  const std::int32_t symbol = Lookup(bytes, Key(bytes));
  return symbol < num_tokens_ ? symbol : -1;
}

// --- merges -----------------------------------------------------------------

std::size_t ByteBpe::PairSlot(std::uint64_t key) const {
  const std::size_t mask = pairs_.size() - 1;
  std::size_t slot = Mix(key ^ seed_, kMixA) & mask;
  while (pairs_[slot].merged >= 0 && pairs_[slot].key != key) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

bool ByteBpe::AddMerge(absl::string_view left, absl::string_view right,
                       std::uint32_t rank) {
  FUCINA_CHECK(!left.empty() && !right.empty());
  const std::int32_t left_symbol = Intern(left);
  const std::int32_t right_symbol = Intern(right);
  std::string both(left);
  both.append(right.data(), right.size());
  // Vocabularies list the results of their merges in order.
  const std::int32_t guess = last_merged_ + 1;
  const std::int32_t merged =
      guess < num_tokens_ && bytes_of_[static_cast<std::size_t>(guess)] == both
          ? guess
          : Intern(both);
  last_merged_ = merged;
  const std::uint64_t key = static_cast<std::uint64_t>(left_symbol) << 32 |
                            static_cast<std::uint32_t>(right_symbol);
  Pair& pair = pairs_[PairSlot(key)];
  if (pair.merged < 0) pair = {key, rank, merged};
  joins_.set(Joint(left.back(), right.front()));
  return left_symbol < num_tokens_ && right_symbol < num_tokens_ &&
         merged < num_tokens_;
}

// --- encoding ---------------------------------------------------------------

ByteBpe::Scratch::Scratch(std::size_t text_bytes) {
  // 256 KiB, an eighth of a common second-level cache; making it takes as long
  // as encoding about a kilobyte.
  constexpr std::size_t kLines = 4096;
  constexpr std::size_t kLongText = 8192;
  if (text_bytes >= kLongText) cache_.resize(kLines);
}

void ByteBpe::SetPair(Scratch& scratch, std::size_t left,
                      std::size_t right) const {
  Scratch::Symbol& symbol = scratch.symbols_[left];
  const std::uint64_t key =
      static_cast<std::uint64_t>(symbol.symbol) << 32 |
      static_cast<std::uint32_t>(scratch.symbols_[right].symbol);
  const Pair& pair = pairs_[PairSlot(key)];
  symbol.rank = pair.merged < 0 ? kNoRank : pair.rank;
  symbol.merged = pair.merged;
}

void ByteBpe::LoadSymbols(absl::string_view piece, Scratch& scratch) const {
  scratch.symbols_.resize(piece.size());
  for (std::size_t i = 0; i < piece.size(); ++i) {
    scratch.symbols_[i] = {
        byte_symbol_[static_cast<unsigned char>(piece[i])], kNoRank, -1,
        i == 0 ? kNone : static_cast<std::uint32_t>(i - 1),
        i + 1 == piece.size() ? kNone : static_cast<std::uint32_t>(i + 1)};
  }
  for (std::size_t i = 0; i + 1 < piece.size(); ++i) {
    SetPair(scratch, i, i + 1);
  }
}

void ByteBpe::MergeShort(Scratch& scratch) const {
  std::vector<Scratch::Symbol>& symbols = scratch.symbols_;
  while (true) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < symbols.size(); ++i) {
      if (symbols[i].rank < symbols[best].rank) best = i;
    }
    if (symbols[best].rank == kNoRank) return;
    symbols[best].symbol = symbols[best].merged;
    symbols[best].rank = kNoRank;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    if (best + 1 < symbols.size()) SetPair(scratch, best, best + 1);
    if (best > 0) SetPair(scratch, best - 1, best);
  }
}

// The queue holds every pair with a merge, and stale entries of pairs that
// changed since. An entry is stale when the pair now at its position has
// another rank; a rank belongs to one pair of symbols only, so an entry that is
// not stale is right however it got there.
void ByteBpe::MergeLong(Scratch& scratch) const {
  std::vector<Scratch::Symbol>& symbols = scratch.symbols_;
  std::vector<std::uint64_t>& queue = scratch.queue_;
  const auto entry = [&](std::size_t at) {
    return static_cast<std::uint64_t>(symbols[at].rank) << 32 | at;
  };
  queue.clear();
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i].rank != kNoRank) queue.push_back(entry(i));
  }
  std::make_heap(queue.begin(), queue.end(), std::greater<>());
  const auto push = [&](std::size_t left) {
    SetPair(scratch, left, symbols[left].next);
    if (symbols[left].rank == kNoRank) return;
    queue.push_back(entry(left));
    std::push_heap(queue.begin(), queue.end(), std::greater<>());
  };
  while (!queue.empty()) {
    const std::uint64_t top = queue.front();
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    queue.pop_back();
    const auto at = static_cast<std::uint32_t>(top);
    Scratch::Symbol& symbol = symbols[at];
    if (symbol.rank != top >> 32) continue;
    Scratch::Symbol& absorbed = symbols[symbol.next];
    symbol.symbol = symbol.merged;
    symbol.rank = kNoRank;
    symbol.next = absorbed.next;
    absorbed.symbol = -1;
    absorbed.rank = kNoRank;
    if (symbol.next != kNone) {
      symbols[symbol.next].previous = at;
      push(at);
    }
    if (symbol.previous != kNone) push(symbol.previous);
  }
  symbols.erase(
      std::remove_if(symbols.begin(), symbols.end(),
                     [](const Scratch::Symbol& s) { return s.symbol < 0; }),
      symbols.end());
}

std::size_t ByteBpe::EmitBytes(absl::string_view bytes,
                               std::vector<std::int32_t>& ids) const {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::int32_t id = byte_symbol_[static_cast<unsigned char>(bytes[i])];
    if (id >= num_tokens_) return i;
    ids.push_back(id);
  }
  return absl::string_view::npos;
}

// A long piece is first cut where no merge ever joins two bytes; what happens
// on one side of such a cut cannot touch the other.
std::size_t ByteBpe::Merge(absl::string_view piece, Scratch& scratch,
                           std::vector<std::int32_t>& ids) const {
  if (piece.size() <= kShortPiece) return MergeRun(piece, scratch, ids);
  std::size_t begin = 0;
  for (std::size_t end = 1; end <= piece.size(); ++end) {
    if (end < piece.size() && joins_[Joint(piece[end - 1], piece[end])]) {
      continue;
    }
    const std::size_t missing =
        MergeRun(piece.substr(begin, end - begin), scratch, ids);
    if (missing != absl::string_view::npos) return begin + missing;
    begin = end;
  }
  return absl::string_view::npos;
}

std::size_t ByteBpe::MergeRun(absl::string_view piece, Scratch& scratch,
                              std::vector<std::int32_t>& ids) const {
  LoadSymbols(piece, scratch);
  if (piece.size() <= kShortPiece) {
    MergeShort(scratch);
  } else {
    MergeLong(scratch);
  }
  std::size_t offset = 0;
  for (const Scratch::Symbol& symbol : scratch.symbols_) {
    if (symbol.symbol < num_tokens_) {
      ids.push_back(symbol.symbol);
    } else {
      const absl::string_view bytes =
          bytes_of_[static_cast<std::size_t>(symbol.symbol)];
      const std::size_t missing = EmitBytes(bytes, ids);
      if (missing != absl::string_view::npos) return offset + missing;
    }
    offset += bytes_of_[static_cast<std::size_t>(symbol.symbol)].size();
  }
  return absl::string_view::npos;
}

std::size_t ByteBpe::EncodeAnew(absl::string_view piece, std::uint64_t key,
                                bool whole_first, Scratch& scratch,
                                std::vector<std::int32_t>& ids) const {
  const std::int32_t id =
      piece.size() <= longest_token_ ? Lookup(piece, key) : -1;
  if (id < 0 || id >= num_tokens_) return Merge(piece, scratch, ids);
  std::atomic<std::uint8_t>& known = whole_[static_cast<std::size_t>(id)];
  const std::uint8_t state =
      whole_first ? 1 : known.load(std::memory_order_relaxed);
  if (state == 1) {
    ids.push_back(id);
    return absl::string_view::npos;
  }
  const std::size_t size = ids.size();
  const std::size_t missing = Merge(piece, scratch, ids);
  const bool whole = ids.size() == size + 1 && ids.back() == id;
  known.store(whole ? 1 : 2, std::memory_order_relaxed);
  return missing;
}

std::size_t ByteBpe::Encode(absl::string_view piece, bool whole_first,
                            Scratch& scratch,
                            std::vector<std::int32_t>& ids) const {
  if (piece.empty()) return absl::string_view::npos;
  if (scratch.cache_.empty() || piece.size() > Scratch::kCachedBytes) {
    const std::uint64_t key = piece.size() <= longest_token_ ? Key(piece) : 0;
    return EncodeAnew(piece, key, whole_first, scratch, ids);
  }
  const std::uint64_t key = Key(piece);
  Scratch::Cached& line =
      scratch.cache_[Mix(key, kMixA) & (scratch.cache_.size() - 1)];
  if (line.key == key && line.size == piece.size() &&
      std::memcmp(line.bytes, piece.data(), piece.size()) == 0) {
    ids.insert(ids.end(), line.ids, line.ids + line.num_ids);
    return absl::string_view::npos;
  }
  const std::size_t size = ids.size();
  const std::size_t missing = EncodeAnew(piece, key, whole_first, scratch, ids);
  const std::size_t num_ids = ids.size() - size;
  if (missing == absl::string_view::npos && num_ids <= Scratch::kCachedIds) {
    line.key = key;
    line.size = static_cast<std::uint8_t>(piece.size());
    line.num_ids = static_cast<std::uint8_t>(num_ids);
    std::memcpy(line.bytes, piece.data(), piece.size());
    std::copy_n(ids.data() + size, num_ids, line.ids);
  }
  return missing;
}

}  // namespace fucina::text
