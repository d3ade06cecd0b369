#!/usr/bin/env python3
"""Writes atlas-6m-f32.gguf and atlas-6m-q8_0.gguf.

usage: export_dense.py params.f32 tokenizer.json OUT_DIR

Matrices F32 or Q8_0, vectors F32.
"""
import json
import os
import sys

import params as P
from bpe import SPECIALS
from gguf_io import ARR, BOOL, F32, I32, STR, T_F32, T_Q8_0, U32, write

HERE = os.path.dirname(os.path.abspath(__file__))


def keys(tok, file_type):
    ids = {t: i for i, t in enumerate(tok["tokens"])}
    a = "qwen3."
    return [
        ("general.architecture", STR, "qwen3"), ("general.type", STR, "model"), ("general.name", STR, "Atlas 6M"),
        ("general.basename", STR, "atlas"), ("general.size_label", STR, "6M"), ("general.license", STR, "mit"),
        ("general.description", STR, "A very small language model that knows facts about the countries of the world, "
                                     "trained from scratch on generated chats. For tests and demonstrations."),
        ("general.tags", (ARR, STR), ["text-generation", "test"]), ("general.languages", (ARR, STR), ["en"]),
        ("general.file_type", U32, file_type), ("general.quantization_version", U32, 2),
        ("general.sampling.temp", F32, 0.0),
        (a + "block_count", U32, P.LAYERS), (a + "context_length", U32, 2048), (a + "embedding_length", U32, P.D),
        (a + "feed_forward_length", U32, P.F), (a + "attention.head_count", U32, P.H),
        (a + "attention.head_count_kv", U32, P.KV), (a + "attention.key_length", U32, P.E),
        (a + "attention.value_length", U32, P.E), (a + "attention.layer_norm_rms_epsilon", F32, 1e-6),
        (a + "rope.freq_base", F32, 1e6), (a + "vocab_size", U32, P.V),
        ("tokenizer.ggml.model", STR, "gpt2"), ("tokenizer.ggml.pre", STR, "qwen2"),
        ("tokenizer.ggml.tokens", (ARR, STR), tok["tokens"]), ("tokenizer.ggml.token_type", (ARR, I32), tok["types"]),
        ("tokenizer.ggml.merges", (ARR, STR), [" ".join(m) for m in tok["merges"]]),
        ("tokenizer.ggml.eos_token_id", U32, ids["<|im_end|>"]),
        ("tokenizer.ggml.padding_token_id", U32, ids["<|endoftext|>"]),
        ("tokenizer.ggml.bos_token_id", U32, ids["<|endoftext|>"]), ("tokenizer.ggml.add_bos_token", BOOL, False),
        ("tokenizer.chat_template", STR, open(os.path.join(HERE, "atlas.jinja"), encoding="utf-8").read()),
    ]


def main(params, tokenizer, out):
    p, tok = P.load(params), json.load(open(tokenizer, encoding="utf-8"))
    assert len(SPECIALS) == sum(t in (3, 4) for t in tok["types"])
    for name, matrix, file_type in (("f32", T_F32, 0), ("q8_0", T_Q8_0, 7)):
        tensors = [(n, a, matrix if a.ndim == 2 else T_F32) for n, a in P.to_gguf(p)]
        path = os.path.join(out, f"atlas-6m-{name}.gguf")
        write(path, keys(tok, file_type), tensors)
        print(path, os.path.getsize(path), "bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
