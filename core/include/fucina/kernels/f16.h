#ifndef FUCINA_KERNELS_F16_H_
#define FUCINA_KERNELS_F16_H_

// Short floating-point formats in plain integer code: the same bits on every
// machine and instruction set. Hardware conversions (F16C, NEON) give the same
// results, so kernels are free to use them. Thread-safe.

#include <bit>
#include <cstdint>

namespace fucina {

// IEEE binary16 to f32, exact; subnormals included, NaN made quiet.
inline float F16ToFloat(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 31u;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  if (exponent == 31) {
    const std::uint32_t quiet = mantissa != 0 ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | (mantissa << 13));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) |
                              (mantissa << 13));
}

// f32 to IEEE binary16: nearest, ties to even; past 65504 to infinity.
inline std::uint16_t FloatToF16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t result;
  if (magnitude > 0x7f800000u) {  // NaN: quiet, upper payload kept
    result = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) {  // 65520 and up
    result = 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // below 2^-14: subnormal or zero
    // One unit in the last place of 0.5 is 2^-24, the subnormal step, so this
    // addition does the rounding.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    result = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u;
  } else {
    const std::uint32_t odd = (magnitude >> 13) & 1u;
    result = (magnitude - (112u << 23) + 0xfffu + odd) >> 13;
  }
  return static_cast<std::uint16_t>(result | sign);
}

// bfloat16 to f32, exact.
inline float BF16ToFloat(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// f32 to bfloat16: nearest, ties to even; NaN stays NaN, made quiet.
inline std::uint16_t FloatToBF16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return static_cast<std::uint16_t>((bits >> 16) | 64u);
  }
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >>
                                    16);
}

// Half of an E8M0 number, 2^(e - 128): the factor of MXFP4's doubled values.
// 255 gives NaN.
inline float E8M0HalfToFloat(std::uint8_t e) {
  if (e == 255) return std::bit_cast<float>(0x7fc00000u);
  if (e < 2) return std::bit_cast<float>(0x00200000u << e);  // subnormal
  return std::bit_cast<float>(static_cast<std::uint32_t>(e - 1) << 23);
}

}  // namespace fucina

#endif  // FUCINA_KERNELS_F16_H_
