#!/usr/bin/env python3
"""Records llama.cpp's logits of a prompt's last token as goldens.

Usage:  record_logits.py --ids 1,2,3 --out GOLDENS.txt MODEL.gguf ...
        record_logits.py --ids 1,2,3 --dump MODEL.f32 MODEL.gguf

How the committed files were made, with the models of write_parity_models and
with 0.6B models of the Qwen3 shape and Gaussian weights of deviation
1/sqrt(row), iq4_xs quantized by llama-quantize from f16. The 0.6B files are too
large to keep; a golden names its file's size and checksum.
  record_logits.py --ids 5,61,2,33,17,254,9,100,77,180,3,3,42,128,200,31
      --out tests/goldens/llama_cpp/tiny.txt parity-*.gguf
  (the same ids)
      --out tests/goldens/llama_cpp/tiny_exact.txt parity-*-as-f32.gguf
  where the latter are llama.cpp's own decodings, but for the f32 files:
  llama-quantize --allow-requantize parity-X.gguf parity-X-as-f32.gguf F32
  record_logits.py --ids 17,7967,31755,71381,126845,46504,133644,84979,52152,35163,34012,48699,79224,125587,36145,114184
      --out tests/goldens/llama_cpp/qwen3-0.6b.txt qwen3-0.6b-*.gguf

Needs the package llama-cpp-python; the committed goldens were recorded with
0.3.36 (llama.cpp 0c1e57098), CPU only. Flash attention is off and the cache
is f32 unless told otherwise, so that what is compared is the weights'
arithmetic; llama.cpp still rounds activations to the weights' partner type.
"""
import argparse
import ctypes
import sys

import llama_cpp

import logit_golden

QUIET = llama_cpp.llama_log_callback(lambda level, text, data: None)
CACHE = {"f32": 0, "f16": 1}


def last_logits(model_path, ids, cache, threads):
    llama_cpp.llama_backend_init()
    llama_cpp.llama_log_set(QUIET, ctypes.c_void_p(0))
    params = llama_cpp.llama_model_default_params()
    params.n_gpu_layers = 0
    model = llama_cpp.llama_model_load_from_file(model_path.encode(), params)
    if not model:
        sys.exit("llama.cpp cannot load " + model_path)
    options = llama_cpp.llama_context_default_params()
    options.n_ctx = 256
    options.n_batch = options.n_ubatch = 256
    options.n_threads = options.n_threads_batch = threads
    options.type_k = options.type_v = CACHE[cache]
    options.flash_attn_type = 0
    context = llama_cpp.llama_init_from_model(model, options)
    tokens = (llama_cpp.llama_token * len(ids))(*ids)
    batch = llama_cpp.llama_batch_get_one(tokens, len(ids))
    if llama_cpp.llama_decode(context, batch) != 0:
        sys.exit("llama_decode failed")
    vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
    row = llama_cpp.llama_get_logits_ith(context, -1)
    logits = [row[i] for i in range(vocab)]
    llama_cpp.llama_free(context)
    llama_cpp.llama_model_free(model)
    return logits


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("models", nargs="+", metavar="MODEL.gguf")
    ap.add_argument("--ids", required=True, help="comma-separated token ids")
    ap.add_argument("--out", help="file of goldens to write")
    ap.add_argument("--dump", help="raw f32 logits to write, of one model")
    ap.add_argument("--cache", default="f32", choices=sorted(CACHE))
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--revision", default="0c1e57098",
                    help="of llama.cpp, written into the golden")
    a = ap.parse_args()
    ids = [int(w) for w in a.ids.split(",")]
    if a.dump and len(a.models) > 1:
        ap.error("--dump takes one model")
    out = open(a.out, "w") if a.out else None
    if out:
        out.write("# Made by tests/oracles/llama_cpp/record_logits.py\n")
    reference = ("llama.cpp %s (llama-cpp-python %s), cpu, %s cache, "
                 "no flash attention" % (a.revision, llama_cpp.__version__, a.cache))
    for model in a.models:
        logits = last_logits(model, ids, a.cache, a.threads)
        if out:
            logit_golden.write(out, model, reference, ids, logits)
        if a.dump:
            with open(a.dump, "wb") as f:
                f.write(bytes((ctypes.c_float * len(logits))(*logits)))
        print(model, " ".join("%d:%.5f" % (i, logits[i])
                              for i in logit_golden.ranked(logits, 5)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
