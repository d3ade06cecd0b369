#!/usr/bin/env python3
"""Trains atlas-moe or atlas-glm, from the dense model.

usage: train_experts.py moe|glm DENSE.gguf FACTS.json OUT.npz MINUTES [--init IN.npz] [--rate R]
                        [--hard HARD.json] [--seed S] [--threads N]

AdamW on everything, the rate falls along a cosine over the wall clock, so that a busy machine
means fewer steps and never an unfinished schedule. Loss on answers, think text and plain text.
moe: a load-balance loss of 0.01 (8 * sum of share * mean probability). glm: after every step
the selection bias of experts below the mean load rises by 0.001 and that of the others falls;
the prediction layer learns token i + 2 with weight 0.3.
"""
import argparse
import json
import math
import os
import random
import time

import numpy as np
import torch
import torch.nn.functional as F

import experts_init
import gguf_io
from chat_forms import GlmForm, QwenForm
from corpus import Corpus
from experts_model import GLM, QWEN, Model
from vocabulary import GLM_SPECIALS, Vocabulary

LONGEST = 320  # tokens of a document; longer ones are left out
BATCH = 1400   # tokens of a step, about
POOL = 64      # documents drawn at a time and sorted by length


class Batches:
    """Random documents of like length, padded on the right."""

    def __init__(self, corpus, vocabulary, seed):
        self.corpus, self.vocabulary, self.rng = corpus, vocabulary, random.Random(seed)
        self.groups = []

    def document(self):
        ids, loss = [], []
        for text, mode in self.corpus.document(self.rng):
            got = self.vocabulary.encode(text)
            ids += got
            loss += [mode == 1] + [mode > 0] * (len(got) - 1)
        return ids, loss

    def next(self):
        """ids, real and loss, each [documents, longest]."""
        if not self.groups:
            docs = sorted((self.document() for _ in range(POOL)), key=lambda d: len(d[0]))
            group = []
            for d in docs:
                if len(d[0]) > LONGEST:
                    continue
                group.append(d)
                if len(group) * len(d[0]) >= BATCH:
                    self.groups.append(group)
                    group = []
            self.rng.shuffle(self.groups)
        group = self.groups.pop()
        t = max(len(ids) for ids, _ in group)
        ids = torch.zeros((len(group), t), dtype=torch.long)
        real = torch.zeros((len(group), t), dtype=torch.bool)
        loss = torch.zeros((len(group), t), dtype=torch.bool)
        for row, (a, b) in enumerate(group):
            ids[row, :len(a)] = torch.tensor(a)
            real[row, :len(a)] = True
            loss[row, :len(a)] = torch.tensor(b)
        return ids, real, loss


def cross_entropy(model, rows, ids, loss):
    use = loss.flatten().nonzero()[:, 0]
    logits = model.logits(rows.flatten(0, 1)[use])
    target = ids.flatten()[use]
    right = (logits.argmax(-1) == target).float().mean().item()
    return F.cross_entropy(logits, target), right


def save(model, path):
    values = {k.replace("/", "."): p.detach().numpy() for k, p in model.p.items()}
    for layer, bias in model.bias.items():
        values[f"blk.{layer}.exp_probs_b.bias"] = bias.numpy()
    np.savez(path + ".tmp.npz", **values)
    os.replace(path + ".tmp.npz", path)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("kind", choices=("moe", "glm"))
    a.add_argument("dense")
    a.add_argument("facts")
    a.add_argument("out")
    a.add_argument("minutes", type=float)
    a.add_argument("--init")
    a.add_argument("--rate", type=float, default=1.5e-3)
    a.add_argument("--hard")
    a.add_argument("--stage", type=int, default=3)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--threads", type=int, default=1)
    args = a.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    c = GLM if args.kind == "glm" else QWEN
    keys, tensors = gguf_io.read(args.dense)
    vocabulary = Vocabulary(keys, GLM_SPECIALS if args.kind == "glm" else None)
    corpus = Corpus(args.facts, args.hard, GlmForm() if args.kind == "glm" else QwenForm())
    corpus.MIX = corpus.STAGES[args.stage]
    values = (dict(np.load(args.init)) if args.init
              else experts_init.from_dense(c, tensors, vocabulary, keys))
    model = Model(c, values)
    print(sum(p.numel() for p in model.parameters()), "parameters", flush=True)
    batches = Batches(corpus, vocabulary, args.seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.rate, betas=(0.9, 0.95),
                                  weight_decay=0.01)
    start = saved = time.time()
    step = tokens = 0
    sums = np.zeros(4)
    while (progress := (time.time() - start) / (60 * args.minutes)) < 1:
        rate = args.rate * min(1, (step + 1) / 40) * (
            0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        ids, real, loss = batches.next()
        hidden = model.hidden(ids, real)
        # Row i says token i + 1.
        main_loss, right = cross_entropy(model, hidden[:, :-1], ids[:, 1:], loss[:, 1:])
        total, guessed, guess_loss = main_loss, 0.0, torch.zeros(())
        if c["nextn"]:
            rows = model.predict(ids, hidden, real)
            guess_loss, guessed = cross_entropy(model, rows[:, :-1], ids[:, 2:], loss[:, 2:])
            total = total + 0.3 * guess_loss
        if c["arch"] == "qwen3moe":
            total = total + 0.01 * model.balance
        optimizer.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if c["arch"] == "glm4moe":
            for layer, load in model.load.items():
                model.bias[layer] += 0.001 * torch.sign(load.mean() - load)
        step += 1
        tokens += int(real.sum())
        sums += (main_loss.item(), right, guess_loss.item(), guessed)
        if step % 50 == 0:
            print(f"{time.strftime('%T')} step {step} loss {sums[0] / 50:.4f} right {sums[1] / 50:.4f}"
                  f" guess {sums[2] / 50:.4f} right {sums[3] / 50:.4f} rate {rate:.5f}"
                  f" {tokens / 1e6:.2f} M tokens {tokens / (time.time() - start):.0f}/s", flush=True)
            sums[:] = 0
        if time.time() - saved > 120:
            save(model, args.out)
            saved = time.time()
    save(model, args.out)
    print(f"done: {step} steps, {tokens} tokens, {time.time() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
