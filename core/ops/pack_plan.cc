#include "fucina/ops/pack_plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "fucina/diag/check.h"
#include "fucina/diag/status_macros.h"

namespace fucina::ops {
namespace {

// What a thread packs at one turn. Two huge pages: while one thread fills its
// piece the others have nothing to do with most of its pages, so that no page
// is made twice; and a few hundred turns cost nothing.
constexpr std::size_t kTurnBytes = std::size_t{4} << 20;
// After how much the pages of the file that were read are given back: they are
// all that memory holds beyond the packed model.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

// Rows `begin` to `end` of a stack [experts, rows, columns] in expert `e`.
Tensor ExpertRows(const Tensor& stack, std::int64_t e, std::int64_t begin,
                  std::int64_t end) {
  const std::int64_t columns = stack.dim(2);
  const std::int64_t row_bytes = RowBytes(stack.dtype(), columns);
  return Tensor(stack.dtype(), {end - begin, columns},
                static_cast<const std::byte*>(stack.data()) +
                    (e * stack.dim(1) + begin) * row_bytes);
}

}  // namespace

struct PackPlan::Matrix {
  std::vector<LinearPart> parts;
  PackedLinear* packed = nullptr;
  std::size_t offset = 0;  // of its memory in the area
};

// Tells which source bytes strips [begin, end) were made of.
void PackPlan::ReportRead(const Matrix& matrix, std::int64_t begin,
                          std::int64_t end, SourceRead source_read) {
  const bool gated = matrix.packed->gated();
  const std::int64_t strip_rows = gated ? kStripRows / 2 : kStripRows;
  std::int64_t first = begin * strip_rows;
  std::int64_t last = end * strip_rows;
  for (const LinearPart& part : matrix.parts) {
    const std::int64_t rows = part.weight.num_rows();
    const std::int64_t from = std::clamp<std::int64_t>(first, 0, rows);
    const std::int64_t to = std::clamp<std::int64_t>(last, 0, rows);
    if (from < to) {
      source_read(part.weight.row_bytes(from),
                  static_cast<std::size_t>((to - from) *
                                           part.weight.row_stride_bytes()));
    }
    // Parts of a pair lie side by side, others one below the other.
    if (!gated) {
      first -= rows;
      last -= rows;
    }
  }
}

struct PackPlan::Impl {
  std::vector<Matrix> matrices;
  std::size_t size_bytes = 0;
};

PackPlan::PackPlan() : impl_(std::make_unique<Impl>()) {}

PackPlan::~PackPlan() = default;

std::size_t PackPlan::size_bytes() const { return impl_->size_bytes; }

void PackPlan::Add(Matrix matrix) {
  // Sizes are whole lines, so every matrix starts on one.
  matrix.offset = impl_->size_bytes;
  impl_->size_bytes += matrix.packed->size_bytes();
  impl_->matrices.push_back(std::move(matrix));
}

void PackPlan::Pack(std::span<const LinearPart> parts, PackedLinear& packed) {
  packed = PackedLinear::Layout(parts, /*gated=*/false);
  Add({.parts = {parts.begin(), parts.end()}, .packed = &packed});
}

void PackPlan::PackGated(const LinearPart& gate, const LinearPart& up,
                         PackedLinear& packed) {
  std::vector<LinearPart> parts = {gate, up};
  packed = PackedLinear::Layout(parts, /*gated=*/true);
  Add({.parts = std::move(parts), .packed = &packed});
}

void PackPlan::PackExperts(const Tensor& gate, const Tensor& up,
                           const Tensor& down, PackedExperts& packed) {
  PackedExperts::CheckShapes(gate, up, down);
  packed = PackedExperts();
  packed.experts_.resize(static_cast<std::size_t>(gate.dim(0)));
  const std::size_t before = impl_->size_bytes;
  const bool gated = gate.dtype() == up.dtype();
  for (std::int64_t e = 0; e < gate.dim(0); ++e) {
    ExpertWeights& expert = packed.experts_[static_cast<std::size_t>(e)];
    const LinearPart parts[] = {
        {.weight = ExpertRows(gate, e, 0, gate.dim(1))},
        {.weight = ExpertRows(up, e, 0, up.dim(1))},
        {.weight = ExpertRows(down, e, 0, down.dim(1))}};
    if (gated) {
      PackGated(parts[0], parts[1], expert.gate_up);
    } else {
      Pack(std::span(parts).subspan(0, 1), expert.gate);
      Pack(std::span(parts).subspan(1, 1), expert.up);
    }
    Pack(std::span(parts).subspan(2, 1), expert.down);
  }
  packed.size_bytes_ = impl_->size_bytes - before;
}

void PackPlan::PackMergedExperts(const Tensor& gate_up, const Tensor& down,
                                 PackedExperts& packed) {
  FUCINA_CHECK_EQ(gate_up.rank(), 3);
  FUCINA_CHECK_EQ(down.rank(), 3);
  const std::int64_t ffn = gate_up.dim(1) / 2;
  FUCINA_CHECK_EQ(gate_up.dim(1), 2 * ffn);
  FUCINA_CHECK_EQ(down.dim(0), gate_up.dim(0));
  FUCINA_CHECK_EQ(down.dim(1), gate_up.dim(2));
  FUCINA_CHECK_EQ(down.dim(2), ffn);
  packed = PackedExperts();
  packed.experts_.resize(static_cast<std::size_t>(gate_up.dim(0)));
  const std::size_t before = impl_->size_bytes;
  for (std::int64_t e = 0; e < gate_up.dim(0); ++e) {
    ExpertWeights& expert = packed.experts_[static_cast<std::size_t>(e)];
    PackGated({.weight = ExpertRows(gate_up, e, 0, ffn)},
              {.weight = ExpertRows(gate_up, e, ffn, 2 * ffn)}, expert.gate_up);
    const LinearPart part = {.weight = ExpertRows(down, e, 0, down.dim(1))};
    Pack(std::span(&part, 1), expert.down);
  }
  packed.size_bytes_ = impl_->size_bytes - before;
}

absl::StatusOr<Buffer> PackPlan::Run(ThreadPool& pool, SourceRead source_read) {
  FUCINA_ASSIGN_OR_RETURN(Buffer memory, Buffer::Allocate(impl_->size_bytes));
  // A turn is a run of strips, of one matrix or of several small ones.
  struct Piece {
    const Matrix* matrix = nullptr;
    std::int64_t begin = 0;  // strips
    std::int64_t end = 0;
  };
  std::vector<Piece> pieces;
  std::vector<std::size_t> turns = {0};  // the first piece of each, and the end
  // Small models are shared out as well.
  const std::size_t turn_bytes = std::min(
      kTurnBytes,
      impl_->size_bytes / static_cast<std::size_t>(4 * pool.num_threads()) + 1);
  std::size_t left = turn_bytes;
  for (const Matrix& matrix : impl_->matrices) {
    matrix.packed->SetMemory(memory.data() + matrix.offset);
    const auto strip_bytes =
        static_cast<std::size_t>(matrix.packed->strip_bytes());
    std::int64_t begin = 0;
    while (begin < matrix.packed->num_strips()) {
      const std::size_t most = std::min(left, kPieceBytes);
      const std::int64_t end =
          std::min(matrix.packed->num_strips(),
                   begin + static_cast<std::int64_t>((most + strip_bytes - 1) /
                                                     strip_bytes));
      pieces.push_back({&matrix, begin, end});
      const std::size_t taken =
          static_cast<std::size_t>(end - begin) * strip_bytes;
      if (taken >= left) {
        turns.push_back(pieces.size());
        left = turn_bytes;
      } else {
        left -= taken;
      }
      begin = end;
    }
  }
  if (turns.back() != pieces.size()) turns.push_back(pieces.size());
  const auto turn = [&](std::int64_t begin, std::int64_t end, int /*worker*/) {
    for (std::size_t i = turns[static_cast<std::size_t>(begin)];
         i < turns[static_cast<std::size_t>(end)]; ++i) {
      const Piece& piece = pieces[i];
      piece.matrix->packed->FillStrips(piece.matrix->parts, piece.begin,
                                       piece.end);
      ReportRead(*piece.matrix, piece.begin, piece.end, source_read);
    }
  };
  pool.ParallelFor(static_cast<std::int64_t>(turns.size()) - 1, 1, turn);
  return memory;
}

}  // namespace fucina::ops
