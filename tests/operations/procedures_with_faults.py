#!/usr/bin/env python3
"""Follows docs/operations.md and docs/cluster.md to the letter on five nodes, with faults between
the steps, and checks that nothing acknowledged is lost.

Before each command of a procedure a node is killed, stopped in order, or paused, and comes back. A
command that is refused because of that is repeated, as the refusal says: the plan too, when it has
changed. Buckets have two and three copies of each key. A seed decides the faults.

Usage: procedures_with_faults.py [SEED]"""
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import procedures  # noqa: E402
from members import Cluster, wait_for  # noqa: E402
from procedures import EMPTY, HEADINGS, LEFT, LOST, SHOWS, WAIT_SECONDS_MAX, Procedures, carry_out_all  # noqa: E402

NETWORK = "127.0.7"
NODES = 5
# The numbers of the nodes that the document does not mention. It begins with three nodes.
FURTHER = (7, 8)
PAUSE_SECONDS = (0.5, 4)
# How often a command that was refused is given again.
AGAIN_SECONDS = 0.3
WIPED = "## When a node returns with less than it had"
SECOND_LOSS = "## When a removal would destroy data"


class Faulty(Procedures):
    further = len(FURTHER)
    # All that is written is read from all nodes in the end.
    pause_seconds = 0.1

    def __init__(self, cluster, seed):
        super().__init__(cluster)
        self.random = random.Random(seed)
        self.pauses = []
        self.faults = {"kill": 0, "restart": 0, "pause": 0}
        self.heading = None

    def carry_out(self, heading):
        self.heading = heading
        if heading == WIPED:
            return self.lose_stores()
        if heading == SECOND_LOSS:
            return self.lose_two()
        return super().carry_out(heading)

    # Faults.

    def fault(self):
        """Lets something happen to one node that is not lost or empty, and waits until it serves
        again. A pause goes on during the next command."""
        spared = (LOST.get(self.heading), EMPTY.get(self.heading))
        victims = [node for node in self.nodes.values() if node.process.poll() is None and node.number not in spared]
        leaver = LEFT.get(self.heading)
        # A node that has begun to leave ends by itself, and must not be started again after that.
        victims = [node for node in victims if node.number != leaver]
        node = self.random.choice(victims)
        kind = self.random.choice(list(self.faults))
        self.faults[kind] += 1
        print(f"  {kind} of node {node.number}", flush=True)
        if kind == "pause":
            return self.pause(node, self.random.uniform(*PAUSE_SECONDS))
        if kind == "kill":
            node.kill()
        else:
            node.send(signal.SIGTERM)
            node.process.wait(WAIT_SECONDS_MAX)
        node.run_again()

    def pause(self, node, seconds):
        node.send(signal.SIGSTOP)
        timer = threading.Timer(seconds, lambda: node.send(signal.SIGCONT))
        timer.start()
        self.pauses.append(timer)

    def end_pauses(self):
        for timer in self.pauses:
            timer.join()
        self.pauses.clear()

    # Commands, which may be refused because of a fault.

    def command(self, node, words, printed):
        self.end_pauses()
        self.fault()
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while True:
            said = self.try_command(node, words)
            if printed.fullmatch(said):
                return
            if time.monotonic() > deadline:
                self.check(f"`{' '.join(words)}` at node {node.number}", said, printed.pattern)
                return
            if words[-1] == "commit":
                # As the refusal says: what has changed has to be looked at again.
                self.try_command(node, [*words[:-1], "plan"])
            time.sleep(AGAIN_SECONDS)

    def try_command(self, node, words):
        try:
            code, out, error = node.run(*words)
        except subprocess.TimeoutExpired as late:
            return f"no answer: {late}"
        said = self.there(out or error)
        if code and not set(SHOWS) & set(words):
            print(f"  refused: {' '.join(words)}: {' / '.join(said.splitlines())[:300]}", flush=True)
        return said

    def settle(self, heading):
        self.end_pauses()
        super().settle(heading)

    # Procedures of docs/cluster.md and docs/operations.md that have no commands to be printed.

    def lose_stores(self):
        """A lost disk of stores: replace it, start the node once with `--accept-loss`, and wait."""
        began = time.monotonic()
        for number in (1, FURTHER[0]):
            node = self.nodes[number]
            self.serving.pop(number)
            node.kill()
            shutil.rmtree(node.data / "bitcask")
            process = node.start()
            self.check(f"node {number} does not start without its stores", process.wait(WAIT_SECONDS_MAX) != 0, True)
            node.run_again("--accept-loss")
            self.serving[number] = node
            self.fault_of_another(number)
            self.settle(f"{WIPED}, node {number}")
        print(f"{WIPED}: {time.monotonic() - began:.1f} s", flush=True)

    def fault_of_another(self, number):
        node = self.random.choice([node for node in self.serving.values() if node.number != number])
        node.kill()
        node.run_again()

    def lose_two(self):
        """A second member is to be removed by force while the first one that was lost is not
        replaced: the plan warns, the commit is refused, and what comes back in time is not lost."""
        began = time.monotonic()
        asked = self.any_node()
        first, second = self.replicas_of_one_key(asked)
        for node in (first, second):
            self.serving.pop(node.number)
        first.kill()
        wait_for("a member that is down", lambda: asked.run("admin", "down", first.name)[0] == 0, WAIT_SECONDS_MAX)
        second.kill()
        wait_for("a second one", lambda: asked.run("admin", "down", second.name)[0] == 0, WAIT_SECONDS_MAX)
        asked.ok("admin", "cluster", "force-remove", second.name)
        shown = asked.json("admin", "cluster", "plan")
        lost = shown["losses"] and shown["losses"]["partitions_without_full_replica"]
        self.check("the plan says what would be lost", bool(lost), True)
        code, out, error = asked.run("admin", "cluster", "commit")
        self.check("the commit is refused", (code != 0, "--accept-loss" in out + error), (True, True))
        said = asked.run("admin", "cluster", "settled")[1]
        self.check("the members that are down are named", first.name in said and second.name in said, True)
        # What the document says: start what can come back, and drop what is staged.
        first.run_again()
        second.run_again()
        asked.ok("admin", "cluster", "clear")
        for node in (first, second):
            self.serving[node.number] = node
        self.settle(SECOND_LOSS)
        print(f"{SECOND_LOSS}: {time.monotonic() - began:.1f} s", flush=True)


    def replicas_of_one_key(self, asked):
        """Two nodes that alone have the keys of some partition with two copies, and are not
        asked."""
        count = asked.json("admin", "cluster", "partition-count")["partitions"]
        owners = [asked.json("admin", "cluster", "partition", f"id={number}")["node"] for number in range(count)]
        pairs = zip(owners, owners[1:] + owners[:1])
        names = next(pair for pair in pairs if pair[0] != pair[1] and asked.name not in pair)
        return [next(node for node in self.serving.values() if node.name == name) for name in names]


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    with Cluster(NODES, NETWORK, {"logger.level": "warning"}, numbers=(1, 2, 3, *FURTHER)) as cluster:
        faulty = Faulty(cluster, seed)
        headings = [WIPED, *HEADINGS[:5], SECOND_LOSS, *HEADINGS[5:]]
        code = carry_out_all(faulty, headings)
        faulty.end_pauses()
        print("faults: " + ", ".join(f"{count} times {kind}" for kind, count in faulty.faults.items()))
    return code


if __name__ == "__main__":
    procedures.NETWORK = NETWORK
    try:
        sys.exit(main())
    except subprocess.TimeoutExpired as error:
        sys.exit(f"procedures_with_faults: {error}")
