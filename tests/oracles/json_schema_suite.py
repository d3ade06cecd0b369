#!/usr/bin/env python3
"""Records what constrained decoding makes of the JSON Schema Test Suite.

    git clone https://github.com/json-schema-org/JSON-Schema-Test-Suite suite
    git -C suite checkout 44401e0c046704b476ec9d2e2fccdaee618f259d
    pip install 'jsonschema[format]==4.26.0' regex==2026.11.19
    cmake --build build/release --target record_schemas
    python3 json_schema_suite.py suite build/release/bin/record_schemas \\
        ../goldens/constrained/json_schema_suite.json

The suite says which instances are valid. For every schema that the engine
takes, 200 complete replies of the embedded model at temperature 1 are sampled
and held against python jsonschema, the independent validator; a reply that is
no instance is printed, counted as invalid, and fails the run. A reply is
complete when the grammar is before its 160 tokens are used up. Where --draws
replies do not hold 200 such, other prompts are drawn from as well.
"""
import argparse
import collections
import fractions
import glob
import importlib.metadata
import json
import os
import subprocess
import tempfile

import jsonschema
import jsonschema._keywords
import regex

# Python's own re knows no \\p{…}, which the suite uses.
jsonschema._keywords.re = regex

DRAFT = "tests/draft2020-12"
PROMPT = "Describe Spain as JSON."
# For schemas whose replies to the first seldom end: free text and lists end
# sooner where something short is asked for, and a word behind quotes.
MORE_PROMPTS = ["Describe France as JSON.", "One digit:", '"a"', 'a"b"c"d"e"']
# The formats that the engine knows.
FORMATS = ["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6",
           "time", "uri", "uuid"]


def read_groups(suite):
    root = os.path.join(suite, DRAFT)
    files = sorted(glob.glob(os.path.join(root, "*.json")))
    files += [os.path.join(root, "optional", "format", f + ".json")
              for f in FORMATS]
    for path in files:
        with open(path, encoding="utf-8") as f:
            for group in json.load(f):
                yield os.path.relpath(path, root), group


def text(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def multiple_of(validator, divisor, instance, schema):
    """The keyword in exact arithmetic: in binary, 4.4472 / 0.0001 is not whole."""
    if validator.is_type(instance, "number"):
        if fractions.Fraction(repr(instance)) % fractions.Fraction(repr(divisor)):
            yield jsonschema.ValidationError(f"{instance} is no multiple")


Validator = jsonschema.validators.extend(jsonschema.Draft202012Validator,
                                         {"multipleOf": multiple_of})


def is_valid(schema, sample):
    validator = Validator(schema, format_checker=Validator.FORMAT_CHECKER)
    try:
        return validator.is_valid(json.loads(sample))
    except json.JSONDecodeError:
        return False


def ask(program, requests):
    with tempfile.TemporaryDirectory() as folder:
        request = os.path.join(folder, "in.json")
        answer = os.path.join(folder, "out.json")
        with open(request, "w", encoding="utf-8") as f:
            json.dump(requests, f)
        subprocess.run([program, request, answer], check=True)
        with open(answer, encoding="utf-8") as f:
            return json.load(f)


def first_round(groups, args):
    """Entries of the record and its counts, with one prompt for all schemas."""
    records = ask(args.program,
                  [{"schema": text(g["schema"]),
                    "instances": [text(t["data"]) for t in g["tests"]],
                    "samples": args.samples, "draws": args.draws,
                    "prompts": [PROMPT]} for _, g in groups])
    count = collections.Counter()
    wrong_formats = collections.Counter()
    entries = []
    for (path, group), record in zip(groups, records):
        entry = {"file": path, "description": group["description"],
                 "schema": text(group["schema"])}
        entries.append(entry)
        if "refused" in record:
            entry["refused"] = record["refused"]
            count["groups_refused"] += 1
            continue
        count["groups_accepted"] += 1
        entry["tests"] = [[text(t["data"]), t["valid"], accepted] for t, accepted
                          in zip(group["tests"], record["accepts"])]
        for _, valid, accepted in entry["tests"]:
            count[("valid" if valid else "invalid") + "_" +
                  ("accepted" if accepted else "rejected")] += 1
            if accepted and not valid:
                wrong_formats[path] += 1
        judge(group, entry, record, args.samples, count)
    summary = dict(sorted(count.items()))
    summary["invalid_accepted_by_file"] = dict(sorted(wrong_formats.items()))
    summary["validator"] = "jsonschema " + importlib.metadata.version("jsonschema")
    return summary, entries


def second_round(groups, summary, entries, args):
    """Other prompts for the schemas that have fewer samples than wanted."""
    few = [i for i, entry in enumerate(entries) if "samples" in entry]
    if not few:
        return
    records = ask(args.program,
                  [{"schema": entries[i]["schema"], "instances": [],
                    "samples": args.samples - entries[i]["samples"],
                    "draws": args.more_draws, "prompts": MORE_PROMPTS}
                   for i in few])
    count = collections.Counter(
        {key: value for key, value in summary.items() if isinstance(value, int)})
    count["schemas_with_fewer_samples"] = 0
    for i, record in zip(few, records):
        judge(groups[i][1], entries[i], record, args.samples, count)
    summary.update(count)


def judge(group, entry, record, wanted, count):
    """Holds samples against the validator; notes when there are too few."""
    count["samples_incomplete"] += record["incomplete"]
    count["samples_invalid"] += 0
    for sample in record["samples"]:
        if is_valid(group["schema"], sample):
            count["samples_valid"] += 1
        else:
            count["samples_invalid"] += 1
            print("INVALID", entry["file"], entry["description"], sample)
    samples = entry.pop("samples", 0) + len(record["samples"])
    if samples < wanted:
        entry["samples"] = samples
        count["schemas_with_fewer_samples"] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite")
    parser.add_argument("program")
    parser.add_argument("output")
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--more-draws", type=int, default=12000)
    parser.add_argument("--first", metavar="RECORD",
                        help="take the first round from this record")
    args = parser.parse_args()

    groups = list(read_groups(args.suite))
    if args.first:
        with open(args.first, encoding="utf-8") as f:
            record = json.load(f)
        summary, entries = record["summary"], record["groups"]
    else:
        summary, entries = first_round(groups, args)
    second_round(groups, summary, entries, args)
    with open(args.output, "w", encoding="utf-8") as f:
        f.write('{"summary":' + json.dumps(summary, indent=1) + ',\n"groups":[\n')
        f.write(",\n".join(text(entry) for entry in entries))
        f.write("\n]}\n")
    print(json.dumps(summary, indent=1))
    raise SystemExit(1 if summary["samples_invalid"] else 0)


if __name__ == "__main__":
    main()
