#ifndef FUCINA_GGUF_GGUF_ERROR_H_
#define FUCINA_GGUF_GGUF_ERROR_H_

// What can be wrong with a model file, as one enumeration. A Status returned by
// GgufFile or GgufWriter carries its value; the text of the Status says which
// key or tensor, what was found and what was expected.

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "fucina/export.h"

namespace fucina {

enum class GgufError {
  kIo,                   // cannot be opened, read or mapped; not a regular file
  kTruncated,            // ends where something should follow
  kBadMagic,             // not a GGUF file
  kUnsupportedVersion,   // version other than 2 and 3
  kWrongEndian,          // written big-endian
  kCountLimit,           // more keys or tensors announced than bytes can hold
  kBadKey,               // empty, too long, or with control bytes
  kStringLimit,          // string longer than the file or the cap
  kArrayLimit,           // array longer than the file or the cap
  kNestedArray,          // array of arrays
  kBadValueType,         // unknown type number, or the wrong class for a key
  kBadBool,              // byte other than 0 and 1
  kDuplicateKey,         //
  kBadAlignment,         // general.alignment is no power of two in range
  kValueRange,           // integer outside what the key may hold
  kBadTensorName,        // empty, too long, or with a zero byte
  kDuplicateTensor,      // also across parts
  kBadNDims,             // number of dimensions outside 1 to 4
  kZeroDim,              //
  kDimOverflow,          // a dimension, their product or the bytes overflow
  kUnknownTensorType,    // number without meaning here
  kRemovedTensorType,    // format that no longer exists in files
  kRowNotBlockMultiple,  // row does not consist of whole blocks
  kOffsetUnaligned,      //
  kOffsetOutOfRange,     // tensor ends after the file does
  kOffsetOverflow,       // offset plus size overflow
  kTensorOverlap,        // two tensors share bytes
  kSplitMismatch,        // split keys disagree with the names of the parts
  kSplitMissingPart,     //
  kSplitCount,           // parts do not hold the announced number of tensors
  kSplitName,            // split file whose name does not say which part it is
};

// "bad_magic" for kBadMagic, and so on.
FUCINA_API absl::string_view Name(GgufError error);

// The value that `status` carries; nullopt for OK and for other errors.
FUCINA_API std::optional<GgufError> FindGgufError(const absl::Status& status);

}  // namespace fucina

#endif  // FUCINA_GGUF_GGUF_ERROR_H_
