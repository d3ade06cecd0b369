#!/usr/bin/env python3
"""Compares fucina's logits with a recorded golden or a full dump.

Usage:  compare_logits.py --type q8_0 --golden GOLDENS.txt --model M.gguf \\
                          --fucina build/release/bin/fucina
        compare_logits.py --type q8_0 --golden GOLDENS.txt --model M.gguf \\
                          --ours OURS.f32
        compare_logits.py --type q8_0 --reference THEIRS.f32 --ours OURS.f32

The model's golden is the one recorded under its file name; the file must be the
one recorded. The first form runs the program with the golden's token ids. Prints the figures and the verdict;
exits 1 when a threshold of the weights' type is missed. The thresholds are
those of logit_golden.THRESHOLDS. A different best token is benign only if the
reference's gap between the two is at most twice the largest difference.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import logit_golden


def run_fucina(program, model, ids, extra):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "logits.f32")
        command = [program, "run", model, ",".join(map(str, ids)),
                   "--logits-out", out] + extra
        subprocess.run(command, check=True)
        return logit_golden.read_dump(out)


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--type", required=True,
                    choices=sorted(logit_golden.THRESHOLDS))
    ap.add_argument("--golden")
    ap.add_argument("--reference", help="raw f32 logits of the other engine")
    ap.add_argument("--ours", help="raw f32 logits of fucina")
    ap.add_argument("--model")
    ap.add_argument("--fucina", help="program to run")
    ap.add_argument("--extra", default="", help="more options for the program")
    a = ap.parse_args()
    if bool(a.golden) == bool(a.reference):
        ap.error("give one of --golden and --reference")
    golden = None
    if a.golden:
        if not a.model:
            ap.error("--golden needs --model")
        name = os.path.basename(a.model)
        golden = logit_golden.read(a.golden).get(name)
        if golden is None:
            sys.exit("%s has no golden of %s" % (a.golden, name))
        size, crc = logit_golden.file_identity(a.model)
        if (size, crc) != (golden.size, golden.crc):
            sys.exit("%s: %d bytes, CRC %s; the golden was recorded from %d, %s"
                     % (a.model, size, crc, golden.size, golden.crc))
    if a.ours:
        ours = logit_golden.read_dump(a.ours)
    elif golden and a.fucina:
        ours = run_fucina(a.fucina, a.model, golden.ids, a.extra.split())
    else:
        ap.error("give --ours, or --golden with --fucina")

    if golden:
        count, mean = golden.count, golden.mean
        pairs = list({**dict(golden.sample), **dict(golden.top)}.items())
        top = golden.top
    else:
        theirs = logit_golden.read_dump(a.reference)
        count, (mean, _) = len(theirs), logit_golden.summary(theirs)
        pairs = list(enumerate(theirs))
        top = [(i, theirs[i]) for i in logit_golden.ranked(theirs, 64)]
    if len(ours) != count:
        sys.exit("%d logits, the reference has %d" % (len(ours), count))

    cosine, rms, worst = logit_golden.compare(ours, pairs, mean)
    best = logit_golden.ranked(ours, 5)
    known = dict(pairs)
    gap = top[0][1] - known.get(best[0], float("-inf"))
    aligned = best[0] == top[0][0]
    near_tie = not aligned and gap <= 2 * worst
    want_cosine, want_rms, want_worst = logit_golden.THRESHOLDS[a.type]
    print("compared %d of %d logits" % (len(pairs), count))
    print("cosine %.9f (at least %g)" % (cosine, want_cosine))
    print("relative RMS %.3g (at most %g)" % (rms, want_rms))
    print("largest difference %.3g (at most %g)" % (worst, want_worst))
    print("top 5 ours      " + " ".join("%d:%.4f" % (i, ours[i]) for i in best))
    print("top 5 reference " + " ".join("%d:%.4f" % p for p in top[:5]))
    print("top aligned: %s" % ("yes" if aligned else
                               "near tie" if near_tie else "no"))
    good = (cosine >= want_cosine and rms <= want_rms and worst <= want_worst
            and (aligned or near_tie))
    print("PASS" if good else "FAIL")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
