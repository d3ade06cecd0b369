#ifndef FUCINA_TESTS_PARITY_PARITY_MODELS_H_
#define FUCINA_TESTS_PARITY_PARITY_MODELS_H_

// Small models, one or more for every weight format and family, whose logits
// llama.cpp was asked for. The files are made here, byte for byte the same on
// every machine, so that none has to be stored: the golden keeps a checksum.
//
// They are the tiny models of tests/tiny_models with rows of whole 256-blocks,
// and with the two keys that llama.cpp wants of a file without a vocabulary.
// Formats that have no encoder get random codes under a fixed scale.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tests/tiny_models/tiny_models.h"

namespace fucina::testing {

struct ParityModel {
  // As in the golden: architecture, a word for another shape, weights, with
  // dashes between.
  std::string name;
  TinyModelSpec spec;
  // Every matrix gets random blocks of this type; F32: as the spec says.
  DType random_blocks = DType::kF32;
};

std::vector<ParityModel> ParityModels();

// The name of the model's file.
std::string ParityFileName(const ParityModel& model);

// Writes the model to `path`, and a scratch file beside it meanwhile.
absl::Status WriteParityModel(const ParityModel& model, absl::string_view path);

}  // namespace fucina::testing

#endif  // FUCINA_TESTS_PARITY_PARITY_MODELS_H_
