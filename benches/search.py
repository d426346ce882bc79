#!/usr/bin/env python3
"""Measures search: three nodes, n_val 3, bitcask, DOCUMENTS (1,000,000) objects of 1 KB of JSON.

`make bench-search` builds the needed program with the profile `dist`. It measures, one after the
other:

* puts of COMPARED (20,000) objects to a bucket without an index and to one with an index, in turns:
  the processor time of all nodes for a put, until the documents of the puts are found;
* the load of all documents: puts a second, and documents a second until all are found;
* the time from the acknowledgement of a put until a query of node 2 finds it, at half of that rate;
* queries of one kind after the other by one client: the median, the 99th percentile, and how many a
  second;
* gets and puts of the bucket without an index: the 99th percentile alone, and beside puts to the
  bucket with an index at half of the highest rate, in ROUNDS (5) turns;
* the resident memory of each node, the bytes of the indexes for each byte of text, and how long a
  rebuild takes.

The processes of the load share the machine with the nodes."""
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

import anti_entropy
import measure
from members import Cluster

NETWORK = "127.0.15"
SETTINGS = {**anti_entropy.SETTINGS, "search": "on"}
INDEX, INDEXED, PLAIN = "words", "indexed", "plain"
LOADERS = 4
SYLLABLES = [f"{a}{b}{c}" for a in ("ba", "ke", "lo", "mi", "nu") for b in ("ra", "se", "ti", "vo") for c in ("n", "k", "st", "l", "m")]
# The frequent ones first.
WORDS = [a + b for a in SYLLABLES for b in SYLLABLES]
SECONDS_MAX = 3_600
VISIBILITY_SECONDS = 40
# The numbers of documents that are looked for begin here.
PROBES = 90_000_000
# What the project wants to reach.
PUT_RATIO_MAX, VISIBLE_MS_MAX, SLOWER_MAX = 3, 500, 1.5


def word(chosen):
    """A word. The word of rank r comes about 1/r as often as the first one, as in natural texts."""
    return WORDS[int(len(WORDS) ** chosen.random()) - 1]


def document(number):
    """About 1 KB: words in two fields, a number, a date and a category."""
    chosen = random.Random(number)
    words = " ".join(word(chosen) for _ in range(85))
    return json.dumps({"text_en": words, "title_s": f"title {number:08}", "n_i": number, "category_s": f"c{number % 100}",
                       "at_dt": f"20{number % 30:02}-01-01T00:00:00Z", "rare_s": f"r{number // 1000}"}).encode()


def connect(address):
    return http.client.HTTPConnection(address, timeout=120)


def put(connection, bucket, number):
    connection.request("PUT", f"/buckets/{bucket}/keys/k{number:08}", document(number), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    if answer.status not in (200, 204):
        raise SystemExit(f"a put was answered with {answer.status}")


def put_some(address, bucket, numbers, rate):
    """Puts objects, at a rate if there is one."""
    connection, begun = connect(address), time.monotonic()
    for at, number in enumerate(numbers):
        if rate:
            time.sleep(max(0.0, begun + at / rate - time.monotonic()))
        put(connection, bucket, number)


def put_all(cluster, bucket, numbers, rate=None):
    """Puts objects through all nodes. Returns the seconds that it took."""
    addresses = [node.http for node in cluster.nodes]
    begun = time.monotonic()
    with multiprocessing.Pool(LOADERS) as pool:
        shares = [(addresses[part % len(addresses)], bucket, numbers[part::LOADERS], rate and rate / LOADERS)
                  for part in range(LOADERS)]
        pool.starmap(put_some, shares)
    return time.monotonic() - begun


class Asking:
    """A client of one node."""

    def __init__(self, node):
        self.address, self.connection = node.http, connect(node.http)

    def ask(self, **parameters):
        parameters = [("wt", "json"), *((name.replace("_", "."), value) for name, value in parameters.items())]
        path = f"/search/query/{INDEX}?" + urllib.parse.urlencode(parameters)
        try:
            self.connection.request("GET", path)
            answer = self.connection.getresponse()
        except http.client.RemoteDisconnected:
            # A node closes connections that are idle for minutes.
            self.connection = connect(self.address)
            self.connection.request("GET", path)
            answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise SystemExit(f"a query was answered with {answer.status}: {text[:200]}")
        return json.loads(text)

    def count(self, query="*:*"):
        return self.ask(q=query, rows=0)["response"]["numFound"]


def wait_until_found(asking, wanted):
    deadline = time.monotonic() + SECONDS_MAX
    while (found := asking.count()) != wanted:
        if time.monotonic() > deadline:
            raise SystemExit(f"{found:,} of {wanted:,} documents are found")


def p99(values):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]


def measure_puts(cluster, asking, compared):
    """The processor time of puts with an index and without one. Returns the next number."""
    costs, number = {PLAIN: [], INDEXED: []}, 0
    for _ in range(3):
        for bucket in (PLAIN, INDEXED):
            used = anti_entropy.processor_seconds(cluster)
            put_all(cluster, bucket, range(number, number + compared // 3))
            if bucket == INDEXED:
                wait_until_found(asking, number + compared // 3)
            costs[bucket].append((anti_entropy.processor_seconds(cluster) - used) * 1e6 / (compared // 3))
        number += compared // 3
    plain, indexed = (statistics.median(costs[bucket]) for bucket in (PLAIN, INDEXED))
    print(f"processor time of a put on three nodes: {plain:,.0f} us without an index, {indexed:,.0f} us with one, "
          f"{indexed / plain:.1f} times (at most {PUT_RATIO_MAX})", flush=True)
    return number


def measure_load(cluster, asking, first, documents):
    begun = time.monotonic()
    seconds = put_all(cluster, INDEXED, range(first, documents))
    wait_until_found(asking, documents)
    whole = time.monotonic() - begun
    count = documents - first
    print(f"load: {count / seconds:,.0f} puts a second; all {count:,} are found {whole - seconds:.1f} s after the last one: "
          f"{count / whole:,.0f} documents a second", flush=True)
    return count / whole


def measure_visibility(cluster, documents, rate):
    """Half of the highest rate, and beside it ten puts a second that are looked for every 20 ms."""
    load = multiprocessing.Process(target=put_all, args=(cluster, INDEXED, range(documents, documents + int(rate / 2 * VISIBILITY_SECONDS)), rate / 2))
    load.start()
    connection, asking, delays, acknowledged = connect(cluster.nodes[0].http), Asking(cluster.nodes[1]), [], {}
    number = due = 0
    while load.is_alive() or acknowledged:
        if load.is_alive() and time.monotonic() >= due:
            number, due = number + 1, time.monotonic() + 0.1
            put(connection, INDEXED, PROBES + number)
            acknowledged[PROBES + number] = time.monotonic()
        if not acknowledged:
            time.sleep(0.02)
            continue
        query = f"n_i:[{min(acknowledged)} TO {max(acknowledged)}]"
        found = asking.ask(q=query, fl="n_i", rows=1_000)["response"]["docs"]
        now = time.monotonic()
        for probe in {document["n_i"] for document in found} & set(acknowledged):
            delays.append((now - acknowledged.pop(probe)) * 1_000)
        time.sleep(0.02)
    load.join()
    print(f"from acknowledged to found at {rate / 2:,.0f} puts a second: median {statistics.median(delays):.0f} ms, 99th percentile "
          f"{p99(delays):.0f} ms, at most {max(delays):.0f} ms of {len(delays)} (at most {VISIBLE_MS_MAX})", flush=True)


def measure_queries(asking, documents, count):
    chosen = random.Random(7)
    kinds = {
        "a rare term": lambda: {"q": f"rare_s:r{chosen.randrange(max(1, documents // 1000))}"},
        "a word": lambda: {"q": f"text_en:{word(chosen)}"},
        "a phrase": lambda: {"q": f'text_en:"{word(chosen)} {word(chosen)}"'},
        "a prefix": lambda: {"q": f"title_s:title\\ {chosen.randrange(documents) // 1000:05}*"},
        "a range with sort": lambda: {"q": f"n_i:[{(low := chosen.randrange(documents))} TO {low + 1000}]", "sort": "n_i desc"},
        "a facet": lambda: {"q": f"text_en:{word(chosen)}", "rows": 0, "facet": "true", "facet_field": "category_s"},
    }
    for name, parameters in kinds.items():
        times = []
        for _ in range(count):
            begun = time.monotonic()
            asking.ask(**parameters())
            times.append((time.monotonic() - begun) * 1_000)
        print(f"{name}: median {statistics.median(times):.1f} ms, 99th percentile {p99(times):.1f} ms, "
              f"{1_000 * count / sum(times):,.0f} a second", flush=True)


def requests_of_plain(node, seconds):
    connection, times, chosen, end = connect(node.http), [], random.Random(3), time.monotonic() + seconds
    while time.monotonic() < end:
        number, begun = chosen.randrange(5_000), time.monotonic()
        if number % 2:
            put(connection, PLAIN, number)
        else:
            connection.request("GET", f"/buckets/{PLAIN}/keys/k{number:08}")
            connection.getresponse().read()
        times.append((time.monotonic() - begun) * 1e6)
        time.sleep(0.002)
    return p99(times)


def measure_beside(cluster, documents, rate, rounds):
    alone, beside = [], []
    for _ in range(rounds):
        alone.append(requests_of_plain(cluster.nodes[2], 8))
        numbers = range(documents, documents + int(rate / 2 * 12))
        load = multiprocessing.Process(target=put_all, args=(cluster, INDEXED, numbers, rate / 2))
        load.start()
        time.sleep(1)
        beside.append(requests_of_plain(cluster.nodes[2], 8))
        load.join()
    first, second = statistics.median(alone), statistics.median(beside)
    print(f"99th percentile of gets and puts of another bucket: {first:,.0f} us alone, {second:,.0f} us beside {rate / 2:,.0f} indexed puts a "
          f"second, {second / first:.1f} times (at most {SLOWER_MAX})", flush=True)


def resident_mb(node):
    lines = Path(f"/proc/{node.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def measure_size(cluster, documents):
    text_bytes = sum(len(document(number)) for number in range(0, documents, max(1, documents // 1000)))
    text_bytes *= documents / len(range(0, documents, max(1, documents // 1000)))
    memory = ", ".join(f"{resident_mb(node):,.0f}" for node in cluster.nodes)
    on_disk = [sum(path.stat().st_size for path in (node.data / "search").rglob("*") if path.is_file()) for node in cluster.nodes]
    print(f"resident memory of the nodes: {memory} MB; bytes of an index for each byte of text: "
          f"{statistics.median(on_disk) / text_bytes:.2f}", flush=True)


def measure_rebuild(cluster):
    begun = time.monotonic()
    cluster.nodes[0].ok("admin", "search", "index", "rebuild", INDEX)
    while any(node.json("admin", "search", "index", "status", INDEX)["build"] != 1 for node in cluster.nodes):
        if time.monotonic() - begun > SECONDS_MAX:
            raise SystemExit("the rebuild does not end")
        time.sleep(0.5)
    print(f"a rebuild on all nodes at once: {time.monotonic() - begun:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_000_000, help="how many documents [1000000]")
    parser.add_argument("--compared", type=int, default=20_000, help="puts that are compared [20000]")
    parser.add_argument("--queries", type=int, default=500, help="queries of each kind [500]")
    parser.add_argument("--rounds", type=int, default=5, help="turns alone and beside puts [5]")
    options = parser.parse_args()
    with Cluster(anti_entropy.NODES, NETWORK, SETTINGS) as cluster:
        node = cluster.nodes[0]
        node.ok("admin", "search", "index", "create", INDEX)
        status, body = node.request("PUT", f"/buckets/{INDEXED}/props", json.dumps({"props": {"search_index": INDEX}}).encode(),
                                    {"Content-Type": "application/json"})[:2]
        if status != 204:
            raise SystemExit(f"the bucket was refused: {status} {body}")
        asking = Asking(cluster.nodes[1])
        first = measure_puts(cluster, asking, options.compared)
        rate = measure_load(cluster, asking, first, options.documents)
        measure_queries(asking, options.documents, options.queries)
        measure_size(cluster, options.documents)
        measure_rebuild(cluster)
        measure_visibility(cluster, options.documents, rate)
        measure_beside(cluster, options.documents, rate, options.rounds)


if __name__ == "__main__":
    os.chdir(measure.ROOT)
    main()
