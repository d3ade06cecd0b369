#!/usr/bin/env python3
"""Writes tests/goldens/jinja/*.json: what Python's Jinja makes of templates.

Made with jinja2 3.1.6 on CPython 3.11, in the environment that Hugging Face
transformers sets up for chat templates: trim_blocks, lstrip_blocks, loop controls,
a `generation` block, tojson as json.dumps(ensure_ascii=False), raise_exception and
strftime_now.  Mutating methods are allowed here (a plain sandbox), because this
project supports them.

usage: jinja_goldens.py tests/goldens/jinja
"""
import datetime
import json
import os
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

from jinja_chat_cases import CHAT_TEMPLATES, chat_cases
from jinja_snippets import CONTEXT, SNIPPETS


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_run"), [], [], body).set_lineno(lineno)

    def _run(self, caller):
        return caller()


def environment(trim=True):
    env = jinja2.sandbox.SandboxedEnvironment(
        trim_blocks=trim, lstrip_blocks=trim, extensions=[Generation, jinja2.ext.loopcontrols])

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda f: datetime.datetime(2024, 7, 26, 13, 5, 9).strftime(f)
    return env


def render(source, context, trim=True):
    try:
        want = environment(trim).from_string(source).render(**json.loads(json.dumps(context)))
        # Objects that print as an address have no text worth having.
        return {"error": "address", "message": "prints an address"} if " at 0x" in want else {"want": want}
    except jinja2.exceptions.TemplateSyntaxError as e:
        return {"error": "syntax", "line": e.lineno, "message": e.message}
    except Exception as e:  # whatever Python raises is an error of the template here
        return {"error": type(e).__name__, "message": str(e)}


def write(path, data):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(data, f, ensure_ascii=False, indent=1)
        f.write("\n")


def main(folder):
    here = os.path.dirname(os.path.abspath(__file__))
    cases = []
    for group, sources in SNIPPETS.items():
        for source in sources:
            for trim in ((True, False) if group == "whitespace" else (True,)):
                cases.append({"group": group, "template": source, "trim": trim, **render(source, CONTEXT, trim)})
    write(os.path.join(folder, "snippets.json"), {"context": CONTEXT, "cases": cases})
    chats = []
    for name in CHAT_TEMPLATES:
        source = open(os.path.join(here, "..", "goldens", "templates", name), encoding="utf-8").read()
        for case, context in chat_cases().items():
            chats.append({"template": name, "case": case, "context": context, **render(source, context)})
    write(os.path.join(folder, "chats.json"), chats)
    print(len(cases), "snippets,", len(chats), "chats")


if __name__ == "__main__":
    main(sys.argv[1])
