# One interface target with the project's compile rules, linked PRIVATE by every
# target of ours and never exported: a third party chooses its own warnings.
add_library(fucina_warnings INTERFACE)
target_compile_options(fucina_warnings INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual
  -Wformat=2 -Wundef -Wvla -Wimplicit-fallthrough
  # GCC fuses a*b+c by default even with -std=c++20; fused multiply-add is
  # written where it is wanted, so that every level gives the same bits.
  -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlapping copies in std::string's operator+ (its bug 105651).
  target_compile_options(fucina_warnings INTERFACE -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(fucina_warnings INTERFACE -Wthread-safety)
endif()
if(FUCINA_WERROR)
  target_compile_options(fucina_warnings INTERFACE -Werror)
endif()
