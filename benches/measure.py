#!/usr/bin/env python3
"""Runs the configurations of `benches/seeds`, each against a fresh node, and makes one table and
the charts of the results.

`make bench-seeds` builds the needed programs with the profile `dist`. Each run takes MINUTES. Keys
are scaled so that a run fits on a disk of 40 GB. The put test of 50 bytes also runs with 16
requests in flight, against the engine alone, and against the echo server. The tests with 6 workers
also run with 100 workers, and against the echo servers of both interfaces."""
import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SEEDS = ROOT / "benches" / "seeds"
sys.path.insert(0, str(ROOT / "tests" / "support"))

from node import Node, clean_environment, free_ports, program  # noqa: E402

# Scales of keys and lengths. Runs that are not listed run as published.
SCALES = {
    "backends-test1": "0.001",
    "backends-test2-sync": "0.001",
    "backends-test3": "0.001",
    "nhs-general": "0.0005",
    "workers-6-pb-500kb": "0.1",
    "workers-6-http-500kb": "0.1",
}

# Settings for runs that overwrite the same keys faster than a disk of this size could keep
# everything. Files are small enough, and merges early and fast enough, that merging keeps up during
# the run.
MERGING = {"bitcask.max_file_size": "64MB", "bitcask.merge.bytes_per_second": "1GB", "bitcask.merge_check_interval": "5s"}
MERGED = ["backends-test1", "backends-test2-sync", "backends-test3", "connections-", "nhs-general", "workers-6-pb-500kb",
          "workers-6-http-500kb"]

# Test 2 syncs because of its bucket's property, as its configuration file says.
BUCKETS = {"backends-test2-sync": ("sync", {"sync_on_write": "all"})}

START_SECONDS_MAX = 10

PIPELINED = ["--set", "riakc_pb_pipeline=16"]
HUNDRED = ["--set", "concurrent=100"]

# Runs besides those of the files: name → file, server, arguments.
VARIANTS = {
    "puts-50b-server-pipelined": ("puts-50b-server", "node", PIPELINED),
    "puts-50b-echo": ("puts-50b-server", "echo", []),
    "puts-50b-echo-pipelined": ("puts-50b-server", "echo", PIPELINED),
    "workers-6-pb-echo": ("workers-6-pb-1kb", "echo", []),
    "workers-6-http-echo": ("workers-6-http-1kb", "echo --http", []),
    "workers-100-pb-1kb": ("workers-6-pb-1kb", "node", HUNDRED),
    "workers-100-http-1kb": ("workers-6-http-1kb", "node", HUNDRED),
    "workers-100-pb-echo": ("workers-6-pb-1kb", "echo", HUNDRED),
    "workers-100-http-echo": ("workers-6-http-1kb", "echo --http", HUNDRED),
}

# Charts of several runs: name → runs that are drawn on it if they exist.
CHARTS = {
    "connections": ["connections-500-8min", "connections-1000-8min", "connections-500-32min", "connections-1000-32min"],
    "workers": ["workers-6-pb-1kb", "workers-6-http-1kb", "workers-2-pb-1kb", "workers-2-http-1kb", "workers-6-pb-500kb",
                "workers-6-http-500kb"],
    "backends-updates": ["backends-test1", "backends-test2-sync", "backends-test3"],
    "backends-unique": ["backends-test4", "backends-test5", "backends-test6", "backends-test6-200workers"],
    "puts-50b": ["puts-50b-engine", "puts-50b-server-pipelined", "puts-50b-server"],
}


def beside(name):
    """The path of a program in the directory of the server."""
    return program().with_name(name)


class Echo:
    """The echo server of the floor, for Protocol Buffers or for HTTP: a context manager with the
    interface of a node. With peers it asks them before it answers."""

    def __init__(self, words=(), peers=()):
        self.command = "front" if peers else "echo"
        self.words = [*words, *(word for peer in peers for word in ("--peer", peer))]

    def __enter__(self):
        (port,) = free_ports(1)
        self.pb = self.http = f"127.0.0.1:{port}"
        self.process = subprocess.Popen([str(beside("ombak-floor")), self.command, "--port", str(port), *self.words])
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return self
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    self.__exit__()
                    raise SystemExit("the echo server did not start") from None
                time.sleep(0.02)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def run(name, out, minutes):
    """Runs one configuration against its server."""
    seed, server, words = VARIANTS.get(name, (name, "engine" if name.endswith("-engine") else "node", []))
    command = [str(beside("ombak-bench")), str(SEEDS / f"{seed}.config"), "--duration", f"{minutes * 60:.0f}s",
               "--skip-unsupported", "-d", str(out), "-n", name, *words]
    if seed in SCALES:
        command += ["--scale", SCALES[seed]]
    if server == "engine":
        data = out / "engine"
        shutil.rmtree(data, ignore_errors=True)
        # The engine runs in the generator's process, so that process is watched.
        script = 'exec "$@" --pid $$'
        command += ["--data-dir", str(data), "--set", f'ombak_backend_dir="{data}"']
        execute(["sh", "-c", script, "sh", *command])
        shutil.rmtree(data, ignore_errors=True)
        return
    with (Node({"storage_backend": "bitcask", **(MERGING if seed.startswith(tuple(MERGED)) else {})}) if server == "node" else Echo(server.split()[1:])) as node:
        command += ["--pb", node.pb, "--http", node.http, "--pid", str(node.process.pid)]
        if server == "node":
            command += ["--data-dir", str(node.directory / "data")]
        if seed in BUCKETS:
            node.set_bucket_properties(*BUCKETS[seed])
        execute(command)


def execute(command):
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=clean_environment())
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\nexited with {done.returncode}:\n{done.stderr}")


def load(server, *words):
    """Runs the client of the floor against a server with `words`, `addresses` and `pids`, and
    returns its figures."""
    command = [str(beside("ombak-floor")), "load", *server.words, *words]
    for address in server.addresses:
        command += ["--address", address]
    for pid in server.pids:
        command += ["--pid", str(pid)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\nexited with {done.returncode}:\n{done.stderr}")
    figures = json.loads(done.stdout)
    figures["cpu_us"] = figures["cpu_s"] * 1e6 / figures["requests"]
    figures["rate"] = figures["requests"] / figures["elapsed_s"]
    return figures


def row(name, out):
    run = json.loads((out / name / "run.json").read_text())
    totals, resources = run["totals"], run["resources"]
    units = sum(operation["units"] for operation in totals["operations"])
    errors = sum(operation["errors"] for operation in totals["operations"])
    cells = [f"`{name}`", f"{units / totals['elapsed_s']:,.0f}"]
    cells.append("<br>".join(
        f"{label} {ms(o['median_us'])} / {ms(o['p99_us'])} / {ms(o['p999_us'])}"
        for label, o in zip(run["operations"], totals["operations"]) if o["units"]))
    cells.append(f"{errors:,}")
    used = {}
    if len(resources) > 1:
        first, last = resources[0], resources[-1]
        used = {key: last[key] - first[key] for key in ("cpu_s", "read_bytes", "written_bytes")
                if first.get(key) is not None and last.get(key) is not None}
    cells.append(f"{used['cpu_s'] / units * 1e6:.1f}" if "cpu_s" in used and units else "")
    cells.append(giga(max((sample.get("rss_bytes") or 0) for sample in resources)) if resources else "")
    cells.append(giga(totals["sent_bytes"]))
    cells.append(giga(used["written_bytes"]) if "written_bytes" in used else "")
    cells.append(giga(resources[-1].get("disk_bytes") or 0) if resources else "")
    return "| " + " | ".join(cells) + " |"


def ms(us):
    return f"{us / 1000:.2f}" if us < 10_000 else f"{us / 1000:.0f}"


def giga(size):
    return f"{size / 1e9:.2f}"


HEADER = """| run | ops/s | p50 / p99 / p99.9 in ms | errors | server CPU µs/op | RSS GB | values sent GB | written GB | disk GB |
| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |"""


def report(out, names):
    """Writes the table and the charts of every run that has ended."""
    done = [name for name in names if (out / name / "run.json").is_file()]
    (out / "table.md").write_text("\n".join([HEADER, *(row(name, out) for name in done)]) + "\n")
    for chart, members in CHARTS.items():
        dirs = [str(out / name) for name in members if name in done]
        directory = out / "charts" / chart
        if len(dirs) > 1:
            directory.mkdir(parents=True, exist_ok=True)
            execute([str(beside("ombak-bench")), "compare", "--out", str(directory), *dirs])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long each run takes [5]")
    parser.add_argument("--out", type=Path, required=True, help="where results go; runs that are there are not made again")
    parser.add_argument("--again", action="store_true", help="also make runs that are there already")
    parser.add_argument("names", nargs="*", help="which ones [all]")
    options = parser.parse_args()
    known = sorted(path.stem for path in SEEDS.glob("*.config")) + list(VARIANTS)
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(known)}")
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    for name in options.names or known:
        if not options.again and (out / name / "run.json").is_file():
            continue
        begun = time.monotonic()
        run(name, out, options.minutes)
        report(out, known)
        print(f"{row(name, out)}  ({time.monotonic() - begun:.0f} s)", flush=True)


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
