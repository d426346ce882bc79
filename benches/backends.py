#!/usr/bin/env python3
"""Runs the six published tests of storage backends on bitcask, leveled and leveldb, with and
without syncs, in a memory cgroup of 1 GiB, and writes one table, one page of ratios, and the
charts. `test1r` is the first test with values that do not compress.

`make bench-backends` builds the needed programs with the profile `dist`. Keys and lengths are
scaled so that the data is larger than the memory of the cgroup and fits on the disk. Runs that are
compared follow one another: for each test all backends, first without syncs and then with them. In
`test1f` all keys exist before the run begins, so the share of gets that find an object does not
change during the run. Needs the right to create a memory cgroup (root); otherwise the results say
that the runs had the memory of the machine."""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from measure import ROOT, SEEDS, beside, execute, giga, ms

sys.path.insert(0, str(ROOT / "tests" / "support"))

from node import Node  # noqa: E402

GIB = 1 << 30

# Scales of keys where the published number would not fit on the disk. Tests 4 to 6 write new keys
# until they end.
TESTS = {
    "test1": ("backends-test1", ["--scale", "0.002"]),
    "test2": ("backends-test2-sync", ["--scale", "0.002"]),
    "test3": ("backends-test3", ["--scale", "0.002"]),
    "test4": ("backends-test4", []),
    "test5": ("backends-test5", []),
    "test6": ("backends-test6", []),
    # Bytes written for each byte put show how often a value is written only if values do not
    # compress.
    "test1r": ("backends-test1", ["--scale", "0.002", "--set", "value_generator={fixed_bin,8000}"]),
    "test1f": ("backends-test1", ["--scale", "0.002"]),
}

# Makes the objects that a run begins with.
FILLS = {
    "test1f": ["--set", "operations=[{put,1}]", "--set", "key_generator={partitioned_sequential_int,120000}"],
}

# Settings besides the defaults. Without this one, leveldb takes its share of the machine's memory,
# not of the cgroup's.
BACKENDS = {
    "bitcask": {},
    "leveled": {},
    "leveldb": {"leveldb.maximum_memory": "350MB"},
}

SYNCED = {
    "bitcask": {"bitcask.sync.strategy": "o_sync"},
    "leveled": {"leveled.sync_strategy": "sync"},
    "leveldb": {"leveldb.sync_on_write": "on"},
}

# The length in seconds of the windows in which a pause of the server shows.
WINDOW_S = 10


class MemoryCgroup:
    """A memory cgroup for one run, page cache included: a context manager. `limited` says whether
    it could be created."""

    def __init__(self, limit_bytes):
        unified, legacy = Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory")
        parent, limit = (legacy, "memory.limit_in_bytes") if legacy.is_dir() else (unified, "memory.max")
        self.directory = parent / f"ombak-bench-{os.getpid()}"
        self.limited = False
        try:
            self.directory.mkdir()
            (self.directory / limit).write_text(str(limit_bytes))
            self.limited = True
        except OSError as error:
            print(f"no memory cgroup: {error}; the runs have the memory of the machine", file=sys.stderr)

    def __enter__(self):
        return self

    def take(self, process):
        if self.limited:
            (self.directory / "cgroup.procs").write_text(str(process.pid))

    def __exit__(self, *_):
        # A cgroup may be busy for a moment after its last process has ended.
        deadline = time.monotonic() + 10
        while self.limited:
            try:
                self.directory.rmdir()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)


def store_metrics(node):
    """The node's metrics of its stores by name, summed over labels."""
    with urllib.request.urlopen(f"http://{node.http}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    found = {}
    for line in text.splitlines():
        name = line.partition("{")[0].partition(" ")[0]
        if name.startswith("ombak_store_"):
            found[name.removeprefix("ombak_store_")] = found.get(name.removeprefix("ombak_store_"), 0.0) + float(line.rsplit(" ", 1)[1])
    return found


def run(name, out, minutes, memory_bytes):
    test, backend, *synced = name.split("-")
    seed, words = TESTS[test]
    settings = {"storage_backend": backend, **BACKENDS[backend], **(SYNCED[backend] if synced else {})}
    with MemoryCgroup(memory_bytes) as group, Node(settings) as node:
        group.take(node.process)
        data = node.directory / "data"
        bench = [str(beside("ombak-bench")), str(SEEDS / f"{seed}.config"), "--skip-unsupported", "--pb", node.pb, "--http", node.http]
        if test in FILLS:
            with tempfile.TemporaryDirectory() as results:
                execute([*bench, "--duration", "1h", "-d", results, "-n", "fill", *FILLS[test]])
        execute([*bench, "--duration", f"{minutes * 60:.0f}s", "-d", str(out), "-n", name, *words,
                 "--pid", str(node.process.pid), "--data-dir", str(data)])
        (out / name / "stores.json").write_text(json.dumps({"limited": group.limited, **store_metrics(node)}, indent=1))


class Result:
    """The results of one run."""

    def __init__(self, directory, memory_bytes):
        run = json.loads((directory / "run.json").read_text())
        self.stores = json.loads((directory / "stores.json").read_text())
        self.operations, totals, self.resources = run["operations"], run["totals"], run["resources"]
        self.errors = sum(operation["errors"] for operation in totals["operations"])
        self.units = sum(operation["units"] for operation in totals["operations"])
        self.rate = self.units / totals["elapsed_s"]
        self.sent_bytes = totals["sent_bytes"]
        writes = [n for n, operation in enumerate(self.operations) if operation.startswith(("update", "put"))]
        self.write_p99_us = max((totals["operations"][n]["p99_us"] for n in writes), default=0)
        windows = [w for w in run["windows"] if w["window_s"] >= 0.5 * WINDOW_S]
        self.rates = [(w["elapsed_s"], sum(o["units"] for o in w["operations"]) / w["window_s"]) for w in windows]
        self.outgrown_s = next((r["elapsed_s"] for r in self.resources if (r.get("disk_bytes") or 0) > memory_bytes), None)

    def steadiness(self):
        """The rate of the last tenth over that of the first tenth, and the worst window over the
        median, once the data is larger than the memory."""
        after = [rate for at, rate in self.rates if self.outgrown_s is not None and at > self.outgrown_s]
        if len(after) < 10:
            return None, None
        tenth = len(after) // 10
        first, last = statistics.mean(after[:tenth]), statistics.mean(after[-tenth:])
        return last / first, min(after) / statistics.median(after)

    def used(self, key):
        return self.resources[-1][key] - self.resources[0][key]


HEADER = """| run | ops/s | write p99 ms | errors | last / first tenth | worst window / median | merges | bytes written / put | disk GB / live GB | read GB | CPU µs/op | RSS GB |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""


def number(value, form=".2f"):
    return "–" if value is None else format(value, form)


def row(name, result):
    kept, worst = result.steadiness()
    disk = result.resources[-1].get("disk_bytes") or 0
    cells = [f"`{name}`", f"{result.rate:,.0f}", ms(result.write_p99_us), f"{result.errors:,}", number(kept), number(worst),
             number(result.stores.get("merges_total"), ",.0f"), number(result.used("written_bytes") / max(result.sent_bytes, 1)),
             f"{giga(disk)} / {giga(result.stores.get('live_bytes', 0))}", giga(result.used("read_bytes")),
             f"{result.used('cpu_s') / max(result.units, 1) * 1e6:.1f}",
             giga(max((r.get("rss_bytes") or 0) for r in result.resources))]
    return "| " + " | ".join(cells) + " |"


def ratios(results):
    """Leveled compared with leveldb, for tests that ran on both."""
    lines = ["| test | leveled ops/s over leveldb's | leveled write p99 over leveldb's |", "| --- | ---: | ---: |"]
    for name, leveled in results.items():
        leveldb = results.get(name.replace("leveled", "leveldb"))
        if "-leveled" in name and leveldb:
            p99 = leveled.write_p99_us / max(leveldb.write_p99_us, 1)
            lines.append(f"| {name.replace('-leveled', '')} | {leveled.rate / leveldb.rate:.2f} | {p99:.2f} |")
    return "\n".join(lines)


def report(out, names, memory_bytes):
    done = [name for name in names if (out / name / "stores.json").is_file()]
    results = {name: Result(out / name, memory_bytes) for name in done}
    table = "\n".join([HEADER, *(row(name, result) for name, result in results.items())])
    (out / "table.md").write_text(f"{table}\n\n{ratios(results)}\n")
    for test in TESTS:
        for suffix in ("", "-sync"):
            dirs = [str(out / name) for backend in BACKENDS for name in [f"{test}-{backend}{suffix}"] if name in results]
            if len(dirs) > 1:
                charts = out / "charts" / f"{test}{suffix}"
                charts.mkdir(parents=True, exist_ok=True)
                execute([str(beside("ombak-bench")), "compare", "--out", str(charts), *dirs])
    return results


def main():
    names = [f"{test}-{backend}{suffix}" for test in TESTS for suffix in ("", "-sync") for backend in BACKENDS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long each run takes [5]")
    parser.add_argument("--memory-gib", type=float, default=1.0, help="what a node has, page cache included [1]")
    parser.add_argument("--out", type=Path, required=True, help="where results go; runs that are there are not made again")
    parser.add_argument("names", nargs="*", help="which ones [all], as test1-leveled or test1-leveled-sync")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in names]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(names)}")
    out, memory_bytes = options.out.resolve(), int(options.memory_gib * GIB)
    out.mkdir(parents=True, exist_ok=True)
    for name in options.names or names:
        if not (out / name / "stores.json").is_file():
            run(name, out, options.minutes, memory_bytes)
            print(row(name, Result(out / name, memory_bytes)), flush=True)
    report(out, names, memory_bytes)


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
