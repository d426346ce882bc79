#!/usr/bin/env python3
"""Measures what a request to a cluster costs: the processor time of all its nodes together.

All servers run on this machine, and are measured in turns with the same client (`ombak-floor load`),
10,000 keys with values of 1 KiB, and connections spread over all nodes:

* `echo`: an echo server that reads the same frames and answers as many bytes;
* `front`: an echo server that asks two echo peers before it answers, which is the floor of a cluster;
* `3 nodes`, and with `--nodes` other numbers: clusters with n_val 3 and storage on bitcask.

Usage:
  cluster.py requests [--rounds N] [--seconds N]    gets and puts, mixed and alone, 6 and 100 connections
  cluster.py nodes [--rounds N] [--seconds N]       puts at nodes that hold the key, with 3, 5 and 7 nodes

The programs come from the directory of OMBAK_PROGRAM, which should be one of `make dist`."""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import measure
from measure import load

DEVCLUSTER = measure.ROOT / "tests" / "devcluster" / "devcluster"
CONNECTIONS = (6, 100)
OPERATIONS = {"half gets, half puts": [], "gets": ["--op", "get"], "puts": ["--op", "put"]}
# What the project wants to reach, and what it must reach: times the echo request, and times the
# request to the front.
GOALS = {100: (6, 8, 1.8), 6: (9, 10, 2.5)}
REPLICAS = 3
# A larger cluster serves more clients: each node has as many connections as in a smaller one.
CONNECTIONS_OF_A_NODE = 35


class Echo:
    """The echo server as a target of the client."""

    words = ["--echo"]

    def __enter__(self):
        self.server = measure.Echo().__enter__()
        self.addresses, self.pids = [self.server.pb], [self.server.process.pid]
        return self

    def __exit__(self, *error):
        self.server.__exit__(*error)


class Front:
    """The echo front with its two peers."""

    words = ["--echo"]

    def __enter__(self):
        self.peers = [measure.Echo(["--short"]).__enter__() for _ in range(2)]
        self.front = measure.Echo(peers=[peer.pb for peer in self.peers]).__enter__()
        self.addresses = [self.front.pb]
        self.pids = [server.process.pid for server in (self.front, *self.peers)]
        return self

    def __exit__(self, *error):
        for server in (self.front, *self.peers):
            server.__exit__(*error)


class Cluster:
    """A cluster of real nodes on the ports of `make devcluster`."""

    words = []

    def __init__(self, nodes, settings=None):
        """`settings` has lines of configuration for nodes by number."""
        self.nodes, self.settings = nodes, settings or {}

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="ombak-bench-cluster-")
        path = Path(self.directory.name)
        for number, lines in self.settings.items():
            text = "".join(f"{line}\n" for line in lines)
            (path / f"node-{number}.settings").write_text(text.replace("{directory}", str(path)))
        try:
            subprocess.run([str(DEVCLUSTER), "start", str(self.nodes), str(path)], check=True, stdout=subprocess.DEVNULL)
        except BaseException:
            self.directory.cleanup()
            raise
        numbers = range(1, self.nodes + 1)
        self.addresses = [f"127.0.0.1:{10017 + 10 * (number - 1)}" for number in numbers]
        self.pids = [int((path / f"node-{number}.pid").read_text()) for number in numbers]
        return self

    def __exit__(self, *_):
        subprocess.run([str(DEVCLUSTER), "stop", self.directory.name], check=False, stdout=subprocess.DEVNULL)
        self.directory.cleanup()


def requests(rounds, seconds):
    servers = {"echo": Echo(), "front": Front(), "3 nodes": Cluster(3)}
    found = {}
    for number in range(rounds):
        for name, server in servers.items():
            with server:
                if name == "3 nodes":
                    load(server, "--fill", "--seconds", "1", "--connections", "100")
                for connections in CONNECTIONS:
                    for kind, words in OPERATIONS.items():
                        figures = load(server, "--seconds", str(seconds), "--connections", str(connections), *words)
                        found.setdefault((kind, connections, name), []).append(figures)
                        print(f"round {number + 1}: {kind}, {connections}, {name}: {figures['cpu_us']:.1f} µs", flush=True)
    print("\n| | connections | server | requests/s | p50 µs | p99 µs | CPU µs/request | CPU ÷ echo | CPU ÷ front |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for (kind, connections, name), figures in sorted(found.items(), key=lambda item: list(OPERATIONS).index(item[0][0])):
        middle = {key: statistics.median(one[key] for one in figures) for key in ("rate", "p50_us", "p99_us", "cpu_us")}
        times = [ratio(figures, found[kind, connections, base]) for base in ("echo", "front")]
        print(f"| {kind} | {connections} | {name} | {middle['rate']:,.0f} | {middle['p50_us']:,.0f} | {middle['p99_us']:,.0f} "
              f"| {middle['cpu_us']:.1f} | {times[0]:.2f} | {times[1]:.2f} |")
    print()
    for connections, (goal, bar, floor) in GOALS.items():
        mixed = [found["half gets, half puts", connections, name] for name in ("3 nodes", "echo", "front")]
        times, above = ratio(mixed[0], mixed[1]), ratio(mixed[0], mixed[2])
        print(f"{connections} connections: {times:.2f} times echo (goal {goal}, at most {bar}), "
              f"{above:.2f} times the front (at most {floor})")


def ratio(figures, base):
    """The median of the ratios of rounds."""
    return statistics.median(one["cpu_us"] / other["cpu_us"] for one, other in zip(figures, base))


def nodes(rounds, seconds):
    found = {}
    for number in range(rounds):
        for count in (3, 5, 7):
            with Cluster(count) as server:
                connections = str(count * CONNECTIONS_OF_A_NODE)
                load(server, "--fill", "--seconds", "1", "--connections", connections, "--op", "put")
                figures = load(server, "--seconds", str(seconds), "--connections", connections, "--op", "put",
                               "--preference-lists")
                found.setdefault(count, []).append(figures["cpu_us"] / REPLICAS)
                print(f"round {number + 1}: {count} nodes: {found[count][-1]:.1f} µs for each replica's write", flush=True)
    print("\n| nodes | CPU µs for each replica's write | ÷ 3 nodes |\n| ---: | ---: | ---: |")
    for count, costs in found.items():
        times = statistics.median(one / other for one, other in zip(costs, found[3]))
        print(f"| {count} | {statistics.median(costs):.1f} | {times:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["requests", "nodes"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    {"requests": requests, "nodes": nodes}[options.what](options.rounds, options.seconds)


if __name__ == "__main__":
    os.environ.setdefault("OMBAK_PROGRAM", str(measure.ROOT / "target" / "dist" / "ombak"))
    sys.exit(main())
