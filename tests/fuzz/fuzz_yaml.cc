// Fuzz entry of the pipeline reader: any text is read or refused, and what was
// read dumps to a text that reads back to the same configuration.

#include <cstddef>
#include <cstdint>
#include <string>

#include "fucina/diag/check.h"
#include "registry/pipeline_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  fucina::PipelineConfig config;
  if (!fucina::ParsePipeline(text, "fuzz.yaml", "/base", config).ok()) {
    return 0;
  }
  const std::string dump = fucina::DumpPipeline(config);
  fucina::PipelineConfig back;
  const absl::Status status =
      fucina::ParsePipeline(dump, "dump.yaml", "/base", back);
  FUCINA_CHECK(status.ok()) << status.ToString() << "\n" << dump;
  FUCINA_CHECK(back == config) << dump;
  return 0;
}
