#!/usr/bin/env python3
"""Runs peers' llama-bench and fucina in turn on the same files and compares.

Each round measures every cell with every program, one process at a time, and the
order changes from round to round, so that a busy minute hits all. A figure is the
median over rounds; the ratio is the median over rounds of fucina / peer of the same
round, larger is better for fucina. Of several peers the better one counts, cell by
cell. Ratios come with their range and a bootstrap interval of 95 %: a cell is a claim
only when the interval leaves out 1.

  paired_gate.py --fucina build/release/bin/fucina \\
      --peer mainline=llama.cpp/build/bin/llama-bench \\
      --peer "ik=ik_llama.cpp/build/bin/llama-bench" \\
      --peer "ik repacked=ik_llama.cpp/build/bin/llama-bench -rtr 1 -thp 1" \\
      --peer-batched "ik=ik_llama.cpp/build/bin/llama-batched-bench" \\
      --probe build/release/bin/roofline_probe \\
      --model 0.6b-q8_0.gguf --model 0.6b-q4_k_m.gguf \\
      --pp 16:2.0 --pp 512:2.5 --tg 128:1.5 --tg 64@4096:2.0 --streams 4,8,16 \\
      --load --memory --threads 2 --rounds 3 --markdown table.md

A peer is [NAME=]PROGRAM [ARGUMENTS…], quoted as in a shell.

cells, each with the ratio below which it fails behind a colon (1 where none is given)
  --pp N          reads N tokens in one go
  --tg N          writes N tokens one by one from an almost empty context
  --tg N@DEPTH    the same behind DEPTH tokens of context
  --streams S     S sequences write together, after a prompt of their own each; needs a
                  --peer-batched, the peer's llama-batched-bench
  --load          seconds from the start of the process to one token read
  --memory        peak memory of that process
Lists are allowed: --pp 16,32:2.5,128.

The same token ids go to both where the peer takes ids; llama-bench takes none and reads
random ones. So does fucina here, from a fixed seed, or the first ids of --ids-file.

A cell whose samples vary by more than --max-cv is NOISY and counts as not passed unless
--allow-noisy is given. With --probe, roofline_probe runs before each sample; a sample
whose probe is below --min-probe of the best probe so far is taken again, twice at most,
and then makes its cell NOISY.

Exit status: 0 all cells pass, 1 a cell fails or is noisy, 2 it could not be run; what
was measured until then is kept. Only Python's standard library is used, and nothing
foreign is built.
"""

import argparse
import json
import os
import random
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

PROBE_RETRIES = 2
STREAM_PROMPT = 32  # tokens that each of several streams reads first
STREAM_TOKENS = 32  # and writes


class GateError(Exception):
    """Something could not be run or read."""


# --- programs ------------------------------------------------------------------------


class Finished:
    """A process that ended well: output, wall seconds, peak memory in bytes."""

    def __init__(self, out, err, seconds, peak_bytes):
        self.out, self.err = out, err
        self.seconds, self.peak_bytes = seconds, peak_bytes


def run(command):
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.monotonic()
        try:
            process = subprocess.Popen(command, stdout=out, stderr=err,
                                       stdin=subprocess.DEVNULL)
        except OSError as error:
            raise GateError(f"{command[0]}: {error.strerror}") from error
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        done = Finished(out.read(), err.read(), seconds, usage.ru_maxrss * 1024)
    if process.returncode != 0:
        raise GateError(f"{shlex.join(command)[:200]} … ended with {process.returncode}: "
                        f"{done.err.strip()[-400:]}")
    return done


class Program:
    """[NAME=]PROGRAM [ARGUMENTS…]"""

    def __init__(self, text):
        words = shlex.split(text)
        if not words:
            raise argparse.ArgumentTypeError("expected [NAME=]PROGRAM [ARGUMENTS…]")
        # In "ik repacked=ik/llama-bench -rtr 1" the name has a blank.
        match = re.match(r"([^=/]+)=(.+)", text)
        if match and " -" not in match.group(1):
            self.name, words = match.group(1), shlex.split(match.group(2))
        else:
            self.name = " ".join([os.path.basename(words[0]), *words[1:]])
        self.path, self.arguments = words[0], words[1:]
        self.help_text = None

    def options(self):
        """Its --help: builds differ in what they can do."""
        if self.help_text is None:
            result = subprocess.run([self.path, "--help"], capture_output=True,
                                    text=True, check=False)
            self.help_text = result.stdout + result.stderr
        return self.help_text


# --- cells ---------------------------------------------------------------------------


class Cell:
    def __init__(self, kind, count=0, depth=0, minimum=1.0):
        self.kind, self.count, self.depth, self.minimum = kind, count, depth, minimum

    @property
    def name(self):
        if self.kind in ("load", "memory"):
            return self.kind
        return f"{self.kind}{self.count}" + (f"@{self.depth}" if self.depth else "")

    @property
    def unit(self):
        return {"load": "s", "memory": "MB"}.get(self.kind, "tok/s")

    @property
    def less_is_better(self):
        return self.kind in ("load", "memory")


def parse_cells(kind):
    def parse(text):
        cells = []
        for part in text.split(","):
            match = re.fullmatch(r"(\d+)(?:@(\d+))?(?::([\d.]+))?", part)
            if match is None or int(match.group(1)) < 1 or (match.group(2) and
                                                            kind != "tg"):
                raise argparse.ArgumentTypeError(
                    f"expected N[:MIN]{' or N@DEPTH[:MIN]' if kind == 'tg' else ''}, "
                    f"found '{part}'")
            cells.append(Cell(kind, int(match.group(1)), int(match.group(2) or 0),
                              float(match.group(3) or 1)))
        return cells
    return parse


def token_ids(count, source):
    """The first ids of a file, or a fixed sequence without short patterns: which ids
    are read does not change the work of a dense model, and experts are then chosen as
    evenly as by the random ids of the peer."""
    if source is not None:
        if len(source) < count:
            raise GateError(f"--ids-file has {len(source)} ids, a cell needs {count}")
        return source[:count]
    ids, state = [], 12345
    for _ in range(count):
        state = (state * 1103515245 + 12345) % (1 << 31)
        ids.append(state // 7 % 3900 + 100)
    return ids


# --- fucina --------------------------------------------------------------------------


def find_rate(done, label):
    match = re.search(rf"^{label}\s*: ([\d.]+) ± ", done.out, re.M)
    if match is None:
        raise GateError(f"fucina: no line '{label}:' in:\n{done.out[-800:]}")
    return float(match.group(1))


class Fucina:
    name = "fucina"

    def __init__(self, path, args, ids):
        self.path, self.args, self.ids = path, args, ids

    def can(self, _):
        return None

    def measure(self, model, cell):
        count = {"pp": cell.count, "streams": STREAM_PROMPT}.get(cell.kind, 1)
        with tempfile.NamedTemporaryFile("w", suffix=".ids") as file:
            file.write("\n".join(map(str, token_ids(count, self.ids))))
            file.flush()
            command = [self.path, "run", model, "--ids-file", file.name, "--threads",
                       str(self.args.threads), "--quiet"]
            repetitions = str(max(2, self.args.repetitions))
            if cell.kind == "pp":
                done = run(command + ["--gen", "1", "--bench", repetitions])
                return find_rate(done, "prefill")
            if cell.kind == "tg":
                done = run(command + ["--gen", str(cell.count + 1), "--bench",
                                      repetitions, "--bench-depth", str(cell.depth)])
                return find_rate(done, "decode")
            if cell.kind == "streams":
                done = run(command + ["--gen", str(STREAM_TOKENS + 1), "--streams",
                                      str(cell.count)])
                return find_rate(done, "decode-batch")
            done = run(command + ["--gen", "1"])
            return done.seconds if cell.kind == "load" else done.peak_bytes / 1e6


# --- peers ---------------------------------------------------------------------------


def bench_row(out, cell):
    """The figure of a cell in what llama-bench -o json prints."""
    start, end = out.find("["), out.rfind("]")
    try:
        rows = json.loads(out[start:end + 1])
    except ValueError as error:
        raise GateError(f"peer: no JSON in: {out[-400:]}") from error
    for row in rows:
        prompt, wrote = row["n_prompt"], row["n_gen"]
        if cell.kind == "pp" and (prompt, wrote) == (cell.count, 0):
            return row["avg_ts"]
        # One build counts the depth as a prompt, another on its own.
        depth = row.get("n_depth", 0) or prompt
        if cell.kind == "tg" and (depth, wrote) == (cell.depth, cell.count):
            return row["avg_ts"]
    raise GateError(f"peer: no row for {cell.name} in: {out[-400:]}")


def batched_row(out, streams):
    """Tokens written per second by all streams, in llama-batched-bench's table."""
    for line in out.splitlines():
        fields = [field.strip() for field in line.strip().strip("|").split("|")]
        if len(fields) >= 8 and fields[2] == str(streams) and fields[0].isdigit():
            return float(fields[7])
    raise GateError(f"peer: no row for {streams} streams in: {out[-400:]}")


class Peer:
    def __init__(self, bench, batched, args):
        self.bench, self.batched, self.args = bench, batched, args
        self.name = (bench or batched).name

    def can(self, cell):
        """None, or why it cannot measure the cell."""
        if cell.kind == "streams":
            return None if self.batched else "no --peer-batched of its name"
        if self.bench is None:
            return "no --peer of its name"
        if cell.depth and self.depth_flag() is None:
            return "its llama-bench knows no depth"
        return None

    def depth_flag(self):
        """Builds name it differently; other options begin with the same letters."""
        for flag in ("-d", "-gp"):
            if re.search(rf"^\s*{flag}[ ,]", self.bench.options(), re.M):
                return flag
        return None

    def measure(self, model, cell):
        threads = str(self.args.threads)
        if cell.kind == "streams":
            command = [self.batched.path, "-m", model, "-t", threads, "-tb", threads,
                       "-ngl", "0", "-npp", str(STREAM_PROMPT), "-ntg",
                       str(STREAM_TOKENS), "-npl", str(cell.count), "-c",
                       str((STREAM_PROMPT + STREAM_TOKENS) * cell.count)]
            done = run(command + self.batched.arguments)
            return batched_row(done.out + done.err, cell.count)
        command = [self.bench.path, "-m", model, "-t", threads, "-ngl", "0", "-o",
                   "json"]
        if cell.less_is_better:
            warmup = ["--no-warmup"] if "--no-warmup" in self.bench.options() else \
                ["-w", "0"]
            done = run(command + ["-p", "1", "-n", "0", "-r", "1", *warmup,
                                  *self.bench.arguments])
            return done.seconds if cell.kind == "load" else done.peak_bytes / 1e6
        command += ["-r", str(self.args.repetitions)]
        if cell.kind == "pp":
            command += ["-p", str(cell.count), "-n", "0"]
        elif cell.depth and self.depth_flag() == "-gp":
            command += ["-p", "0", "-n", "0", "-gp", f"{cell.depth},{cell.count}"]
        else:
            command += ["-p", "0", "-n", str(cell.count)]
            if cell.depth:
                command += ["-d", str(cell.depth)]
        return bench_row(run(command + self.bench.arguments).out, cell)


def pair_peers(benches, batched, args):
    by_name = {program.name: program for program in batched}
    peers = [Peer(bench, by_name.pop(bench.name, None), args) for bench in benches]
    return peers + [Peer(None, program, args) for program in by_name.values()]


# --- arithmetic ----------------------------------------------------------------------


def variation(samples):
    if len(samples) < 2:
        return 0.0
    return statistics.stdev(samples) / statistics.mean(samples)


def ratios_of(ours, peer, less_is_better):
    """Round by round; above 1 is better for us."""
    return [p / o if less_is_better else o / p for o, p in zip(ours, peer)]


def bootstrap(ratios, draws=2000):
    """The 95 % interval of the median under resampling of the rounds."""
    source = random.Random(1)
    medians = sorted(statistics.median(source.choices(ratios, k=len(ratios)))
                     for _ in range(draws))
    return medians[int(0.025 * draws)], medians[int(0.975 * draws) - 1]


def judge(ratio, minimum, noise, max_cv, allow_noisy, probes_low=False):
    if ratio < minimum:
        return "FAIL"
    if (noise > max_cv or probes_low) and not allow_noisy:
        return "NOISY"
    return "PASS"


class Row:
    """A cell of one model, judged against the better peer."""

    def __init__(self, cell, samples, args, probes_low=False):
        self.cell = cell
        self.ours = samples["fucina"]
        peers = {name: s for name, s in samples.items() if name != "fucina"}
        pick = min if cell.less_is_better else max
        self.peer = pick(peers, key=lambda name: statistics.median(peers[name]))
        self.theirs = peers[self.peer]
        self.ratios = ratios_of(self.ours, self.theirs, cell.less_is_better)
        self.ratio = statistics.median(self.ratios)
        self.interval = bootstrap(self.ratios)
        self.noise = max(variation(self.ours), variation(self.theirs))
        self.verdict = judge(self.ratio, cell.minimum, self.noise, args.max_cv,
                             args.allow_noisy, probes_low)

    def line(self, model):
        def figure(samples):
            digits = 2 if self.cell.kind == "load" else 1
            median, low, high = (f"{value:.{digits}f}" for value in
                                 (statistics.median(samples), min(samples), max(samples)))
            return f"{median} [{low}..{high}] {self.cell.unit}"
        low, high = self.interval
        return (f"| {os.path.basename(model)} | {self.cell.name} | {self.peer} | "
                f"{figure(self.theirs)} | {figure(self.ours)} | {self.ratio:.2f} "
                f"[{min(self.ratios):.2f}..{max(self.ratios):.2f}] | {low:.2f}..{high:.2f}"
                f" | {self.cell.minimum:.2f} | {self.noise:.0%} | {self.verdict} |")


HEAD = ("| file | cell | better peer | peer | fucina | ratio | 95 % | needed | noise | "
        "verdict |\n| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")


# --- the run -------------------------------------------------------------------------


class Probe:
    """The roofs of this minute, beside every sample."""

    def __init__(self, path, threads, minimum):
        self.path, self.threads, self.minimum = path, threads, minimum
        self.best, self.seen = {}, []

    def ready(self):
        """Whether the machine is as fast as it has been, now."""
        if self.path is None:
            return True
        done = run([self.path, "--quick", "--threads", str(self.threads)])
        now = {k: v for k, v in json.loads(done.out).items() if k != "threads"}
        self.seen.append(now)
        for key, value in now.items():
            self.best[key] = max(value, self.best.get(key, 0))
        return all(value >= self.minimum * self.best[key]
                   for key, value in now.items())


def read_through(path):
    """Brings a file into the page cache."""
    with open(path, "rb") as file:
        while file.read(64 << 20):
            pass


class Gate:
    def __init__(self, args, cells, engines, probe):
        self.args, self.cells, self.engines, self.probe = args, cells, engines, probe
        self.samples = {}     # (model, cell name) → engine → values
        self.low_probes = set()
        self.notes = []

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)
            print(f"paired_gate: {text}", file=sys.stderr)

    def sample(self, engine, model, cell):
        for attempt in range(PROBE_RETRIES + 1):
            fast = self.probe.ready()
            value = engine.measure(model, cell)
            if fast:
                return value
            if attempt < PROBE_RETRIES:
                print("paired_gate: the probe is low, once more", file=sys.stderr)
        self.low_probes.add((model, cell.name))
        return value

    def measure(self):
        for number in range(self.args.rounds):
            for model in self.args.model:
                read_through(model)
                for cell in self.cells:
                    self.measure_cell(number, model, cell)
            self.write()

    def measure_cell(self, number, model, cell):
        able = []
        for engine in self.engines:
            why_not = engine.can(cell)
            if why_not is None:
                able.append(engine)
            else:
                self.note(f"{cell.name} of {engine.name} is left out: {why_not}")
        if len(able) < 2:  # fucina alone
            self.note(f"{cell.name} is left out: no peer can measure it")
            return
        if number % 2:
            able.reverse()
        for engine in able:
            value = self.sample(engine, model, cell)
            self.samples.setdefault((model, cell.name), {}).setdefault(
                engine.name, []).append(value)
            print(f"round {number + 1}: {os.path.basename(model)} {cell.name} "
                  f"{engine.name} {value:.1f} {cell.unit}", file=sys.stderr)

    def rows(self):
        for model in self.args.model:
            for cell in self.cells:
                samples = self.samples.get((model, cell.name))
                # A run that broke off leaves the last round of a cell unfinished.
                if samples and len({len(s) for s in samples.values()}) == 1 and \
                        "fucina" in samples and len(samples) > 1:
                    yield model, Row(cell, samples, self.args,
                                     (model, cell.name) in self.low_probes)

    def table(self):
        lines = [HEAD] + [row.line(model) for model, row in self.rows()]
        lines += [f"\n{note}." for note in self.notes]
        if self.probe.seen:
            spread = ", ".join(
                f"{key} {statistics.median(p[key] for p in self.probe.seen):.1f} "
                f"[{min(p[key] for p in self.probe.seen):.1f}.."
                f"{max(p[key] for p in self.probe.seen):.1f}]"
                for key in self.probe.best)
            lines.append(f"\nProbes: {spread}.")
        return "\n".join(lines)

    def write(self):
        if self.args.markdown:
            with open(self.args.markdown, "w", encoding="utf-8") as file:
                file.write(self.table() + "\n")
        if self.args.json:
            rows = [{"model": os.path.basename(model), "cell": row.cell.name,
                     "unit": row.cell.unit, "better_peer": row.peer,
                     "ratio": row.ratio, "ratios": row.ratios,
                     "interval": row.interval, "needed": row.cell.minimum,
                     "noise": row.noise, "verdict": row.verdict,
                     "samples": self.samples[(model, row.cell.name)]}
                    for model, row in self.rows()]
            with open(self.args.json, "w", encoding="utf-8") as file:
                json.dump({"version": 1, "threads": self.args.threads,
                           "rounds": self.args.rounds, "notes": self.notes,
                           "probes": self.probe.seen, "rows": rows}, file, indent=1)

    def passed(self):
        judged = list(self.rows())
        return bool(judged) and all(row.verdict == "PASS" for _, row in judged)


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fucina", required=True)
    parser.add_argument("--peer", action="append", type=Program, default=[],
                        help="a llama-bench program; may be given several times")
    parser.add_argument("--peer-batched", action="append", type=Program, default=[],
                        help="a llama-batched-bench program")
    parser.add_argument("--model", action="append", required=True)
    for kind in ("pp", "tg", "streams"):
        parser.add_argument(f"--{kind}", action="append", type=parse_cells(kind),
                            default=[])
    parser.add_argument("--load", nargs="?", type=float, const=1.0, metavar="MIN")
    parser.add_argument("--memory", nargs="?", type=float, const=1.0, metavar="MIN")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--ids-file", help="token ids for fucina, text in between")
    parser.add_argument("--probe", help="our roofline_probe")
    parser.add_argument("--min-probe", type=float, default=0.85)
    parser.add_argument("--max-cv", type=float, default=0.08)
    parser.add_argument("--allow-noisy", action="store_true")
    parser.add_argument("--json", help="write all samples to this file")
    parser.add_argument("--markdown", help="write the table to this file too")
    args = parser.parse_args(arguments)
    if not args.peer and not args.peer_batched:
        parser.error("name at least one --peer or --peer-batched")
    names = [program.name for program in args.peer]
    for name in names:
        if names.count(name) > 1 or name == "fucina":
            parser.error(f"two programs are called '{name}'; name them NAME=PROGRAM")
    return args


def main(arguments=None):
    args = parse_arguments(arguments)
    cells = [cell for kind in (args.pp, args.tg, args.streams)
             for group in kind for cell in group]
    cells += [Cell("load", minimum=args.load)] if args.load is not None else []
    cells += [Cell("memory", minimum=args.memory)] if args.memory is not None else []
    gate = None
    try:
        if not cells:
            raise GateError("name at least one cell: --pp, --tg, --streams, --load, "
                            "--memory")
        for path in [args.fucina, *args.model, *([args.probe] if args.probe else []),
                     *(p.path for p in args.peer + args.peer_batched)]:
            if not os.path.isfile(path):
                raise GateError(f"{path}: no such file")
        ids = None
        if args.ids_file:
            with open(args.ids_file, encoding="utf-8") as file:
                ids = [int(word) for word in re.split(r"[\s,]+", file.read()) if word]
        peers = pair_peers(args.peer, args.peer_batched, args)
        gate = Gate(args, cells, peers + [Fucina(args.fucina, args, ids)],
                    Probe(args.probe, args.threads, args.min_probe))
        gate.measure()
    except (GateError, OSError, ValueError) as error:
        print(f"paired_gate: {error}", file=sys.stderr)
        if gate is not None:
            gate.write()
            print(gate.table())
        return 2
    print(gate.table())
    return 0 if gate.passed() else 1


if __name__ == "__main__":
    sys.exit(main())
