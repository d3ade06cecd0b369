#!/usr/bin/env python3
"""Logits of a small GGUF model in float64: the golden values of core/runner.

Reads the file with a reader of its own and computes the forward pass of the
architectures qwen3, qwen3moe, glm4moe, llama and qwen2 with whole-array numpy
products in float64, with no cache and no rounding in between. Written from the
papers and the format document, not from the C++ code: what the two have in
common is only the file.

  numpy_forward.py MODEL.gguf GOLDEN.txt [--tokens N] [--seed S]

writes N seeded tokens and the logits after each of them, one line a row. Of a
model with a prediction layer it also writes GOLDEN.nextn.txt: the layer's logits
for the entries (token i + 1, hidden row i), one row less. The
model files come from `write_oracle_models` (tests/core/runner), whose seeds
make the same bytes everywhere; the golden states their CRC-32.

Goldens in tests/goldens/runner were made with this script (version 2),
Python 3.11.7 and numpy 2.4.6.
"""
import argparse
import struct
import sys
import zlib

import numpy as np

VERSION = 2

SCALARS = {0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4",
           7: "<u1", 10: "<u8", 11: "<i8", 12: "<f8"}


class Gguf:
    """Metadata and tensors (as float64, outermost dimension first)."""

    def __init__(self, path):
        self.data = open(path, "rb").read()
        self.at = 0
        assert self.take("<u4") == 0x46554747 and self.take("<u4") in (2, 3)
        num_tensors, num_keys = self.take("<u8"), self.take("<u8")
        self.keys = {}
        for _ in range(num_keys):
            name = self.text().decode()
            self.keys[name] = self.value(self.take("<u4"))
        infos = []
        for _ in range(num_tensors):
            name = self.text().decode()
            ne = [self.take("<u8") for _ in range(self.take("<u4"))]
            infos.append((name, ne, self.take("<u4"), self.take("<u8")))
        alignment = self.keys.get("general.alignment", 32)
        start = -(-self.at // alignment) * alignment
        self.tensors = {name: self.tensor(ne, kind, start + offset)
                        for name, ne, kind, offset in infos}

    def take(self, dtype):
        size = np.dtype(dtype).itemsize
        value = np.frombuffer(self.data, dtype, 1, self.at)[0]
        self.at += size
        return value.item()

    def text(self):
        length = self.take("<u8")
        self.at += length
        return self.data[self.at - length:self.at]

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            element, count = self.take("<u4"), self.take("<u8")
            return [self.value(element) for _ in range(count)]
        return self.take(SCALARS[kind])

    def tensor(self, ne, kind, at):
        count = int(np.prod(ne))
        if kind == 0:
            flat = np.frombuffer(self.data, "<f4", count, at).astype(np.float64)
        elif kind == 1:
            flat = np.frombuffer(self.data, "<f2", count, at).astype(np.float64)
        elif kind == 8:  # blocks of an f16 scale and 32 signed bytes
            block = np.dtype([("d", "<f2"), ("q", "i1", 32)])
            blocks = np.frombuffer(self.data, block, count // 32, at)
            flat = (blocks["d"].astype(np.float64)[:, None] *
                    blocks["q"]).reshape(-1)
        else:
            raise ValueError(f"tensor type {kind}")
        return flat.reshape(ne[::-1])


def rms_norm(x, weight, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def silu(x):
    return x / (1 + np.exp(-x))


def swiglu(x, gate, up, down):
    return (silu(x @ gate.T) * (x @ up.T)) @ down.T


class Model:
    def __init__(self, gguf):
        self.t = gguf.tensors
        self.arch = gguf.keys["general.architecture"].decode()
        self.keys = gguf.keys
        self.heads = self.key("attention.head_count")
        self.kv_heads = self.key("attention.head_count_kv", self.heads)
        self.head_dim = self.key("attention.key_length")
        self.eps = self.key("attention.layer_norm_rms_epsilon")
        self.layers = (self.key("block_count") -
                       self.key("nextn_predict_layers", 0))

    def key(self, name, default=None):
        value = self.keys.get(f"{self.arch}.{name}", default)
        assert value is not None, name
        return value

    def rotation(self, positions):
        """Cosines and sines [positions, rope_dims / 2]."""
        d = self.key("rope.dimension_count", self.head_dim)
        theta = self.key("rope.freq_base", 10000.0)
        i = np.arange(d // 2)
        kept = theta ** (-2.0 * i / d)
        if "rope_freqs.weight" in self.t:
            kept = kept / self.t["rope_freqs.weight"]
        magnitude = 1.0
        frequency = kept
        if self.keys.get(f"{self.arch}.rope.scaling.type") == b"yarn":
            factor = self.key("rope.scaling.factor")
            original = self.key("rope.scaling.original_context_length")

            def pair(rotations):
                return (d * np.log(original / (rotations * 2 * np.pi)) /
                        (2 * np.log(theta)))
            low = max(0, np.floor(pair(32)))
            high = min(d - 1, np.ceil(pair(1)))
            ramp = 1 - np.clip((i - low) / max(0.001, high - low), 0, 1)
            frequency = kept / factor * (1 - ramp) + kept * ramp
            magnitude = 1 + 0.1 * np.log(factor)
        angle = positions[:, None] * frequency[None, :]
        return magnitude * np.cos(angle), magnitude * np.sin(angle)

    def rotate(self, x, cos, sin):
        """x [rows, heads, head_dim]"""
        half = cos.shape[1]
        y = x.copy()
        if self.arch == "llama":  # neighbours
            first, second = slice(0, 2 * half, 2), slice(1, 2 * half, 2)
        else:
            first, second = slice(0, half), slice(half, 2 * half)
        c, s = cos[:, None, :], sin[:, None, :]
        y[..., first] = x[..., first] * c - x[..., second] * s
        y[..., second] = x[..., first] * s + x[..., second] * c
        return y

    def attention(self, x, block, cos, sin):
        t, rows = self.t, len(x)

        def heads(name, count):
            y = x @ t[f"{block}attn_{name}.weight"].T
            if f"{block}attn_{name}.bias" in t:
                y = y + t[f"{block}attn_{name}.bias"]
            y = y.reshape(rows, count, self.head_dim)
            if f"{block}attn_{name}_norm.weight" in t:
                y = rms_norm(y, t[f"{block}attn_{name}_norm.weight"], self.eps)
            return y
        q = self.rotate(heads("q", self.heads), cos, sin)
        k = self.rotate(heads("k", self.kv_heads), cos, sin)
        v = heads("v", self.kv_heads)
        group = self.heads // self.kv_heads
        k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(self.head_dim)
        scores[:, np.triu(np.ones((rows, rows), bool), 1)] = -np.inf
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        out = np.einsum("hqk,khd->qhd", scores, v).reshape(rows, -1)
        return out @ t[f"{block}attn_output.weight"].T

    def experts(self, x, block):
        t = self.t
        logits = x @ t[f"{block}ffn_gate_inp.weight"].T
        used = self.key("expert_used_count")
        if self.key("expert_gating_func", 1) == 2:
            p = 1 / (1 + np.exp(-logits))
        else:
            p = np.exp(logits - logits.max(-1, keepdims=True))
            p /= p.sum(-1, keepdims=True)
        chosen_by = p + t.get(f"{block}exp_probs_b.bias", 0.0)
        order = np.argsort(-chosen_by, axis=-1, kind="stable")[:, :used]
        weights = np.take_along_axis(p, order, -1)
        if self.arch == "qwen3moe" or self.key("expert_weights_norm", False):
            weights = weights / weights.sum(-1, keepdims=True)
        weights = weights * self.key("expert_weights_scale", 1.0)
        y = np.zeros_like(x)
        for row in range(len(x)):
            for expert, weight in zip(order[row], weights[row]):
                y[row] += weight * swiglu(
                    x[row], *(t[f"{block}ffn_{name}_exps.weight"][expert]
                              for name in ("gate", "up", "down")))
        if f"{block}ffn_gate_shexp.weight" in t:
            y += swiglu(x, *(t[f"{block}ffn_{name}_shexp.weight"]
                             for name in ("gate", "up", "down")))
        return y

    def layer(self, x, block):
        t = self.t
        cos, sin = self.rotation(np.arange(len(x), dtype=np.float64))
        h = rms_norm(x, t[f"{block}attn_norm.weight"], self.eps)
        x = x + self.attention(h, block, cos, sin)
        norm = "post_attention_norm" if self.arch == "glm4moe" else "ffn_norm"
        h = rms_norm(x, t[f"{block}{norm}.weight"], self.eps)
        if f"{block}ffn_gate_inp.weight" in t:
            return x + self.experts(h, block)
        return x + swiglu(h, *(t[f"{block}ffn_{name}.weight"]
                               for name in ("gate", "up", "down")))

    def hidden(self, tokens):
        """Rows [tokens, hidden] behind the last norm of the trunk."""
        x = self.t["token_embd.weight"][tokens]
        for layer in range(self.layers):
            x = self.layer(x, f"blk.{layer}.")
        return rms_norm(x, self.t["output_norm.weight"], self.eps)

    def logits(self, hidden):
        return hidden @ self.t.get("output.weight",
                                   self.t["token_embd.weight"]).T

    def predict(self, tokens, hidden):
        """Logits [tokens - 1, vocab] of the prediction layer."""
        t, block = self.t, f"blk.{self.layers}."

        def own(name, other):
            return t.get(f"{block}nextn.{name}.weight", other)
        embedding = own("embed_tokens", t["token_embd.weight"])
        e = rms_norm(embedding[tokens[1:]], own("enorm", None), self.eps)
        u = rms_norm(hidden[:-1], own("hnorm", None), self.eps)
        x = np.concatenate([e, u], -1) @ own("eh_proj", None).T
        x = self.layer(x, block)
        x = rms_norm(x, own("shared_head_norm", t["output_norm.weight"]),
                     self.eps)
        return x @ own("shared_head_head",
                       t.get("output.weight", t["token_embd.weight"])).T


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("golden")
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    gguf = Gguf(args.model)
    vocab = len(gguf.tensors["token_embd.weight"])
    tokens = np.random.default_rng(args.seed).integers(0, vocab, args.tokens)
    model = Model(gguf)
    hidden = model.hidden(tokens)

    def write(path, logits):
        with open(path, "w", encoding="ascii") as out:
            out.write(f"# numpy_forward.py {VERSION}, numpy {np.__version__}, "
                      f"Python {sys.version.split()[0]}\n")
            out.write(f"{zlib.crc32(gguf.data):08x} {len(tokens)} {vocab}\n")
            out.write(" ".join(map(str, tokens)) + "\n")
            for row in logits:
                out.write(" ".join(f"{value:.8g}" for value in row) + "\n")
    write(args.golden, model.logits(hidden))
    if f"blk.{model.layers}.nextn.eh_proj.weight" in model.t:
        write(args.golden.removesuffix(".txt") + ".nextn.txt",
              model.predict(tokens, hidden))


if __name__ == "__main__":
    main()
