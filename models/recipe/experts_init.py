"""A mixture of experts to begin training with, cut from the trained dense model.

Attention, norms and embedding are copied. The dense feed-forward is cut into slices that are
dealt to the experts with a little noise; `down` grows so that a layer puts out about as much
as before although only two experts and not all slices speak.
"""
import numpy as np

from experts_model import GLM, layer_shapes, shapes
from vocabulary import GLM_STARTS_FROM


def partial_rotation(c):
    """Where the elements of a head go when only its first half rotates: of the pairs (i, i +
    head_dim / 2) those with even i keep their frequency, the others stop rotating."""
    d, r = c["head_dim"], c["rope_dims"]
    pairs = d // 2
    if r == d:
        return np.arange(d)
    kept = np.arange(0, pairs, d // r)
    rest = np.setdiff1d(np.arange(pairs), kept)
    return np.concatenate([kept, kept + pairs, rest, rest + pairs])


def from_dense(c, t, vocabulary, dense_keys, seed=1):
    """Values for every name of shapes(c).  t: tensors of the dense file by GGUF name."""
    rng = np.random.default_rng(seed)
    order = partial_rotation(c)
    out = {}

    def heads(matrix):
        rows = matrix.reshape(-1, c["head_dim"], matrix.shape[-1])
        return rows[:, order].reshape(matrix.shape)

    def cut(source, part, width):
        """Rows [part * width, ...) of a matrix, around its end."""
        index = (np.arange(width) + part * width) % len(source)
        return source[index]

    for name, shape in shapes(c).items():
        if not name.startswith("blk."):
            out[name] = t[name + ".weight"].copy()
    if c is GLM:
        rows, old = out["token_embd"], dense_keys["tokenizer.ggml.tokens"]
        for i, token in enumerate(vocabulary.tokens):
            if i < 4056 or vocabulary.types[i] == 5:
                continue
            start = GLM_STARTS_FROM.get(token)
            rows[i] = (t["token_embd.weight"][old.index(start)] if start
                       else rng.normal(0, 0.05, rows.shape[1]))
    for layer in range(c["layers"] + c["nextn"]):
        source = f"blk.{min(layer, c['layers'] - 1)}."

        def old(name):
            return t[source + name + ".weight"]
        for name, shape in layer_shapes(c, layer).items():
            n, f = c["experts"], c["expert_ffn"]
            if name.endswith(".bias"):
                value = np.zeros(shape)
            elif name in ("attn_q", "attn_k"):
                value = heads(old(name))
            elif name in ("attn_q_norm", "attn_k_norm"):
                value = old(name)[order]
            elif name == "post_attention_norm":
                value = old("ffn_norm")
            elif name == "ffn_gate_inp":
                value = rng.normal(0, 0.02, shape)
            elif name in ("ffn_gate_exps", "ffn_up_exps"):
                dense = old(name.removesuffix("_exps"))
                value = np.stack([cut(dense, e, f) for e in range(n)])
            elif name == "ffn_down_exps":
                value = 3 * np.stack([cut(old("ffn_down").T, e, f).T for e in range(n)])
            elif name in ("ffn_gate_shexp", "ffn_up_shexp"):
                value = old(name.removesuffix("_shexp"))[:c["shared_ffn"]]
            elif name == "ffn_down_shexp":
                value = old("ffn_down")[:, :c["shared_ffn"]]
            else:
                value = old(name)
            if name.endswith("_exps"):
                value = value * (1 + rng.normal(0, 0.02, value.shape))
            out[f"blk.{layer}.{name}"] = value
    if c["nextn"]:
        block, h = f"blk.{c['layers']}.nextn.", c["hidden"]
        # The next token's embedding passes, and half as much of the hidden row.
        out[block + "eh_proj"] = np.concatenate([np.eye(h), 0.5 * np.eye(h)], 1)
        for name in ("enorm", "hnorm"):
            out[block + name] = np.full(h, 0.1)
        out[block + "shared_head_norm"] = t["output_norm.weight"].copy()
    for name, shape in shapes(c).items():
        assert out[name].shape == shape, (name, out[name].shape, shape)
        out[name] = np.ascontiguousarray(out[name], np.float32)
    return out
