#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "fucina/diag/check.h"
#include "fucina/diag/status_macros.h"
#include "fucina/ops/linear.h"

namespace fucina::ops {
namespace {

constexpr std::int64_t kLine = 64;

std::int64_t RoundToLine(std::int64_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

std::int64_t NumStrips(std::int64_t out_features, bool gated) {
  const int columns = gated ? kStripRows / 2 : kStripRows;
  return (out_features + columns - 1) / columns;
}

// Which part's which row is lane `lane` of strip `strip`; part -1 past the end.
struct SourceRow {
  int part = -1;
  std::int64_t row = 0;
};
SourceRow FindRow(std::span<const std::int64_t> parts, bool gated,
                  std::int64_t strip, int lane) {
  if (gated) {
    const std::int64_t row = strip * 16 + lane % 16;
    return row < parts[0] ? SourceRow{lane / 16, row} : SourceRow{};
  }
  std::int64_t row = strip * kStripRows + lane;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (row < parts[p]) return {static_cast<int>(p), row};
    row -= parts[p];
  }
  return {};
}

}  // namespace

PackedLinear PackedLinear::Layout(std::span<const LinearPart> parts,
                                  bool gated) {
  FUCINA_CHECK(!parts.empty());
  PackedLinear packed;
  packed.gated_ = gated;
  packed.dtype_ = parts[0].weight.dtype();
  packed.format_ = PanelFormatOf(packed.dtype_);
  packed.in_features_ = parts[0].weight.row_size();
  FUCINA_CHECK(Traits(packed.dtype_).use == DTypeUse::kWeight)
      << parts[0].weight.DebugString();
  for (const LinearPart& part : parts) {
    FUCINA_CHECK_EQ(part.weight.rank(), 2);
    FUCINA_CHECK(part.weight.dtype() == packed.dtype_)
        << part.weight.DebugString() << " beside "
        << parts[0].weight.DebugString();
    FUCINA_CHECK_EQ(part.weight.row_size(), packed.in_features_);
    const std::int64_t rows = part.weight.num_rows();
    if (!part.bias.empty()) {
      FUCINA_CHECK(part.bias.dtype() == DType::kF32);
      FUCINA_CHECK_EQ(part.bias.num_elements(), rows);
      packed.has_bias_ = true;
    }
    packed.parts_.push_back(rows);
    packed.out_features_ += rows;
  }
  if (gated) {
    FUCINA_CHECK_EQ(packed.parts_[0], packed.parts_[1]);
    packed.out_features_ = packed.parts_[0];
  }
  packed.num_strips_ = NumStrips(packed.out_features_, gated);
  packed.strip_bytes_ =
      RoundToLine(StripBytes(packed.format_, packed.in_features_));
  packed.size_bytes_ = static_cast<std::size_t>(
      packed.num_strips_ *
      (packed.strip_bytes_ +
       (packed.has_bias_ ? kStripRows * std::int64_t{sizeof(float)} : 0)));
  return packed;
}

void PackedLinear::SetMemory(std::byte* memory) {
  strips_ = reinterpret_cast<std::uint8_t*>(memory);
  bias_ = has_bias_
              ? reinterpret_cast<float*>(memory + num_strips_ * strip_bytes_)
              : nullptr;
}

void PackedLinear::FillStrips(std::span<const LinearPart> parts,
                              std::int64_t begin, std::int64_t end) {
  for (std::int64_t s = begin; s < end; ++s) {
    std::array<const void*, kStripRows> rows = {};
    for (int lane = 0; lane < kStripRows; ++lane) {
      const SourceRow source = FindRow(parts_, gated_, s, lane);
      float bias_value = 0;
      if (source.part >= 0) {
        const LinearPart& part = parts[static_cast<std::size_t>(source.part)];
        rows[static_cast<std::size_t>(lane)] =
            part.weight.row_bytes(source.row);
        if (!part.bias.empty()) {
          bias_value = static_cast<const float*>(part.bias.data())[source.row];
        }
      }
      if (bias_ != nullptr) bias_[s * kStripRows + lane] = bias_value;
    }
    PackStrip(dtype_, rows.data(), in_features_, strips_ + s * strip_bytes_);
  }
}

void PackedLinear::Fill(std::span<const LinearPart> parts, std::byte* memory,
                        ThreadPool* pool) {
  SetMemory(memory);
  const auto fill = [&](std::int64_t begin, std::int64_t end, int /*worker*/) {
    FillStrips(parts, begin, end);
  };
  if (pool != nullptr) {
    pool->ParallelFor(num_strips_, pool->GrainFor(num_strips_), fill);
  } else {
    fill(0, num_strips_, 0);
  }
}

absl::StatusOr<PackedLinear> PackedLinear::Pack(
    std::span<const LinearPart> parts, ThreadPool& pool) {
  PackedLinear packed = Layout(parts, /*gated=*/false);
  FUCINA_ASSIGN_OR_RETURN(packed.memory_, Buffer::Allocate(packed.size_bytes_));
  packed.Fill(parts, packed.memory_.data(), &pool);
  return packed;
}

absl::StatusOr<PackedLinear> PackedLinear::Pack(const Tensor& weight,
                                                ThreadPool& pool) {
  const LinearPart part{.weight = weight};
  return Pack(std::span<const LinearPart>(&part, 1), pool);
}

absl::StatusOr<PackedLinear> PackedLinear::PackGated(const LinearPart& gate,
                                                     const LinearPart& up,
                                                     ThreadPool& pool) {
  const LinearPart parts[2] = {gate, up};
  PackedLinear packed = Layout(parts, /*gated=*/true);
  FUCINA_ASSIGN_OR_RETURN(packed.memory_, Buffer::Allocate(packed.size_bytes_));
  packed.Fill(parts, packed.memory_.data(), &pool);
  return packed;
}

PackedLinear PackedLinear::PackInto(const Tensor& weight,
                                    std::span<std::byte> memory) {
  const LinearPart part{.weight = weight};
  const std::span<const LinearPart> parts(&part, 1);
  PackedLinear packed = Layout(parts, /*gated=*/false);
  FUCINA_CHECK_GE(memory.size(), packed.size_bytes_);
  packed.Fill(parts, memory.data(), nullptr);
  return packed;
}

PackedLinear PackedLinear::PackGatedInto(const Tensor& gate, const Tensor& up,
                                         std::span<std::byte> memory) {
  const LinearPart parts[2] = {{.weight = gate}, {.weight = up}};
  PackedLinear packed = Layout(parts, /*gated=*/true);
  FUCINA_CHECK_GE(memory.size(), packed.size_bytes_);
  packed.Fill(parts, memory.data(), nullptr);
  return packed;
}

std::int64_t PackedLinear::PackedBytes(DType dtype, std::int64_t out_features,
                                       std::int64_t in_features) {
  return NumStrips(out_features, /*gated=*/false) *
         RoundToLine(StripBytes(PanelFormatOf(dtype), in_features));
}

std::int64_t PackedLinear::PackedGatedBytes(DType dtype, std::int64_t ffn,
                                            std::int64_t in_features) {
  return NumStrips(ffn, /*gated=*/true) *
         RoundToLine(StripBytes(PanelFormatOf(dtype), in_features));
}

}  // namespace fucina::ops
