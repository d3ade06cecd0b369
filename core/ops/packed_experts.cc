#include "fucina/diag/check.h"
#include "fucina/diag/status_macros.h"
#include "fucina/ops/experts.h"

namespace fucina::ops {
namespace {

// Expert `e` of [experts, rows, columns].
Tensor ExpertSlice(const Tensor& stack, std::int64_t e) {
  const std::int64_t rows = stack.dim(1);
  const std::int64_t columns = stack.dim(2);
  const std::int64_t bytes = rows * RowBytes(stack.dtype(), columns);
  return Tensor(stack.dtype(), {rows, columns},
                static_cast<const std::byte*>(stack.data()) + e * bytes);
}

std::int64_t Bytes(const Tensor& matrix) {
  return PackedLinear::PackedBytes(matrix.dtype(), matrix.dim(0),
                                   matrix.dim(1));
}

std::int64_t GateUpBytes(const Tensor& gate, const Tensor& up) {
  if (gate.dtype() != up.dtype()) return Bytes(gate) + Bytes(up);
  return PackedLinear::PackedGatedBytes(gate.dtype(), gate.dim(0), gate.dim(1));
}

}  // namespace

std::int64_t PackedExperts::ExpertBytes(const Tensor& gate, const Tensor& up,
                                        const Tensor& down) {
  return GateUpBytes(gate, up) + Bytes(down);
}

ExpertWeights PackedExperts::PackExpertInto(const Tensor& gate,
                                            const Tensor& up,
                                            const Tensor& down,
                                            std::span<std::byte> memory) {
  FUCINA_CHECK_GE(memory.size(),
                  static_cast<std::size_t>(ExpertBytes(gate, up, down)));
  ExpertWeights expert;
  if (gate.dtype() == up.dtype()) {
    expert.gate_up = PackedLinear::PackGatedInto(gate, up, memory);
  } else {
    expert.gate = PackedLinear::PackInto(gate, memory);
    expert.up = PackedLinear::PackInto(
        up, memory.subspan(static_cast<std::size_t>(Bytes(gate))));
  }
  expert.down = PackedLinear::PackInto(
      down, memory.subspan(static_cast<std::size_t>(GateUpBytes(gate, up))));
  return expert;
}

void PackedExperts::CheckShapes(const Tensor& gate, const Tensor& up,
                                const Tensor& down) {
  FUCINA_CHECK_EQ(gate.rank(), 3);
  FUCINA_CHECK_EQ(up.rank(), 3);
  FUCINA_CHECK_EQ(down.rank(), 3);
  FUCINA_CHECK_EQ(up.dim(0), gate.dim(0));
  FUCINA_CHECK_EQ(down.dim(0), gate.dim(0));
  FUCINA_CHECK_EQ(up.dim(1), gate.dim(1));
  FUCINA_CHECK_EQ(up.dim(2), gate.dim(2));
  FUCINA_CHECK_EQ(down.dim(1), gate.dim(2));
  FUCINA_CHECK_EQ(down.dim(2), gate.dim(1));
}

absl::StatusOr<PackedExperts> PackedExperts::Pack(const Tensor& gate,
                                                  const Tensor& up,
                                                  const Tensor& down,
                                                  ThreadPool& pool) {
  CheckShapes(gate, up, down);
  const std::int64_t count = gate.dim(0);
  const std::int64_t bytes = ExpertBytes(
      ExpertSlice(gate, 0), ExpertSlice(up, 0), ExpertSlice(down, 0));
  PackedExperts packed;
  FUCINA_ASSIGN_OR_RETURN(
      packed.memory_,
      Buffer::Allocate(static_cast<std::size_t>(count * bytes)));
  packed.size_bytes_ = packed.memory_.size_bytes();
  packed.experts_.resize(static_cast<std::size_t>(count));
  pool.ParallelFor(
      count, 1, [&](std::int64_t begin, std::int64_t end, int /*worker*/) {
        for (std::int64_t e = begin; e < end; ++e) {
          packed.experts_[static_cast<std::size_t>(e)] = PackExpertInto(
              ExpertSlice(gate, e), ExpertSlice(up, e), ExpertSlice(down, e),
              std::span<std::byte>(packed.memory_.data() + e * bytes,
                                   static_cast<std::size_t>(bytes)));
        }
      });
  return packed;
}

}  // namespace fucina::ops
