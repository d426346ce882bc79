#!/usr/bin/env python3
"""Measures a fold of statistics over KEYS (10,000,000) keys of 16 bytes with values of 100 bytes:
three nodes, n_val 3, bitcask.

`make bench-folds` builds the needed programs with the profile `dist`. It measures

* the seconds of a fold over everything, and of a tree of size large, while nothing else happens,
  and how much memory the nodes take meanwhile beside what they had;
* the 99th percentile of requests of clients at 30 % of the highest rate: alone and beside such
  folds, in ROUNDS (5) turns;
* with `--drop`, how long a drop of the whole bucket takes.

Loading takes most of the time: about 8 minutes for 10 million keys on two processors, and 8 GB."""
import argparse
import os
import statistics
import threading
import time
import urllib.request
from pathlib import Path

import anti_entropy
import measure
from members import Cluster

NETWORK = "127.0.13"
BUCKET = anti_entropy.BUCKET
CONNECTIONS, WINDOW_SECONDS, RATE_SHARE = "12", "5", 0.3
FOLD_SECONDS_MAX = 600
# What the project wants to reach.
SLOWER_MAX = 1.5


class Clients:
    """The nodes as the load of `measure` wants them."""
    words = []

    def __init__(self, cluster):
        self.addresses = [node.pb for node in cluster.nodes]
        self.pids = [node.process.pid for node in cluster.nodes]

    def load(self, *words):
        return measure.load(self, *words, "--connections", CONNECTIONS, "--seconds", WINDOW_SECONDS)


class Peak:
    """The greatest memory of the nodes together in some time, beside what they had."""

    def __init__(self, cluster):
        self.pids = [node.process.pid for node in cluster.nodes]
        for pid in self.pids:
            # The kernel begins to look for the greatest value anew.
            Path(f"/proc/{pid}/clear_refs").write_text("5")
        self.before = self.kilobytes("VmRSS")

    def kilobytes(self, what):
        lines = (line.split() for pid in self.pids for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return sum(int(words[1]) for words in lines if words[0] == f"{what}:")

    def megabytes(self):
        return (self.kilobytes("VmHWM") - self.before) / 1024


def statistics_of(cluster):
    return cluster.nodes[0].json("admin", "fold", "stats", BUCKET)


def tree_of(cluster):
    address = f"http://{cluster.nodes[0].http}/rangetrees/buckets/{BUCKET}/trees/large"
    with urllib.request.urlopen(address, timeout=FOLD_SECONDS_MAX) as answer:
        answer.read()


def measure_fold(cluster, name, fold):
    peak, used, began = Peak(cluster), anti_entropy.processor_seconds(cluster), time.monotonic()
    fold(cluster)
    seconds = time.monotonic() - began
    print(f"{name}: {seconds:.1f} s, {anti_entropy.processor_seconds(cluster) - used:.1f} s of processors, "
          f"{peak.megabytes():,.0f} MB more at most on three nodes", flush=True)


def measure_beside(cluster, rounds):
    clients = Clients(cluster)
    highest = clients.load("--fill")["rate"]
    at_rate = ["--rate", f"{highest * RATE_SHARE:.0f}"]
    alone, beside, folds = [], [], 0
    for _ in range(rounds):
        alone.append(clients.load(*at_rate)["p99_us"])
        over = threading.Event()

        def fold_on():
            nonlocal folds
            while not over.is_set():
                statistics_of(cluster)
                folds += 1

        folding = threading.Thread(target=fold_on)
        folding.start()
        beside.append(clients.load(*at_rate)["p99_us"])
        over.set()
        folding.join()
    first, second = statistics.median(alone), statistics.median(beside)
    print(f"99th percentile at {highest * RATE_SHARE:,.0f} requests a second ({RATE_SHARE:.0%} of {highest:,.0f}): {first:,.0f} us alone, "
          f"{second:,.0f} us beside {folds} folds, {second / first:.2f} times (at most {SLOWER_MAX})", flush=True)


def measure_drop(cluster, keys):
    begun = time.monotonic()
    cluster.nodes[0].ok("admin", "bucket", "drop", f"default/{BUCKET}", "--yes")
    seconds = time.monotonic() - begun
    if left := statistics_of(cluster)["objects"]:
        raise SystemExit(f"the drop has left {left:,} objects")
    print(f"a drop of {keys:,} objects: {seconds:.0f} s, {keys / seconds:,.0f} a second", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=10_000_000, help="how many keys [10000000]")
    parser.add_argument("--rounds", type=int, default=5, help="how many turns alone and beside folds [5]")
    parser.add_argument("--drop", action="store_true", help="also drop the bucket")
    options = parser.parse_args()
    with Cluster(anti_entropy.NODES, NETWORK, anti_entropy.SETTINGS) as cluster:
        anti_entropy.load(cluster, options.keys)
        anti_entropy.wait_until_idle(cluster)
        found = statistics_of(cluster)["objects"]
        if found != options.keys:
            raise SystemExit(f"the fold has found {found:,} of {options.keys:,} objects")
        for name, fold in (("statistics", statistics_of), ("a large tree", tree_of)):
            measure_fold(cluster, name, fold)
        measure_beside(cluster, options.rounds)
        if options.drop:
            measure_drop(cluster, options.keys)


if __name__ == "__main__":
    os.chdir(measure.ROOT)
    main()
