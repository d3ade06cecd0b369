#ifndef LLAMA_FAMILY_LLAMA_FAMILY_H_
#define LLAMA_FAMILY_LLAMA_FAMILY_H_

// Two decoder families that fucina's descriptor runner can compute: Llama and
// Qwen2. Copy this folder and change what differs for yours.

#include "fucina/plugin/registrar.h"

namespace llama_family {

// Descriptors with static storage.
const fucina::Family& Llama();
const fucina::Family& Qwen2();

}  // namespace llama_family

#endif  // LLAMA_FAMILY_LLAMA_FAMILY_H_
