#!/usr/bin/env python3
"""Writes python/aitraining/params.py from the JSON schema of the configuration:

    build/aitraining schema | scripts/python_params.py > python/aitraining/params.py
"""
import json
import sys
import textwrap

HEAD = '''\
"""Every parameter of a language model's training. Made by scripts/python_params.py from `aitraining schema`."""
# Do not edit: a test compares this file with what the executable says.
from __future__ import annotations

from dataclasses import dataclass, field

from aitraining._names import KnownNames

# What other tools call a parameter, for suggestions only.
ALSO_CALLED = {also_called}


@dataclass(kw_only=True)
class LLMTrainingParams(KnownNames, other_names=ALSO_CALLED):
    """Values are checked by the executable when a project is created. None: unset."""
'''
PYTHON_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict[str, str]",
                "array": "list[str]"}


def python_type(entry):
    if "enum" in entry:
        names, null = ["str"], None in entry["enum"]
    else:
        types = entry["type"] if isinstance(entry["type"], list) else [entry["type"]]
        names, null = [PYTHON_TYPES[name] for name in types if name != "null"], "null" in types
    return " | ".join(names + ["None"] * null)


def required(entry):
    return entry.get("minLength") == 1 and "default" not in entry


def comment(entry):
    text = entry["description"]
    if "enum" in entry:
        values = dict.fromkeys(str(value) for value in entry["enum"] if value not in (None, "none"))
        text += f" ({', '.join(values)})"
    if "x-trainers" in entry:
        text += f" [{', '.join(name.strip() for name in entry['x-trainers'])}]"
    if "x-not-in-this-build" in entry:
        text += " [not in this build]"
    return textwrap.wrap(text, 114)


def default(entry):
    if required(entry):
        return '""'
    if entry.get("writeOnly"):
        return "field(default=None, repr=False)"
    value = entry.get("default")
    if entry.get("type") == "number" and value is not None:
        value = float(value)
    return json.dumps(value) if isinstance(value, str) else repr(value)


def main():
    entries = json.load(sys.stdin)["properties"]["params"]["properties"]
    also_called = {other: name for name, entry in entries.items() for other in entry.get("x-also-called", [])}
    table = "".join(f"    {json.dumps(other)}: {json.dumps(name)},\n" for other, name in also_called.items())
    print(HEAD.replace("{also_called}", "{\n" + table + "}"), end="")
    group = None
    for name, entry in entries.items():
        if entry["x-group"] != group:
            group = entry["x-group"]
            print(f"\n    # {group}\n")
        for line in comment(entry):
            print(f"    # {line}")
        print(f"    {name}: {python_type(entry)} = {default(entry)}")


if __name__ == "__main__":
    main()
