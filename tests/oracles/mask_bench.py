#!/usr/bin/env python3
"""Times masks over a sample of MaskBench.

    git clone https://github.com/guidance-ai/jsonschemabench
    git -C jsonschemabench checkout ba103c73756198dd9b149ddc7db7867da7a077f6
    cmake --build build/release --target mask_cost
    python3 mask_bench.py jsonschemabench/maskbench/data \\
        build/release/bin/mask_cost model.gguf [--schemas 400]

The sample is every n-th file of the sorted folder; the valid instances of each
schema are walked.
"""
import argparse
import json
import os
import subprocess
import tempfile


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--schemas", type=int, default=400)
    args = parser.parse_args()
    names = sorted(os.listdir(args.data))
    step = max(1, len(names) // args.schemas)
    entries = []
    for name in names[::step][:args.schemas]:
        with open(os.path.join(args.data, name), encoding="utf-8") as f:
            data = json.load(f)
        entries.append({
            "schema": json.dumps(data["schema"]),
            "instances": [json.dumps(t["data"], ensure_ascii=False)
                          for t in data["tests"] if t["valid"]]})
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "list.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(entries, f)
        subprocess.run([args.program, args.model, path], check=True)


if __name__ == "__main__":
    main()
