#!/usr/bin/env python3
"""Measures how fucina's cost grows with the length of the prompt and with the depth.

Reading N tokens costs a N + b N^2 (every token looks at all before it), writing one at
depth D costs c + d D. Between two lengths the exponent is log(cost ratio) / log(length
ratio): reading must stay at or below 2, writing at or below 1. Anything above says that
something grows faster than attention must.

  scaling.py --fucina build/release/bin/fucina --model model.gguf --threads 2 \\
      --lengths 128,256,512,1024,2048,4096,8192 --depths 0,512,1024,2048,4096,8192

Exit status: 0 exponents hold, 1 one does not, 2 it could not be run. Only Python's
standard library is used.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

DECODE_STEPS = 32
# Noise allowed on an exponent: 7 % of a doubling.
SLACK = 0.1


class ScalingError(Exception):
    pass


def token_ids(count):
    """A fixed sequence without short patterns, in every model's vocabulary."""
    state, ids = 12345, []
    for _ in range(count):
        state = (state * 1103515245 + 12345) % (1 << 31)
        ids.append(state // 7 % 3900 + 100)
    return ids


def bench(args, tokens, depth):
    """(seconds to read `tokens` tokens, seconds to write one behind them)."""
    with tempfile.TemporaryDirectory() as folder:
        ids = os.path.join(folder, "ids")
        report = os.path.join(folder, "bench.json")
        with open(ids, "w", encoding="utf-8") as file:
            file.write("\n".join(map(str, token_ids(tokens))))
        command = [args.fucina, "run", args.model, "--ids-file", ids, "--gen",
                   str(DECODE_STEPS + 1), "--bench", str(args.repetitions),
                   "--bench-json", report, "--threads", str(args.threads)]
        if depth > 0:
            command += ["--bench-depth", str(depth)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ScalingError(f"{' '.join(command)}: exit {done.returncode}: "
                               f"{done.stderr.strip()}")
        with open(report, encoding="utf-8") as file:
            result = json.load(file)
    return (tokens / result["prefill"]["tok_per_s"]["median"],
            1 / result["decode"]["tok_per_s"]["median"])


def exponents(points):
    """Of each step of [(length, seconds), …], None for the first and for length 0."""
    found = [None]
    for (n0, t0), (n1, t1) in zip(points, points[1:]):
        found.append(math.log(t1 / t0) / math.log(n1 / n0) if n0 > 0 else None)
    return found


def table(name, unit, points, limit):
    """Prints the rows; whether every exponent is within the limit."""
    print(f"| {name} | {unit} | exponent |")
    print("| ---: | ---: | ---: |")
    good = True
    for (length, seconds), exponent in zip(points, exponents(points)):
        value = "" if exponent is None else f"{exponent:.2f}"
        if exponent is not None and exponent > limit + SLACK:
            value += f", above {limit}"
            good = False
        print(f"| {length} | {seconds * 1e3:.2f} | {value} |")
    print()
    return good


def lengths(text):
    values = [int(word) for word in text.split(",")]
    if values != sorted(set(values)) or values[0] < 0:
        raise argparse.ArgumentTypeError(f"not a rising list of counts: {text}")
    return values


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fucina", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--lengths", type=lengths,
                        default=lengths("128,256,512,1024,2048,4096,8192"))
    parser.add_argument("--depths", type=lengths,
                        default=lengths("0,512,1024,2048,4096,8192"))
    args = parser.parse_args()
    try:
        reading = [(n, bench(args, n, 0)[0]) for n in args.lengths]
        good = table("tokens read", "ms", reading, 2)
        writing = [(d, bench(args, 8, d)[1]) for d in args.depths]
        good = table("depth", "ms per token written", writing, 1) and good
    except (OSError, ScalingError) as error:
        print(f"scaling: {error}", file=sys.stderr)
        return 2
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
