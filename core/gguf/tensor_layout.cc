#include "core/gguf/tensor_layout.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/gguf/gguf_status.h"
#include "fucina/diag/printable.h"
#include "fucina/tensor/dtype.h"

namespace fucina::gguf {
namespace {

// No model file is larger; a tensor that claims to end later lies.
constexpr std::uint64_t kPlausibleBytes = std::uint64_t{1} << 44;
constexpr std::uint64_t kMaxSize = std::numeric_limits<std::int64_t>::max();

std::string Dims(const std::uint64_t* ne, int rank) {
  std::string text = "{";
  for (int i = 0; i < rank; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", ne[i]);
  }
  return absl::StrCat(text, "}");
}

// Offsets follow one another without gaps, each padded: what writers do.
bool IsCanonical(std::span<const Placement> placements,
                 std::uint64_t alignment) {
  const std::uint64_t limit = kMaxSize - alignment;
  std::uint64_t expected = 0;
  for (const Placement& placement : placements) {
    if (placement.offset != expected) return false;
    if (placement.size_bytes > limit) return false;
    if (expected > limit - placement.size_bytes) return false;
    expected = PadTo(expected + placement.size_bytes, alignment);
  }
  return true;
}

}  // namespace

absl::Status CheckDims(absl::string_view name, const std::uint64_t* ne,
                       int rank) {
  std::uint64_t product = 1;
  for (int i = 0; i < rank; ++i) {
    if (ne[i] == 0) {
      return BadFile(GgufError::kZeroDim, "tensor '", Printable(name),
                     "': dimension ", i, " is 0, expected at least 1");
    }
    if (ne[i] > kMaxSize) {
      return BadFile(GgufError::kDimOverflow, "tensor '", Printable(name),
                     "': dimension ", i, " is ", ne[i],
                     ", expected less than 2^63");
    }
    if (product > kMaxSize / ne[i]) {
      return BadFile(GgufError::kDimOverflow, "tensor '", Printable(name),
                     "': dimensions ", Dims(ne, rank),
                     " have 2^63 or more elements");
    }
    product *= ne[i];
  }
  return absl::OkStatus();
}

absl::StatusOr<std::uint64_t> TensorBytes(absl::string_view name, DType dtype,
                                          const std::uint64_t* ne) {
  const DTypeTraits& traits = Traits(dtype);
  const auto block_size = static_cast<std::uint64_t>(traits.block_size);
  const auto block_bytes = static_cast<std::uint64_t>(traits.block_bytes);
  if (ne[0] % block_size != 0) {
    return BadFile(GgufError::kRowNotBlockMultiple, "tensor '", Printable(name),
                   "': rows of ", ne[0], " elements, expected a multiple of ",
                   block_size, " for type ", traits.name);
  }
  const std::uint64_t blocks = ne[0] / block_size * ne[1] * ne[2] * ne[3];
  if (blocks > kMaxSize / block_bytes) {
    return BadFile(GgufError::kDimOverflow, "tensor '", Printable(name),
                   "': dimensions ", Dims(ne, kMaxDims), " of type ",
                   traits.name, " have 2^63 or more bytes");
  }
  return blocks * block_bytes;
}

absl::Status CheckLayout(std::span<const Placement> placements,
                         std::uint64_t alignment, std::uint64_t data_bytes,
                         std::vector<std::string>* notes) {
  std::uint64_t end = 0;  // of the last byte that some tensor needs
  for (const Placement& placement : placements) {
    if (placement.offset % alignment != 0) {
      return BadFile(GgufError::kOffsetUnaligned, "tensor '",
                     Printable(placement.name), "': offset ", placement.offset,
                     " is not a multiple of the alignment ", alignment);
    }
    if (placement.size_bytes >
        std::numeric_limits<std::uint64_t>::max() - placement.offset) {
      return BadFile(GgufError::kOffsetOverflow, "tensor '",
                     Printable(placement.name), "': offset ", placement.offset,
                     " plus size ", placement.size_bytes,
                     " does not fit 64 bits");
    }
    end = std::max(end, placement.offset + placement.size_bytes);
  }

  const bool canonical = IsCanonical(placements, alignment);
  if (end > data_bytes) {
    const auto past_end = std::find_if(
        placements.begin(), placements.end(), [&](const Placement& placement) {
          return placement.offset > data_bytes ||
                 placement.size_bytes > data_bytes - placement.offset;
        });
    // Only a regular layout makes the missing bytes a fact and not a guess.
    std::string reason = "the file is damaged";
    if (end <= kPlausibleBytes) {
      const std::uint64_t missing = end - data_bytes;
      reason = canonical
                   ? absl::StrCat(missing,
                                  " bytes are missing at the end of the file; "
                                  "the download is probably incomplete")
                   : absl::StrCat(
                         reason, ", or ", missing,
                         " bytes are missing at its end because the download "
                         "is incomplete");
    }
    return BadFile(GgufError::kOffsetOutOfRange, "tensor '",
                   Printable(past_end->name), "': offset ", past_end->offset,
                   " plus size ", past_end->size_bytes, " is past the ",
                   data_bytes, " bytes of the data section; ", reason);
  }

  std::vector<std::size_t> order(placements.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return placements[a].offset != placements[b].offset
               ? placements[a].offset < placements[b].offset
               : a < b;
  });
  std::uint64_t num_gaps = 0;
  std::uint64_t num_moved = 0;
  std::uint64_t gap_bytes = 0;
  std::uint64_t next_free = 0;  // end of the tensor before, unpadded
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Placement& placement = placements[order[i]];
    if (order[i] != i) ++num_moved;
    if (placement.offset < next_free) {
      const Placement& before = placements[order[i - 1]];
      return BadFile(GgufError::kTensorOverlap, "tensors '",
                     Printable(before.name), "' and '",
                     Printable(placement.name), "' share bytes: offset ",
                     before.offset, " plus size ", before.size_bytes,
                     " is past offset ", placement.offset);
    }
    const std::uint64_t padded = PadTo(next_free, alignment);
    if (placement.offset > padded) {
      ++num_gaps;
      gap_bytes += placement.offset - padded;
    }
    next_free = placement.offset + placement.size_bytes;
  }
  if (num_moved > 0) {
    notes->push_back(absl::StrCat(
        "tensors that lie in another order than the directory: ", num_moved));
  }
  if (num_gaps > 0) {
    notes->push_back(absl::StrCat("gaps between tensors: ", num_gaps, " (",
                                  gap_bytes, " bytes)"));
  }
  const std::uint64_t padded_end = PadTo(next_free, alignment);
  if (data_bytes > padded_end) {
    notes->push_back(absl::StrCat("unused bytes after the last tensor: ",
                                  data_bytes - padded_end));
  }
  return absl::OkStatus();
}

}  // namespace fucina::gguf
