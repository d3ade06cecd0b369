#include "core/gguf/wrong_file.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace fucina::gguf {
namespace {

struct Magic {
  absl::string_view bytes;
  absl::string_view guess;
};

constexpr absl::string_view kOldGgml =
    "is an old GGML file from before GGUF; download or convert the model again";

const std::array kMagics = {
    Magic{"version https://git-lfs",
          "is a large-file pointer left by version control, not the model; "
          "fetch the real file (git lfs pull) or download it"},
    Magic{"version https://",
          "is a large-file pointer left by version control, not the model; "
          "download the real file"},
    Magic{"PK",
          "looks like a ZIP archive or a PyTorch checkpoint; unpack it or "
          "convert it to GGUF"},
    Magic{"\x1f\x8b", "looks like a gzip archive; unpack it first"},
    Magic{"\x28\xb5\x2f\xfd",
          "looks like a Zstandard archive; unpack it first"},
    Magic{"\xfd"
          "7zXZ",
          "looks like an XZ archive; unpack it first"},
    Magic{"7z\xbc\xaf", "looks like a 7z archive; unpack it first"},
    Magic{"\x80\x02", "looks like a Python pickle; convert it to GGUF"},
    // The magics are 32-bit numbers, so the letters stand reversed in files.
    Magic{"lmgg", kOldGgml},
    Magic{"fmgg", kOldGgml},
    Magic{"tjgg", kOldGgml},
    Magic{"algg", "is a GGLA adapter from before GGUF; convert it again"},
    Magic{"GGML", kOldGgml},
    Magic{"ggml", kOldGgml},
    Magic{"ggmf", kOldGgml},
    Magic{"ggjt", kOldGgml},
    Magic{"FUGG",
          "is a GGUF file with reversed magic (big-endian or wrong byte "
          "order); get the little-endian file"},
    Magic{"\x7f"
          "ELF",
          "is a program or library, not a model"},
};

bool LooksLikeSafetensors(absl::string_view head) {
  if (head.size() < 9 || head[8] != '{') return false;
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, head.data(), sizeof(header_bytes));
  return header_bytes >= 2 && header_bytes < (std::uint64_t{1} << 32);
}

bool LooksLikeText(absl::string_view head) {
  if (head.empty()) return false;
  for (const char c : head) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 && !absl::ascii_isspace(byte)) return false;
  }
  return true;
}

}  // namespace

std::string GuessWrongFile(absl::string_view head) {
  head = head.substr(0, 512);
  for (const Magic& magic : kMagics) {
    if (absl::StartsWith(head, magic.bytes)) return std::string(magic.guess);
  }
  if (LooksLikeSafetensors(head)) {
    return "looks like a safetensors file; convert it to GGUF";
  }
  bool all_zero = !head.empty();
  for (const char c : head) all_zero = all_zero && c == '\0';
  if (all_zero) {
    return "starts with zero bytes; the download is probably incomplete";
  }
  if (LooksLikeText(head)) {
    absl::string_view text = absl::StripLeadingAsciiWhitespace(head);
    if (absl::StartsWith(text, "\xef\xbb\xbf")) text.remove_prefix(3);
    if (absl::StartsWith(text, "<")) {
      return "looks like a web page (an error page saved by a download?); "
             "download the file itself";
    }
    if (absl::StartsWith(text, "{") || absl::StartsWith(text, "[")) {
      return "looks like JSON text (a configuration or an error message?), "
             "not a model";
    }
    return "looks like a text file, not a model";
  }
  return "";
}

}  // namespace fucina::gguf
