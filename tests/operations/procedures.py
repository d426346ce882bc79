#!/usr/bin/env python3
"""Runs the procedures of docs/operations.md that change the members of a cluster, as they are
written there, and compares what the commands print.

In the document node N has the address 10.0.0.N and port 8099; here it has another one, which is put
in its place. A command that shows something is repeated until it prints what the document says:
changes take their time. Clients write before and during all procedures, and nothing may be lost.

Usage: procedures.py"""
import json
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
sys.path.insert(0, str(HERE.parent / "nemesis"))

from members import Cluster, Member, wait_for  # noqa: E402
from node import ROOT, free_ports  # noqa: E402
from riak_http import NoAnswer, Requests  # noqa: E402

DOCUMENT = ROOT / "docs" / "operations.md"
NODES = 3
NETWORK = "127.0.6"
WAIT_SECONDS_MAX = 120
KEYS = 300
# The buckets with three and with two copies of each key.
BUCKETS = ("procedures", "two-copies")
# What only shows something may be asked again.
SHOWS = ("transfers", "member-status", "ringready", "settled")
# What is done before a procedure, and which nodes have ended after it.
ADDED = {"## Adding a node": 4, "## Replacing a node that runs": 5, "## Replacing a node that is lost": 6}
LEFT = {"## Replacing a node that runs": 2, "## Removing a node that runs": 4}
# How the warnings begin that fewer than three members vote.
FEW_VOTERS = ("WARNING: So far only", "WARNING: Only")
LOST = {"## Replacing a node that is lost": 3, "## Removing a node that is lost": 6}
# Which nodes have lost their directories, and name their peers.
EMPTY = {"## Replacing a node under its own name": 5}
HEADINGS = ["## Adding a node", "## Replacing a node that runs", "## Removing a node that runs",
            "## Replacing a node that is lost", "## Replacing a node under its own name", "## Removing a node that is lost"]


def documented(heading, further=0):
    """The commands of a procedure: the number of the node, if it is said, the words, and the lines
    that it prints. The cluster has some further nodes, which the document does not mention."""
    section = DOCUMENT.read_text().partition(heading + "\n")[2].partition("\n## ")[0]
    found = []
    for block in re.findall(r"```console\n(.*?)```", section, re.DOTALL):
        for line in filter(None, (line.strip() for line in block.splitlines())):
            command = re.fullmatch(r"(?:10\.0\.0\.(\d+))?\$ ombak (.*)", line)
            if command:
                found.append((command[1] and int(command[1]), command[2].split(), []))
            else:
                found[-1][2].append(line)
    assert found, f"{DOCUMENT} has no commands under {heading!r}"
    return [(number, words, pattern(lines, further)) for number, words, lines in found]


def pattern(lines, further):
    """What a command prints, with `...` for any text. Empty lines do not matter. The document
    begins with three members, and further ones change what is said of their number."""
    lines = [re.sub(r"^Valid:(\d+)", lambda count: f"Valid:{int(count[1]) + further}", line) for line in lines]
    if further:
        # No change leaves fewer than three voters.
        lines = [line for line in lines if not line.startswith(FEW_VOTERS)]
    text = "\n".join(".*".join(map(re.escape, line.split("..."))) for line in lines)
    return re.compile(text.replace("\n.*\n", "\n(?:.*\n)?"), re.DOTALL)


class Writer(threading.Thread):
    """Writes keys through the nodes that are there, and notes what was acknowledged."""

    def __init__(self, addresses, pause_seconds):
        super().__init__(daemon=True)
        self.addresses, self.pause_seconds, self.over = addresses, pause_seconds, threading.Event()
        self.acknowledged, self.tried, self.broken = {}, 0, None

    def run(self):
        try:
            while not self.over.is_set():
                self.write(f"during-{self.tried}")
                self.over.wait(self.pause_seconds)
        except Exception as error:  # noqa: BLE001: a writer that ends must not go unnoticed.
            self.broken = error

    def write(self, key):
        """Writes the key into the next bucket."""
        self.tried += 1
        bucket = BUCKETS[self.tried % len(BUCKETS)]
        node = Requests(random.choice(self.addresses()), "default")
        try:
            node.put(bucket, key, f"value {key}")
            self.acknowledged[bucket, key] = f"value {key}"
        except NoAnswer:
            pass
        finally:
            node.close()


class Procedures:
    # The number of nodes that the document does not mention.
    further = 0
    pause_seconds = 0.02

    def __init__(self, cluster):
        self.cluster = cluster
        self.nodes = {node.number: node for node in cluster.nodes}
        self.serving = dict(self.nodes)
        self.writer = Writer(lambda: [node.http for node in self.serving.values()], self.pause_seconds)
        self.failed = []

    def here(self, word):
        """A word of the document, with the addresses of this machine."""
        word = re.sub(r"10\.0\.0\.(\d+):8099", lambda at: self.nodes[int(at[1])].peer, word)
        return re.sub(r"ombak@10\.0\.0\.(\d+)", lambda at: self.nodes[int(at[1])].name, word)

    def there(self, text):
        """What a command has printed, with the addresses of the document."""
        text = re.sub(rf"node(\d+)@{re.escape(NETWORK)}\.\d+", r"ombak@10.0.0.\1", text)
        # The lines of empty ones and spaces at the ends do not matter.
        return "\n".join(line.strip() for line in text.splitlines() if line.strip())

    def start_new(self, number):
        ports = free_ports(3)
        node = Member(self.cluster.directory, number, f"{NETWORK}.{number}", ports, {"logger.level": "warning"})
        self.nodes[number] = node
        self.cluster.nodes.append(node)
        node.run_again()

    def start_empty(self, number):
        """Starts a node anew without its directory. Its configuration names its peers, so it
        waits."""
        node = self.nodes[number]
        node.kill()
        peers = " ".join(other.peer for other in self.serving.values())
        shutil.rmtree(node.data)
        node.settings["cluster.peers"] = peers
        node.config.write_text(node.configuration())
        node.process = node.start()
        wait_for(f"node {number} waits for its peers", lambda: "waits for its peers, and serves nobody yet" in node.said(),
                 WAIT_SECONDS_MAX)

    def carry_out(self, heading):
        began = time.monotonic()
        if heading in EMPTY:
            self.serving.pop(EMPTY[heading])
            self.start_empty(EMPTY[heading])
        if heading in LOST:
            lost = LOST[heading]
            self.serving.pop(lost)
            self.nodes[lost].kill()
        if heading in ADDED:
            self.start_new(ADDED[heading])
        leaver = LEFT.get(heading)
        if leaver:
            self.serving.pop(leaver)
        for number, words, printed in documented(heading, self.further):
            node = self.nodes[number] if number else self.any_node()
            self.command(node, [self.here(word) for word in words], printed)
        if leaver:
            status = self.nodes[leaver].process.wait(WAIT_SECONDS_MAX)
            self.check(f"{heading}: node {leaver} ends", status, 0)
        if heading in ADDED:
            self.serving[ADDED[heading]] = self.nodes[ADDED[heading]]
        if heading in EMPTY:
            self.serving[EMPTY[heading]] = self.nodes[EMPTY[heading]]
        self.settle(heading)
        print(f"{heading}: {time.monotonic() - began:.1f} s", flush=True)

    def any_node(self):
        """The node on which the commands run that any member can carry out."""
        return min(self.serving.values(), key=lambda node: node.number)

    def command(self, node, words, printed):
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while True:
            _, out, error = node.run(*words)
            said = self.there(out or error)
            if printed.fullmatch(said):
                return
            if not set(SHOWS) & set(words) or time.monotonic() > deadline:
                self.check(f"`{' '.join(words)}` at node {node.number}", said, printed.pattern)
                return
            time.sleep(0.2)

    def settle(self, heading):
        # What the document waited for is that the change has ended.
        self.check(f"{heading}: the ring changes no more", self.any_node().json("admin", "transfers")["ring_change"], None)
        code, out, _ = self.any_node().run("admin", "cluster", "settled", "--reaped", "--wait", WAIT_SECONDS_MAX)
        self.check(f"{heading}: everything settles", code, 0)
        if code:
            print(out)

    def check(self, what, found, wanted):
        if found != wanted:
            self.failed.append(what)
            print(f"FAILED {what}:\n{found}\nin place of\n{wanted}", flush=True)

    def check_values(self):
        """Reads what was acknowledged from all replicas, through each node."""
        for node in self.serving.values():
            requests = Requests(node.http, "default")
            for (bucket, key), value in self.writer.acknowledged.items():
                try:
                    found = requests.get(bucket, key, r="all")
                    if found is None or found.values != [value]:
                        self.check(f"{key} at node {node.number}", found and found.values, [value])
                except NoAnswer as error:
                    self.check(f"{key} at node {node.number}", str(error), [value])
            requests.close()


def carry_out_all(procedures, headings):
    """Carries out procedures while a client writes, and reads in the end what was acknowledged.
    Returns the exit code."""
    writer = procedures.writer
    # A commit before all members vote would print one more warning.
    procedures.settle("The cluster that was formed")
    props = json.dumps({"props": {"n_val": 2}}).encode()
    path = f"/types/default/buckets/{BUCKETS[1]}/props"
    status, _ = procedures.any_node().request("PUT", path, props, {"Content-Type": "application/json"})
    procedures.check("two copies are set", status, 204)
    for number in range(KEYS):
        writer.write(f"before-{number}")
    writer.start()
    for heading in headings:
        procedures.carry_out(heading)
    writer.over.set()
    writer.join()
    if writer.broken is not None:
        procedures.check("the writer", repr(writer.broken), None)
    procedures.check_values()
    print(f"{len(writer.acknowledged)} of {writer.tried} writes were acknowledged")
    if procedures.failed:
        procedures.cluster.print_logs()
    failed = len(procedures.failed)
    print(f"{len(headings) - min(len(headings), failed)} passed, {failed} failed")
    return 1 if failed else 0


def main():
    with Cluster(NODES, NETWORK, {"logger.level": "warning"}) as cluster:
        return carry_out_all(Procedures(cluster), HEADINGS)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.TimeoutExpired as error:
        sys.exit(f"procedures: {error}")
