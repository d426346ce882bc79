#!/usr/bin/env python3
"""Measures MapReduce jobs over a cluster of three nodes, and requests of clients beside them.

Usage: map_reduce.py [--objects N] [--keys N] [--rounds N] [--only PART]...

The cluster has n_val 3, bitcask, and a ring of 64 partitions. Two buckets have --objects
(1,000,000) objects each:

* `documents`: JSON objects with a text of eight words and an amount.
* `amounts`: the same amounts as JSON numbers.

Parts:

* `jobs`: the time of each job without other work. The word count runs in JavaScript alone, because
  no built-in function takes a JSON object apart. The sum and the distinct values of amounts run
  with built-in functions and in JavaScript. A count reads no objects.
* `beside`: half gets and half puts of 1 KiB over 10,000 further keys, with 12 connections, at 30 %
  of the highest rate, without a job and beside each job, in turns of --rounds (3). A job that ends
  begins again. A request that has to wait for the one before it counts from the time at which it
  should have begun.
* `memory`: the resident memory of the nodes while jobs visit a further bucket of --keys
  (10,000,000) keys with n_val 1. One of the jobs has a reduce phase that gives as many values as it
  gets. From about 2,000,000 keys on they pass the limit of a phase, and the job has to fail.

Each percentile is the median of windows of 2 s. The answers of all jobs are checked. All nodes and
the clients share the processors of this machine. The programs come from the directory of
OMBAK_PROGRAM, which should be one of `make dist`."""
import argparse
import functools
import json
import os
import socket
import statistics
import struct
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter

import measure

sys.path.insert(0, str(measure.ROOT / "tests" / "operations"))

from members import wait_for  # noqa: E402

from requests_beside import CONNECTIONS, Requests, ThreeNodes  # noqa: E402

NETWORK = "127.0.8"
WORDS = [f"{stem}{ending}" for stem in ("wave", "tide", "reef", "shore", "gale", "mast", "keel", "anchor", "salt", "swell")
         for ending in ("", "s", "ed", "ing", "er", "less", "like", "y", "ish", "ward")]
WORDS_EACH = 8
AMOUNTS = 1000
WRITERS = 8
PUTS_IN_FLIGHT = 64
JOB_SECONDS_MAX = 1800
RUNS = 3
HIGHEST_RATE_SECONDS = 6
SHARE_OF_HIGHEST_RATE = 0.3
WINDOWS = 4
ROUNDS = 3
LOOK_SECONDS = 0.1
# What the project must reach.
P99_TIMES_MAX, GROWTH_MAX_BYTES = 1.5, 256 << 20
PARTS = ("jobs", "beside", "memory")
PUT_REQ, PUT_DONE = 11, struct.pack(">IB", 1, 12)
JSON_TYPE = b"application/json"


def words_of(number):
    """The words of an object. Frequent words are many times as frequent as rare ones."""
    state = number * 0x9E3779B97F4A7C15 + 1 & (1 << 64) - 1
    words = []
    for _ in range(WORDS_EACH):
        state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
        draw = (state >> 33) / (1 << 31)
        words.append(WORDS[int(draw * draw * len(WORDS))])
    return words


def amount_of(number):
    return number * 7919 % AMOUNTS


def document(number):
    return json.dumps({"text": " ".join(words_of(number)), "amount": amount_of(number)}).encode()


def amount(number):
    return str(amount_of(number)).encode()


BUCKETS = {"documents": (document, JSON_TYPE), "amounts": (amount, JSON_TYPE)}


def native(kind, function, **more):
    return {kind: {"language": "erlang", "module": "riak_kv_mapreduce", "function": function, **more}}


def script(kind, **more):
    return {kind: {"language": "javascript", **more}}


PREREDUCE = {"prereduce": True}
COUNT_WORDS = """function(value) {
  var counts = {};
  JSON.parse(value.values[0].data).text.split(' ').forEach(function(word) {
    counts[word] = (counts[word] || 0) + 1;
  });
  return [counts];
}"""
ADD_COUNTS = """function(values) {
  var sums = {};
  values.forEach(function(counts) {
    for (var word in counts) { sums[word] = (sums[word] || 0) + counts[word]; }
  });
  return [sums];
}"""
TAKE_AMOUNT = "function(value) { return [JSON.parse(value.values[0].data).amount]; }"
DISTINCT = """function(values) {
  var seen = {};
  return values.filter(function(value) { return seen[value] ? false : (seen[value] = true); });
}"""
COUNT_ALL = "function(values) { return [values.reduce(function(n, v) { return n + (typeof v === 'number' ? v : 1); }, 0)]; }"

# Name → bucket, phases, what the answer has to be.
JOBS = {
    "word count, JavaScript": ("documents", [script("map", source=COUNT_WORDS, arg=PREREDUCE), script("reduce", source=ADD_COUNTS)],
                               "words"),
    "sum, built-in": ("amounts", [native("map", "map_object_value", arg=PREREDUCE), native("reduce", "reduce_string_to_integer"),
                                  native("reduce", "reduce_sum")], "sum"),
    "sum, JavaScript": ("amounts", [script("map", name="Riak.mapValuesJson", arg=PREREDUCE), script("reduce", name="Riak.reduceSum")],
                        "sum"),
    "sum of a field, JavaScript": ("documents", [script("map", source=TAKE_AMOUNT, arg=PREREDUCE),
                                                 script("reduce", name="Riak.reduceSum")], "sum"),
    "distinct values, built-in": ("amounts", [native("map", "map_object_value", arg=PREREDUCE), native("reduce", "reduce_set_union")],
                                  "distinct"),
    "distinct values, JavaScript": ("amounts", [script("map", name="Riak.mapValues", arg=PREREDUCE), script("reduce", source=DISTINCT)],
                                    "distinct"),
    "count, built-in": ("amounts", [native("reduce", "reduce_count_inputs")], "count"),
    "count, JavaScript": ("amounts", [script("reduce", source=COUNT_ALL)], "count"),
}
JOBS_OVER_KEYS = ("count, built-in", "distinct values, built-in", "sum, JavaScript")
# The job that fails, the fewest keys with which it surely does, and what it says.
JOB_TOO_LARGE, KEYS_TOO_MANY, TOO_LARGE = "sum, built-in", 4_000_000, b"the values of the reduce phase take more than"
JOBS_BESIDE = ("word count, JavaScript", "sum, built-in", "sum, JavaScript")


class JobFailed(Exception):
    """A job failed: its name, the HTTP status and the answer."""


class Nodes(ThreeNodes):
    """Three nodes with objects, which run jobs."""

    def __init__(self):
        super().__init__(NETWORK, {"javascript.anonymous_functions": "on"})

    def fill(self, bucket, objects, value_of, content_type):
        """Writes an object for each number below `objects`."""
        began = time.monotonic()
        writers = [Writer(self.addresses[number % len(self.addresses)], bucket, range(number, objects, WRITERS), value_of, content_type)
                   for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        broken = [writer.broken for writer in writers if writer.broken is not None]
        if broken:
            raise SystemExit(f"a put to {bucket} failed: {broken[0]}")
        print(f"{objects:,} objects in `{bucket}` after {time.monotonic() - began:.0f} s", flush=True)

    def run_job(self, name, objects, bucket=None):
        """Runs a job, checks its answer, and returns how many seconds it took."""
        own_bucket, query, kind = JOBS[name]
        job = {"inputs": bucket or own_bucket, "query": query, "timeout": JOB_SECONDS_MAX * 1000}
        request = urllib.request.Request(f"http://{self.first.http}/mapred", data=json.dumps(job).encode(),
                                         headers={"Content-Type": "application/json"})
        began = time.monotonic()
        try:
            with urllib.request.urlopen(request, timeout=JOB_SECONDS_MAX) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            raise JobFailed(name, error.code, error.read()[:500]) from None
        seconds = time.monotonic() - began
        check(name, kind, found, objects)
        return seconds

    def processor_seconds(self):
        seconds = 0
        for pid in self.pids:
            with open(f"/proc/{pid}/stat") as stat:
                fields = stat.read().rpartition(")")[2].split()
            seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return seconds

    def resident_bytes(self):
        """The resident memory of each node."""
        pages = []
        for pid in self.pids:
            with open(f"/proc/{pid}/statm") as statm:
                pages.append(int(statm.read().split()[1]))
        return [count * os.sysconf("SC_PAGE_SIZE") for count in pages]


class Writer(threading.Thread):
    """Puts objects over one connection, many at a time."""

    def __init__(self, address, bucket, numbers, value_of, content_type):
        super().__init__(daemon=True)
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)))
        self.answers = self.socket.makefile("rb")
        self.bucket, self.numbers, self.value_of, self.content_type = field(1, bucket.encode()), numbers, value_of, field(2, content_type)
        # Amounts repeat.
        self.content = functools.lru_cache(2 * AMOUNTS)(lambda value: field(4, field(1, value) + self.content_type))
        self.broken = None

    def run(self):
        try:
            with self.socket:
                for begin in range(0, len(self.numbers), PUTS_IN_FLIGHT):
                    numbers = self.numbers[begin:begin + PUTS_IN_FLIGHT]
                    self.socket.sendall(b"".join(map(self.put, numbers)))
                    self.expect_answers(len(numbers))
        except BaseException as error:  # noqa: BLE001: the thread that waits reports it.
            self.broken = error

    def put(self, number):
        body = self.bucket + field(2, b"%08d" % number) + self.content(self.value_of(number))
        return struct.pack(">IB", len(body) + 1, PUT_REQ) + body

    def expect_answers(self, count):
        # Any other answer is at least as long.
        answers, done = self.answers.read(len(PUT_DONE) * count), PUT_DONE * count
        if answers != done:
            raise OSError(f"not the answers of puts: {answers[:200]}")


def field(number, value):
    """A field of a Protocol Buffers message whose value are bytes."""
    size, length = len(value), bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    return bytes([number << 3 | 2]) + bytes(length) + value


EXPECTED = {}


def expected(kind, objects):
    if (kind, objects) not in EXPECTED:
        EXPECTED[kind, objects] = {
            "words": lambda: [dict(Counter(word for number in range(objects) for word in words_of(number)))],
            "distinct": lambda: sorted({str(amount_of(number)) for number in range(objects)}),
            "sum": lambda: [sum(map(amount_of, range(objects)))],
            "count": lambda: [objects],
        }[kind]()
    return EXPECTED[kind, objects]


def check(name, kind, found, objects):
    if kind == "distinct":
        found = sorted(found)
    if found != expected(kind, objects):
        raise SystemExit(f"{name}: the answer is wrong: {str(found)[:500]}")


class Repeating(threading.Thread):
    """A job that begins again when it ends."""

    def __init__(self, nodes, name, objects):
        super().__init__(daemon=True)
        self.nodes, self.job, self.objects = nodes, name, objects
        self.seconds, self.over, self.broken = [], threading.Event(), None

    def run(self):
        try:
            while not self.over.is_set():
                self.seconds.append(self.nodes.run_job(self.job, self.objects))
        except BaseException as error:  # noqa: BLE001: the thread that waits reports it.
            self.broken = error

    def end(self):
        self.over.set()
        self.join()
        if self.broken is not None:
            raise SystemExit(f"{self.job}: {self.broken}")


def measure_jobs(nodes, objects):
    """The time of each job without other work; the runs of the jobs alternate."""
    runs = {name: [] for name in JOBS}
    for _ in range(RUNS):
        for name in JOBS:
            before = nodes.processor_seconds()
            seconds = nodes.run_job(name, objects)
            runs[name].append((seconds, nodes.processor_seconds() - before))
    print("\n| job | seconds | objects/s | processor µs an object |\n| --- | ---: | ---: | ---: |")
    for name, figures in runs.items():
        seconds, used = (statistics.median(column) for column in zip(*figures))
        print(f"| {name} | {seconds:.2f} | {objects / seconds:,.0f} | {used / objects * 1e6:.1f} |")
    return []


def has_windows(requests, name, count):
    return len(requests.windows.get(name, [])) >= count or requests.broken


def measure_beside(nodes, objects, rounds):
    """Requests with and without jobs, in turns, because other work on this machine comes and
    goes."""
    measure.load(nodes, "--fill", "--seconds", "1", "--connections", CONNECTIONS)
    highest = measure.load(nodes, "--connections", CONNECTIONS, "--seconds", str(HIGHEST_RATE_SECONDS))["rate"]
    rate = highest * SHARE_OF_HIGHEST_RATE
    print(f"\nThe highest rate is {highest:,.0f} requests/s; the rate is {rate:,.0f}.", flush=True)
    verdicts = []
    print("\n| | p50 ms | p99 ms | times without | p99.9 ms | seconds of the job |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    requests = Requests(nodes, ["--rate", f"{rate:.0f}"])
    requests.start()
    try:
        for name in JOBS_BESIDE:
            without, seconds = f"without {name}", []
            for turn in range(1, rounds + 1):
                requests.doing = without
                wait_for("windows without a job", lambda: has_windows(requests, without, turn * WINDOWS), JOB_SECONDS_MAX)  # noqa: B023
                job = Repeating(nodes, name, objects)
                job.start()
                requests.doing = name
                wait_for("windows beside a job", lambda: has_windows(requests, name, turn * WINDOWS) or job.broken, JOB_SECONDS_MAX)  # noqa: B023
                requests.doing = "between"
                job.end()
                seconds += job.seconds
            alone, together = requests.summary(without), requests.summary(name)
            times = together["p99_us"] / alone["p99_us"]
            for label, figures, more in ((without, alone, ("", "")),
                                         (f"beside {name}", together, (f"{times:.2f}", f"{statistics.median(seconds):.1f}"))):
                print(f"| {label} | {figures['p50_us'] / 1000:.2f} | {figures['p99_us'] / 1000:.2f} | {more[0]} "
                      f"| {figures['p999_us'] / 1000:.2f} | {more[1]} |", flush=True)
            verdicts.append((f"{name}: p99 {times:.2f} times that without, at most {P99_TIMES_MAX}", times <= P99_TIMES_MAX))
    finally:
        requests.end()
    errors = requests.errors()
    verdicts.append((f"{errors} errors of {requests.count():,} requests", errors == 0))
    return verdicts


def measure_memory(nodes, keys):
    """The growth of the resident memory while jobs visit many keys."""
    nodes.first.request("PUT", "/buckets/keys/props", json.dumps({"props": {"n_val": 1}}).encode(),
                        {"Content-Type": "application/json"})
    nodes.fill("keys", keys, amount, JSON_TYPE)
    verdicts = []
    for name in JOBS_OVER_KEYS:
        seconds, growth, before = growth_during(nodes, lambda: nodes.run_job(name, keys, "keys"))  # noqa: B023
        verdicts.append((f"{name} over {keys:,} keys in {seconds:.0f} s: {grew(growth, before)}", growth <= GROWTH_MAX_BYTES))
    if keys >= KEYS_TOO_MANY:
        seconds, growth, before = growth_during(nodes, lambda: fails_for_its_size(nodes, keys))
        verdicts.append((f"{JOB_TOO_LARGE} over {keys:,} keys failed after {seconds:.0f} s: {grew(growth, before)}",
                         growth <= GROWTH_MAX_BYTES))
    return verdicts


def fails_for_its_size(nodes, keys):
    """Runs the job whose reduce phase takes too much memory. Returns how many seconds it took to
    fail."""
    began = time.monotonic()
    try:
        nodes.run_job(JOB_TOO_LARGE, keys, "keys")
    except JobFailed as failed:
        if TOO_LARGE not in failed.args[-1]:
            raise
        return time.monotonic() - began
    raise SystemExit(f"{JOB_TOO_LARGE}: the limit of a reduce phase did not hold")


def growth_during(nodes, job):
    """What a job returns, how many bytes the resident memory of a node grew by at most meanwhile,
    and how many it had before."""
    before, highest, over = nodes.resident_bytes(), nodes.resident_bytes(), threading.Event()

    def watch():
        while not over.wait(LOOK_SECONDS):
            highest[:] = map(max, highest, nodes.resident_bytes())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        returned = job()
    finally:
        over.set()
        watcher.join()
    return returned, max(after - then for after, then in zip(highest, before)), max(before)


def grew(growth, before):
    return f"the memory of a node grew by at most {growth / (1 << 20):.0f} MiB from {before / (1 << 20):,.0f} MiB"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=1_000_000, help="the objects of each bucket [1,000,000]")
    parser.add_argument("--keys", type=int, default=10_000_000, help="the keys of the part `memory` [10,000,000]")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"the turns of the part `beside` [{ROUNDS}]")
    parser.add_argument("--only", action="append", choices=PARTS, help="only this part [all]")
    options = parser.parse_args()
    parts = options.only or PARTS
    print(f"load average {os.getloadavg()[0]:.2f}", flush=True)
    verdicts = []
    with Nodes() as nodes:
        if {"jobs", "beside"} & set(parts):
            for bucket, (value_of, content_type) in BUCKETS.items():
                nodes.fill(bucket, options.objects, value_of, content_type)
        if "jobs" in parts:
            verdicts += measure_jobs(nodes, options.objects)
        if "beside" in parts:
            verdicts += measure_beside(nodes, options.objects, options.rounds)
        if "memory" in parts:
            verdicts += measure_memory(nodes, options.keys)
    print("\n" + "\n".join(f"{'met    ' if is_met else 'NOT MET'}  {text}" for text, is_met in verdicts), flush=True)
    print(f"load average {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    os.environ.setdefault("OMBAK_PROGRAM", str(measure.ROOT / "target" / "dist" / "ombak"))
    sys.exit(main())
