#!/usr/bin/env python3
"""Tokens per forward: fucina's drafter against llama.cpp's n-gram modes.

Usage:  ngram_drafting.py --fucina build/release/bin/fucina --peer FOLDER \\
                          [--model models/atlas-6m-q8_0.gguf] [--draft 8]

FOLDER holds llama.cpp's own examples llama-lookup and llama-speculative-simple
(cmake -DLLAMA_BUILD_EXAMPLES=ON); nothing here builds or ships them. Both sides
decode greedily behind the same prompts, so both write the same text and only
how they guess differs; a text that differs all the same (two tokens within
rounding of each other) is marked with "!".

Tokens per forward count every forward behind the prompt's own: what a forward
commits is one token and the accepted drafts. Time is not compared here.

Written against llama.cpp 0c1e57098 (as in llama-cpp-python 0.3.36). Needs
Python 3.9 or later, nothing else.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile



def chat(*turns):
    """Questions and answers, and room for the next answer."""
    text = ""
    for i, turn in enumerate(turns):
        role = "user" if i % 2 == 0 else "assistant"
        text += "<|im_start|>%s\n%s<|im_end|>\n" % (role, turn)
    return text + "<|im_start|>assistant\n<think>\n\n</think>\n\n"


def record(country, capital, continent, currency):
    return ('{"country": "%s", "capital": "%s", "continent": "%s", '
            '"currency": "%s"}' % (country, capital, continent, currency))


FRANCE = record("France", "Paris", "Europe", "Euro")
PERU = record("Peru", "Lima", "South America", "Peruvian Sol")
NOTE = ("Note: the red lamp is in the kitchen, the blue lamp is in the garden "
        "and the green lamp is in the hall.")

CODE = """\
def capital(country):
    if country == "France":
        return "Paris"
    if country == "Peru":
        return "Lima"
    raise KeyError(country)

"""

# Kind and prompt. The model is small: it answers questions about countries,
# repeats what stands above, and else wanders or runs in circles.
PROMPTS = [
    ("copy", chat("Describe France as JSON.", FRANCE,
                  "Describe France as JSON.")),
    ("copy", chat("Describe Peru as JSON.", PERU, "Describe France as JSON.",
                  FRANCE, "Describe Peru as JSON.")),
    ("copy", chat("Repeat: " + NOTE, NOTE, "Repeat: " + NOTE)),
    ("copy", "alpha: red, beta: green, gamma: blue; " * 4 + "alpha"),
    ("copy", "one two three four five six seven eight " * 3 + "one two"),
    ("edit", chat("Describe France as JSON.", FRANCE,
                  "Describe Peru as JSON.")),
    ("edit", chat("Describe France as JSON.", FRANCE, "Describe Peru as JSON.",
                  PERU, "Describe Japan as JSON.")),
    ("edit", CODE + CODE.replace("capital", "city") + CODE[:20]),
    ("edit", "<user><name>Ann</name><age>31</age></user>\n"
     "<user><name>Bob</name><age>28</age></user>\n<user><name>Cid"),
    ("free", chat("What is the capital of Chile?")),
    ("free", chat("Tell me about Norway.")),
    ("free", chat("Which languages are spoken in Switzerland?")),
    ("free", "The capital of Chile is"),
    ("free", "Tell me about Norway. Norway is"),
    ("free", "Once upon a time there was a"),
]

# Name, program, arguments.
PEER_MODES = [
    ("lookup", "llama-lookup", []),
    ("ngram-cache", "llama-speculative-simple", ["--spec-type", "ngram-cache"]),
    ("ngram-simple", "llama-speculative-simple",
     ["--spec-type", "ngram-simple"]),
    ("ngram-map-k", "llama-speculative-simple", ["--spec-type", "ngram-map-k"]),
    ("ngram-map-k4v", "llama-speculative-simple",
     ["--spec-type", "ngram-map-k4v"]),
    ("ngram-mod", "llama-speculative-simple", ["--spec-type", "ngram-mod"]),
]


class Run:
    """What one program wrote, in how many forwards."""

    def __init__(self, text, tokens, drafted, accepted):
        self.text, self.tokens = text, tokens
        self.drafted, self.accepted = drafted, accepted

    @property
    def per_forward(self):
        return self.tokens / max(1, self.tokens - self.accepted)


def output(command):
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode != 0:
        sys.exit("%s\n%s" % (" ".join(command), done.stderr))
    return done.stdout, done.stderr


def run_fucina(args, prompt, tokens):
    command = [args.fucina, "run", args.model, "--prompt", prompt, "--temp",
               "0"]
    # A completion goes on behind an end token, the peer does not.
    out, _ = output([args.fucina, "run", args.model, "--info"])
    stops = re.search(r"^stop tokens: (.*)$", out, re.M).group(1).split()
    out, _ = output(command + ["--gen", str(tokens)])
    ids = re.search(r"^generated \d+: (.*)$", out, re.M).group(1).split()
    written = 1 + next((i for i, id in enumerate(ids) if id in stops),
                       len(ids) - 1)
    out, _ = output(command + ["--gen", str(written), "--spec"]
                    + args.fucina_args.split())
    accepted, drafted = map(int, re.search(
        r"^drafts: (\d+)/(\d+) accepted", out, re.M).groups())
    text = out[out.index("\ntext:   ") + len("\ntext:   "):]
    # The first token comes from the prompt's logits, without a forward.
    return Run(text[len(prompt):].rstrip("\n"), written - 1, drafted, accepted)


def run_peer(args, mode, prompt, tokens):
    name, program, extra = mode
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "prompt.txt")
        with open(path, "w") as f:
            # The peer drops one line end.
            f.write(prompt + "\n" * prompt.endswith("\n"))
        command = [os.path.join(args.peer, program), "-m", args.model, "-f",
                   path, "-n", str(tokens), "--temp", "0", "-t", "1", "-c",
                   "2048"] + extra
        if args.draft:
            # Some modes have their own word for the length of a draft.
            if name in ("ngram-simple", "ngram-map-k", "ngram-map-k4v"):
                command += ["--spec-%s-size-m" % name, str(args.draft)]
            elif name == "ngram-mod":
                command += ["--spec-ngram-mod-n-max", str(args.draft),
                            "--spec-ngram-mod-n-min", "1"]
            else:
                command += ["--spec-draft-n-max", str(args.draft)]
        if name == "lookup":
            command += ["-lcd", os.path.join(folder, "dynamic.bin")]
        for _ in range(50):
            out, err = output(command)
            # Its log comes from another thread, which the end may cut off.
            found = {key: int(value) for key, value in re.findall(
                r"\b(n_predict|n_drafted|n_accept)\s*=\s*(\d+)", out + err)}
            if len(found) == 3:
                break
    start = out.find(prompt)
    text = out[start + len(prompt):] if start >= 0 else out
    # As with us, but for the programs that read the last token of the prompt
    # with the first draft.
    first = 1 if name == "lookup" else 0
    return Run(text, found["n_predict"] - first, found["n_drafted"],
               found["n_accept"])


def main():
    ap = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--fucina", required=True)
    ap.add_argument("--peer", required=True)
    ap.add_argument("--model", default="models/atlas-6m-q8_0.gguf")
    ap.add_argument("--tokens", type=int, default=200)
    ap.add_argument("--draft", type=int, default=0,
                    help="drafted tokens per forward of the peer; 0: its own")
    ap.add_argument("--fucina-args", default="")
    args = ap.parse_args()

    names = [mode[0] for mode in PEER_MODES]
    print("%-6s %-6s %-6s %8s " % ("kind", "prompt", "tokens", "fucina")
          + " ".join("%13s" % name for name in names))
    sums = {}
    for number, (kind, prompt) in enumerate(PROMPTS, 1):
        ours = run_fucina(args, prompt, args.tokens)
        cells = []
        for mode in PEER_MODES:
            theirs = run_peer(args, mode, prompt, args.tokens)
            # The peer may stop after the asked number or one more.
            length = min(len(ours.text), len(theirs.text.rstrip("\n"))) - 8
            same = ours.text[:length] == theirs.text[:length]
            cells.append("%12.2f%s" % (theirs.per_forward, " " if same else "!"))
            sums.setdefault((kind, mode[0]), []).append(theirs)
        sums.setdefault((kind, "fucina"), []).append(ours)
        print("%-6s %6d %6d %8.2f " % (kind, number, ours.tokens,
                                       ours.per_forward) + " ".join(cells))
    for kind in ("copy", "edit", "free"):
        def per_forward(name):
            runs = sums[kind, name]
            tokens = sum(run.tokens for run in runs)
            return tokens / sum(run.tokens - run.accepted for run in runs)
        print("%-6s %6s %6s %8.2f " % (kind, "all", "", per_forward("fucina"))
              + " ".join("%12.2f " % per_forward(name) for name in names))


if __name__ == "__main__":
    main()
