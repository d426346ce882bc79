#!/usr/bin/env python3
"""Runs the smoke program with the official Java client against a fresh node.

Usage: run.py [--cluster N]. With `--cluster`, the node is node 2 of a fresh cluster of N nodes."""
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))

import packages  # noqa: E402
from cluster import take_size, under_test  # noqa: E402

POM = HERE / "pom.xml"
PROGRAM_SECONDS_MAX = 300
DATA_TYPES = ("counter", "set", "map", "hll")

# The client's network library uses reflection on these packages of the standard library.
OPENED = ("java.base/java.lang", "java.base/java.nio", "java.base/sun.nio.ch")


def install(directory):
    packages.run(["mvn", "--batch-mode", "--quiet", "--file", str(POM), f"-Dmaven.repo.local={packages.cache() / 'maven'}",
                  f"-DoutputDirectory={directory / 'jars'}", "dependency:copy-dependencies"])


def main():
    size, _ = take_size(sys.argv[1:])
    installed = packages.installed("java", [POM], install)
    with under_test({"javascript.anonymous_functions": "on"}, size=size, waits_for_all=True) as node:
        node.create_type("siblings", {})
        for kind in DATA_TYPES:
            node.create_type(kind, {"datatype": kind})
        opens = [word for package in OPENED for word in ("--add-opens", f"{package}=ALL-UNNAMED")]
        command = ["java", *opens, "--class-path", f"{installed / 'jars'}/*", str(HERE / "Smoke.java"), str(node.pb_port)]
        return subprocess.run(command, timeout=PROGRAM_SECONDS_MAX).returncode


if __name__ == "__main__":
    sys.exit(main())
