#!/usr/bin/env python3
"""Assembles the mixed text that compare_tokenizer.py encodes (about 24 MB).

    pip download --no-deps -d wheels django==5.2.1 faker==37.3.0
    for each wheel: python3 -m zipfile -e WHEEL sources/
    python3 tokenizer_corpus.py sources/ corpus/

One file per kind of text; the same bytes on every machine. Nothing of it is
committed. Excluded is only text on which the reference is known to differ by
design: an apostrophe followed by U+017F, which its caseless regular expression
takes for a contraction.
"""
import base64
import os
import random
import sys
import unicodedata

import unicodedata2  # 16.0.0, the version of our tables

SPECIALS = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>",
            "<tool_call>", "<|", "|>", "<|im_", "<thin", "<|im_start|", "<",
            "<|begin_of_text|>", "<|eot_id|>"]
CONTRACTIONS = ["'s", "'S", "'t", "'T", "'re", "'RE", "'Re", "'ve", "'vE", "'m",
                "'ll", "'LL", "'d", "'D", "'", "''", "'l", "'r", "'x", "’s"]
SPACES = [" ", "  ", "   ", "\t", "\t\t", "\n", "\n\n", "\r\n", "\r", "\r\n\r\n",
          " \n", "\n ", "\u00a0", "\u3000", "\u2003", "\u0085", "\u2028", "\v",
          "\u180e", "\u200b", "\ufeff"]
EMOJI = ["😀", "👨‍👩‍👧", "🏳️‍🌈", "👍🏽", "🇮🇹", "✈️", "❤️‍🔥", "🧑🏿‍🚀", "©", "™"]
SYMBOLS = ["->", "(x):\n", "!=", "...", "==", "=>", "{}", "()[];", "#!/", "##",
           "**", "```", "---", "|||", "$$", "+=", "&&", "~~", "/*", "*/", "\\n",
           '"""', "<<>>", "@", "%d", "::", "—", "…", "«", "»", "、", "。"]


def files(root, *suffixes):
    found = []
    for folder, _, names in os.walk(root):
        found += [os.path.join(folder, n) for n in names if n.endswith(suffixes)]
    return sorted(found, key=lambda p: os.path.relpath(p, root))


def joined(paths, limit):
    text = []
    size = 0
    for path in paths:
        with open(path, encoding="utf-8", errors="strict", newline="") as f:
            part = f.read()
        text.append(part)
        size += len(part.encode())
        if size >= limit:
            break
    return "".join(text)


def random_text(seed, size, alphabet, glue):
    rng = random.Random(seed)
    out = []
    total = 0
    while total < size:
        part = rng.choice(rng.choice([alphabet, glue]))
        if rng.random() < 0.1:
            part *= rng.randint(2, 9)
        out.append(part)
        total += len(part.encode())
    return "".join(out)


def main():
    source, out = sys.argv[1:3]
    os.makedirs(out, exist_ok=True)
    django = os.path.join(source, "django")
    faker = os.path.join(source, "faker")
    if not os.path.isdir(os.path.join(faker, "providers")):
        faker = source
    texts = {}
    texts["code"] = joined(files(django, ".py"), 5_000_000)
    texts["code_crlf"] = joined(files(django, ".py"), 1_000_000).replace("\n", "\r\n")
    texts["web"] = joined(files(django, ".js", ".css", ".html"), 2_000_000)
    po = joined(files(django, ".po"), 9_000_000)
    texts["languages"] = po
    texts["languages_nfd"] = unicodedata.normalize("NFD", po[:1_500_000])
    texts["languages_nfc"] = unicodedata.normalize("NFC", po[:1_500_000])
    texts["names"] = joined(files(faker, "__init__.py"), 4_000_000)
    texts["prose"] = joined(files(source, "METADATA", ".txt", ".rst", ".md"),
                            1_000_000)
    words = po.split()
    glue = SPACES + CONTRACTIONS + SYMBOLS + EMOJI + SPECIALS
    texts["glue"] = random_text(1, 1_500_000, words[:20000:7], glue)
    texts["glue_only"] = random_text(2, 700_000, glue, SPACES)
    digits = [str(10 ** n + 7 * n) for n in range(20)] + ["٣", "½", "Ⅷ", "²", "1,000.5"]
    texts["digits"] = random_text(3, 300_000, digits, SYMBOLS + SPACES + words[:200])
    every = [chr(c) for c in range(0x110000)
             if not 0xD800 <= c < 0xE000
             and unicodedata2.category(chr(c)) not in ("Cn", "Co")]
    texts["every_character"] = "".join(every)
    texts["every_character_mixed"] = random_text(4, 1_500_000, every,
                                                 ["a", " ", "1", "\n", "."] + SPACES)
    marks = [c for c in every if unicodedata2.category(c)[0] == "M"]
    letters = [c for c in every if unicodedata2.category(c)[0] == "L"][:3000]
    texts["marks"] = random_text(5, 400_000, marks, letters + [" ", "."])
    rng = random.Random(6)
    texts["base64"] = base64.b64encode(rng.randbytes(300_000)).decode()
    cjk = [c for c in every if 0x4E00 <= ord(c) < 0x9FA6]
    texts["cjk_run"] = "".join(rng.choices(cjk, k=100_000))
    texts["runs"] = "".join(c * n for c in "a =-_\n\t0é中" for n in
                            (1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 63, 64, 100, 999))
    total = 0
    for name, text in sorted(texts.items()):
        data = text.replace("'\u017f", "'").encode()
        total += len(data)
        with open(os.path.join(out, name + ".txt"), "wb") as f:
            f.write(data)
    print(f"{len(texts)} files, {total} bytes")


if __name__ == "__main__":
    main()
