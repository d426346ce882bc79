#!/usr/bin/env python3
"""Measures what exchanges between replicas cost: three nodes, n_val 3, bitcask, KEYS (10,000,000)
keys of 16 bytes with values of 100 bytes.

`make bench-anti-entropy` builds the needed programs with the profile `dist`. It measures in turns

* what node 3 lacks: DIFFERING (100) records are taken out of its stopped stores behind its back,
  together with the saved sums, so that nothing but an exchange shows it. From the beginning of a
  round on it measures the seconds until all of them are repaired, the bytes of the exchanges, and
  how much the nodes read;
* rounds between equal nodes: the processor time of ROUNDS (10) rounds that are begun by a command,
  above what the idle nodes need in the same time. An hour at the default pace has as many rounds as
  the default interval fits into it. So many rounds are what the figure for an hour stands for.

Loading takes most of the time: about 8 minutes for 10 million keys on two processors, and 8 GB."""
import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from measure import ROOT, beside, execute

sys.path.insert(0, str(ROOT / "tests" / "operations"))
sys.path.insert(0, str(ROOT / "tests" / "support"))

import stores  # noqa: E402
from members import Cluster, wait_for  # noqa: E402

NETWORK = "127.0.10"
NODES = 3
SETTINGS = {"storage_backend": "bitcask", "ring_size": 64, "logger.level": "warning", "delete_mode": "immediate"}
BUCKET = "exchanged"
CONFIGURATION = """
{{mode, max}}.
{{duration, infinity}}.
{{concurrent, 12}}.
{{driver, basho_bench_driver_riakc_pb}}.
{{riakc_pb_pipeline, 32}}.
{{riakc_pb_bucket, <<"{bucket}">>}}.
{{key_generator, {{to_binstr, "~16..0B", {{partitioned_sequential_int, {keys}}}}}}}.
{{value_generator, {{fixed_bin, 100}}}}.
{{operations, [{{put, 1}}]}}.
"""
SETTLE_SECONDS_MAX = 3600
ROUND_SECONDS_MAX = 3600
# Nodes are idle when they need less than this share of a processor together. Three nodes without
# clients were seen to need up to 0.17.
IDLE_SHARE, IDLE_SECONDS = 0.3, 3
ASK_AGAIN_SECONDS = 0.1
# What the project wants to reach (with 10 million keys and 100 that differ).
REPAIR_SECONDS_MAX, REPAIR_KB_MAX, READ_PERCENT_MAX, HOUR_SECONDS_MAX = 10, 256, 1.0, 2.0


def processor_seconds(cluster):
    """The processor time of all nodes so far."""
    ticks = 0
    for node in cluster.nodes:
        # The name of the program, in parentheses, may hold blanks.
        fields = Path(f"/proc/{node.process.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def bytes_read(cluster):
    """The bytes that all nodes have read from files so far, from the disk or from the page cache.
    What they receive from sockets does not count."""
    found = 0
    for node in cluster.nodes:
        lines = dict(line.split(": ") for line in Path(f"/proc/{node.process.pid}/io").read_text().splitlines())
        found += int(lines["rchar"])
    return found


def bytes_stored(cluster):
    return sum(path.stat().st_size for node in cluster.nodes for path in node.data.rglob("*.data"))


class Figures:
    """What the exchanges of all nodes have done since their starts."""

    def __init__(self, cluster):
        members = [node.json("admin", "aae-status")["members"][0] for node in cluster.nodes]
        exchanges = [exchange for member in members for exchange in member["exchanges"]]
        self.repaired = sum(exchange["repaired"] for exchange in exchanges)
        self.bytes = sum(exchange["bytes"] for exchange in exchanges)
        self.ended = sum(exchange["ended"] for exchange in exchanges)
        self.interval_seconds = members[0]["interval_ms"] / 1000
        self.left = sum(member["left_of_round"] for member in members)
        self.in_round = sum(member["exchanges_in_round"] for member in members)


def put(nodes, keys):
    """Puts so many keys through these nodes."""
    with tempfile.TemporaryDirectory() as results:
        configuration = Path(results) / "load.config"
        configuration.write_text(CONFIGURATION.format(keys=keys, bucket=BUCKET))
        execute([str(beside("ombak-bench")), str(configuration), "-d", results, "--pb", ",".join(node.pb for node in nodes)])


def load(cluster, keys):
    began = time.monotonic()
    put(cluster.nodes, keys)
    cluster.nodes[0].ok("admin", "cluster", "settled", "--wait", SETTLE_SECONDS_MAX)
    print(f"{keys:,} keys put in {time.monotonic() - began:.0f} s, {bytes_stored(cluster) / 1e6:,.0f} MB on three nodes", flush=True)


def wait_until_idle(cluster):
    """Waits until the nodes do nothing: sums are made, merges have ended."""
    def is_idle():
        before, began = processor_seconds(cluster), time.monotonic()
        time.sleep(IDLE_SECONDS)
        return processor_seconds(cluster) - before < IDLE_SHARE * (time.monotonic() - began)

    wait_for("that the nodes are idle", is_idle, SETTLE_SECONDS_MAX)


def suspend(cluster):
    cluster.nodes[0].ok("admin", "tictacaae", "suspend", "-n", "all")


def begin_round(cluster):
    """Makes every exchange of every node due at once."""
    cluster.nodes[0].ok("admin", "node", "repair", "stop", "-n", "all")
    cluster.nodes[0].ok("admin", "tictacaae", "resume", "-n", "all")
    cluster.nodes[0].ok("admin", "node", "repair", "start", "measured", "-n", "all")


def is_round_over(cluster):
    """Whether each node has ended every exchange of the round that was begun by the command."""
    return all(node.json("admin", "aae-status")["members"][0]["node_repair"] is None for node in cluster.nodes)


def carry_out_round(cluster):
    begin_round(cluster)
    wait_for("the end of a round", lambda: time.sleep(ASK_AGAIN_SECONDS) or is_round_over(cluster), ROUND_SECONDS_MAX)


def differ(cluster, keys, differing):
    """Takes records out of the stores of node 3 while it is stopped."""
    node = cluster.nodes[2]
    node.process.terminate()
    node.process.wait(SETTLE_SECONDS_MAX)
    step = max(1, keys // differing)
    wanted = [stores.storage_key(BUCKET, f"{number:016}") for number in range(0, keys, step)][:differing]
    removed = stores.remove_records(node.data, wanted)
    if len(removed) != len(wanted):
        raise SystemExit(f"node 3 held {len(removed)} of {len(wanted)} keys")
    for file in (node.data / "sums").glob("*.sums"):
        file.unlink()
    node.run_again()
    cluster.wait_agreed()
    return len(wanted)


def measure_repair(cluster, keys, differing):
    suspend(cluster)
    count = differ(cluster, keys, differing)
    # What was said to a node that was down is forgotten.
    suspend(cluster)
    cluster.nodes[0].ok("admin", "cluster", "settled", "--wait", SETTLE_SECONDS_MAX)
    wait_until_idle(cluster)
    before, read_before, stored = Figures(cluster), bytes_read(cluster), bytes_stored(cluster)
    began = time.monotonic()
    begin_round(cluster)
    wait_for("the repair of all keys", lambda: time.sleep(ASK_AGAIN_SECONDS) or Figures(cluster).repaired - before.repaired >= count,
             ROUND_SECONDS_MAX)
    seconds = time.monotonic() - began
    wait_for("the end of the round", lambda: time.sleep(ASK_AGAIN_SECONDS) or is_round_over(cluster), ROUND_SECONDS_MAX)
    round_seconds, after, read = time.monotonic() - began, Figures(cluster), bytes_read(cluster) - read_before
    print(f"\n{count} of {keys:,} keys differed: repaired {seconds:.1f} s after the beginning of a round, which took {round_seconds:.1f} s, "
          f"{after.repaired - before.repaired} repairs, {(after.bytes - before.bytes) / 1024:,.0f} KB of sums and lists, "
          f"{read / 1e6:,.2f} MB read, {read / stored * 100:.3f} % of {stored / 1e6:,.0f} MB", flush=True)
    print(f"at most: {REPAIR_SECONDS_MAX} s, {REPAIR_KB_MAX} KB, {READ_PERCENT_MAX} %", flush=True)


def measure_rounds(cluster, rounds):
    suspend(cluster)
    wait_until_idle(cluster)
    figures, busy = [], []
    for _ in range(rounds):
        before, began, used = Figures(cluster), time.monotonic(), processor_seconds(cluster)
        carry_out_round(cluster)
        # What polls and idle nodes need is measured in the same way, over the same time.
        seconds, with_round = time.monotonic() - began, processor_seconds(cluster) - used
        suspend(cluster)
        after = Figures(cluster)
        used, began = processor_seconds(cluster), time.monotonic()
        while time.monotonic() - began < seconds:
            time.sleep(ASK_AGAIN_SECONDS)
            is_round_over(cluster)
        busy.append((with_round - (processor_seconds(cluster) - used), seconds))
        figures.append((after.ended - before.ended, after.bytes - before.bytes))
    interval, in_round = Figures(cluster).interval_seconds, Figures(cluster).in_round
    of_round = statistics.median(seconds for seconds, _ in busy)
    hour = of_round * 3600 / interval
    ended, sent = (statistics.median(values) for values in zip(*figures))
    print(f"\n{rounds} rounds of {in_round} exchanges between equal nodes, each {statistics.median(took for _, took in busy):.1f} s: "
          f"{of_round:.3f} s of processor time of all nodes a round, {ended:.0f} exchanges ended, {sent / max(1, ended):.0f} bytes an exchange. "
          f"An hour at the default pace has {3600 / interval:.1f} rounds (one in {interval:.0f} s): {hour:.2f} s of processor time, "
          f"scaled from these rounds", flush=True)
    print(f"at most: {HOUR_SECONDS_MAX} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=10_000_000, help="how many keys [10000000]")
    parser.add_argument("--differing", type=int, default=100, help="how many of them differ [100]")
    parser.add_argument("--rounds", type=int, default=10, help="how many rounds between equal nodes [10]")
    options = parser.parse_args()
    with Cluster(NODES, NETWORK, SETTINGS) as cluster:
        load(cluster, options.keys)
        wait_until_idle(cluster)
        # The first round writes the marks.
        carry_out_round(cluster)
        measure_rounds(cluster, options.rounds)
        measure_repair(cluster, options.keys, options.differing)


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
