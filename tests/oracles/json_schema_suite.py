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
complete when the grammar is before its 160 tokens are used up; where so few are
that --draws replies do not hold 200, those that there are count.
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite")
    parser.add_argument("program")
    parser.add_argument("output")
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--draws", type=int, default=2000)
    args = parser.parse_args()

    groups = list(read_groups(args.suite))
    with tempfile.TemporaryDirectory() as folder:
        request = os.path.join(folder, "in.json")
        answer = os.path.join(folder, "out.json")
        with open(request, "w", encoding="utf-8") as f:
            json.dump([{"schema": text(g["schema"]),
                        "instances": [text(t["data"]) for t in g["tests"]],
                        "samples": args.samples, "draws": args.draws}
                       for _, g in groups], f)
        subprocess.run([args.program, request, answer], check=True)
        with open(answer, encoding="utf-8") as f:
            records = json.load(f)

    count = collections.Counter()
    wrong_formats = collections.Counter()
    out = []
    for (path, group), record in zip(groups, records):
        entry = {"file": path, "description": group["description"],
                 "schema": text(group["schema"])}
        if "refused" in record:
            entry["refused"] = record["refused"]
            count["groups_refused"] += 1
            out.append(entry)
            continue
        count["groups_accepted"] += 1
        entry["tests"] = [[text(t["data"]), t["valid"], accepted] for t, accepted
                          in zip(group["tests"], record["accepts"])]
        for _, valid, accepted in entry["tests"]:
            count[("valid" if valid else "invalid") + "_" +
                  ("accepted" if accepted else "rejected")] += 1
            if accepted and not valid:
                wrong_formats[path] += 1
        count["samples_incomplete"] += record["incomplete"]
        for sample in record["samples"]:
            if is_valid(group["schema"], sample):
                count["samples_valid"] += 1
            else:
                count["samples_invalid"] += 1
                print("INVALID", path, group["description"], sample)
        if len(record["samples"]) < args.samples:
            entry["samples"] = len(record["samples"])
            count["schemas_with_fewer_samples"] += 1
        out.append(entry)
    count["samples_invalid"] += 0
    summary = dict(sorted(count.items()))
    summary["invalid_accepted_by_file"] = dict(sorted(wrong_formats.items()))
    summary["validator"] = "jsonschema " + importlib.metadata.version("jsonschema")
    with open(args.output, "w", encoding="utf-8") as f:
        f.write('{"summary":' + json.dumps(summary, indent=1) + ',\n"groups":[\n')
        f.write(",\n".join(text(entry) for entry in out))
        f.write("\n]}\n")
    print(json.dumps(summary, indent=1))
    raise SystemExit(1 if count["samples_invalid"] else 0)


if __name__ == "__main__":
    main()
