"""The architectures qwen3moe and glm4moe in PyTorch, float32, for training.

All experts are computed for every token and the router's weights mask them: at eight small
experts that costs less than gathering rows. The prediction layer of glm4moe (DeepSeek-V3
technical report, arXiv 2412.19437, section 2.2) is one more layer over the embedding of the
next token and the hidden row behind the last norm.

Names of parameters are GGUF names without ".weight"; experts are [experts, out, in].
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

QWEN = dict(arch="qwen3moe", vocab=4096, hidden=256, layers=6, heads=4, kv_heads=2, head_dim=64,
            rope_dims=64, theta=1e6, eps=1e-6, experts=8, used=2, expert_ffn=192, shared_ffn=0,
            dense_layers=0, dense_ffn=768, bias=False, nextn=False, context=2048)
GLM = dict(QWEN, arch="glm4moe", rope_dims=32, eps=1e-5, expert_ffn=160, shared_ffn=160,
           dense_layers=1, bias=True, nextn=True)


def norm(x, gain, eps):
    """x [..., n] / root mean square * gain [n]"""
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * gain


def swiglu(x, gate, up, down):
    return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)


def layer_shapes(c, layer):
    """{name: shape} of one layer, without its block prefix."""
    h, e = c["hidden"], c["head_dim"]
    q, kv = c["heads"] * e, c["kv_heads"] * e
    shapes = {"attn_norm": (h,), "attn_q": (q, h), "attn_k": (kv, h), "attn_v": (kv, h),
              "attn_q_norm": (e,), "attn_k_norm": (e,), "attn_output": (h, q)}
    if c["bias"]:
        shapes |= {"attn_q.bias": (q,), "attn_k.bias": (kv,), "attn_v.bias": (kv,)}
    shapes["post_attention_norm" if c["arch"] == "glm4moe" else "ffn_norm"] = (h,)
    if layer < c["dense_layers"]:
        f = c["dense_ffn"]
        return shapes | {"ffn_gate": (f, h), "ffn_up": (f, h), "ffn_down": (h, f)}
    n, f, s = c["experts"], c["expert_ffn"], c["shared_ffn"]
    shapes |= {"ffn_gate_inp": (n, h), "ffn_gate_exps": (n, f, h), "ffn_up_exps": (n, f, h),
               "ffn_down_exps": (n, h, f)}
    if s:
        shapes |= {"ffn_gate_shexp": (s, h), "ffn_up_shexp": (s, h), "ffn_down_shexp": (h, s)}
    return shapes


def shapes(c):
    h = c["hidden"]
    out = {"token_embd": (c["vocab"], h), "output_norm": (h,)}
    for layer in range(c["layers"] + c["nextn"]):
        out |= {f"blk.{layer}.{k}": v for k, v in layer_shapes(c, layer).items()}
    if c["nextn"]:
        block = f"blk.{c['layers']}.nextn."
        out |= {block + "eh_proj": (h, 2 * h), block + "enorm": (h,), block + "hnorm": (h,),
                block + "shared_head_norm": (h,)}
    return out


class Model(nn.Module):
    def __init__(self, c, values):
        """values: {name: array} for every name of shapes(c)."""
        super().__init__()
        self.c = c
        self.p = nn.ParameterDict({k.replace(".", "/"): nn.Parameter(torch.tensor(values[k]))
                                   for k in shapes(c)})
        # Chooses experts and is not trained by gradients: exp_probs_b.
        self.bias = {b: torch.tensor(values.get(f"blk.{b}.exp_probs_b.bias",
                                                [0.0] * c["experts"]))
                     for b in range(c["dense_layers"], c["layers"] + c["nextn"])}
        r = c["rope_dims"]
        angle = (torch.arange(c["context"]).double()[:, None] *
                 c["theta"] ** (-torch.arange(0, r, 2).double() / r))
        self.cos = torch.cat([angle.cos()] * 2, -1).float()[:, None]  # [t, 1, rope_dims]
        self.sin = torch.cat([angle.sin()] * 2, -1).float()[:, None]
        self.balance = 0.0
        self.load = {}

    def w(self, name):
        return self.p[name.replace(".", "/")]

    def attention(self, x, block, mask):
        c, (b, t, _) = self.c, x.shape

        def heads(name, count):
            bias = self.w(f"{block}attn_{name}.bias") if c["bias"] else None
            y = F.linear(x, self.w(f"{block}attn_{name}"), bias)
            return y.view(b, t, count, c["head_dim"])

        def rotate(y, gain):
            y, r = norm(y, self.w(block + gain), c["eps"]), c["rope_dims"]
            head, rest = y[..., :r], y[..., r:]
            turned = torch.cat([-head[..., r // 2:], head[..., :r // 2]], -1)
            head = head * self.cos[:t] + turned * self.sin[:t]
            return torch.cat([head, rest], -1).transpose(1, 2)
        q = rotate(heads("q", c["heads"]), "attn_q_norm")
        k = rotate(heads("k", c["kv_heads"]), "attn_k_norm")
        v = heads("v", c["kv_heads"]).transpose(1, 2)
        group = c["heads"] // c["kv_heads"]
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        s = q @ k.transpose(2, 3) / math.sqrt(c["head_dim"]) + mask
        o = (s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, -1)
        return F.linear(o, self.w(block + "attn_output"))

    def experts(self, x, layer, real):
        """x [rows, hidden]; real [rows] marks rows that are no padding."""
        c, block = self.c, f"blk.{layer}."
        logits = F.linear(x, self.w(block + "ffn_gate_inp"))
        p = logits.sigmoid() if c["arch"] == "glm4moe" else logits.softmax(-1)
        with torch.no_grad():
            chosen = (p + self.bias[layer]).topk(c["used"], -1).indices
            mask = torch.zeros_like(p).scatter_(1, chosen, 1.0)
            load = mask[real].mean(0) / c["used"]
            self.load[layer] = load
        if c["arch"] == "qwen3moe":
            self.balance = self.balance + c["experts"] * (load * p[real].mean(0)).sum()
        weight = p * mask
        weight = weight / weight.sum(-1, keepdim=True)
        n, f = c["experts"], c["expert_ffn"]
        gate, up, down = (self.w(f"{block}ffn_{k}_exps") for k in ("gate", "up", "down"))
        a = F.silu(F.linear(x, gate.reshape(n * f, -1))) * F.linear(x, up.reshape(n * f, -1))
        a = (a.view(-1, n, f) * weight[:, :, None]).view(-1, n * f)
        y = F.linear(a, down.permute(1, 0, 2).reshape(-1, n * f))
        if c["shared_ffn"]:
            y = y + swiglu(x, *(self.w(f"{block}ffn_{k}_shexp") for k in ("gate", "up", "down")))
        return y

    def layer(self, x, layer, mask, real):
        c, block = self.c, f"blk.{layer}."
        x = x + self.attention(norm(x, self.w(block + "attn_norm"), c["eps"]), block, mask)
        name = "post_attention_norm" if c["arch"] == "glm4moe" else "ffn_norm"
        h = norm(x, self.w(block + name), c["eps"])
        if layer < c["dense_layers"]:
            return x + swiglu(h, *(self.w(f"{block}ffn_{k}") for k in ("gate", "up", "down")))
        return x + self.experts(h.flatten(0, 1), layer, real.flatten()).view_as(x)

    def hidden(self, ids, real):
        """ids [batch, t], padded on the right; rows behind the last norm."""
        t, c = ids.shape[1], self.c
        mask = torch.full((t, t), -1e9).triu(1)
        self.balance = 0.0
        x = F.embedding(ids, self.w("token_embd"))
        for layer in range(c["layers"]):
            x = self.layer(x, layer, mask, real)
        return norm(x, self.w("output_norm"), c["eps"])

    def predict(self, ids, hidden, real):
        """Rows [batch, t - 1, hidden] whose logits are of token i + 2, from token i + 1 and
        hidden row i."""
        c = self.c
        block = f"blk.{c['layers']}.nextn."
        e = norm(F.embedding(ids[:, 1:], self.w("token_embd")), self.w(block + "enorm"), c["eps"])
        u = norm(hidden[:, :-1], self.w(block + "hnorm"), c["eps"])
        x = F.linear(torch.cat([e, u], -1), self.w(block + "eh_proj"))
        t = x.shape[1]
        x = self.layer(x, c["layers"], torch.full((t, t), -1e9).triu(1), real[:, 1:])
        return norm(x, self.w(block + "shared_head_norm"), c["eps"])

    def logits(self, rows):
        return F.linear(rows, self.w("token_embd"))
