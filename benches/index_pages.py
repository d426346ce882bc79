#!/usr/bin/env python3
"""Measures pages of an index query: one node, BACKEND (leveled), one bucket with ENTRIES (1,000,000)
entries of an integer index.

`make bench-index-pages` builds the needed program with the profile `dist`. It measures

* a walk over pages of 100 keys, each with the continuation of the one before, from random places;
* queries for ranges of 100 terms without pages, from random places: what a page costs besides
  what it finds;
* one query over the whole range without pages: the least that 100 entries cost.

For each it prints the median and the 99th percentile of an answer, and the processor time of the
node for 100 entries. One client asks, without a pause, so the latencies are those of an idle node.
Loading takes most of the time."""
import argparse
import http.client
import json
import multiprocessing
import os
import random
import statistics
import time
import urllib.parse
from pathlib import Path

import measure
from node import Node

BUCKET, FIELD, PAGE = "b", "number_int", 100
LOADERS = 4
ANSWER_SECONDS_MAX = 600


def connect(address):
    return http.client.HTTPConnection(address, timeout=ANSWER_SECONDS_MAX)


def load_some(address, numbers):
    """Puts one object for each number, with the number as its index term."""
    connection = connect(address)
    for number in numbers:
        headers = {"Content-Type": "text/plain", f"X-Riak-Index-{FIELD}": str(number)}
        connection.request("PUT", f"/buckets/{BUCKET}/keys/{number:016}", body="v", headers=headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 204:
            raise SystemExit(f"a put was answered with {answer.status}")


def load(node, entries):
    begun = time.monotonic()
    with multiprocessing.Pool(LOADERS) as loaders:
        loaders.starmap(load_some, [(node.http, range(first, entries, LOADERS)) for first in range(LOADERS)])
    print(f"{entries:,} entries put in {time.monotonic() - begun:.0f} s", flush=True)


class Queries:
    """Asks a node, and counts the times and the entries."""

    def __init__(self, node):
        self.process, self.connection = node.process, connect(node.http)
        self.seconds, self.entries, self.used = [], 0, self.processor_seconds()

    def processor_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def ask(self, first, last, **parameters):
        path = f"/buckets/{BUCKET}/index/{FIELD}/{first}/{last}"
        if parameters:
            path += "?" + urllib.parse.urlencode(parameters)
        begun = time.monotonic()
        self.connection.request("GET", path)
        answer = self.connection.getresponse()
        document = answer.read()
        self.seconds.append(time.monotonic() - begun)
        if answer.status != 200:
            raise SystemExit(f"{path} was answered with {answer.status}: {document[:200]}")
        found = json.loads(document)
        self.entries += len(found["keys"])
        return found

    def print(self, name):
        used = self.processor_seconds() - self.used
        ms = sorted(seconds * 1_000 for seconds in self.seconds)
        p99 = ms[min(len(ms) - 1, len(ms) * 99 // 100)]
        print(f"{name}: {len(ms):,} answers with {self.entries:,} entries, median {statistics.median(ms):.2f} ms, "
              f"99th percentile {p99:.2f} ms, {used * 1e6 * PAGE / max(self.entries, 1):,.0f} us of processors "
              f"for {PAGE} entries", flush=True)


def walk_pages(node, entries, pages, pages_per_walk):
    queries, walk = Queries(node), None
    for number in range(pages):
        if walk is None or number % pages_per_walk == 0:
            walk, parameters = random.randrange(entries), {}
        found = queries.ask(walk, entries, max_results=PAGE, **parameters)
        expected = [f"{term:016}" for term in range(walk, min(walk + PAGE, entries))]
        if not parameters and found["keys"] != expected:
            raise SystemExit(f"the first page from {walk} on is another one: {found['keys'][:3]}")
        parameters = {"continuation": found["continuation"]} if "continuation" in found else {}
        walk = walk if parameters else None
    queries.print(f"pages of {PAGE}")


def ask_ranges(node, entries, ranges):
    queries = Queries(node)
    for _ in range(ranges):
        first = random.randrange(max(1, entries - PAGE))
        queries.ask(first, first + PAGE - 1)
    queries.print(f"ranges of {PAGE}")


def ask_everything(node, entries):
    queries = Queries(node)
    found = len(queries.ask(0, entries)["keys"])
    if found != entries:
        raise SystemExit(f"a query over everything has found {found:,} of {entries:,} entries")
    queries.print("everything at once")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=1_000_000, help="how many index entries [1000000]")
    parser.add_argument("--pages", type=int, default=5_000, help="how many pages, and how many ranges [5000]")
    parser.add_argument("--pages-per-walk", type=int, default=50, help="a walk begins elsewhere after so many pages [50]")
    parser.add_argument("--backend", default="leveled", help="the storage backend [leveled]")
    options = parser.parse_args()
    with Node({"storage_backend": options.backend}) as node:
        load(node, options.entries)
        # The first query may have to build the ordered index.
        Queries(node).ask(0, 0)
        walk_pages(node, options.entries, options.pages, options.pages_per_walk)
        ask_ranges(node, options.entries, options.pages)
        ask_everything(node, options.entries)


if __name__ == "__main__":
    os.chdir(measure.ROOT)
    main()
