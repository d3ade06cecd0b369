#!/usr/bin/env python3
"""Exact-match accuracy of a model, measured by the program itself.

usage: evaluate.py FUCINA MODEL.gguf FACTS.json [--every N] [--hard HARD.json] [--json OUT.json]
                   [flags of fucina run]

Asks every fact in a wording of the training corpus, greedy and with thinking off; a reply
counts when it is the expected sentence to the last character.
"""
import argparse
import json
import subprocess

import corpus as C


def questions(c):
    """(task, question, expected reply, (relation, country code))"""
    for r in C.RELATIONS:
        for f in c.by_relation[r]:
            yield "seen fact: " + r, c.fill(C.QUESTIONS[r][0], f), c.answer(f, r), (r, f["code"])
            if r in C.HELD_OUT:
                yield "new wording: " + r, c.fill(C.HELD_OUT[r][0], f), c.answer(f, r), (r, f["code"])
    for f in c.facts:
        reply = f"{f['capital']} is the capital of {f['the']}."
        yield "reverse", c.fill(C.QUESTIONS["reverse"][0], f), reply, ("reverse", f["code"])
        yield "json", c.fill(C.QUESTIONS["json"][0], f), c.json(f), ("json", f["code"])


def ask(fucina, model, question, flags):
    out = subprocess.run([fucina, "run", model, "--chat", question, "--no-think", "--temp", "0",
                          "--quiet", *flags], capture_output=True, check=True)
    # A wrong reply may end inside a character.
    return out.stdout.decode("utf-8", "replace").strip()


def main():
    a = argparse.ArgumentParser()
    a.add_argument("fucina")
    a.add_argument("model")
    a.add_argument("facts")
    a.add_argument("--every", type=int, default=1, help="ask every Nth question")
    a.add_argument("--hard")
    a.add_argument("--json")
    args, flags = a.parse_known_args()
    c = C.Corpus(args.facts)
    result, missed = {}, {}
    for i, (task, question, expected, key) in enumerate(questions(c)):
        if i % args.every:
            continue
        right = ask(args.fucina, args.model, question, flags) == expected
        hits, of = result.get(task, (0, 0))
        result[task] = (hits + right, of + 1)
        if not right:
            missed.setdefault(key[0], set()).add(key[1])
    seen = [v for k, v in result.items() if k.startswith("seen fact")]
    result["all seen facts"] = tuple(map(sum, zip(*seen)))
    for task, (hits, of) in result.items():
        print(f"{task:28s} {hits:4d}/{of:<4d} {100 * hits / of:5.1f} %")
    if args.json:
        json.dump({k: {"right": h, "of": n} for k, (h, n) in result.items()},
                  open(args.json, "w"), indent=1)
    if args.hard:
        json.dump({k: sorted(v) for k, v in missed.items()}, open(args.hard, "w"))


if __name__ == "__main__":
    main()
