#!/usr/bin/env python3
"""Measures a cluster of three nodes while a fourth one joins and takes at least 1 GB.

Usage: fourth_node.py [--megabytes N] [--limit RATE] [--only PART]...

Each part has a cluster of its own: n_val 3, bitcask, a ring of 64 partitions, and objects of 10
KiB, so many that three quarters of them are --megabytes (1,050). Requests are half gets and half
puts of
1 KiB over 10,000 further keys, with 12 connections, at the three old nodes.

* `quarter`: requests at a quarter of the highest rate. A request that has to wait for the one
  before it counts from the time at which it should have begun.
* `default`: the same with the default limits of transfers.
* `saturated`: as many requests as possible.
* `unlimited`: no requests, and no limit of transfers.

In `quarter` and `saturated` each node sends at most --limit (10MB) in a second. All nodes and the
client share the processors of this machine. Each percentile is the median of windows of 2 s, and
the worst window is beside it. The rate at which data move is what node 4 has received, from the
commit of the plan until the last home has its new replicas.

The programs come from the directory of OMBAK_PROGRAM, which should be one of `make dist`."""
import argparse
import os
import sys
import time

import measure

sys.path.insert(0, str(measure.ROOT / "tests" / "operations"))

from members import Member  # noqa: E402
from node import free_ports  # noqa: E402

from requests_beside import CONNECTIONS, Requests, ThreeNodes  # noqa: E402

NETWORK = "127.0.7"
VALUE_BYTES = 10 << 10
# What a node that joins three others takes of all objects.
SHARE = 3 / 4
WINDOWS_BEFORE, WINDOWS_AFTER = 8, 5
HIGHEST_RATE_SECONDS = 6
MOVE_SECONDS_MAX, SETTLE_SECONDS_MAX = 1800, 900
LOOK_SECONDS = 0.5
# What the project must reach.
MB_PER_SECOND_MIN, P99_TIMES_MAX, RATE_MIN = 20, 2, 0.65
PARTS = ("quarter", "saturated", "default", "unlimited")
TICKS = os.sysconf("SC_CLK_TCK")


class Nodes(ThreeNodes):
    """Three nodes with objects, and a fourth one that can join. The clients know the first three
    only."""

    def __init__(self, settings):
        super().__init__(NETWORK, settings)

    def fill(self, objects):
        """Writes the objects that are to move, and the keys of the requests."""
        config = self.cluster.directory / "objects.config"
        config.write_text(
            "{mode, max}. {duration, 60}. {concurrent, 16}. {driver, basho_bench_driver_riakc_pb}.\n"
            f"{{key_generator, {{int_to_bin_bigendian, {{partitioned_sequential_int, {objects}}}}}}}.\n"
            f"{{value_generator, {{fixed_bin, {VALUE_BYTES}}}}}. {{riakc_pb_bucket, <<\"objects\">>}}.\n"
            "{operations, [{put, 1}]}.\n")
        measure.execute([str(measure.beside("ombak-bench")), str(config), "-d", str(self.cluster.directory / "bench"), "-n",
                         "fill", "--pb", ",".join(self.addresses)])
        measure.load(self, "--fill", "--seconds", "1", "--connections", CONNECTIONS)
        self.settle()

    def settle(self):
        code, said, error = self.first.run("admin", "cluster", "settled", "--wait", SETTLE_SECONDS_MAX)
        if code != 0:
            raise SystemExit(f"the cluster did not settle: {said} {error}")

    def start_fourth(self):
        node = Member(self.cluster.directory, 4, f"{NETWORK}.4", free_ports(3), self.settings)
        self.cluster.nodes.append(node)
        node.run_again()
        node.ok("admin", "cluster", "join", self.first.peer)
        self.first.ok("admin", "cluster", "plan")
        return node

    def is_moving(self):
        return self.first.json("admin", "cluster", "status")["ring_change"] is not None


class Usage:
    """What the nodes and the machine have used since this was made."""

    def __init__(self, cluster):
        self.nodes = list(cluster.nodes)
        self.began, self.at_first = time.monotonic(), self.read()

    def read(self):
        of_nodes = {}
        for node in self.nodes:
            with open(f"/proc/{node.process.pid}/stat") as stat, open(f"/proc/{node.process.pid}/io") as io:
                fields = stat.read().rpartition(")")[2].split()
                written = next(int(line.split()[1]) for line in io if line.startswith("write_bytes"))
            of_nodes[node.number] = ((int(fields[11]) + int(fields[12])) / TICKS, written)
        with open("/proc/stat") as stat:
            machine = [int(ticks) / TICKS for ticks in stat.readline().split()[1:9]]
        return of_nodes, machine

    def since(self):
        """The processor seconds of each node and of the machine, what the nodes wrote, and the
        time."""
        (before, machine_before), (after, machine) = self.at_first, self.read()
        cpu = {number: after[number][0] - before[number][0] for number in before}
        written = sum(after[number][1] - before[number][1] for number in before)
        user, nice, system, idle, waiting, irq, softirq, stolen = (now - then for now, then in zip(machine, machine_before))
        busy = user + nice + system + irq + softirq
        return {"seconds": time.monotonic() - self.began, "cpu": cpu, "written": written, "busy": busy, "idle": idle,
                "waiting": waiting, "stolen": stolen}


PHASES = ("before", "moving", "removing", "after")


def move(nodes, requests):
    """Lets node 4 join. Returns what moved, in which time, and what was used for it."""
    if requests is not None:
        requests.doing = "moving"
    fourth = nodes.start_fourth()
    usage = Usage(nodes.cluster)
    began = time.monotonic()
    nodes.first.ok("admin", "cluster", "commit")
    deadline = began + MOVE_SECONDS_MAX
    while nodes.is_moving():
        if time.monotonic() > deadline or requests is not None and requests.broken:
            raise SystemExit(f"the change does not end: {nodes.first.run('admin', 'transfers')[1]}")
        time.sleep(LOOK_SECONDS)
    used, stats = usage.since(), fourth.stats()
    if requests is not None:
        requests.doing = "removing"
    settling = time.monotonic()
    nodes.settle()
    return {"bytes": stats["ombak_handoff_bytes_received"], "objects": stats["ombak_handoff_objects_received"], **used,
            "removing_seconds": time.monotonic() - settling}


def run_part(part, objects, limit):
    settings = {"quarter": {"handoff.bytes_per_second": limit}, "saturated": {"handoff.bytes_per_second": limit},
                "unlimited": {"handoff.bytes_per_second": 0}, "default": {}}[part]
    with Nodes(settings) as nodes:
        nodes.fill(objects)
        if part == "unlimited":
            return move(nodes, None), None
        words = []
        if part != "saturated":
            highest = measure.load(nodes, "--connections", CONNECTIONS, "--seconds", str(HIGHEST_RATE_SECONDS))["rate"]
            words = ["--rate", f"{highest / 4:.0f}"]
            print(f"{part}: the highest rate is {highest:,.0f} requests/s", flush=True)
        requests = Requests(nodes, words)
        requests.start()
        try:
            requests.wait_windows(WINDOWS_BEFORE)
            moved = move(nodes, requests)
            requests.doing = "after"
            requests.wait_windows(WINDOWS_AFTER)
        finally:
            requests.end()
        return moved, requests


def report(part, moved, requests):
    speed = moved["bytes"] / 1e6 / moved["seconds"]
    print(f"\n{part}: {moved['bytes'] / 1e6:,.0f} MB in {moved['objects']:,} objects in {moved['seconds']:.1f} s: {speed:.1f} MB/s; "
          f"then {moved['removing_seconds']:.1f} s until the old nodes had removed their copies")
    seconds = moved["seconds"]
    cpu = ", ".join(f"{used / seconds:.2f}" for used in moved["cpu"].values())
    print(f"meanwhile: processors busy {moved['busy'] / seconds:.2f}, idle {moved['idle'] / seconds:.2f}, waiting for the disk "
          f"{moved['waiting'] / seconds:.2f}, taken by the host {moved['stolen'] / seconds:.2f} of {os.cpu_count()}; nodes 1 to 4 used "
          f"{cpu}; written {moved['written'] / 1e6 / seconds:.0f} MB/s")
    verdicts = [(f"{speed:.1f} MB/s, at least {MB_PER_SECOND_MIN}", speed >= MB_PER_SECOND_MIN)]
    if requests is not None:
        phases = {phase: requests.summary(phase) for phase in PHASES}
        print("\n| | requests/s | p50 ms | p99 ms | worst window's p99 ms | p99.9 ms | longest ms | windows |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        for phase, middle in phases.items():
            if middle:
                print(f"| {phase} | {middle['rate']:,.0f} | {middle['p50_us'] / 1000:.2f} | {middle['p99_us'] / 1000:.2f} "
                      f"| {middle['worst_p99_us'] / 1000:.1f} | {middle['p999_us'] / 1000:.2f} | {middle['max_us'] / 1000:.0f} "
                      f"| {middle['windows']} |")
        before, moving = phases["before"], phases["moving"]
        if moving is None:
            raise SystemExit("the data had moved before a window of requests had passed: move more of them")
        if part == "saturated":
            share = moving["rate"] / before["rate"]
            verdicts.append((f"{share:.2f} of the rate of before, at least {RATE_MIN}", share >= RATE_MIN))
        else:
            times = moving["p99_us"] / before["p99_us"]
            verdicts.append((f"p99 {times:.2f} times that of before, at most {P99_TIMES_MAX}", times <= P99_TIMES_MAX))
        errors = requests.errors()
        verdicts.append((f"{errors} errors of {requests.count():,} requests", errors == 0 or part == "saturated"))
    print("\n" + "\n".join(f"{'met    ' if is_met else 'NOT MET'}  {part}: {text}" for text, is_met in verdicts), flush=True)
    return verdicts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1050, help="what node 4 takes [1050]")
    parser.add_argument("--limit", default="10MB", help="what each node sends in a second in `quarter` and `saturated` [10MB]")
    parser.add_argument("--only", action="append", choices=PARTS, help="only this part [all]")
    options = parser.parse_args()
    objects = int(options.megabytes * 1e6 / SHARE / VALUE_BYTES)
    print(f"{objects:,} objects of {VALUE_BYTES:,} bytes on 3 nodes; load average {os.getloadavg()[0]:.2f}", flush=True)
    for part in options.only or PARTS:
        report(part, *run_part(part, objects, options.limit))
    print(f"load average {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    os.environ.setdefault("OMBAK_PROGRAM", str(measure.ROOT / "target" / "dist" / "ombak"))
    sys.exit(main())
