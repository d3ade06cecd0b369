#!/usr/bin/env python3
"""Exact-match accuracy of a model, measured by the program itself.

usage: evaluate.py FUCINA MODEL.gguf FACTS.json [--other] [--every N] [--hard HARD.json]
                   [--json OUT.json] [flags of fucina run]

Asks every fact in a wording of the training corpus, greedy and with thinking off; a reply
counts when it is the expected sentence to the last character. --other: instead, what is not
a fact or not asked that way: thinking, system prompts, sums, checks, repeating, reading, small
talk. With thinking on, the thought has to be the expected one as well.
"""
import argparse
import json
import random
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


class AskForm:
    """A form of chat_forms.py that keeps the parts of a conversation apart."""
    begin = end_of_text = ""

    @staticmethod
    def chat(turns, system, think):
        return turns, system, think or ""


def other_questions(c):
    """(task, system prompt or None, question, expected thought, empty for thinking off, expected
    reply). The random tasks are drawn as in training; of the texts those with one question."""
    c.form, rng = AskForm, random.Random(4242)
    for r in ("capital", "continent", "currency"):
        for f in c.by_relation[r]:
            yield "thinking: " + r, None, c.fill(C.QUESTIONS[r][0], f), c.thought(f, r), c.answer(f, r)
    for f in c.facts:
        q = c.fill(C.QUESTIONS["capital"][0], f)
        yield "one word: capital", C.ONE_WORD[0], q, "", f["capital"]
        yield "pirate: capital", C.PIRATE[0], q, "", "Arr! " + c.answer(f, "capital")
        yield "summary", None, c.fill(C.QUESTIONS["summary"][0], f), "", c.summary(f)
    for kind, n in (("addition", 500), ("check", 200), ("repeat", 200), ("reading", 500), ("small_talk", 100)):
        while n > 0:
            turns, system, think = getattr(c, kind)(rng)
            if len(turns) > 1:
                continue
            n -= 1
            split = kind in ("addition", "reading")
            task = f"{kind}, {'thinking' if think else 'direct'}" if split else kind
            yield task, system, turns[0][0], think, turns[0][1]


def ask(fucina, model, question, flags, system=None, think=False):
    """(thought, reply)"""
    # By standard input: a question may begin like a flag or a file name.
    out = subprocess.run([fucina, "run", model, "--chat", "-", "--temp", "0", "--quiet",
                          *([] if think else ["--no-think"]), *(["--system", system] if system else []),
                          *flags], input=question.encode(), capture_output=True, check=True)
    # A wrong reply may end inside a character.
    text = out.stdout.decode("utf-8", "replace")
    if not think:
        return "", text.strip()
    thought, _, reply = text.partition("</think>")
    return thought.replace("<think>", "").strip(), reply.strip()


def main():
    a = argparse.ArgumentParser()
    a.add_argument("fucina")
    a.add_argument("model")
    a.add_argument("facts")
    a.add_argument("--other", action="store_true", help="thinking, sums, reading and the like")
    a.add_argument("--every", type=int, default=1, help="ask every Nth question")
    a.add_argument("--hard")
    a.add_argument("--json")
    args, flags = a.parse_known_args()
    c = C.Corpus(args.facts)
    result, missed = {}, {}

    def count(task, right):
        hits, of = result.get(task, (0, 0))
        result[task] = (hits + right, of + 1)

    if args.other:
        for i, (task, system, question, think, reply) in enumerate(other_questions(c)):
            if i % args.every == 0:
                got = ask(args.fucina, args.model, question, flags, system, bool(think))
                count(task, got == (think, reply))
    else:
        for i, (task, question, expected, key) in enumerate(questions(c)):
            if i % args.every:
                continue
            right = ask(args.fucina, args.model, question, flags) == ("", expected)
            count(task, right)
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
