#!/usr/bin/env python3
"""Measures updates and fetches of large values of data types over a cluster of three nodes.

Usage: large_values.py [--members N] [--additions N]

The cluster has n_val 3 and bitcask. A set gets --members (100,000) members of 16 bytes, and a map
1,000 registers. Then --additions (4,000) requests over HTTP add one member each, or assign one
register, without return_body, through all nodes in turn, one after the other. For each request it
prints the processor time of all nodes together, the bytes between the nodes, and the bytes that the
stores of one node were given. Fetches of the value are timed while it has most additions, and when
they have just been folded.

The figures of requests that wait for each other contain what three nodes do besides. All nodes and
the client share the processors of this machine. The programs come from the directory of
OMBAK_PROGRAM, which should be one of `make dist`."""
import argparse
import http.client
import json
import os
import statistics
import sys
import time

import measure

sys.path.insert(0, str(measure.ROOT / "tests" / "operations"))

from requests_beside import ThreeNodes  # noqa: E402

NETWORK = "127.0.9"
FILL_AT_ONCE = 2_000
FETCHES = 15
# What the project must reach for each request, on average.
MICROS_MAX, SENT_BYTES_MAX, WRITTEN_BYTES_MAX, FETCH_TIMES_MAX = 2_000, 64 << 10, 16 << 10, 2.0


def member(number):
    return f"member-{number:09}"


class Nodes(ThreeNodes):
    def __init__(self):
        super().__init__(NETWORK, {})

    def __enter__(self):
        super().__enter__()
        self.connections = []
        for node in self.cluster.nodes:
            host, _, port = node.http.rpartition(":")
            self.connections.append(http.client.HTTPConnection(host, int(port), timeout=60))
        return self

    def ask(self, node, method, path, body=None):
        connection = self.connections[node % len(self.connections)]
        text = None if body is None else json.dumps(body)
        connection.request(method, path, body=text, headers={"Content-Type": "application/json"})
        answer = connection.getresponse()
        found = answer.read()
        if answer.status not in (200, 204):
            raise SystemExit(f"{method} {path}: {answer.status} {found[:300]}")
        return found

    def processor_micros(self):
        total = 0
        for pid in self.pids:
            with open(f"/proc/{pid}/schedstat") as one, os.scandir(f"/proc/{pid}/task") as tasks:
                one.read()
                for task in tasks:
                    try:
                        with open(f"{task.path}/schedstat") as stat:
                            total += int(stat.read().split()[0])
                    except FileNotFoundError:
                        pass
        return total / 1000

    def sum_of(self, node, name):
        lines = self.cluster.nodes[node].metrics().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name) and line[len(name)] in " {")

    def counters(self):
        nodes = range(len(self.cluster.nodes))
        return {"micros": self.processor_micros(),
                "sent": sum(self.sum_of(node, "ombak_peer_sent_bytes_total") for node in nodes),
                "written": [self.sum_of(node, "ombak_store_put_bytes_total") for node in nodes]}


def measure_value(nodes, title, path, requests, fetched_count, count):
    """Sends requests one after the other. Returns whether each bound is met."""
    idle_began = nodes.counters()
    time.sleep(5)
    idle = nodes.counters()
    idle_micros = (idle["micros"] - idle_began["micros"]) / 5
    idle_sent = (idle["sent"] - idle_began["sent"]) / 5
    before, began = nodes.counters(), time.monotonic()
    for number in range(count):
        nodes.ask(number, "POST", path, requests(number))
    seconds, after = time.monotonic() - began, nodes.counters()
    micros = (after["micros"] - before["micros"] - idle_micros * seconds) / count
    sent = (after["sent"] - before["sent"] - idle_sent * seconds) / count
    written = max(b - a for a, b in zip(before["written"], after["written"])) / count
    print(f"| {title} | {count / seconds:,.0f} | {micros:,.0f} | {sent:,.0f} | {written:,.0f} |", flush=True)
    return [(f"{title}: {micros:,.0f} µs, at most {MICROS_MAX:,}", micros <= MICROS_MAX),
            (f"{title}: {sent:,.0f} bytes sent, at most {SENT_BYTES_MAX:,}", sent <= SENT_BYTES_MAX),
            (f"{title}: {written:,.0f} bytes written on a node, at most {WRITTEN_BYTES_MAX:,}", written <= WRITTEN_BYTES_MAX)]


def fetch_times(nodes, path):
    """The processor time of one fetch, in microseconds: a median."""
    times = []
    for number in range(FETCHES):
        before = nodes.processor_micros()
        nodes.ask(number, "GET", path)
        times.append(nodes.processor_micros() - before)
    return statistics.median(times)


def measure_fetches(nodes, title, path, requests, count):
    """Fetches between additions. The cheapest ones meet a value that was just folded, the dearest
    ones the most additions."""
    times = []
    for step in range(count):
        times.append(fetch_times(nodes, path))
        for number in range(step * 250, step * 250 + 250):
            nodes.ask(number, "POST", path, requests(number))
    ratio = max(times) / min(times)
    print(f"| {title} | {min(times) / 1000:.1f} | {max(times) / 1000:.1f} | {ratio:.2f} |", flush=True)
    return [(f"{title}: a fetch with additions takes {ratio:.2f} times the one without, at most {FETCH_TIMES_MAX}",
             ratio <= FETCH_TIMES_MAX)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--members", type=int, default=100_000)
    parser.add_argument("--additions", type=int, default=4_000)
    options = parser.parse_args()
    with Nodes() as nodes:
        node = nodes.cluster.nodes[0]
        for kind in ("set", "map"):
            node.ok("admin", "bucket-type", "create", kind + "s", json.dumps({"props": {"datatype": kind}}))
            node.ok("admin", "bucket-type", "activate", kind + "s")
        for number in range(len(nodes.connections)):
            # A node answers once it knows the type.
            nodes.ask(number, "POST", "/types/sets/buckets/warm/datatypes/up", {"add": "x"})
            nodes.ask(number, "POST", "/types/maps/buckets/warm/datatypes/up", {"update": {"x_register": "y"}})
        set_path, map_path = "/types/sets/buckets/b/datatypes/set", "/types/maps/buckets/b/datatypes/map"
        for first in range(0, options.members, FILL_AT_ONCE):
            numbers = range(first, min(first + FILL_AT_ONCE, options.members))
            nodes.ask(0, "POST", set_path, {"add_all": [member(number) for number in numbers]})
        nodes.ask(0, "POST", map_path, {"update": {f"{member(number)}_register": member(number) for number in range(1_000)}})

        def add(number):
            return {"add": member(options.members + number)}

        def assign(number):
            return {"update": {f"{member(number * 7_919 % 1_000)}_register": member(number)}}

        print("\n| | requests/s | processor µs, all nodes | bytes between nodes | bytes written on a node |")
        print("| --- | ---: | ---: | ---: | ---: |")
        verdicts = measure_value(nodes, f"a set of {options.members:,} members, one is added", set_path, add, None, options.additions)
        verdicts += measure_value(nodes, "a map of 1,000 registers, one is assigned", map_path, assign, None, options.additions)
        print("\n| fetch of | processor ms, least | processor ms, most | times |\n| --- | ---: | ---: | ---: |")
        verdicts += measure_fetches(nodes, "the set", set_path, lambda number: add(10_000_000 + number), 12)
        verdicts += measure_fetches(nodes, "the map", map_path, assign, 6)
        found = json.loads(nodes.ask(1, "GET", set_path))["value"]
        expected = options.members + options.additions + 12 * 250
        verdicts.append((f"{len(found):,} members of {expected:,} are in the set", len(found) == expected))
    print()
    for text, holds in verdicts:
        print(f"{'met' if holds else 'MISSED'}: {text}")
    return 0 if all(holds for _, holds in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
