#!/usr/bin/env python3
"""Measures whether gets and puts stay calm beside everything that runs in the background: three
nodes, n_val 3, bitcask, KEYS (1,000,000) keys of 16 bytes with values of 100 bytes.

`make bench-calm` builds the needed programs with the profile `dist`. Clients send gets and puts,
half of each, at 30 % of the highest rate, in ROUNDS (5) turns: alone; beside each kind of background work; beside
all of them together; and, for comparison, beside two processes of `nice 19` that only calculate.
What these cost is the least that this machine allows. It prints the medians of the 99th percentiles.

The kinds of background work, each of which begins again when it has ended:

* folds: statistics over everything, asked of node 1;
* a listing of all keys over HTTP, asked of node 2;
* index queries: 50 pages of 100 keys a second, asked of node 3;
* exchanges: rounds of all nodes;
* a hand-back: HANDED (50,000) objects that node 3 has missed while it was stopped.

The processes that ask for the background work run with `nice 19`: clients of a real cluster are on
other machines."""
import argparse
import os
import statistics
import subprocess
import sys
import threading
import time

import anti_entropy
import folds
import measure
from members import Cluster, wait_for

NETWORK = "127.0.14"
PAGES_PER_SECOND = 50
HAND_BACK_SECONDS_MAX = 600
# What the project wants to reach.
SLOWER_MAX = 1.5

READ_ALL = """
import sys, urllib.request
with urllib.request.urlopen(sys.argv[1], timeout=600) as answer:
    while answer.read(1 << 16):
        pass
"""
READ_PAGES = """
import http.client, sys, time
host, path, pages_per_second = sys.argv[1], sys.argv[2], int(sys.argv[3])
connection, due = http.client.HTTPConnection(host, timeout=60), time.monotonic()
while True:
    connection.request("GET", path)
    answer = connection.getresponse()
    document = answer.read()
    if answer.status != 200 or document.count(b'"') < 200:
        raise SystemExit(f"a page is no page: {answer.status} {document[:200]}")
    due = max(due + 1 / pages_per_second, time.monotonic() - 1)
    time.sleep(max(0, due - time.monotonic()))
"""
CALCULATE = "while True: pass"


def polite(*command):
    return subprocess.Popen(["nice", "-n", "19", *map(str, command)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


class Processes:
    """Processes that run until the end. A command is started again when its process has ended."""

    def __init__(self, *commands, again=True):
        self.commands, self.again, self.done = commands, again, 0

    def __call__(self, over):
        running = [polite(*command) for command in self.commands]
        while not over.wait(0.02):
            for at, process in enumerate(running):
                if process.poll() is None:
                    continue
                if process.returncode != 0 or not self.again:
                    raise SystemExit(f"{self.commands[at]} ended with {process.returncode}")
                self.done += 1
                running[at] = polite(*self.commands[at])
        for process in running:
            process.kill()
            process.wait()


class Exchanges:
    """One round after the other."""

    def __init__(self, cluster):
        self.cluster, self.done = cluster, 0

    def __call__(self, over):
        while not over.is_set():
            anti_entropy.begin_round(self.cluster)
            while not over.wait(anti_entropy.ASK_AGAIN_SECONDS) and not anti_entropy.is_round_over(self.cluster):
                pass
            self.done += 1
        anti_entropy.suspend(self.cluster)


class HandBack:
    """Copies that node 3 lacks move to it. Before, handoffs are off."""

    def __init__(self, cluster, objects):
        self.cluster, self.objects, self.done = cluster, objects, 0

    def prepare(self):
        first, _, third = self.cluster.nodes
        first.ok("admin", "handoff", "disable", "outbound", "--all")
        third.process.terminate()
        third.process.wait(HAND_BACK_SECONDS_MAX)
        anti_entropy.put(self.cluster.nodes[:2], self.objects)
        third.run_again()
        self.cluster.wait_agreed()
        # The first put in each partition after a start makes a file, which is no part of this.
        folds.Clients(self.cluster).load()
        # What was said to a node that was down is forgotten.
        anti_entropy.suspend(self.cluster)
        anti_entropy.wait_until_idle(self.cluster)

    def __call__(self, over):
        self.cluster.nodes[0].ok("admin", "handoff", "enable", "outbound", "--all")
        over.wait()
        # Whether it has ended within the time does not matter, but it must end.
        self.cluster.nodes[0].ok("admin", "cluster", "settled", "--wait", HAND_BACK_SECONDS_MAX)
        self.done += 1


def beside(clients, at_rate, works):
    """The figures of a load beside these works."""
    over, failed = threading.Event(), []

    def run(work):
        try:
            work(over)
        except BaseException as error:  # noqa: BLE001: work that ends must not go unnoticed.
            failed.append(error)
            over.set()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    time.sleep(0.2 if works else 0)
    figures = clients.load(*at_rate)
    over.set()
    for thread in threads:
        thread.join()
    if failed:
        raise SystemExit(f"background work ended: {failed[0]}")
    if figures["errors"]:
        raise SystemExit(f"{figures['errors']} requests failed")
    return figures


def kinds_of(cluster, handed):
    """The kinds of background work, and what has to be done before each turn of some."""
    bucket = anti_entropy.BUCKET
    ask = [measure.program(), "admin", "fold", "stats", bucket, "--config", cluster.nodes[0].config]
    listing = [sys.executable, "-c", READ_ALL, f"http://{cluster.nodes[1].http}/buckets/{bucket}/keys?keys=stream"]
    page = f"/buckets/{bucket}/index/$key/{0:016}/{9:016}?max_results=100".replace(f"{9:016}", "9" * 16)
    pages = [sys.executable, "-c", READ_PAGES, cluster.nodes[2].http, page, PAGES_PER_SECOND]
    hand_back = HandBack(cluster, handed)
    kinds = {
        "a fold": [Processes(ask)],
        "a key listing": [Processes(listing)],
        "index queries": [Processes(pages, again=False)],
        "exchanges": [Exchanges(cluster)],
        "a hand-back": [hand_back],
    }
    kinds["all together"] = [work for works in kinds.values() for work in works]
    calculate = [sys.executable, "-c", CALCULATE]
    kinds["two processes of `nice 19`"] = [Processes(calculate, calculate, again=False)]
    return kinds, hand_back


def measure_calm(cluster, options):
    clients = folds.Clients(cluster)
    highest = clients.load("--fill")["rate"]
    at_rate = ["--rate", f"{highest * folds.RATE_SHARE:.0f}"]
    kinds, hand_back = kinds_of(cluster, options.handed)
    if unknown := set(options.only) - set(kinds):
        raise SystemExit(f"there is no {', '.join(unknown)}; there are {', '.join(kinds)}")
    kinds = {kind: works for kind, works in kinds.items() if not options.only or kind in options.only}
    found = {kind: [] for kind in ["alone", *kinds]}
    for _ in range(options.rounds):
        for kind, figures in found.items():
            works = kinds.get(kind, [])
            if hand_back in works:
                hand_back.prepare()
            figures.append(beside(folds.Clients(cluster), at_rate, works))
    print(f"99th percentiles at {highest * folds.RATE_SHARE:,.0f} requests a second "
          f"({folds.RATE_SHARE:.0%} of {highest:,.0f}), medians of {options.rounds} turns:\n")
    print("| beside | median, ms | 99th percentile, ms | times | processors of the nodes, us a request |")
    print("| --- | ---: | ---: | ---: | ---: |")

    def middle(kind, of):
        return statistics.median(figures[of] for figures in found[kind])

    for kind in found:
        p99, cpu = middle(kind, "p99_us"), middle(kind, "cpu_us")
        print(f"| {kind} | {middle(kind, 'p50_us') / 1000:.2f} | {p99 / 1000:.2f} | {p99 / middle('alone', 'p99_us'):.2f} | {cpu:.0f} |")
    print(f"\nat most {SLOWER_MAX} times beside all together", flush=True)
    print({kind: [work.done for work in works] for kind, works in kinds.items()}, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000_000, help="how many keys [1000000]")
    parser.add_argument("--handed", type=int, default=50_000, help="how many objects node 3 misses [50000]")
    parser.add_argument("--rounds", type=int, default=5, help="how many turns [5]")
    parser.add_argument("--only", action="append", default=[], help="only this kind of work, and others that are given [all]")
    options = parser.parse_args()
    with Cluster(anti_entropy.NODES, NETWORK, anti_entropy.SETTINGS) as cluster:
        anti_entropy.load(cluster, options.keys)
        anti_entropy.wait_until_idle(cluster)
        anti_entropy.suspend(cluster)
        # The first index query builds the ordered index.
        wait_for("the ordered index", lambda: cluster.nodes[2].request(
            "GET", f"/buckets/{anti_entropy.BUCKET}/index/$key/0/1?max_results=1")[0] == 200, HAND_BACK_SECONDS_MAX)
        anti_entropy.wait_until_idle(cluster)
        measure_calm(cluster, options)


if __name__ == "__main__":
    os.chdir(measure.ROOT)
    main()
