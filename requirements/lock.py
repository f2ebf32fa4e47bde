#!/usr/bin/env python3
"""Writes build.lock, model.lock and test.lock from the .in files beside this script.

Versions are resolved once, for the oldest Python; hashes are those of the wheels of every Python in PYTHONS. Run it
with any Python whose pip is 23 or newer:  python3 requirements/lock.py
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

PYTHONS = ("3.11", "3.12", "3.13")
HERE = Path(__file__).resolve().parent


def resolve(python, arguments):
    """pip's report on what it would install for this Python: {name: (version, sha256)}."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed",
             "--only-binary=:all:", "--python-version", python, "--target", folder, "--report", str(report), *arguments],
            check=True)
        items = json.loads(report.read_text())["install"]
    return {item["metadata"]["name"].lower().replace("_", "-").replace(".", "-"):
            (item["metadata"]["version"], item["download_info"]["archive_info"]["hash"].replace("=", ":"))
            for item in items}


def hashes_of(pins):
    """{name: every hash that one of PYTHONS would download}."""
    found = {name: set() for name in pins}
    requirements = [f"{name}=={version}" for name, version in pins.items()]
    for python in PYTHONS:
        for name, (_, digest) in resolve(python, ["--no-deps", *requirements]).items():
            found[name].add(digest)
    return found


def write(target, pins):
    lines = [f"# Written by requirements/lock.py for Python {', '.join(PYTHONS)} on x86_64 Linux."]
    digests = hashes_of(pins)
    for name in sorted(pins):
        lines.append(" \\\n    ".join([f"{name}=={pins[name]}", *(f"--hash={d}" for d in sorted(digests[name]))]))
    (HERE / target).write_text("\n".join(lines) + "\n")


def pins_of(*arguments):
    return {name: version for name, (version, _) in resolve(PYTHONS[0], list(arguments)).items()}


def main():
    build = pins_of("-r", str(HERE / "build.in"))
    write("build.lock", build)
    write("model.lock", pins_of("--no-deps", "-r", str(HERE / "model.in")))
    # The test environment sees the build environment's packages, so it holds only what those lack.
    shared = [f"{name}=={version}" for name, version in build.items()]
    test = pins_of(*shared, "-r", str(HERE / "test.in"))
    write("test.lock", {name: version for name, version in test.items() if name not in build})


if __name__ == "__main__":
    main()
