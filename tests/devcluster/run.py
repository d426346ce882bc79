#!/usr/bin/env python3
"""Tests the cluster for trying things out: `make devcluster` and `make devcluster-stop`.

Five nodes start and become one cluster in time. What is written through one node is read through a
third after another was killed. The nodes stop, start again as the same cluster, and still have it.

Usage: run.py"""
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))

from node import clean_environment, program  # noqa: E402

NODES = 5
READY = f"devcluster ready: {NODES} nodes"
READY_SECONDS_MAX = 15


def run(*words, seconds=120):
    done = subprocess.run([str(HERE / "devcluster"), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=seconds)
    return done.returncode, done.stdout.strip()


def ombak(directory, number, *words):
    done = subprocess.run([str(program()), *words, "--data", str(directory / f"node-{number}")], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, cwd=directory, env=clean_environment())
    return done.returncode, done.stdout.strip()


class Check:
    """Counts what holds and what does not."""

    passed = failed = 0

    def __call__(self, what, found, wanted):
        if found == wanted:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {what}: {found!r} in place of {wanted!r}", flush=True)


def steps(directory, check):
    began = time.monotonic()
    check("five nodes start", run("start", NODES, directory), (0, READY))
    took = time.monotonic() - began
    print(f"ready after {took:.1f} s")
    check(f"the start takes at most {READY_SECONDS_MAX} s", took <= READY_SECONDS_MAX, True)
    code, text = run("start", NODES, directory)
    check("a second start is refused", (code, "run already" in text), (1, True))
    for number in range(1, NODES + 1):
        pid = int((directory / f"node-{number}.pid").read_text())
        check(f"the process of node {number} runs", Path(f"/proc/{pid}").exists(), True)
    check("a put through node 1", ombak(directory, 1, "kv", "put", "b", "k", "a value"), (0, ""))
    pid = int((directory / "node-2.pid").read_text())
    os.kill(pid, signal.SIGKILL)
    check("a get through node 3", ombak(directory, 3, "kv", "get", "b", "k"), (0, "a value"))
    check("a put through node 4", ombak(directory, 4, "kv", "put", "b", "k2", "another"), (0, ""))
    check("a get through node 5", ombak(directory, 5, "kv", "get", "b", "k2"), (0, "another"))
    code, text = ombak(directory, 3, "admin", "ringready")
    check("a node that is down is named", (code, text), (1, "FALSE ['dev2@127.0.0.1'] down.  All nodes need to be up to check."))
    check("the others stop", run("stop", directory), (0, f"devcluster stopped: {NODES - 1} nodes"))
    check("they start again as one cluster", run("start", NODES, directory), (0, READY))
    check("the value is there", ombak(directory, 2, "kv", "get", "b", "k"), (0, "a value"))
    code, text = ombak(directory, 1, "admin", "member-status")
    check("all are members", "Valid:5 / Leaving:0 / Exiting:0 / Joining:0 / Down:0" in text, True)
    check("all stop", run("stop", directory), (0, f"devcluster stopped: {NODES} nodes"))


def main():
    check = Check()
    with tempfile.TemporaryDirectory(prefix="ombak-devcluster-") as name:
        directory = Path(name)
        try:
            steps(directory, check)
        finally:
            if check.failed:
                for output in sorted(directory.glob("node-*.out")):
                    print(f"--- {output.name}\n{output.read_text(errors='replace')[-3000:]}")
            run("stop", directory)
    print(f"{check.passed} passed, {check.failed} failed")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
