#!/usr/bin/env python3
"""Measures a cluster while one of its nodes fails and returns.

Usage:
  cluster_faults.py faults [--rounds N]      latencies before and while a node is killed, paused or slow
  cluster_faults.py hand-back [--rounds N]   how fast a node that was down, and one whose stores were
                                             removed, gets what it lacks, and latencies meanwhile

Three nodes, n_val 3, bitcask; half gets and half puts of 1 KiB at a quarter of the highest rate.
The clients ask the two healthy nodes. A request that has to wait for the one before it counts from
the time at which it should have begun. Each percentile is the median of windows of 2 s, because a
virtual machine that gets no processor for a moment spoils the window in which that happens.

The programs come from the directory of OMBAK_PROGRAM, which should be one of `make dist`."""
import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import cluster
import measure

CONNECTIONS = "12"
WINDOW_SECONDS = 2
HEALTHY_WINDOWS, LATER_WINDOWS = 4, 5
# What the project must reach from 5 s after the fault on.
P99_TIMES_MAX, P999_MS_MAX, STALL_MS_MAX = 3, 50, 2000
SETTLE_SECONDS_MAX = 600
# Enough of them to take some seconds at the speed that the project must reach.
OBJECTS = 300_000
MB_PER_SECOND_MIN = 30
DISK_DELAY_US = 20_000
# What the answer to `cluster settled` counts as data that has not moved yet.
DATA_TO_MOVE = ("partitions_with_hints", "owed_marks", "filling_classes", "transfers")


class Faults(cluster.Cluster):
    """Three nodes, the third of which fails. Clients know the first two."""

    def __init__(self):
        super().__init__(3, {3: ["disk_delay_file = {directory}/delay"]})
        # The third node, if it was started again.
        self.process = None

    def __enter__(self):
        super().__enter__()
        self.path = Path(self.directory.name)
        self.victim = self.pids[2]
        self.addresses, self.pids = self.addresses[:2], self.pids[:2]
        return self

    def kill(self):
        os.kill(self.victim, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()
        wait_for(lambda: not Path(f"/proc/{self.victim}").exists(), 10)

    def start_again(self, *options):
        output = self.path / "node-3.out"
        with open(output, "wb") as file:
            self.process = subprocess.Popen(
                [str(measure.program()), "start", "--config", str(self.path / "node-3.conf"), "--data",
                 str(self.path / "node-3"), *options],
                stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True, cwd=self.path,
                env=measure.clean_environment())
        self.victim = self.process.pid
        (self.path / "node-3.pid").write_text(f"{self.victim}\n")
        wait_for(lambda: self.is_ready(output), 60)

    def is_ready(self, output):
        said = output.read_text(errors="replace")
        if " is ready: " not in said and self.process.poll() is not None:
            raise SystemExit(f"node 3 did not start: {said}")
        return " is ready: " in said

    def pause(self):
        os.kill(self.victim, signal.SIGSTOP)

    def resume(self):
        os.kill(self.victim, signal.SIGCONT)

    def slow_down(self):
        (self.path / "delay").write_text(f"{DISK_DELAY_US}\n")

    def speed_up(self):
        (self.path / "delay").unlink()

    def settle(self):
        """Waits until nothing has to be moved, and returns how long that took."""
        began = time.monotonic()
        command = [str(measure.program()), "admin", "--data", str(self.path / "node-1"), "cluster", "settled", "--wait",
                   str(SETTLE_SECONDS_MAX)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                              env=measure.clean_environment())
        if done.returncode != 0:
            raise SystemExit(f"the cluster did not settle: {done.stdout}")
        return time.monotonic() - began


    def wait_until_handed_back(self):
        """Waits until node 3 has what it lacked, and returns how long that took. A node that has
        started looks for tombstones later: that moves no data, so it does not count."""
        began = time.monotonic()
        wait_for(self.is_handed_back, SETTLE_SECONDS_MAX)
        return time.monotonic() - began

    def is_handed_back(self):
        command = [str(measure.program()), "admin", "--data", str(self.path / "node-1"), "cluster", "settled", "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=measure.clean_environment())
        members = json.loads(done.stdout)["members"]
        return all(one["up"] and not any(one[what] for what in DATA_TO_MOVE) for one in members)


FAULTS = {"killed": (Faults.kill, Faults.start_again), "paused": (Faults.pause, Faults.resume),
          "slow disk": (Faults.slow_down, Faults.speed_up)}


def wait_for(holds, seconds):
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit(f"something takes longer than {seconds} s")
        time.sleep(0.02)


def at_rate(server, rate, seconds):
    return cluster.load(server, "--rate", f"{rate:.0f}", "--connections", CONNECTIONS, "--seconds", str(seconds))


def in_windows(server, rate, windows):
    """Medians of the percentiles of windows, the longest wait and the number of errors in all."""
    figures = [at_rate(server, rate, WINDOW_SECONDS) for _ in range(windows)]
    return middle_of(figures)


def middle_of(figures):
    middle = {key: statistics.median(one[key] for one in figures) for key in ("p99_us", "p999_us")}
    return middle | {"max_us": max(one["max_us"] for one in figures), "errors": sum(one["errors"] for one in figures)}


def with_load(server, rate, seconds, act, after=1.0):
    """Runs a load, and `act` in the middle of it."""
    figures = []
    load = threading.Thread(target=lambda: figures.append(at_rate(server, rate, seconds)))
    load.start()
    time.sleep(after)
    act()
    load.join()
    if not figures:
        raise SystemExit("the load failed")
    return figures[0]


def faults(rounds):
    found = {}
    with Faults() as server:
        cluster.load(server, "--fill", "--seconds", "1", "--connections", CONNECTIONS)
        rate = cluster.load(server, "--seconds", "5", "--connections", CONNECTIONS)["rate"] / 4
        print(f"a quarter of the highest rate: {rate:,.0f} requests/s", flush=True)
        for number in range(rounds):
            for name, (begin, end) in FAULTS.items():
                healthy = in_windows(server, rate, HEALTHY_WINDOWS)
                change = with_load(server, rate, 6, lambda: begin(server))
                later = in_windows(server, rate, LATER_WINDOWS)
                end(server)
                settled = server.settle()
                found.setdefault(name, []).append((healthy, change, later))
                print(f"round {number + 1}, {name}: p99 {healthy['p99_us'] / 1000:.2f} → {later['p99_us'] / 1000:.2f} ms, p99.9 "
                      f"{later['p999_us'] / 1000:.2f} ms, longest {max(change['max_us'], later['max_us']) / 1000:.0f} ms, errors "
                      f"{change['errors']} and {later['errors']}, settled after {settled:.1f} s", flush=True)
    print("\n| node 3 | p99 healthy ms | p99 from 5 s on ms | times | p99.9 from 5 s on ms | longest wait from the fault on ms | errors |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, results in found.items():
        def median(of):
            return statistics.median(of(*one) for one in results)
        print(f"| {name} | {median(lambda h, c, l: h['p99_us']) / 1000:.2f} | {median(lambda h, c, l: l['p99_us']) / 1000:.2f} "
              f"| {median(lambda h, c, l: l['p99_us'] / h['p99_us']):.2f} | {median(lambda h, c, l: l['p999_us']) / 1000:.2f} "
              f"| {max(max(c['max_us'], l['max_us']) for _, c, l in results) / 1000:.0f} "
              f"| {sum(c['errors'] + l['errors'] for _, c, l in results)} |")
    print(f"\nat most: {P99_TIMES_MAX} times, {P999_MS_MAX} ms, {STALL_MS_MAX} ms")


def write_objects(server, first):
    """Writes objects of 1 KiB with new keys through the two healthy nodes."""
    out = server.path / f"writes-{first}"
    config = server.path / "writes.config"
    config.write_text(
        "{mode, max}. {duration, 60}. {concurrent, 16}. {driver, basho_bench_driver_riakc_pb}.\n"
        f"{{key_generator, {{int_to_bin_bigendian, {{partitioned_sequential_int, {first}, {OBJECTS}}}}}}}.\n"
        "{value_generator, {fixed_bin, 1024}}. {riakc_pb_bucket, <<\"hand-back\">>}. {operations, [{put, 1}]}.\n")
    measure.execute([str(measure.beside("ombak-bench")), str(config), "-d", str(out), "-n", "run", "--pb",
                     ",".join(server.addresses)])


def hand_back(rounds):
    rows = {}
    for number in range(rounds):
        with Faults() as server:
            cluster.load(server, "--fill", "--seconds", "1", "--connections", CONNECTIONS)
            rate = cluster.load(server, "--seconds", "5", "--connections", CONNECTIONS)["rate"] / 4
            healthy = in_windows(server, rate, HEALTHY_WINDOWS)
            server.kill()
            write_objects(server, OBJECTS * 2 * number)
            server.start_again()
            record(rows, number, "down while objects were written", server, rate, healthy)
            server.kill()
            shutil.rmtree(server.path / "node-3" / "bitcask")
            # Without this word the node does not start, because the disk may not be mounted.
            server.start_again("--accept-loss")
            record(rows, number, "stores removed", server, rate, healthy)
    print("\n| node 3 | MB/s | p99 healthy ms | p99 meanwhile ms |\n| --- | ---: | ---: | ---: |")
    for what, results in rows.items():
        middle = [statistics.median(values) for values in zip(*results)]
        print(f"| {what} | {middle[0]:.1f} | {middle[1]:.2f} | {middle[2]:.2f} |")
    print(f"\nat least {MB_PER_SECOND_MIN} MB/s")


def record(rows, number, what, server, rate, healthy):
    figures, stop = [], threading.Event()

    def ask():
        while not stop.is_set():
            figures.append(at_rate(server, rate, WINDOW_SECONDS))

    load = threading.Thread(target=ask)
    load.start()
    seconds = server.wait_until_handed_back()
    stop.set()
    load.join()
    speed = OBJECTS * 1024 / 1e6 / seconds
    p99 = middle_of(figures)["p99_us"] / 1000
    rows.setdefault(what, []).append((speed, healthy["p99_us"] / 1000, p99))
    print(f"round {number + 1}, {what}: {speed:.1f} MB/s in {seconds:.1f} s, p99 {p99:.2f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["faults", "hand-back"])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    {"faults": faults, "hand-back": hand_back}[options.what](options.rounds)


if __name__ == "__main__":
    os.environ.setdefault("OMBAK_PROGRAM", str(measure.ROOT / "target" / "dist" / "ombak"))
    sys.exit(main())
