#!/usr/bin/env python3
"""How often the prediction layer of a glm4moe model is right, measured by the program itself.

usage: acceptance.py FUCINA MODEL.gguf FACTS.json [--every N] [--depth D] [flags of fucina run]

Asks the questions of evaluate.py, greedy and with thinking off, with drafts of D tokens, and
adds up what the program reports: drafted tokens that the model itself would have chosen, fed
entries whose best token really followed, tokens and passes of the model.
"""
import argparse
import re
import subprocess

import corpus as C
from evaluate import questions

REPORT = re.compile(r"\[(\d+) tokens.*drafts (\d+)/(\d+) accepted.*?([\d.]+) tokens per forward"
                    r".*feed hits (\d+)/(\d+)", re.S)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("fucina")
    a.add_argument("model")
    a.add_argument("facts")
    a.add_argument("--every", type=int, default=10, help="ask every Nth question")
    a.add_argument("--depth", type=int, default=1)
    args, flags = a.parse_known_args()
    asked = accepted = drafted = hits = fed = tokens = 0
    passes = 0.0
    for i, (_, question, _, _) in enumerate(questions(C.Corpus(args.facts))):
        if i % args.every:
            continue
        out = subprocess.run([args.fucina, "run", args.model, "--chat", question, "--no-think",
                              "--temp", "0", f"--mtp={args.depth}", *flags],
                             capture_output=True, check=True)
        report = REPORT.search(out.stderr.decode("utf-8", "replace"))
        asked += 1
        if report is None:  # the reply was over before anything was drafted
            continue
        tokens += int(report[1]) - 1  # the first one comes from the prompt's pass
        accepted, drafted = accepted + int(report[2]), drafted + int(report[3])
        passes += (int(report[1]) - 1) / max(float(report[4]), 1e-9)
        hits, fed = hits + int(report[5]), fed + int(report[6])
    print(f"{asked} questions, {tokens} tokens behind the first of each reply")
    print(f"accepted {accepted} of {drafted} drafted tokens: {100 * accepted / drafted:.1f} %")
    print(f"feed hits {hits} of {fed}: {100 * hits / fed:.1f} %")
    print(f"{tokens / passes:.2f} tokens per forward")


if __name__ == "__main__":
    main()
