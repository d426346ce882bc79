#!/usr/bin/env python3
"""Counts the instructions that the sums of classes cost a put, with callgrind.

Usage: sums_instructions.py [--puts N] EXAMPLE

EXAMPLE is the built example sums_cost of the crate kv. It makes N (5,000) puts of 100 bytes to an
engine over memory stores, and 2 N, each with exact sums and without any. The difference between the
two counts is what N puts take, without the start and the stop. The program prints the instructions
of one put in user space, and what part of them the sums are. It needs valgrind."""
import argparse
import re
import subprocess
import tempfile
from pathlib import Path


def instructions(example, kind, puts):
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "callgrind.out"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", example, "puts", kind, str(puts)]
        subprocess.run(command, check=True, capture_output=True)
        found = re.search(r"^(?:summary|totals): (\d+)", out.read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit("callgrind has counted nothing")
    return int(found[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--puts", type=int, default=5000)
    parser.add_argument("example")
    arguments = parser.parse_args()
    of_a_put = {}
    for kind in ("without", "with"):
        counts = [instructions(arguments.example, kind, arguments.puts * times) for times in (1, 2)]
        of_a_put[kind] = (counts[1] - counts[0]) / arguments.puts
    more = of_a_put["with"] - of_a_put["without"]
    print(f"put without sums  {of_a_put['without']:9.0f} instructions")
    print(f"put with sums     {of_a_put['with']:9.0f} instructions")
    print(f"the sums          {more:9.0f} instructions, {more / of_a_put['without']:.2%} of a put in one process")


if __name__ == "__main__":
    main()
