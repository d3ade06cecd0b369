#ifndef FUCINA_CORE_KERNELS_PACK_BLOCKS_H_
#define FUCINA_CORE_KERNELS_PACK_BLOCKS_H_

// What packing needs of one block of a file: plain codes and scales.

#include <cstdint>

#include "fucina/tensor/blocks.h"

namespace fucina {

// One row's 32 or 256 values. Which fields count depends on the panel format.
struct BlockCodes {
  std::uint8_t codes[256];  // table indices, or values plus the offset
  std::uint16_t scale_f16;  // formats of 32
  std::uint16_t min_f16;
  float scale_f32[16];      // per 32, or per 16 where there are two halves
  std::uint8_t scales[16];  // byte scales, signed where the format says so
  std::uint8_t mins[16];
  std::uint16_t factor_f16;  // of the byte scales
  std::uint16_t min_factor_f16;
};

// pack.cc
void ReadBlock(const BlockQ4_0& block, BlockCodes& out);
void ReadBlock(const BlockQ4_1& block, BlockCodes& out);
void ReadBlock(const BlockQ5_0& block, BlockCodes& out);
void ReadBlock(const BlockQ5_1& block, BlockCodes& out);
void ReadBlock(const BlockQ8_0& block, BlockCodes& out);
void ReadBlock(const BlockQ2_K& block, BlockCodes& out);
void ReadBlock(const BlockQ3_K& block, BlockCodes& out);
void ReadBlock(const BlockQ4_K& block, BlockCodes& out);
void ReadBlock(const BlockQ5_K& block, BlockCodes& out);
void ReadBlock(const BlockQ6_K& block, BlockCodes& out);
void ReadBlock(const BlockIQ4_NL& block, BlockCodes& out);
void ReadBlock(const BlockIQ4_XS& block, BlockCodes& out);
void ReadBlock(const BlockMXFP4& block, BlockCodes& out);

// pack_blocks.cc: the lattices and the ternary formats have few distinct
// values, so four bits and a table hold them exactly.
void ReadBlock(const BlockIQ2_XXS& block, BlockCodes& out);
void ReadBlock(const BlockIQ2_XS& block, BlockCodes& out);
void ReadBlock(const BlockIQ2_S& block, BlockCodes& out);
void ReadBlock(const BlockIQ3_XXS& block, BlockCodes& out);
void ReadBlock(const BlockIQ3_S& block, BlockCodes& out);
void ReadBlock(const BlockIQ1_S& block, BlockCodes& out);
void ReadBlock(const BlockIQ1_M& block, BlockCodes& out);
void ReadBlock(const BlockTQ1_0& block, BlockCodes& out);
void ReadBlock(const BlockTQ2_0& block, BlockCodes& out);

// The values of the table indices above.
extern const std::int8_t kIq2Table[16];
extern const std::int8_t kIq3XxsTable[16];
extern const std::int8_t kIq3STable[16];
extern const std::int8_t kIq1Table[16];  // eighths
extern const std::int8_t kTernaryTable[16];

}  // namespace fucina

#endif  // FUCINA_CORE_KERNELS_PACK_BLOCKS_H_
