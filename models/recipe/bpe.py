"""Byte-level BPE with the qwen2 pre-tokenizer: trainer, encoder, decoder.

usage: bpe.py facts.json tokenizer.json     train on the corpus
"""
import collections
import heapq
import json
import random
import re
import sys
import unicodedata

SPECIALS = [  # text, GGUF class (3 control, 4 user-defined), in the order of the Qwen3 vocabulary
    ("<|endoftext|>", 3), ("<|im_start|>", 3), ("<|im_end|>", 3), ("<|object_ref_start|>", 3), ("<|object_ref_end|>", 3),
    ("<|box_start|>", 3), ("<|box_end|>", 3), ("<|quad_start|>", 3), ("<|quad_end|>", 3), ("<|vision_start|>", 3),
    ("<|vision_end|>", 3), ("<|vision_pad|>", 3), ("<|image_pad|>", 3), ("<|video_pad|>", 3), ("<tool_call>", 4),
    ("</tool_call>", 4), ("<|fim_prefix|>", 3), ("<|fim_middle|>", 3), ("<|fim_suffix|>", 3), ("<|fim_pad|>", 3),
    ("<|repo_name|>", 3), ("<|file_sep|>", 3), ("<tool_response>", 4), ("</tool_response>", 4), ("<think>", 4),
    ("</think>", 4)]
N_MERGES, N_ROWS = 3800, 4096

PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
ORDER = PRINTABLE + [b for b in range(256) if b not in set(PRINTABLE)]
TO_CHAR = {b: chr(b) for b in PRINTABLE}
TO_CHAR.update({b: chr(0x100 + i) for i, b in enumerate(ORDER[len(PRINTABLE):])})
TO_BYTE = {c: b for b, c in TO_CHAR.items()}

# The qwen2 rules with what Python's re can say: [^\W\d_] stands for a letter. Equal to the scanner below on this corpus.
PIECE = re.compile(r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|(?:[^\r\n\w]|_)?[^\W\d_]+|\d| ?(?:[^\s\w]|_)+[\r\n]*"
                   r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SPACE = set(map(chr, [*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F,
                      0x3000]))


def pieces(t):
    """The exact qwen2 pre-tokenizer, as a scanner over code points."""
    kind = ["s" if ch in SPACE else unicodedata.category(ch)[0] for ch in t]
    n, p = len(t), 0
    while p < n:
        low = t[p + 1:p + 3].lower() if t[p + 1:p + 3].isascii() else ""
        if t[p] == "'" and low[:1] in ("s", "t", "m", "d") and low[:1]:
            q = p + 2
        elif t[p] == "'" and low in ("re", "ve", "ll"):
            q = p + 3
        elif t[p] not in "\r\n" and kind[p] != "N" and (kind[p] == "L" or (p + 1 < n and kind[p + 1] == "L")):
            q = p + 1
            while q < n and kind[q] == "L":
                q += 1
        elif kind[p] == "N":
            q = p + 1
        else:
            j = p + (t[p] == " ")
            if j >= n or kind[j] not in "sLN":
                q = j
                while q < n and kind[q] not in "sLN":
                    q += 1
                while q < n and t[q] in "\r\n":
                    q += 1
            else:
                q = p
                while q < n and kind[q] == "s":
                    q += 1
                line = max(t.rfind("\n", p, q), t.rfind("\r", p, q))
                if line >= 0:
                    q = line + 1
                elif q - p > 1 and q < n:
                    q -= 1
        yield t[p:q]
        p = q


def mapped(piece):
    return "".join(TO_CHAR[b] for b in piece.encode("utf-8"))


def train(counts, n_merges):
    words = [[list(mapped(w)), n] for w, n in counts.items()]
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for i, (w, n) in enumerate(words):
        for p in zip(w, w[1:]):
            pairs[p] += n
            where[p].add(i)
    heap = [(-n, p) for p, n in pairs.items()]
    heapq.heapify(heap)
    merges = []
    while heap and len(merges) < n_merges:
        n, p = heapq.heappop(heap)
        if pairs[p] != -n:
            if pairs[p] > 0:
                heapq.heappush(heap, (-pairs[p], p))
            continue
        if -n < 2:
            break
        merges.append(p)
        changed = set()
        for i in where.pop(p):
            w, c = words[i]
            for q in zip(w, w[1:]):
                pairs[q] -= c
                changed.add(q)
            out, k = [], 0
            while k < len(w):
                if k + 1 < len(w) and w[k] == p[0] and w[k + 1] == p[1]:
                    out.append(w[k] + w[k + 1])
                    k += 2
                else:
                    out.append(w[k])
                    k += 1
            words[i][0] = out
            for q in zip(out, out[1:]):
                pairs[q] += c
                where[q].add(i)
                changed.add(q)
        for q in changed:
            if pairs[q] > 0:
                heapq.heappush(heap, (-pairs[q], q))
    return merges


class Tokenizer:
    def __init__(self, path):
        d = json.load(open(path, encoding="utf-8"))
        self.set(d["tokens"], d["types"], [tuple(m) for m in d["merges"]])

    def set(self, tokens, types, merges):
        self.tokens, self.types, self.merges = tokens, types, merges
        self.ids = {}
        for i, t in enumerate(self.tokens):
            self.ids.setdefault(t, i)
        self.rank = {m: i for i, m in enumerate(self.merges)}
        self.special = {t: i for i, (t, k) in enumerate(zip(self.tokens, self.types)) if k in (3, 4)}
        self.split = re.compile("(" + "|".join(re.escape(s) for s in sorted(self.special, key=lambda s: -len(s))) + ")")
        self.cache = {}

    def bpe(self, piece):
        w = list(mapped(piece))
        while len(w) > 1:
            r, k = min((self.rank.get(p, 1 << 30), k) for k, p in enumerate(zip(w, w[1:])))
            if r == 1 << 30:
                break
            w[k:k + 2] = [w[k] + w[k + 1]]
        return [self.ids[s] for s in w]

    def encode(self, text, exact=False):
        out = []
        for part in self.split.split(text):
            if part in self.special:
                out.append(self.special[part])
                continue
            for p in (pieces(part) if exact else PIECE.findall(part)):
                got = self.cache.get(p)
                if got is None:
                    got = self.bpe(p)
                    if len(self.cache) < 200000:
                        self.cache[p] = got
                out += got
        return out

    def decode(self, ids, show_special=True):
        out = b""
        for i in ids:
            if self.types[i] == 1:
                out += bytes(TO_BYTE[c] for c in self.tokens[i])
            elif self.types[i] == 4 or show_special:
                out += self.tokens[i].encode("utf-8")
        return out.decode("utf-8", "replace")


def main(facts, out):
    from corpus import Corpus
    c, rng = Corpus(facts), random.Random(7)
    split = re.compile("|".join(re.escape(s) for s, _ in SPECIALS))
    counts, other = collections.Counter(), 0
    for _ in range(40000):
        text = "".join(t for t, _ in c.document(rng))
        for part in split.split(text):
            counts.update(PIECE.findall(part))
    for _ in range(300):
        text = "".join(t for t, _ in c.document(rng))
        for part in split.split(text):
            assert list(pieces(part)) == PIECE.findall(part), part
    for f in c.facts:                       # every fact word once more, in the forms in which people type it
        for text in (f["name"], f["capital"], f["currency"], " ".join(f["languages"]), f["native"], f["flag"]):
            for form in (text, " " + text):
                counts.update({p: 20 for p in PIECE.findall(form)})
                counts.update({p: 3 for p in PIECE.findall(form.lower())})
    merges = train(counts, N_MERGES)
    tokens = [TO_CHAR[b] for b in ORDER] + ["".join(m) for m in merges]
    assert len(set(tokens)) == len(tokens)
    types = [1] * len(tokens) + [k for _, k in SPECIALS]
    tokens += [s for s, _ in SPECIALS]
    tokens += [f"[PAD{i}]" for i in range(len(tokens), N_ROWS)]
    types += [5] * (N_ROWS - len(types))
    json.dump({"tokens": tokens, "types": types, "merges": merges}, open(out, "w", encoding="utf-8"),
              ensure_ascii=False)
    t = Tokenizer(out)
    n = [len(t.encode("".join(x for x, _ in c.document(rng)))) for _ in range(3000)]
    print(f"{len(counts)} pieces, {len(merges)} merges, {len(tokens)} rows, {sum(n) / len(n):.1f} tokens a document, "
          f"longest {max(n)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
