#!/usr/bin/env python3
"""Runs the smoke program with the official Java client against a fresh node.

Usage: run.py [--cluster N [--secured]]. With `--cluster`, the node is node 2 of a fresh cluster of N
nodes. With `--secured` too, the cluster lets only users in, and the program uses TLS."""
import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))

import packages  # noqa: E402
from cluster import take_size  # noqa: E402
from secured import take_secured, under_test  # noqa: E402

POM = HERE / "pom.xml"
SOURCES = [HERE / "Smoke.java", HERE / "Security.java"]
COMPILER_SECONDS_MAX = 120
PROGRAM_SECONDS_MAX = 300
DATA_TYPES = ("counter", "set", "map", "hll")

# The client's network library uses reflection on these packages of the standard library.
OPENED = ("java.base/java.lang", "java.base/java.nio", "java.base/sun.nio.ch")


def install(directory):
    packages.run(["mvn", "--batch-mode", "--quiet", "--file", str(POM), f"-Dmaven.repo.local={packages.cache() / 'maven'}",
                  f"-DoutputDirectory={directory / 'jars'}", "dependency:copy-dependencies"])


def compiled(libraries, directory):
    """The class path of the program, whose classes are put into a directory."""
    subprocess.run(["javac", "-d", directory, "--class-path", libraries, *map(str, SOURCES)], check=True,
                   timeout=COMPILER_SECONDS_MAX)
    return f"{directory}:{libraries}"


def main():
    size, words = take_size(sys.argv[1:])
    is_secured, _ = take_secured(words, size)
    installed = packages.installed("java", [POM], install)
    with contextlib.ExitStack() as stack:
        classes = compiled(f"{installed / 'jars'}/*", stack.enter_context(tempfile.TemporaryDirectory()))
        node = stack.enter_context(under_test({"javascript.anonymous_functions": "on", "search": "on"}, size, is_secured))
        node.create_type("siblings", {})
        for kind in DATA_TYPES:
            node.create_type(kind, {"datatype": kind})
        opens = [word for package in OPENED for word in ("--add-opens", f"{package}=ALL-UNNAMED")]
        command = ["java", *opens, "--class-path", classes, "Smoke", str(node.pb_port)]
        if is_secured:
            node.secure()
            command += [str(node.directory), *(member.pb.rpartition(":")[2] for member in node.members)]
        return subprocess.run(command, timeout=PROGRAM_SECONDS_MAX).returncode


if __name__ == "__main__":
    sys.exit(main())
