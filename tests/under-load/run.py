#!/usr/bin/env python3
"""Runs every test of some crates several times beside busy loops, and names those that failed.

A test that passes alone and fails on a loaded machine depends on time where it should wait for a
condition, or shows a race. `make test` runs on machines that do nothing else, so neither is seen
there.

Usage: tests/under-load/run.py [--times N] [--loops N] [--only TEXT] [--keep DIR] CRATE...
The last line is `N passed, N failed`, which counts tests times runs."""
import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TIMES = 20
# More loops than the two cores that a small machine has, so that each test waits for its turn.
LOOPS = 3
PROGRAM_SECONDS_MAX = 1800

BUSY_LOOP = "while True: pass"
TEST_LINE = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED)$", re.MULTILINE)


def test_programs(crates):
    """Builds the tests of the crates. Returns (name, path, directory of the package) of each
    program."""
    packages = [word for crate in crates for word in ("--package", f"ombak-{crate}")]
    command = ["cargo", "test", "--locked", "--no-run", "--message-format", "json", *packages]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        sys.exit("the tests could not be built")
    programs = []
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["profile"]["test"]:
            package = Path(message["manifest_path"]).parent
            programs.append((f"{package.name}/{message['target']['name']}", message["executable"], package))
    return programs


def run_once(program, directory, only):
    """Runs a test program. Returns what it printed, and the tests that passed and failed."""
    try:
        done = subprocess.run([program, *only], cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=PROGRAM_SECONDS_MAX)
        output, has_failed = done.stdout, done.returncode != 0
    except subprocess.TimeoutExpired as expired:
        # The output of a program that was ended comes in bytes, also where text was asked for.
        output, has_failed = (expired.stdout or b"").decode(errors="replace"), True
    results = TEST_LINE.findall(output)
    failed = [name for name, result in results if result == "FAILED"]
    if has_failed and not failed:
        # The program ended without a result for the test that ended it.
        failed = ["the program"]
    return output, sum(result == "ok" for _, result in results), failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=TIMES, help="how often each test runs (%(default)s)")
    parser.add_argument("--loops", type=int, default=LOOPS, help="how many busy loops run beside (%(default)s)")
    parser.add_argument("--only", action="append", default=[], help="run tests with this text in their names")
    parser.add_argument("--keep", type=Path, help="where to keep what failed runs print")
    parser.add_argument("crates", nargs="+", metavar="CRATE")
    arguments = parser.parse_args()
    programs = test_programs(arguments.crates)
    passed, failed = 0, Counter()
    loops = [subprocess.Popen([sys.executable, "-c", BUSY_LOOP]) for _ in range(arguments.loops)]
    try:
        for time_number in range(1, arguments.times + 1):
            for name, program, directory in programs:
                started = time.monotonic()
                output, ok, names = run_once(program, directory, arguments.only)
                passed += ok
                failed.update(f"{name} {test}" for test in names)
                for test in names:
                    print(f"run {time_number} of {name}: {test} failed", flush=True)
                if names and arguments.keep:
                    arguments.keep.mkdir(parents=True, exist_ok=True)
                    path = arguments.keep / f"{name.replace('/', '-')}-{time_number}-{os.getpid()}.txt"
                    path.write_text(output)
                elif names:
                    print(output, flush=True)
                if ok or names:
                    print(f"run {time_number} of {name}: {ok} passed in {time.monotonic() - started:.0f} s", flush=True)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    print()
    for test, count in failed.most_common():
        print(f"{count:3} of {arguments.times}: {test}")
    print(f"{passed} passed, {sum(failed.values())} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
