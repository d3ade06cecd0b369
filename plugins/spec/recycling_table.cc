#include "recycling_table.h"

#include <algorithm>
#include <cstddef>

namespace fucina::spec {
namespace {

constexpr TokenId kEmpty = -1;

}  // namespace

RecyclingTable::RecyclingTable(int vocab_size)
    : vocab_size_(vocab_size),
      rows_(static_cast<std::size_t>(vocab_size) * kSuccessors, kEmpty) {}

std::span<const TokenId> RecyclingTable::Row(TokenId token) const {
  return std::span(rows_).subspan(static_cast<std::size_t>(token) * kSuccessors,
                                  kSuccessors);
}

void RecyclingTable::Replace(TokenId token,
                             std::span<const TokenId> successors) {
  if (!Valid(token)) return;
  TokenId* const row =
      rows_.data() + static_cast<std::size_t>(token) * kSuccessors;
  int count = 0;
  for (const TokenId next : successors) {
    if (count < kSuccessors && Valid(next)) row[count++] = next;
  }
  std::fill(row + count, row + kSuccessors, kEmpty);
}

void RecyclingTable::Promote(TokenId token, TokenId next) {
  if (!Valid(token) || !Valid(next)) return;
  TokenId* const row =
      rows_.data() + static_cast<std::size_t>(token) * kSuccessors;
  TokenId* place = std::find(row, row + kSuccessors, next);
  if (place == row + kSuccessors) --place;  // the last one falls out
  std::copy_backward(row, place, place + 1);
  row[0] = next;
}

int RecyclingTable::Chain(TokenId token, std::span<TokenId> draft) const {
  int count = 0;
  for (TokenId& place : draft) {
    if (!Valid(token)) break;
    token = Row(token)[0];
    if (token == kEmpty) break;
    place = token;
    ++count;
  }
  return count;
}

void RecyclingTable::Clear() { std::fill(rows_.begin(), rows_.end(), kEmpty); }

}  // namespace fucina::spec
