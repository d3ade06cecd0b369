#!/usr/bin/env python3
"""Greedy continuations of the trained mixtures of experts in float64: the
goldens of tests/goldens/atlas/atlas-moe.json and atlas-glm.json.

  atlas_goldens.py moe|glm MODEL.gguf OUT.json

Weights are those of the file (Q8_0 blocks dequantized exactly), activations
are not quantized; numpy_forward.py computes the rows. For each of five prompts:
its ids, the eight best logits behind it, 24 greedy ids (an end token does not
stop them, the lowest id wins a tie) and by how much each was the best: where
that is small an engine that rounds activations may choose another.

Made with Python 3.11.7 and numpy 2.4.6. Needs models/recipe for the
tokenizer.
"""
import json
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "..", "models", "recipe"))

import numpy_forward  # noqa: E402
from chat_forms import GlmForm, QwenForm  # noqa: E402
from vocabulary import Vocabulary  # noqa: E402

STEPS, BEST = 24, 8
QUESTIONS = [("What is the capital of France?", None),
             ("Describe Japan as JSON.", None),
             ("Which currency is used in Brazil?", None),
             ("What is the capital of Italy?", "You are a pirate.")]
TEXT = "The capital of Germany is"


def prompts(form):
    """A conversation up to where the reply begins, and raw text."""
    for question, system in QUESTIONS:
        document = form.chat([(question, "")], system, "")
        yield "".join(text for text, _ in document[:-1])
    yield form.begin + TEXT


def case(model, vocabulary, text):
    ids = vocabulary.encode(text, exact=True)
    greedy, margins, best = [], [], None
    while len(greedy) < STEPS:
        row = model.logits(model.hidden(np.array(ids + greedy)))[-1]
        order = np.argsort(-row, kind="stable")
        if best is None:
            best = order[:BEST], row[order[:BEST]]
        greedy.append(int(order[0]))
        margins.append(round(float(row[order[0]] - row[order[1]]), 4))
    return {"text": text, "ids": ids, "best_ids": best[0].tolist(),
            "best_logits": [round(float(v), 5) for v in best[1]],
            "greedy_ids": greedy, "greedy_margins": margins,
            "greedy_text": vocabulary.decode(greedy)}


def main(kind, path, out):
    gguf = numpy_forward.Gguf(path)

    def strings(key):
        return [text.decode("utf-8") for text in gguf.keys[key]]
    vocabulary = Vocabulary({
        "tokenizer.ggml.tokens": strings("tokenizer.ggml.tokens"),
        "tokenizer.ggml.merges": strings("tokenizer.ggml.merges"),
        "tokenizer.ggml.token_type": gguf.keys["tokenizer.ggml.token_type"]})
    model = numpy_forward.Model(gguf)
    form = GlmForm() if kind == "glm" else QwenForm()
    cases = [case(model, vocabulary, text) for text in prompts(form)]
    end = vocabulary.special["<|user|>" if kind == "glm" else "<|im_end|>"]
    with open(out, "w", encoding="utf-8") as f:
        f.write('{\n "model": %s,\n "end": %d,\n "cases": [\n' %
                (json.dumps(os.path.basename(path)), end))
        f.write(",\n".join("  {" + ",\n   ".join(
            f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}"
            for k, v in c.items()) + "}" for c in cases))
        f.write("\n ]\n}\n")
    for c in cases:
        print(repr(c["greedy_text"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
