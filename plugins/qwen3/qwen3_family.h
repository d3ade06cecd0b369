#ifndef FUCINA_PLUGINS_QWEN3_QWEN3_FAMILY_H_
#define FUCINA_PLUGINS_QWEN3_QWEN3_FAMILY_H_

// What is particular to Qwen3: two architectures, dense (qwen3) and mixture of
// experts (qwen3moe), both said as data and run by the descriptor runner.
// Source: Qwen3 technical report, arXiv 2505.09388, and its published
// configurations.

#include "fucina/plugin/registrar.h"

namespace fucina::qwen3 {

// Descriptors with static storage.
const Family& DenseFamily();
const Family& ExpertsFamily();

}  // namespace fucina::qwen3

#endif  // FUCINA_PLUGINS_QWEN3_QWEN3_FAMILY_H_
