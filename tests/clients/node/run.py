#!/usr/bin/env python3
"""Runs the smoke program with the official Node.js client against a fresh node.

Usage: run.py [--cluster N [--secured]]. With `--cluster`, the node is node 2 of a fresh cluster of N
nodes. With `--secured` too, the cluster lets only users in, and the program uses TLS."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))

import packages  # noqa: E402
from cluster import take_size  # noqa: E402
from secured import take_secured, under_test  # noqa: E402

PINS = [HERE / "package.json", HERE / "package-lock.json"]
PROGRAM_SECONDS_MAX = 300
DATA_TYPES = ("counter", "set", "map", "hll")


def install(directory):
    for pin in PINS:
        shutil.copy(pin, directory)
    packages.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=directory)


def main():
    size, words = take_size(sys.argv[1:])
    is_secured, _ = take_secured(words, size)
    installed = packages.installed("node", PINS, install)
    environment = {**os.environ, "NODE_PATH": str(installed / "node_modules")}
    with under_test({"javascript.anonymous_functions": "on", "search": "on"}, size, is_secured) as node:
        node.create_type("siblings", {})
        for kind in DATA_TYPES:
            node.create_type(kind, {"datatype": kind})
        command = ["node", "--no-deprecation", str(HERE / "smoke.js"), node.pb]
        if is_secured:
            node.secure()
            command += [str(node.directory), *(member.pb for member in node.members)]
        return subprocess.run(command, env=environment, timeout=PROGRAM_SECONDS_MAX).returncode


if __name__ == "__main__":
    sys.exit(main())
