#!/usr/bin/env python3
"""Runs the smoke program with the official Node.js client against a fresh node."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))

import packages  # noqa: E402
from node import Node  # noqa: E402

PINS = [HERE / "package.json", HERE / "package-lock.json"]
PROGRAM_SECONDS_MAX = 300


def install(directory):
    for pin in PINS:
        shutil.copy(pin, directory)
    packages.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=directory)


def main():
    installed = packages.installed("node", PINS, install)
    environment = {**os.environ, "NODE_PATH": str(installed / "node_modules")}
    with Node() as node:
        node.create_type("siblings", {})
        command = ["node", "--no-deprecation", str(HERE / "smoke.js"), node.pb]
        return subprocess.run(command, env=environment, timeout=PROGRAM_SECONDS_MAX).returncode


if __name__ == "__main__":
    sys.exit(main())
