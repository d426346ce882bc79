#!/usr/bin/env python3
"""Compares the cost of requests over HTTP and over Protocol Buffers: the processor time of the
server's process, according to the kernel.

Each round runs, one after another, as many gets as puts of 1 KB
(`benches/seeds/workers-6-*-1kb.config`) over both interfaces with 6 and with 100 workers: against
each given program, and against the echo servers of `ombak-floor`, one for bare frames and one that
consists only of hyper. The table has the medians of the rounds, and for each number of workers the
ratio of HTTP to Protocol Buffers.

`ombak-bench` and `ombak-floor` are taken from the directory of the last program.

Usage: interfaces.py [--rounds N] [--seconds N] [NAME=]PROGRAM..."""
import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path

import measure

SEEDS = {"pb": "workers-6-pb-1kb", "http": "workers-6-http-1kb"}
WORKERS = (6, 100)
ECHOES = {"pb": [], "http": ["--http"]}


def run(server, interface, workers, seconds, bench, out):
    """Microseconds of the server's processor time for each operation."""
    command = [str(bench), str(measure.SEEDS / f"{SEEDS[interface]}.config"), "--duration", f"{seconds}s", "-d", str(out),
               "-n", "run", "--set", f"concurrent={workers}", "--pb", server.pb, "--http", server.http,
               "--pid", str(server.process.pid)]
    measure.execute(command)
    result = json.loads((out / "run" / "run.json").read_text())
    operations = result["totals"]["operations"]
    errors = sum(operation["errors"] for operation in operations)
    if errors:
        raise SystemExit(f"{errors} errors over {interface} with {workers} workers")
    first, last = result["resources"][0], result["resources"][-1]
    return (last["cpu_s"] - first["cpu_s"]) / sum(operation["units"] for operation in operations) * 1e6


def started(program, interface):
    if program is None:
        return measure.Echo(ECHOES[interface])
    os.environ["OMBAK_PROGRAM"] = str(program)
    return measure.Node({"storage_backend": "bitcask"})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("programs", nargs="+", help="[NAME=]PROGRAM")
    options = parser.parse_args()
    given = [text.rpartition("=") for text in options.programs]
    programs = {name or Path(path).name: Path(path).resolve() for name, _, path in given}
    beside = list(programs.values())[-1]
    programs["echo"] = None
    figures = {}
    for number in range(options.rounds):
        for workers in WORKERS:
            for name, program in programs.items():
                for interface in SEEDS:
                    os.environ["OMBAK_PROGRAM"] = str(beside)
                    with tempfile.TemporaryDirectory() as out, started(program, interface) as server:
                        cost = run(server, interface, workers, options.seconds, beside.with_name("ombak-bench"), Path(out))
                    figures.setdefault((workers, name, interface), []).append(cost)
                    print(f"round {number + 1}: {workers} workers, {name}, {interface}: {cost:.1f} µs", flush=True)
    print("\n| workers | server | Protocol Buffers µs | HTTP µs | HTTP ÷ Protocol Buffers |\n| ---: | --- | ---: | ---: | ---: |")
    for workers in WORKERS:
        for name in programs:
            pb, http = (figures[workers, name, interface] for interface in ("pb", "http"))
            # The ratio is computed for each round, because the load of the machine changes between
            # rounds.
            ratio = statistics.median(one / other for one, other in zip(http, pb))
            print(f"| {workers} | {name} | {statistics.median(pb):.1f} | {statistics.median(http):.1f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
