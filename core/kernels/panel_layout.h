#ifndef FUCINA_CORE_KERNELS_PANEL_LAYOUT_H_
#define FUCINA_CORE_KERNELS_PANEL_LAYOUT_H_

// Where the codes and scales of a packed integer strip are. A strip is a
// sequence of records of 1 or 8 blocks of 32 k:
//   codes   per block, panel 0 then panel 1, 64 * code_bits bytes each
//   scales  f16 or f32 [halves][32], then minima likewise; or, in records of 8
//           blocks, bytes [8 * halves][32], then minima likewise, then f16
//           factors [32] of the scales and [32] of the minima
// A panel of codes: rows r = 0..15, groups g = 0..7 of 4 consecutive k; byte
// 4 * r + i of a line belongs to row r, element i of a group.
//   8 bits  line g holds group g
//   4 bits  lines j = 0..3: group 4 * (j / 2) + j % 2 in the low nibbles, the
//           group 2 further in the high ones, so that two lines make a half
//   5 bits  the same and a line whose bit g is the fifth bit of group g
//   6 bits  the same and two lines: line h, bits 2q and 2q + 1, are the upper
//           bits of group 4 * h + q

#include <cstdint>

#include "fucina/kernels/linear_kernels.h"

namespace fucina {

enum class PanelScale : std::uint8_t { kF16, kF32, kU8, kI8 };

struct PanelLayout {
  int code_bits = 8;
  int blocks = 1;        // per record
  int halves = 1;        // scales per block of 32
  bool has_min = false;  // a minimum, else an offset
  bool has_table = false;
  int offset_shift =
      0;  // offset = 1 << offset_shift, where there is no minimum
  PanelScale scale = PanelScale::kF16;

  constexpr bool byte_scales() const {
    return scale == PanelScale::kU8 || scale == PanelScale::kI8;
  }
  constexpr int panel_bytes() const { return 64 * code_bits; }
  constexpr int code_bytes() const { return blocks * 2 * panel_bytes(); }
  // All scales of a record, without minima and factors.
  constexpr int scale_bytes() const {
    const int size = byte_scales() ? 1 : scale == PanelScale::kF16 ? 2 : 4;
    return blocks * halves * kStripRows * size;
  }
  constexpr int min_offset() const { return code_bytes() + scale_bytes(); }
  constexpr int factor_offset() const {
    return min_offset() + (has_min ? scale_bytes() : 0);
  }
  constexpr int record_bytes() const {
    return factor_offset() +
           (byte_scales() ? kStripRows * 2 * (has_min ? 2 : 1) : 0);
  }
};

// Table codes are values + 128.
inline constexpr int kTableShift = 7;

constexpr PanelLayout LayoutOf(PanelFormat format) {
  using S = PanelScale;
  switch (format) {
    case PanelFormat::kF32:
    case PanelFormat::kF16:
    case PanelFormat::kBF16:
      break;
    case PanelFormat::kQ8:
      return {8, 1, 1, false, false, 7, S::kF16};
    case PanelFormat::kQ4:
      return {4, 1, 1, false, false, 3, S::kF16};
    case PanelFormat::kQ4Min:
      return {4, 1, 1, true, false, 0, S::kF16};
    case PanelFormat::kQ5:
      return {5, 1, 1, false, false, 4, S::kF16};
    case PanelFormat::kQ5Min:
      return {5, 1, 1, true, false, 0, S::kF16};
    case PanelFormat::kT4:
      return {4, 1, 1, false, true, kTableShift, S::kF16};
    case PanelFormat::kT4F:
      return {4, 1, 1, false, true, kTableShift, S::kF32};
    case PanelFormat::kT4FHalf:
      return {4, 1, 2, false, true, kTableShift, S::kF32};
    case PanelFormat::kK2:
      return {4, 8, 2, true, false, 0, S::kU8};
    case PanelFormat::kK3:
      return {4, 8, 2, false, false, 2, S::kI8};
    case PanelFormat::kK4:
      return {4, 8, 1, true, false, 0, S::kU8};
    case PanelFormat::kK5:
      return {5, 8, 1, true, false, 0, S::kU8};
    case PanelFormat::kK6:
      return {6, 8, 2, false, false, 5, S::kI8};
    case PanelFormat::kT4K:
      return {4, 8, 1, false, true, kTableShift, S::kI8};
  }
  return {};
}

// Bytes of a block of 32 k in an unpacked strip.
constexpr int UnpackedBlockBytes(int halves, bool has_min) {
  return 2 * 8 * 64 + halves * kStripRows * 4 * (has_min ? 2 : 1);
}

// The words of an activation tile after the codes, [rows] each.
enum ActivationWord {
  kWordScale = 0,   // f32 dx
  kWordNegSum,      // i32 -sum(a)
  kWordNegSumLow,   // i32 -sum of the first 16
  kWordNegSumHigh,  // i32 -sum of the last 16
  kWordScaledSum,   // f32 dx * sum(a)
};

// Thresholds of activation quantization, as bits of |x|.
inline constexpr std::uint32_t kTinyBits = (127U - 100U) << 23;  // 2^-100
inline constexpr std::uint32_t kInfBits = 0x7F800000U;
inline constexpr std::uint32_t kNanBits = 0x7FC00000U;

}  // namespace fucina

#endif  // FUCINA_CORE_KERNELS_PANEL_LAYOUT_H_
