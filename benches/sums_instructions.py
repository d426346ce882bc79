#!/usr/bin/env python3
"""Counts the instructions that the sums of classes, or kept trees, cost a put, with callgrind.

Usage: sums_instructions.py [--puts N] [--what NAME] [--inside FUNCTION] EXAMPLE

EXAMPLE is the built example sums_cost or trees_cost of the crate kv. It makes N (5,000) puts of 100
bytes to an engine over memory stores, and 2 N, each with exact sums (or kept trees) and without any.
The difference between the two counts is what N puts take, without the start and the stop. The
program prints the instructions of one put in user space, and what part of them the sums are. It
needs valgrind."""
import argparse
import re
import subprocess
import tempfile
from pathlib import Path


def instructions(example, kind, puts, inside):
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "callgrind.out"
        collect = [f"--toggle-collect=*{inside}*"] if inside else []
        options = ["--tool=callgrind", f"--callgrind-out-file={out}", *collect]
        command = ["valgrind", *options, example, "puts", kind, str(puts)]
        subprocess.run(command, check=True, capture_output=True)
        found = re.search(r"^(?:summary|totals): (\d+)", out.read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit("callgrind has counted nothing")
    return int(found[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--puts", type=int, default=5000)
    parser.add_argument("--what", default="sums")
    parser.add_argument("--inside", help="count only within the function with this in its name")
    parser.add_argument("example")
    arguments = parser.parse_args()
    of_a_put = {}
    for kind in ("without", "with"):
        counts = [instructions(arguments.example, kind, arguments.puts * times, arguments.inside) for times in (1, 2)]
        of_a_put[kind] = (counts[1] - counts[0]) / arguments.puts
    more = of_a_put["with"] - of_a_put["without"]
    what = arguments.what
    print(f"put without {what:10}  {of_a_put['without']:9.0f} instructions")
    print(f"put with {what:10}     {of_a_put['with']:9.0f} instructions")
    print(f"the {what:10}          {more:9.0f} instructions, {more / of_a_put['without']:.2%} of a put in one process")


if __name__ == "__main__":
    main()
