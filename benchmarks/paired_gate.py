#!/usr/bin/env python3
"""Runs a peer's llama-bench and fucina in turn on the same files and compares.

Each round measures every cell with both programs, one process at a time, and the
order changes from round to round, so that a busy minute hits both. A cell is the
median over rounds; the ratio is fucina / peer, larger is better for fucina.

  paired_gate.py --peer PATH/llama-bench --fucina build/release/bin/fucina \\
      --model 0.6b-q8_0.gguf --model 0.6b-q4_k_m.gguf \\
      --pp 512:0.8 --tg 64:0.9 --threads 2 --rounds 3

--pp N[:MIN] prefills N tokens, --tg N[:MIN] writes N tokens one by one; MIN is the
ratio below which the cell fails. A cell whose samples vary by more than --max-cv
is NOISY and counts as not passed unless --allow-noisy is given.

Exit status: 0 all cells pass, 1 a cell fails or is noisy, 2 it could not be run.
Only Python's standard library is used, and nothing foreign is built.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys


def fail(message):
    print(f"paired_gate: {message}", file=sys.stderr)
    sys.exit(2)


def run(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        fail(f"{' '.join(command[:6])} … ended with {result.returncode}: "
             f"{result.stderr.strip()[-400:]}")
    return result.stdout


def read_through(path):
    """Brings a file into the page cache."""
    with open(path, "rb") as file:
        while file.read(64 << 20):
            pass


def token_ids(count):
    """A fixed sequence without repeats of short patterns: which ids are read does
    not change the work of a dense model, and for experts it should vary."""
    ids, state = [], 12345
    for _ in range(count):
        state = (state * 1103515245 + 12345) % (1 << 31)
        ids.append(state % 30000 + 100)
    return ids


def measure_peer(args, model, kind, count):
    command = [args.peer, "-m", model, "-t", str(args.threads), "-ngl", "0",
               "-r", str(args.repetitions), "-o", "json"]
    command += ["-p", str(count), "-n", "0"] if kind == "pp" else \
        ["-p", "0", "-n", str(count)]
    command += args.peer_args
    out = run(command)
    rows = json.loads(out[out.index("["):out.rindex("]") + 1])
    for row in rows:
        wanted = (count, 0) if kind == "pp" else (0, count)
        if (row["n_prompt"], row["n_gen"]) == wanted:
            return row["avg_ts"]
    fail(f"{args.peer}: no row for {kind}{count}")


def measure_fucina(args, model, kind, count):
    base = [args.fucina, "run", model, "--threads", str(args.threads), "--quiet"]
    if kind == "pp":
        ids = ",".join(map(str, token_ids(count)))
        out = run(base[:3] + [ids] + base[3:] +
                  ["--repeat", str(args.repetitions + 2)])
        match = re.search(r"^forward warm: .*\(([\d.]+) tok/s\)", out, re.M)
    else:
        # llama-bench generates from an almost empty context; so does this.
        out = run(base[:3] + ["100"] + base[3:] + ["--gen", str(count + 1)])
        match = re.search(rf"^decode: {count} steps, .* ([\d.]+) tok/s", out, re.M)
    if match is None:
        fail(f"{args.fucina}: no figure for {kind}{count} in:\n{out}")
    return float(match.group(1))


def variation(samples):
    if len(samples) < 2:
        return 0.0
    return statistics.stdev(samples) / statistics.mean(samples)


def verdict(ratio, minimum, noise, max_cv, allow_noisy):
    if ratio < minimum:
        return "FAIL"
    if noise > max_cv and not allow_noisy:
        return "NOISY"
    return "PASS"


def cell(text):
    number, _, minimum = text.partition(":")
    return int(number), float(minimum or 1.0)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True, help="a llama-bench program")
    parser.add_argument("--fucina", required=True)
    parser.add_argument("--model", action="append", required=True)
    parser.add_argument("--pp", action="append", type=cell, default=[])
    parser.add_argument("--tg", action="append", type=cell, default=[])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--max-cv", type=float, default=0.15)
    parser.add_argument("--allow-noisy", action="store_true")
    parser.add_argument("--json", help="write all samples to this file")
    parser.add_argument("--peer-args", nargs="*", default=[],
                        help="further arguments for the peer, last on the line")
    args = parser.parse_args()
    for path in [args.peer, args.fucina, *args.model]:
        if not os.path.isfile(path):
            fail(f"{path}: no such file")
    cells = [("pp", *c) for c in args.pp] + [("tg", *c) for c in args.tg]
    if not cells:
        fail("name at least one --pp or --tg cell")

    samples = {}
    for round_number in range(args.rounds):
        for model in args.model:
            read_through(model)
            for kind, count, _ in cells:
                engines = [("peer", measure_peer), ("fucina", measure_fucina)]
                if round_number % 2:
                    engines.reverse()
                for name, measure in engines:
                    value = measure(args, model, kind, count)
                    samples.setdefault((model, kind, count), {}).setdefault(
                        name, []).append(value)
                    print(f"round {round_number + 1}: {os.path.basename(model)} "
                          f"{kind}{count} {name} {value:.1f} tok/s",
                          file=sys.stderr)

    print("| model | cell | peer tok/s | fucina tok/s | ratio | needed | noise | verdict |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |")
    passed = True
    for model in args.model:
        for kind, count, minimum in cells:
            both = samples[(model, kind, count)]
            peer = statistics.median(both["peer"])
            ours = statistics.median(both["fucina"])
            noise = max(variation(both["peer"]), variation(both["fucina"]))
            ratio = ours / peer
            word = verdict(ratio, minimum, noise, args.max_cv, args.allow_noisy)
            passed &= word == "PASS"
            spread = "{:.1f} [{:.1f}..{:.1f}]"
            print(f"| {os.path.basename(model)} | {kind}{count} | "
                  f"{spread.format(peer, min(both['peer']), max(both['peer']))} | "
                  f"{spread.format(ours, min(both['fucina']), max(both['fucina']))} | "
                  f"{ratio:.2f} | {minimum:.2f} | {noise:.0%} | {word} |")
    if args.json:
        with open(args.json, "w") as file:
            json.dump([{"model": os.path.basename(m), "kind": k, "count": c, **s}
                       for (m, k, c), s in samples.items()], file, indent=1)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
