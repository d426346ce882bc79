#!/usr/bin/env python3
"""Runs 1,000 connections to a node for MINUTES, as the configuration `connections-1000-32min` of
`benches/seeds` has them: gets and updates of 10,000 keys with values of 10,000 bytes, as fast as
they go.

It ends with status 1 if a request failed, or if the resident memory grew: the median of the last
quarter may be at most a tenth above that of the second quarter. `make bench-thousand-connections`
runs 3 minutes, and `make soak` 32. OMBAK_PROGRAM names the program."""
import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

import measure

RUN = "connections-1000-32min"
GROWTH_MAX = 1.1


def resident(resources):
    """The resident memory in bytes, in order of time."""
    return [sample["rss_bytes"] for sample in resources if sample.get("rss_bytes")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3.0, help="how long it runs [3]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch)
        measure.run(RUN, out, options.minutes)
        run = json.loads((out / RUN / "run.json").read_text())
        kinds_of_errors = (out / RUN / "errors.csv").read_text()
        print(measure.HEADER)
        print(measure.row(RUN, out))
    errors = sum(operation["errors"] for operation in run["totals"]["operations"])
    memory = resident(run["resources"])
    quarter = len(memory) // 4
    if quarter == 0:
        sys.exit(f"the run has {len(memory)} samples of memory, which is too few")
    before, after = (statistics.median(part) for part in (memory[quarter:2 * quarter], memory[-quarter:]))
    print(f"{errors:,} errors; resident memory: median {before / 1e6:,.0f} MB in the second quarter, {after / 1e6:,.0f} MB in the last, "
          f"at most {max(memory) / 1e6:,.0f} MB of {len(memory)} samples")
    if errors:
        sys.exit(f"requests failed:\n{kinds_of_errors}")
    if after > GROWTH_MAX * before:
        sys.exit(f"the memory grew by more than {GROWTH_MAX - 1:.0%}")


if __name__ == "__main__":
    os.chdir(measure.ROOT)
    main()
