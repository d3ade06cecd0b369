// Writes the parity models into a folder, for recording goldens with another
// engine: write_parity_models FOLDER

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/parity/parity_models.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  for (const auto& model : fucina::testing::ParityModels()) {
    const std::string path =
        absl::StrCat(argv[1], "/", fucina::testing::ParityFileName(model));
    const absl::Status status = fucina::testing::WriteParityModel(model, path);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return 1;
    }
    std::printf("%s\n", path.c_str());
  }
  return 0;
}
