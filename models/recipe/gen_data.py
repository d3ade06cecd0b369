#!/usr/bin/env python3
"""Token file for train_dense.cc, which says what it holds.

usage: gen_data.py facts.json tokenizer.json out.bin DOCUMENTS [SEED] [STAGE 0|1|2|3 [hard.json]]
"""
import random
import struct
import sys

import numpy as np

from bpe import Tokenizer
from corpus import Corpus


def main(facts, tokenizer, out, n, seed="1", stage="0", hard=None):
    c, t, rng = Corpus(facts, hard), Tokenizer(tokenizer), random.Random(int(seed))
    c.MIX = c.STAGES[int(stage)]
    total = 0
    with open(out, "wb") as f:
        f.write(struct.pack("<I", int(n)))
        for _ in range(int(n)):
            ids, loss = [], []
            for text, mode in c.document(rng):
                got = t.encode(text)
                ids += got
                loss += [mode == 1] + [mode > 0] * (len(got) - 1)
            total += len(ids)
            f.write(struct.pack("<I", len(ids)) + np.array(ids, "<u2").tobytes() + np.array(loss, np.uint8).tobytes())
    print(total, "tokens")


if __name__ == "__main__":
    main(*sys.argv[1:])
