#ifndef FUCINA_CORE_KERNELS_LATTICE_H_
#define FUCINA_CORE_KERNELS_LATTICE_H_

// The grids of the IQ1, IQ2 and IQ3 formats, expanded to one byte per element,
// and the sign codes. Tables are constants, laid out so that a kernel can load
// one entry as a 32-bit or 64-bit word.
// Source: the tables of ggml's IQ formats, which every such file relies on.

#include <array>
#include <bit>
#include <cstdint>

namespace fucina {

using Grid8 = std::array<std::int8_t, 8>;
using Grid4 = std::array<std::int8_t, 4>;

extern const std::array<Grid8, 256> kIq2XxsGrid;
extern const std::array<Grid8, 512> kIq2XsGrid;
extern const std::array<Grid8, 1024> kIq2SGrid;
extern const std::array<Grid4, 256> kIq3XxsGrid;
extern const std::array<Grid4, 512> kIq3SGrid;
extern const std::array<Grid8, 2048> kIq1Grid;  // IQ1_S and IQ1_M: -1, 0, 1

// The sign byte of a seven-bit code: bit j set makes element j negative, and
// the eighth bit makes the number of negative elements even.
inline int SignByte(std::uint32_t code) {
  return static_cast<int>(code | (std::popcount(code) & 1u) << 7);
}

}  // namespace fucina

#endif  // FUCINA_CORE_KERNELS_LATTICE_H_
