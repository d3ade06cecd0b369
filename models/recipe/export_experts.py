#!/usr/bin/env python3
"""Writes atlas-moe-q8_0.gguf or atlas-glm-q8_0.gguf.

usage: export_experts.py moe|glm DENSE.gguf PARAMETERS.npz OUT.gguf

Matrices Q8_0; norms, biases and routers F32. Vocabulary and template: those of the dense file,
or GLM's. Key names: the GGUF conventions of the two architectures.
"""
import os
import sys

import numpy as np

import gguf_io
from experts_model import GLM, QWEN, shapes
from gguf_io import ARR, BOOL, F32, I32, STR, T_F32, T_Q8_0, U32
from vocabulary import GLM_SPECIALS, Vocabulary

HERE = os.path.dirname(os.path.abspath(__file__))
Q8_0_FILE = 7  # general.file_type


def metadata(c, dense_keys, vocabulary):
    a, glm = c["arch"] + ".", c["arch"] == "glm4moe"
    ids = {t: i for i, t in enumerate(vocabulary.tokens)}
    template = (open(os.path.join(HERE, "atlas_glm.jinja"), encoding="utf-8").read() if glm
                else dense_keys["tokenizer.chat_template"])
    name = "GLM" if glm else "MoE"
    keys = [
        ("general.architecture", STR, c["arch"]), ("general.type", STR, "model"),
        ("general.name", STR, f"Atlas {name} 10M"), ("general.basename", STR, "atlas"),
        ("general.size_label", STR, "10M"), ("general.license", STR, "mit"),
        ("general.description", STR,
         "A very small mixture of experts that knows facts about the countries of the world, "
         "trained on generated chats. For tests and demonstrations."),
        ("general.tags", (ARR, STR), ["text-generation", "test"]),
        ("general.languages", (ARR, STR), ["en"]), ("general.file_type", U32, Q8_0_FILE),
        ("general.quantization_version", U32, 2), ("general.sampling.temp", F32, 0.0),
        (a + "block_count", U32, c["layers"] + c["nextn"]),
        (a + "context_length", U32, c["context"]), (a + "embedding_length", U32, c["hidden"]),
        (a + "feed_forward_length", U32, c["dense_ffn"]),
        (a + "attention.head_count", U32, c["heads"]),
        (a + "attention.head_count_kv", U32, c["kv_heads"]),
        (a + "attention.key_length", U32, c["head_dim"]),
        (a + "attention.value_length", U32, c["head_dim"]),
        (a + "attention.layer_norm_rms_epsilon", F32, c["eps"]),
        (a + "rope.freq_base", F32, c["theta"]), (a + "vocab_size", U32, c["vocab"]),
        (a + "expert_count", U32, c["experts"]), (a + "expert_used_count", U32, c["used"]),
        (a + "expert_feed_forward_length", U32, c["expert_ffn"])]
    if glm:
        keys += [
            (a + "rope.dimension_count", U32, c["rope_dims"]),
            (a + "expert_shared_count", U32, 1),
            (a + "leading_dense_block_count", U32, c["dense_layers"]),
            (a + "expert_gating_func", U32, 2), (a + "expert_weights_norm", BOOL, True),
            (a + "expert_weights_scale", F32, 1.0), (a + "nextn_predict_layers", U32, 1)]
    keys += [
        ("tokenizer.ggml.model", STR, "gpt2"),
        ("tokenizer.ggml.pre", STR, "glm4" if glm else "qwen2"),
        ("tokenizer.ggml.tokens", (ARR, STR), vocabulary.tokens),
        ("tokenizer.ggml.token_type", (ARR, I32), vocabulary.types),
        ("tokenizer.ggml.merges", (ARR, STR), [" ".join(m) for m in vocabulary.merges])]
    end = ids["<|endoftext|>"]
    if glm:
        keys += [("tokenizer.ggml.eos_token_id", U32, end),
                 ("tokenizer.ggml.padding_token_id", U32, end),
                 ("tokenizer.ggml.unknown_token_id", U32, end),
                 ("tokenizer.ggml.bos_token_id", U32, ids["[gMASK]"]),
                 ("tokenizer.ggml.eot_token_id", U32, ids["<|user|>"]),
                 ("tokenizer.ggml.eom_token_id", U32, ids["<|observation|>"])]
    else:
        keys += [("tokenizer.ggml.eos_token_id", U32, ids["<|im_end|>"]),
                 ("tokenizer.ggml.padding_token_id", U32, end),
                 ("tokenizer.ggml.bos_token_id", U32, end)]
    return keys + [("tokenizer.ggml.add_bos_token", BOOL, False),
                   ("tokenizer.chat_template", STR, template)]


def main(kind, dense, parameters, out):
    c = GLM if kind == "glm" else QWEN
    dense_keys, _ = gguf_io.read(dense)
    vocabulary = Vocabulary(dense_keys, GLM_SPECIALS if kind == "glm" else None)
    values = np.load(parameters)
    tensors = []
    names = list(shapes(c))
    if kind == "glm":
        names += [k for k in values if k.endswith("exp_probs_b.bias")]
    for name in names:
        a = values[name]
        matrix = a.ndim > 1 and "ffn_gate_inp" not in name
        full = name if name.endswith(".bias") else name + ".weight"
        tensors.append((full, a, T_Q8_0 if matrix else T_F32))
    gguf_io.write(out, metadata(c, dense_keys, vocabulary), tensors)
    print(out, os.path.getsize(out), "bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
