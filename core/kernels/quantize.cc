#include "fucina/kernels/quantize.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "core/kernels/block_codec.h"
#include "fucina/kernels/f16.h"

namespace fucina {
namespace {

float Magnitude(const float* x, int n) {
  float max = 0.0f;
  for (int i = 0; i < n; ++i) max = std::fmax(max, std::fabs(x[i]));
  return max;
}

float Inverse(float d) { return d != 0.0f ? 1.0f / d : 0.0f; }

// Codes of Q8_0 and Q8_1: rounded with ties away from zero, by the step before
// it is rounded to f16. Returns their sum.
int EncodeBytes(const float* x, float d, std::int8_t* qs) {
  const float inverse = Inverse(d);
  int sum = 0;
  for (int j = 0; j < kBlock32; ++j) {
    const int q = ToCode(std::round(x[j] * inverse));
    qs[j] = static_cast<std::int8_t>(q);
    sum += q;
  }
  return sum;
}

// Splits 32 codes of up to five bits into nibbles and, if `qh` is not null,
// fifth bits.
void PackNibbles(const int* q, std::uint8_t* qs, std::uint8_t* qh) {
  std::uint32_t high = 0;
  for (int j = 0; j < 16; ++j) {
    qs[j] = static_cast<std::uint8_t>((q[j] & 15) | (q[j + 16] & 15) << 4);
    high |= static_cast<std::uint32_t>(q[j] >> 4) << j;
    high |= static_cast<std::uint32_t>(q[j + 16] >> 4) << (j + 16);
  }
  if (qh != nullptr) std::memcpy(qh, &high, sizeof(high));
}

// Codes of Q4_0 and Q5_0: `half` is 8 or 16. Returns the scale.
float EncodeSymmetric(const float* x, int half, int* q) {
  const float d = MaxSigned(x, kBlock32) / static_cast<float>(-half);
  const float inverse = Inverse(d);
  const float offset = static_cast<float>(half) + 0.5f;
  for (int j = 0; j < kBlock32; ++j) {
    q[j] = Clamp(ToCode(x[j] * inverse + offset), 0, 2 * half - 1);
  }
  return d;
}

// Codes of Q4_1 and Q5_1: `top` is 15 or 31.
struct Affine {
  float d;
  float m;
};
Affine EncodeAffine(const float* x, int top, int* q) {
  float lo = x[0];
  float hi = x[0];
  for (int j = 1; j < kBlock32; ++j) {
    lo = x[j] < lo ? x[j] : lo;
    hi = x[j] > hi ? x[j] : hi;
  }
  const float d = (hi - lo) / static_cast<float>(top);
  const float inverse = Inverse(d);
  for (int j = 0; j < kBlock32; ++j) {
    q[j] = Clamp(ToCode((x[j] - lo) * inverse + 0.5f), 0, top);
  }
  return {d, lo};
}

}  // namespace

// ------------------------------------------------------- decoding, 32 elements

void Decode(const BlockQ4_0& block, float* y) {
  const float d = F16ToFloat(block.d_f16);
  for (int j = 0; j < 16; ++j) {
    y[j] = static_cast<float>((block.qs[j] & 15) - 8) * d;
    y[j + 16] = static_cast<float>((block.qs[j] >> 4) - 8) * d;
  }
}

void Decode(const BlockQ4_1& block, float* y) {
  const float d = F16ToFloat(block.d_f16);
  const float m = F16ToFloat(block.m_f16);
  for (int j = 0; j < 16; ++j) {
    y[j] = static_cast<float>(block.qs[j] & 15) * d + m;
    y[j + 16] = static_cast<float>(block.qs[j] >> 4) * d + m;
  }
}

void Decode(const BlockQ5_0& block, float* y) {
  const float d = F16ToFloat(block.d_f16);
  const std::uint32_t high = LoadU32(block.qh);
  for (int j = 0; j < 16; ++j) {
    const int lo = (block.qs[j] & 15) | ((high >> j) & 1) << 4;
    const int hi = (block.qs[j] >> 4) | ((high >> (j + 16)) & 1) << 4;
    y[j] = static_cast<float>(lo - 16) * d;
    y[j + 16] = static_cast<float>(hi - 16) * d;
  }
}

void Decode(const BlockQ5_1& block, float* y) {
  const float d = F16ToFloat(block.d_f16);
  const float m = F16ToFloat(block.m_f16);
  const std::uint32_t high = LoadU32(block.qh);
  for (int j = 0; j < 16; ++j) {
    const int lo = (block.qs[j] & 15) | ((high >> j) & 1) << 4;
    const int hi = (block.qs[j] >> 4) | ((high >> (j + 16)) & 1) << 4;
    y[j] = static_cast<float>(lo) * d + m;
    y[j + 16] = static_cast<float>(hi) * d + m;
  }
}

void Decode(const BlockQ8_0& block, float* y) {
  const float d = F16ToFloat(block.d_f16);
  for (int j = 0; j < kBlock32; ++j) {
    y[j] = static_cast<float>(block.qs[j]) * d;
  }
}

void Decode(const BlockQ8_1& block, float* y) {
  const float d = F16ToFloat(block.d_f16);
  for (int j = 0; j < kBlock32; ++j) {
    y[j] = static_cast<float>(block.qs[j]) * d;
  }
}

void Decode(const BlockIQ4_NL& block, float* y) {
  const float d = F16ToFloat(block.d_f16);
  for (int j = 0; j < 16; ++j) {
    y[j] = d * static_cast<float>(kIq4Values[block.qs[j] & 15]);
    y[j + 16] = d * static_cast<float>(kIq4Values[block.qs[j] >> 4]);
  }
}

void Decode(const BlockMXFP4& block, float* y) {
  const float d = E8M0HalfToFloat(block.e);
  for (int j = 0; j < 16; ++j) {
    y[j] = static_cast<float>(kMxfp4Values[block.qs[j] & 15]) * d;
    y[j + 16] = static_cast<float>(kMxfp4Values[block.qs[j] >> 4]) * d;
  }
}

// ------------------------------------------------------- encoding, 32 elements

void Encode(const float* x, BlockQ4_0& block) {
  int q[kBlock32];
  block.d_f16 = FloatToF16(EncodeSymmetric(x, 8, q));
  PackNibbles(q, block.qs, nullptr);
}

void Encode(const float* x, BlockQ4_1& block) {
  int q[kBlock32];
  const Affine affine = EncodeAffine(x, 15, q);
  block.d_f16 = FloatToF16(affine.d);
  block.m_f16 = FloatToF16(affine.m);
  PackNibbles(q, block.qs, nullptr);
}

void Encode(const float* x, BlockQ5_0& block) {
  int q[kBlock32];
  block.d_f16 = FloatToF16(EncodeSymmetric(x, 16, q));
  PackNibbles(q, block.qs, block.qh);
}

void Encode(const float* x, BlockQ5_1& block) {
  int q[kBlock32];
  const Affine affine = EncodeAffine(x, 31, q);
  block.d_f16 = FloatToF16(affine.d);
  block.m_f16 = FloatToF16(affine.m);
  PackNibbles(q, block.qs, block.qh);
}

void Encode(const float* x, BlockQ8_0& block) {
  const float d = Magnitude(x, kBlock32) / 127.0f;
  block.d_f16 = FloatToF16(d);
  EncodeBytes(x, d, block.qs);
}

void Encode(const float* x, BlockQ8_1& block) {
  const float d = Magnitude(x, kBlock32) / 127.0f;
  block.d_f16 = FloatToF16(d);
  const int sum = EncodeBytes(x, d, block.qs);
  block.s_f16 = FloatToF16(d * static_cast<float>(sum));
}

void Encode(const float* x, BlockMXFP4& block) {
  const float max = Magnitude(x, kBlock32);
  // The exponent of the largest value, less the two of the largest code (6.0).
  const int e = max > 0.0f && std::isfinite(max)
                    ? Clamp(std::ilogb(max) - 2 + 127, 0, 254)
                    : 0;
  block.e = static_cast<std::uint8_t>(e);
  const float d = E8M0HalfToFloat(block.e);
  int q[kBlock32];
  for (int j = 0; j < kBlock32; ++j) {
    q[j] = 0;
    float best = std::fabs(static_cast<float>(kMxfp4Values[0]) * d - x[j]);
    for (int i = 1; i < 16; ++i) {
      const float error =
          std::fabs(static_cast<float>(kMxfp4Values[i]) * d - x[j]);
      if (error < best) {
        best = error;
        q[j] = i;
      }
    }
  }
  PackNibbles(q, block.qs, nullptr);
}

// ----------------------------------------------------------------------- rows

namespace {

bool Finite16(std::uint16_t f16) { return (f16 & 0x7c00u) != 0x7c00u; }

bool Valid(const BlockQ2_K& b) {
  return Finite16(b.d_f16) && Finite16(b.dmin_f16);
}
bool Valid(const BlockQ4_K& b) {
  return Finite16(b.d_f16) && Finite16(b.dmin_f16);
}
bool Valid(const BlockQ5_K& b) {
  return Finite16(b.d_f16) && Finite16(b.dmin_f16);
}
bool Valid(const BlockQ4_1& b) {
  return Finite16(b.d_f16) && Finite16(b.m_f16);
}
bool Valid(const BlockQ5_1& b) {
  return Finite16(b.d_f16) && Finite16(b.m_f16);
}
bool Valid(const BlockQ8_1& b) {
  return Finite16(b.d_f16) && Finite16(b.s_f16);
}
bool Valid(const BlockQ8_K& b) { return std::isfinite(b.d); }
bool Valid(const BlockMXFP4& b) { return b.e != 255; }
bool Valid(const BlockIQ1_M& b) { return Finite16(Iq1mScaleBits(b)); }
template <typename Block>
bool Valid(const Block& b) {
  return Finite16(b.d_f16);
}

// The plain types as blocks of one element.
struct OneF32 {
  float value;
};
struct OneF16 {
  std::uint16_t bits;
};
struct OneBF16 {
  std::uint16_t bits;
};
void Decode(const OneF32& block, float* y) { *y = block.value; }
void Decode(const OneF16& block, float* y) { *y = F16ToFloat(block.bits); }
void Decode(const OneBF16& block, float* y) { *y = BF16ToFloat(block.bits); }
void Encode(const float* x, OneF32& block) { block.value = *x; }
void Encode(const float* x, OneF16& block) { block.bits = FloatToF16(*x); }
void Encode(const float* x, OneBF16& block) { block.bits = FloatToBF16(*x); }
bool Valid(const OneF32& block) { return std::isfinite(block.value); }
bool Valid(const OneF16& block) { return Finite16(block.bits); }
bool Valid(const OneBF16& block) { return (block.bits & 0x7f80u) != 0x7f80u; }

// What the generic code below needs to know of a block type.
template <typename BlockT, int kElements>
struct Format {
  using Block = BlockT;
  static constexpr int kSize = kElements;
};

// Calls `visit` with the Format of `dtype`; false if there is none.
template <typename Visitor>
bool VisitEncodable(DType dtype, Visitor visit) {
  switch (dtype) {
    case DType::kF32:
      return visit(Format<OneF32, 1>{});
    case DType::kF16:
      return visit(Format<OneF16, 1>{});
    case DType::kBF16:
      return visit(Format<OneBF16, 1>{});
    case DType::kQ4_0:
      return visit(Format<BlockQ4_0, 32>{});
    case DType::kQ4_1:
      return visit(Format<BlockQ4_1, 32>{});
    case DType::kQ5_0:
      return visit(Format<BlockQ5_0, 32>{});
    case DType::kQ5_1:
      return visit(Format<BlockQ5_1, 32>{});
    case DType::kQ8_0:
      return visit(Format<BlockQ8_0, 32>{});
    case DType::kQ8_1:
      return visit(Format<BlockQ8_1, 32>{});
    case DType::kIQ4_NL:
      return visit(Format<BlockIQ4_NL, 32>{});
    case DType::kMXFP4:
      return visit(Format<BlockMXFP4, 32>{});
    case DType::kQ2_K:
      return visit(Format<BlockQ2_K, 256>{});
    case DType::kQ3_K:
      return visit(Format<BlockQ3_K, 256>{});
    case DType::kQ4_K:
      return visit(Format<BlockQ4_K, 256>{});
    case DType::kQ5_K:
      return visit(Format<BlockQ5_K, 256>{});
    case DType::kQ6_K:
      return visit(Format<BlockQ6_K, 256>{});
    case DType::kQ8_K:
      return visit(Format<BlockQ8_K, 256>{});
    case DType::kIQ4_XS:
      return visit(Format<BlockIQ4_XS, 256>{});
    case DType::kTQ1_0:
      return visit(Format<BlockTQ1_0, 256>{});
    case DType::kTQ2_0:
      return visit(Format<BlockTQ2_0, 256>{});
    default:
      return false;
  }
}

template <typename Visitor>
bool VisitDecodable(DType dtype, Visitor visit) {
  switch (dtype) {
    case DType::kIQ2_XXS:
      return visit(Format<BlockIQ2_XXS, 256>{});
    case DType::kIQ2_XS:
      return visit(Format<BlockIQ2_XS, 256>{});
    case DType::kIQ2_S:
      return visit(Format<BlockIQ2_S, 256>{});
    case DType::kIQ3_XXS:
      return visit(Format<BlockIQ3_XXS, 256>{});
    case DType::kIQ3_S:
      return visit(Format<BlockIQ3_S, 256>{});
    case DType::kIQ1_S:
      return visit(Format<BlockIQ1_S, 256>{});
    case DType::kIQ1_M:
      return visit(Format<BlockIQ1_M, 256>{});
    default:
      return VisitEncodable(dtype, visit);
  }
}

// Blocks are copied to the stack before use: a row in a mapped file may start
// at an address that the block's type would not allow.
template <typename Block>
Block LoadBlock(const void* src, std::int64_t index) {
  Block block;
  std::memcpy(&block,
              static_cast<const std::uint8_t*>(src) +
                  index * static_cast<std::int64_t>(sizeof(Block)),
              sizeof(Block));
  return block;
}

}  // namespace

bool CanDequantize(DType dtype) {
  return VisitDecodable(dtype, [](auto) { return true; });
}

void DequantizeRow(DType dtype, const void* src, float* dst, std::int64_t n) {
  const bool known = VisitDecodable(dtype, [&](auto format) {
    using F = decltype(format);
    for (std::int64_t b = 0; b < n / F::kSize; ++b) {
      Decode(LoadBlock<typename F::Block>(src, b), dst + b * F::kSize);
    }
    return true;
  });
  if (!known) std::abort();  // the caller did not ask CanDequantize
}

bool CanQuantize(DType dtype) {
  return VisitEncodable(dtype, [](auto) { return true; });
}

void QuantizeRow(DType dtype, const float* src, void* dst, std::int64_t n) {
  const bool known = VisitEncodable(dtype, [&](auto format) {
    using F = decltype(format);
    using Block = typename F::Block;
    for (std::int64_t b = 0; b < n / F::kSize; ++b) {
      Block block;
      Encode(src + b * F::kSize, block);
      std::memcpy(static_cast<std::uint8_t*>(dst) +
                      b * static_cast<std::int64_t>(sizeof(Block)),
                  &block, sizeof(Block));
    }
    return true;
  });
  if (!known) std::abort();  // the caller did not ask CanQuantize
}

std::int64_t FindInvalidBlock(DType dtype, const void* src, std::int64_t n) {
  std::int64_t invalid = -1;
  const bool known = VisitDecodable(dtype, [&](auto format) {
    using F = decltype(format);
    for (std::int64_t b = 0; b < n / F::kSize && invalid < 0; ++b) {
      if (!Valid(LoadBlock<typename F::Block>(src, b))) invalid = b;
    }
    return true;
  });
  if (!known) std::abort();  // the caller did not ask CanDequantize
  return invalid;
}

}  // namespace fucina
