#!/usr/bin/env python3
"""Restarts the nodes of a cluster one after another under load, as an upgrade does.

Five nodes run, and clients write, read and delete all the time. Each client knows two nodes: a
request that the first one does not answer goes to the other one. Each node in turn is stopped
with SIGTERM and started again, and the next one follows when all agree on the ring and the
cluster has handed over what was written meanwhile. No request of a client may fail at both of its
nodes, and everything that was acknowledged must be there afterwards. The commands of
docs/operations.md then print what it shows.

It is an upgrade. With --old PROGRAM, the nodes begin with that program, and are restarted with the
one under test. Without it, they begin with the one under test, and say and do among nodes only what
the version before could (`cluster.speaks`). So that a cluster of both versions is used for long,
each restart is followed by `--seconds` of load; half of them are spent before the first restart.

Usage: run.py [--old PROGRAM] [--seconds N] [--backend NAME]"""
import argparse
import json
import random
import re
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
sys.path.insert(0, str(HERE.parent / "nemesis"))

import cluster  # noqa: E402
from node import ROOT, START_TRIES_MAX, free_ports  # noqa: E402
from riak_http import NoAnswer, Requests  # noqa: E402

NODES = 5
CLIENTS = 6
BUCKET = "upgraded"
SPEAKS = "cluster.speaks"
PAUSE_SECONDS = 0.005
SETTLE_SECONDS_MAX = 60
# What a member has still to bring to another one while clients write.
OPEN = ("partitions_with_hints", "owed_marks", "filling_classes", "transfers")


DOCUMENT = ROOT / "docs" / "operations.md"
HEADING = "## Upgrading to a new version"


def documented():
    """The commands of the document, each with the pattern of what it prints. `...` stands for any
    text."""
    section = DOCUMENT.read_text().partition(HEADING)[2].partition("\n## ")[0]
    lines = [line.strip() for block in re.findall(r"```console\n(.*?)```", section, re.DOTALL) for line in block.splitlines()]
    found = []
    for line in filter(None, lines):
        if line.startswith("$ ombak admin "):
            found.append((line.split()[3:], []))
        else:
            found[-1][1].append(".*".join(map(re.escape, line.split("..."))))
    assert found, f"{DOCUMENT} has no commands under {HEADING!r}"
    return [(words, re.compile("\n".join(printed), re.DOTALL)) for words, printed in found]


class Client(threading.Thread):
    """A client that knows two nodes. It notes the newest acknowledged value of each of its keys."""

    def __init__(self, number, addresses, over):
        super().__init__(name=f"client-{number}", daemon=True)
        self.nodes = [Requests(address, "default") for address in addresses]
        self.number, self.over, self.chance = number, over, random.Random(number)
        # For each key its value, or None after a delete.
        self.values = {}
        self.requests = self.elsewhere = self.stale = 0
        self.slowest = 0.0
        self.failed, self.broken = [], None

    def run(self):
        try:
            while not self.over.is_set():
                self.step()
                self.over.wait(PAUSE_SECONDS)
        except Exception as error:  # noqa: BLE001: a client that ends must not go unnoticed.
            self.broken = error
        finally:
            for node in self.nodes:
                node.close()

    def step(self):
        key = f"{self.number}-{self.chance.randrange(400)}"
        what = self.chance.choices((self.write, self.read, self.delete), (50, 40, 10))[0]
        what(key)

    def ask(self, what, request):
        """Asks the one node, and then the other one. Returns whether one answered, and its
        answer."""
        self.requests += 1
        began = time.monotonic()
        said = []
        for attempt, node in enumerate(self.chance.sample(self.nodes, len(self.nodes))):
            try:
                answer = request(node)
            except NoAnswer as error:
                said.append(f"{node.address}: {error}")
                continue
            self.elsewhere += attempt
            self.slowest = max(self.slowest, time.monotonic() - began)
            return True, answer
        self.failed.append(f"{what} after {time.monotonic() - began:.1f} s: {'; '.join(said)}")
        return False, None

    def write(self, key):
        value = f"{key} {self.requests}"

        def put(node):
            found, is_newest = self.before_change(node, key)
            node.put(BUCKET, key, value, found and found.clock)
            return is_newest

        is_done, was_newest = self.ask(f"put of {key}", put)
        # After a failure it is not known which value the key has.
        self.values[key] = value if is_done and was_newest else "?"

    def read(self, key):
        is_done, found = self.ask(f"get of {key}", lambda node: node.get(BUCKET, key))
        if is_done and self.problem(key, found):
            self.stale += 1

    def before_change(self, node, key):
        """What the key has, and whether that is what this client has written last. While nodes
        stand in for others, a read may miss a write for a moment, as in Riak. Then a put does not
        replace what it has not seen, and a delete finds nothing that it could delete."""
        found = node.get(BUCKET, key)
        is_newest = self.problem(key, found) is None
        self.stale += not is_newest
        return found, is_newest

    def delete(self, key):
        def remove(node):
            found, is_newest = self.before_change(node, key)
            if found is not None:
                node.delete(BUCKET, key, found.clock)
            return is_newest

        is_done, was_newest = self.ask(f"delete of {key}", remove)
        self.values[key] = None if is_done and was_newest else "?"

    def problem(self, key, found):
        """What is wrong with an answer to a read, or None. Only this client writes the key."""
        wanted = self.values.get(key)
        values = None if found is None else found.values
        if wanted == "?" or values == (None if wanted is None else [wanted]):
            return None
        return f"{key} is {values!r} in place of {wanted!r}"

    def check_all(self):
        """Reads every key through both nodes, from all replicas."""
        for node in self.nodes:
            for key in sorted(self.values):
                try:
                    problem = self.problem(key, node.get(BUCKET, key, r="all"))
                    if problem:
                        self.failed.append(f"{problem} afterwards at {node.address}")
                except NoAnswer as error:
                    self.failed.append(f"get of {key} afterwards at {node.address}: {error}")
            node.close()


class Upgrade:
    """The cluster, its processes and its clients."""

    def __init__(self, directory, old, backend):
        self.directory, self.old = directory, old
        self.settings = {**cluster.PATIENT, "storage_backend": backend}
        self.members, self.processes = [], []
        self.over = threading.Event()
        self.clients = []

    def start(self):
        cluster.make_secret(self.directory / cluster.SECRET)
        for number in range(1, NODES + 1):
            self.start_first(number)
        cluster.form(self.members)
        addresses = [member.http for member in self.members]
        # Each pair of neighbours serves clients, so none of a pair is restarted with the other one.
        pairs = [(addresses[n % NODES], addresses[(n + 1) % NODES]) for n in range(CLIENTS)]
        self.clients = [Client(number, pair, self.over) for number, pair in enumerate(pairs)]
        for client in self.clients:
            client.start()

    def start_first(self, number):
        for attempt in range(START_TRIES_MAX):
            http, pb = free_ports(2)
            address = f"127.0.1.{number}"
            member = cluster.Member(
                self.directory, number, f"ombak{number}@127.0.0.1", pb=f"127.0.0.1:{pb}", http=f"127.0.0.1:{http}",
                peer=f"{address}:{cluster.free_port(address)}", settings=dict(self.settings))
            member.program = self.old
            if self.old is None:
                member.settings[SPEAKS] = "previous"
            process = member.start()
            try:
                member.wait_ready(process)
            except cluster.Refused:
                process.kill()
                process.wait()
                if attempt == START_TRIES_MAX - 1 or "in use" not in member.said():
                    raise
                continue
            self.members.append(member)
            self.processes.append(process)
            return

    def restart(self, place):
        """Restarts a node with the program under test, and waits until the cluster is whole
        again."""
        member, began = self.members[place], time.monotonic()
        self.processes[place].terminate()
        status = self.processes[place].wait(cluster.STOP_SECONDS_MAX)
        if status != 0:
            raise cluster.Refused(f"node {member.number} stopped with status {status}")
        member.program = None
        member.settings.pop(SPEAKS, None)
        stopped = time.monotonic()
        self.processes[place] = member.start()
        member.wait_ready(self.processes[place])
        ready = time.monotonic()
        for other in self.members:
            cluster.wait_for(f"the agreement of node {other.number}", other.agrees, cluster.START_SECONDS_MAX)
        cluster.wait_for("the hand-over", self.is_handed_over, SETTLE_SECONDS_MAX)
        print(f"node {member.number}: stopped in {stopped - began:.1f} s, ready after {ready - stopped:.1f} s, whole after "
              f"{time.monotonic() - ready:.1f} s", flush=True)

    def refuses_what_is_new(self):
        """Whether a command that only the new version knows is refused because of older nodes."""
        asked = self.members[0]
        try:
            asked.admin("cluster", "location", "rack1")
        except cluster.Refused as error:
            if "Failed: not all members know" not in str(error):
                raise
            return True
        asked.admin("cluster", "clear")
        return False

    def is_handed_over(self):
        told = json.loads(self.members[0].admin("cluster", "settled", "--json", statuses=(0, 1)))["members"]
        return all(member["up"] and not any(member[what] for what in OPEN) for member in told)

    def stop(self):
        self.over.set()
        for client in self.clients:
            client.join()
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def steps(upgrade, seconds):
    upgrade.start()
    time.sleep(seconds / 2)
    for place in range(NODES):
        if upgrade.old is None and not upgrade.refuses_what_is_new():
            raise cluster.Refused(f"nothing is refused before the restart of node {place + 1}")
        upgrade.restart(place)
        time.sleep(seconds / 2 if place == NODES - 1 else seconds)
    if upgrade.old is None:
        cluster.wait_for("what is new", lambda: not upgrade.refuses_what_is_new(), cluster.START_SECONDS_MAX)
    upgrade.over.set()
    for client in upgrade.clients:
        client.join()
        if client.broken is not None:
            client.failed.append(f"client {client.number} ended: {client.broken!r}")
    for client in upgrade.clients:
        client.check_all()
    clients = upgrade.clients
    failed = [text for client in clients for text in client.failed]
    for words, printed in documented():
        said = upgrade.members[-1].admin(*words, statuses=(0, 1)).strip()
        if not printed.fullmatch(said):
            failed.append(f"`ombak admin {' '.join(words)}` prints {said!r}")
    print(f"{sum(client.requests for client in clients)} requests, {sum(client.elsewhere for client in clients)} of them at the "
          f"second node, {sum(client.stale for client in clients)} stale reads; the slowest request took "
          f"{max(client.slowest for client in clients) * 1000:.0f} ms", flush=True)
    for text in failed[:20]:
        print(f"FAILED {text}", flush=True)
    if not all(client.values for client in clients):
        failed.append("a client did nothing")
        print(f"FAILED {failed[-1]}", flush=True)
    return len(failed)


def main():
    words = argparse.ArgumentParser(usage=__doc__.rpartition("Usage: ")[2])
    words.add_argument("--old", type=Path)
    words.add_argument("--seconds", type=float, default=1.0)
    words.add_argument("--backend", default="bitcask")
    given = words.parse_args()
    if given.old is not None and not given.old.is_file():
        words.error(f"there is no program {given.old}")
    began, failed = time.monotonic(), 1
    with tempfile.TemporaryDirectory(prefix="ombak-upgrade-") as name:
        upgrade = Upgrade(Path(name), given.old and given.old.resolve(), given.backend)
        try:
            failed = steps(upgrade, given.seconds)
        except cluster.Refused as error:
            print(f"FAILED {error}", flush=True)
        finally:
            upgrade.stop()
            if failed:
                for member in upgrade.members:
                    print(f"--- the last output of node {member.number}\n{member.said()[-3000:]}---")
    print(f"{time.monotonic() - began:.1f} s")
    print(f"{0 if failed else 1} passed, {min(failed, 1)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
