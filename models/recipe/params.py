"""The flat float32 parameter file of train_dense.cc: names, GGUF names, growing, conversion.

usage: params.py grow IN.f32 LAYERS OUT.f32     spread LAYERS trained layers over six; the new ones start as identity
       params.py from-gguf IN.gguf OUT.f32
"""
import sys

import numpy as np

D, H, KV, E, F, V, LAYERS = 256, 4, 2, 64, 768, 4096, 6
SHAPES = [("attn_norm", (D,)), ("ffn_norm", (D,)), ("q_norm", (E,)), ("k_norm", (E,)), ("qkv", ((H + 2 * KV) * E, D)),
          ("out", (D, H * E)), ("gate_up", (2 * F, D)), ("down", (D, F))]
GGUF = {"attn_norm": "attn_norm", "ffn_norm": "ffn_norm", "q_norm": "attn_q_norm", "k_norm": "attn_k_norm",
        "out": "attn_output", "down": "ffn_down"}


def load(path, layers=LAYERS):
    flat, at, out = np.fromfile(path, "<f4"), 0, {}

    def take(name, shape):
        nonlocal at
        n = int(np.prod(shape))
        out[name] = flat[at:at + n].reshape(shape)
        at += n

    take("embd", (V, D))
    for i in range(layers):
        for n, s in SHAPES:
            take(f"layers.{i}.{n}", s)
    take("final_norm", (D,))
    assert at == len(flat), (at, len(flat))
    return out


def save(path, p):
    np.concatenate([a.ravel() for a in p.values()]).astype("<f4").tofile(path)


def to_gguf(p):
    """(GGUF name, array) in file order"""
    yield "token_embd.weight", p["embd"]
    for i in range(LAYERS):
        a, b = {n: p[f"layers.{i}.{n}"] for n, _ in SHAPES}, f"blk.{i}."
        for n in ("attn_norm", "q_norm", "k_norm", "ffn_norm"):
            yield b + GGUF[n] + ".weight", a[n]
        q, k = H * E, KV * E
        yield b + "attn_q.weight", a["qkv"][:q]
        yield b + "attn_k.weight", a["qkv"][q:q + k]
        yield b + "attn_v.weight", a["qkv"][q + k:]
        yield b + "attn_output.weight", a["out"]
        yield b + "ffn_gate.weight", a["gate_up"][:F]
        yield b + "ffn_up.weight", a["gate_up"][F:]
        yield b + "ffn_down.weight", a["down"]
    yield "output_norm.weight", p["final_norm"]


def from_gguf(t):
    p = {"embd": t["token_embd.weight"]}
    for i in range(LAYERS):
        b = f"blk.{i}."
        for n, _ in SHAPES:
            if n == "qkv":
                a = np.concatenate([t[b + f"attn_{x}.weight"] for x in "qkv"])
            elif n == "gate_up":
                a = np.concatenate([t[b + "ffn_gate.weight"], t[b + "ffn_up.weight"]])
            else:
                a = t[b + GGUF[n] + ".weight"]
            p[f"layers.{i}.{n}"] = a
    p["final_norm"] = t["output_norm.weight"]
    return p


def grow(p, layers):
    rng, out, step = np.random.default_rng(3), {"embd": p["embd"]}, LAYERS // layers
    for i in range(LAYERS):
        for n, s in SHAPES:
            if i % step == 0:
                a = p[f"layers.{i // step}.{n}"]
            elif n.endswith("norm"):
                a = np.ones(s, np.float32)
            elif n in ("out", "down"):
                a = np.zeros(s, np.float32)
            else:
                a = rng.normal(0, 0.04, s).astype(np.float32)
            out[f"layers.{i}.{n}"] = a
    out["final_norm"] = p["final_norm"]
    return out


if __name__ == "__main__":
    if sys.argv[1] == "grow":
        save(sys.argv[4], grow(load(sys.argv[2], int(sys.argv[3])), int(sys.argv[3])))
    else:
        import gguf_io
        save(sys.argv[3], from_gguf(gguf_io.read(sys.argv[2])[1]))
