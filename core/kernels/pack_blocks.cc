// Blocks of the IQ1, IQ2, IQ3 and ternary formats as table indices. The indices
// g (run of 32), r (run of 8 in it) and j are those of the format's
// description.
#include "core/kernels/pack_blocks.h"

#include "core/kernels/block_codec.h"
#include "core/kernels/lattice.h"
#include "fucina/kernels/f16.h"

namespace fucina {

const std::int8_t kIq2Table[16] = {8,  25,  43,  0, 0, 0, 0, 0,
                                   -8, -25, -43, 0, 0, 0, 0, 0};
const std::int8_t kIq3XxsTable[16] = {4,  12,  20,  28,  36,  44,  52,  62,
                                      -4, -12, -20, -28, -36, -44, -52, -62};
const std::int8_t kIq3STable[16] = {1,  3,  5,  7,  9,  11,  13,  15,
                                    -1, -3, -5, -7, -9, -11, -13, -15};
// 8 * grid + 1 and 8 * grid - 1, with the grid values -1, 0, 1.
const std::int8_t kIq1Table[16] = {-7, 1,  9, 0, 0, 0, 0, 0,
                                   -9, -1, 7, 0, 0, 0, 0, 0};
const std::int8_t kTernaryTable[16] = {-1, 0, 1, 2, 0, 0, 0, 0,
                                       0,  0, 0, 0, 0, 0, 0, 0};

namespace {

// Index of a positive grid value within the first half of a table.
int Iq2Index(int value) { return value == 8 ? 0 : value == 25 ? 1 : 2; }
// 62 breaks the row of 4 + 8 i, and rounds to its place.
int Iq3XxsIndex(int value) { return value / 8; }
int Iq3SIndex(int value) { return value / 2; }

template <int (*kIndex)(int)>
void PutSigned(const std::int8_t* grid, int signs, int count,
               std::uint8_t* codes) {
  for (int j = 0; j < count; ++j) {
    codes[j] =
        static_cast<std::uint8_t>(kIndex(grid[j]) | ((signs >> j) & 1) << 3);
  }
}

void PutShifted(const std::int8_t* grid, bool negative, std::uint8_t* codes) {
  for (int j = 0; j < 8; ++j) {
    codes[j] = static_cast<std::uint8_t>((grid[j] + 1) | (negative ? 8 : 0));
  }
}

int Nibble(std::uint8_t byte, int upper) { return (byte >> (4 * upper)) & 15; }

}  // namespace

void ReadBlock(const BlockIQ2_XXS& block, BlockCodes& out) {
  const float d = F16ToFloat(block.d_f16);
  for (int g = 0; g < 8; ++g) {
    const std::uint8_t* indices = block.qs + 8 * g;
    const std::uint32_t word = LoadU32(block.qs + 8 * g + 4);
    out.scale_f32[g] = d * (0.5F + static_cast<float>(word >> 28)) * 0.25F;
    for (int r = 0; r < 4; ++r) {
      PutSigned<Iq2Index>(kIq2XxsGrid[indices[r]].data(),
                          SignByte((word >> (7 * r)) & 127), 8,
                          out.codes + 32 * g + 8 * r);
    }
  }
}

void ReadBlock(const BlockIQ2_XS& block, BlockCodes& out) {
  const float d = F16ToFloat(block.d_f16);
  for (int g = 0; g < 8; ++g) {
    for (int r = 0; r < 4; ++r) {
      const int q = block.qs[4 * g + r];
      const int scale = Nibble(block.scales[g], r / 2);
      out.scale_f32[2 * g + r / 2] =
          d * (0.5F + static_cast<float>(scale)) * 0.25F;
      PutSigned<Iq2Index>(kIq2XsGrid[q & 511].data(), SignByte(q >> 9), 8,
                          out.codes + 32 * g + 8 * r);
    }
  }
}

void ReadBlock(const BlockIQ2_S& block, BlockCodes& out) {
  const float d = F16ToFloat(block.d_f16);
  for (int g = 0; g < 8; ++g) {
    for (int r = 0; r < 4; ++r) {
      const int index = block.qs[4 * g + r] | ((block.qh[g] >> (2 * r)) & 3)
                                                  << 8;
      const int scale = Nibble(block.scales[g], r / 2);
      out.scale_f32[2 * g + r / 2] =
          d * (0.5F + static_cast<float>(scale)) * 0.25F;
      PutSigned<Iq2Index>(kIq2SGrid[index].data(), block.signs[4 * g + r], 8,
                          out.codes + 32 * g + 8 * r);
    }
  }
}

void ReadBlock(const BlockIQ3_XXS& block, BlockCodes& out) {
  const float d = F16ToFloat(block.d_f16);
  for (int g = 0; g < 8; ++g) {
    const std::uint32_t word = LoadU32(block.scales_and_signs + 4 * g);
    out.scale_f32[g] = d * (0.5F + static_cast<float>(word >> 28)) * 0.5F;
    for (int r = 0; r < 4; ++r) {
      const int signs = SignByte((word >> (7 * r)) & 127);
      const std::uint8_t* indices = block.qs + 8 * g + 2 * r;
      std::uint8_t* codes = out.codes + 32 * g + 8 * r;
      PutSigned<Iq3XxsIndex>(kIq3XxsGrid[indices[0]].data(), signs, 4, codes);
      PutSigned<Iq3XxsIndex>(kIq3XxsGrid[indices[1]].data(), signs >> 4, 4,
                             codes + 4);
    }
  }
}

void ReadBlock(const BlockIQ3_S& block, BlockCodes& out) {
  const float d = F16ToFloat(block.d_f16);
  for (int g = 0; g < 8; ++g) {
    const int scale = Nibble(block.scales[g / 2], g % 2);
    out.scale_f32[g] = d * (1.0F + 2.0F * static_cast<float>(scale));
    for (int t = 0; t < 8; ++t) {
      const int index = block.qs[8 * g + t] | ((block.qh[g] >> t) & 1) << 8;
      PutSigned<Iq3SIndex>(kIq3SGrid[index].data(),
                           block.signs[4 * g + t / 2] >> (4 * (t % 2)), 4,
                           out.codes + 32 * g + 4 * t);
    }
  }
}

void ReadBlock(const BlockIQ1_S& block, BlockCodes& out) {
  const float d = F16ToFloat(block.d_f16);
  for (int g = 0; g < 8; ++g) {
    const int qh = block.qh[g];
    out.scale_f32[g] =
        d * static_cast<float>(2 * ((qh >> 12) & 7) + 1) * 0.125F;
    for (int r = 0; r < 4; ++r) {
      const int index = block.qs[4 * g + r] | ((qh >> (3 * r)) & 7) << 8;
      PutShifted(kIq1Grid[index].data(), (qh & 0x8000) != 0,
                 out.codes + 32 * g + 8 * r);
    }
  }
}

void ReadBlock(const BlockIQ1_M& block, BlockCodes& out) {
  const float d = F16ToFloat(Iq1mScaleBits(block));
  for (int g = 0; g < 8; ++g) {
    for (int r = 0; r < 4; ++r) {
      const int nibble = Nibble(block.qh[2 * g + r / 2], r % 2);
      const int index = block.qs[4 * g + r] | (nibble & 7) << 8;
      const int scale =
          (block.scales[g / 2] >> (6 * (g % 2) + 3 * (r / 2))) & 7;
      out.scale_f32[2 * g + r / 2] =
          d * static_cast<float>(2 * scale + 1) * 0.125F;
      PutShifted(kIq1Grid[index].data(), (nibble & 8) != 0,
                 out.codes + 32 * g + 8 * r);
    }
  }
}

void ReadBlock(const BlockTQ1_0& block, BlockCodes& out) {
  static constexpr int kPowers[5] = {1, 3, 9, 27, 81};
  const auto trit = [](std::uint8_t byte, int t) {
    const int rotated = (byte * kPowers[t]) & 255;
    return static_cast<std::uint8_t>((rotated * 3) >> 8);
  };
  const float d = F16ToFloat(block.d_f16);
  for (float& scale : out.scale_f32) scale = d;
  for (int t = 0; t < 5; ++t) {
    for (int m = 0; m < 32; ++m) {
      out.codes[32 * t + m] = trit(block.qs[m], t);
    }
    for (int m = 0; m < 16; ++m) {
      out.codes[160 + 16 * t + m] = trit(block.qs[32 + m], t);
    }
  }
  for (int t = 0; t < 4; ++t) {
    for (int m = 0; m < 4; ++m) {
      out.codes[240 + 4 * t + m] = trit(block.qh[m], t);
    }
  }
}

void ReadBlock(const BlockTQ2_0& block, BlockCodes& out) {
  const float d = F16ToFloat(block.d_f16);
  for (float& scale : out.scale_f32) scale = d;
  for (int i = 0; i < 256; ++i) {
    const int k = (i % 128) / 32;
    out.codes[i] = static_cast<std::uint8_t>(
        (block.qs[32 * (i / 128) + i % 32] >> (2 * k)) & 3);
  }
}

}  // namespace fucina
