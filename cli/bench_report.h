#ifndef FUCINA_CLI_BENCH_REPORT_H_
#define FUCINA_CLI_BENCH_REPORT_H_

// `--bench-json FILE`: what was measured on what, for a script to read.

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "registry/pipeline.h"

namespace fucina::cli {

// Facts that a figure means nothing without: program, command line, model,
// machine. Facts this machine does not tell are null.
nlohmann::ordered_json RunFacts(const Pipeline& pipeline,
                                std::span<const std::string> args,
                                double load_seconds);

// Writes `figures` over `facts`, with the memory used so far, as one JSON
// object, as WriteOutputFile does, whose errors it returns.
absl::Status WriteBenchReport(const std::string& path,
                              const nlohmann::ordered_json& facts,
                              const nlohmann::ordered_json& figures);

}  // namespace fucina::cli

#endif  // FUCINA_CLI_BENCH_REPORT_H_
