// Writes the model files that tests/oracles/numpy_forward.py reads:
//   write_oracle_models FOLDER

#include <cstdio>
#include <string>

#include "tests/core/runner/oracle_models.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_oracle_models FOLDER\n");
    return 2;
  }
  for (const auto& model : fucina::testing::OracleModels()) {
    const std::string path = std::string(argv[1]) + "/" + model.name + ".gguf";
    const absl::Status status =
        fucina::testing::WriteTinyModel(model.spec, path);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return 1;
    }
  }
  return 0;
}
