#!/usr/bin/env python3
"""Runs the smoke program with the official Node.js client against a fresh node.

Usage: run.py [--cluster N]. With `--cluster`, the node is node 2 of a fresh cluster of N nodes."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))

import packages  # noqa: E402
from cluster import take_size, under_test  # noqa: E402

PINS = [HERE / "package.json", HERE / "package-lock.json"]
PROGRAM_SECONDS_MAX = 300
DATA_TYPES = ("counter", "set", "map", "hll")


def install(directory):
    for pin in PINS:
        shutil.copy(pin, directory)
    packages.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=directory)


def main():
    size, _ = take_size(sys.argv[1:])
    installed = packages.installed("node", PINS, install)
    environment = {**os.environ, "NODE_PATH": str(installed / "node_modules")}
    with under_test({"javascript.anonymous_functions": "on"}, size=size, waits_for_all=True) as node:
        node.create_type("siblings", {})
        for kind in DATA_TYPES:
            node.create_type(kind, {"datatype": kind})
        command = ["node", "--no-deprecation", str(HERE / "smoke.js"), node.pb]
        return subprocess.run(command, env=environment, timeout=PROGRAM_SECONDS_MAX).returncode


if __name__ == "__main__":
    sys.exit(main())
