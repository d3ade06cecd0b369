// Decoding of the K formats: 256 elements in sub-blocks of 16 or 32. The
// indices n (half of 128), k (run of 32 in the half), l (element of the run),
// g = i / 32 and b = i / 16 are those of the format's description.

#include "core/kernels/block_codec.h"
#include "fucina/kernels/f16.h"

namespace fucina {

void Decode(const BlockQ2_K& block, float* y) {
  const float d = F16ToFloat(block.d_f16);
  const float dmin = F16ToFloat(block.dmin_f16);
  for (int b = 0; b < 16; ++b) {
    const int n = b / 8;
    const int k = b / 2 % 4;
    const float scale = d * static_cast<float>(block.scales[b] & 15);
    const float min = dmin * static_cast<float>(block.scales[b] >> 4);
    for (int j = 0; j < 16; ++j) {
      const int q = (block.qs[32 * n + 16 * (b % 2) + j] >> (2 * k)) & 3;
      y[16 * b + j] = scale * static_cast<float>(q) - min;
    }
  }
}

void Decode(const BlockQ3_K& block, float* y) {
  const float d = F16ToFloat(block.d_f16);
  for (int b = 0; b < 16; ++b) {
    const int n = b / 8;
    const int k = b / 2 % 4;
    const float scale =
        d * static_cast<float>(UnpackQ3Scale(block.scales, b) - 32);
    for (int j = 0; j < 16; ++j) {
      const int l = 16 * (b % 2) + j;
      const int low = (block.qs[32 * n + l] >> (2 * k)) & 3;
      const int q = low - (((block.hmask[l] >> (b / 2)) & 1) != 0 ? 0 : 4);
      y[16 * b + j] = scale * static_cast<float>(q);
    }
  }
}

void Decode(const BlockQ4_K& block, float* y) {
  const float d = F16ToFloat(block.d_f16);
  const float dmin = F16ToFloat(block.dmin_f16);
  for (int g = 0; g < 8; ++g) {
    const ScaleMin sm = UnpackScaleMin(block.scales, g);
    const float scale = d * static_cast<float>(sm.scale);
    const float min = dmin * static_cast<float>(sm.min);
    for (int l = 0; l < 32; ++l) {
      const int q = (block.qs[32 * (g / 2) + l] >> (4 * (g % 2))) & 15;
      y[32 * g + l] = scale * static_cast<float>(q) - min;
    }
  }
}

void Decode(const BlockQ5_K& block, float* y) {
  const float d = F16ToFloat(block.d_f16);
  const float dmin = F16ToFloat(block.dmin_f16);
  for (int g = 0; g < 8; ++g) {
    const ScaleMin sm = UnpackScaleMin(block.scales, g);
    const float scale = d * static_cast<float>(sm.scale);
    const float min = dmin * static_cast<float>(sm.min);
    for (int l = 0; l < 32; ++l) {
      const int low = (block.qs[32 * (g / 2) + l] >> (4 * (g % 2))) & 15;
      const int q = low | ((block.qh[l] >> g) & 1) << 4;
      y[32 * g + l] = scale * static_cast<float>(q) - min;
    }
  }
}

void Decode(const BlockQ6_K& block, float* y) {
  const float d = F16ToFloat(block.d_f16);
  for (int g = 0; g < 8; ++g) {
    const int n = g / 4;
    const int k = g % 4;
    for (int l = 0; l < 32; ++l) {
      const int lo =
          (block.ql[64 * n + 32 * (k & 1) + l] >> (4 * (k / 2))) & 15;
      const int hi = (block.qh[32 * n + l] >> (2 * k)) & 3;
      const float scale = d * static_cast<float>(block.scales[2 * g + l / 16]);
      y[32 * g + l] = scale * static_cast<float>((lo | hi << 4) - 32);
    }
  }
}

void Decode(const BlockQ8_K& block, float* y) {
  for (int i = 0; i < kBlock256; ++i) {
    y[i] = block.d * static_cast<float>(block.qs[i]);
  }
}

}  // namespace fucina
