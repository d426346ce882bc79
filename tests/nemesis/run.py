#!/usr/bin/env python3
"""Five real nodes, clients, faults, changes of the members, and a checker that knows what was
acknowledged.

A round begins with faults of all kinds while clients write, delete and list: kill -9, SIGSTOP,
partitions, one-way cuts, full disks, and a restart of all nodes one after another. Meanwhile nodes
join, take the places of others, and leave (`changes.py`). A change that is under way when the
faults are over has to end within 5 minutes. When it has, and the cluster is settled, the stores of
two nodes are wiped, one after the other, and each is full again before the next. Then the checker
reads every key through every node. `checker.py` has the rules. A run has as many rounds as its time
allows, at least one.

The nodes are in network namespaces where the machine allows it. Otherwise they are on loopback,
with proxies in place of packet filters, and without full disks (`world.py`).

Usage: run.py [--seconds N] [--seed N] [--backend NAME] [--loopback] [--keep]. The last line is
`N passed, N failed, N skipped`. `--keep` keeps the directory of the nodes and their logs.

A run with the same seed has the same faults at the same times. What meets them is up to the
machine, so a violation may need several runs to come again."""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import unittest
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

import changes  # noqa: E402
import checker  # noqa: E402
import clients  # noqa: E402
import faults  # noqa: E402
import test_checker  # noqa: E402
from history import History  # noqa: E402
from node import program  # noqa: E402
from riak_http import HOW_TO_LIST, NoAnswer, Requests  # noqa: E402
from world import ENTER, NODES, Loopback, Namespaces, Refused, wait_until_settled, why_no_namespaces  # noqa: E402

# Set in the environment of the script that runs in namespaces: the directory of the nodes.
INSIDE = "OMBAK_TEST_NEMESIS_AT"
CLIENTS = 5
FAULT_SECONDS = 30
WIPED_IN_A_ROUND = 2
BACKENDS = ("bitcask", "leveled", "leveldb")
SETTLED_SECONDS_MAX = 180
SHOWN_MAX = 10
WARNINGS_MAX = 20
# A deleted key is reaped soon, so that it happens often, also while faults last.
SETTINGS = {"delete_mode": "1s"}
MUST_HAPPEN = ("add with a clock", "blind add", "put", "delete", "listing", "wiped stores", faults.RESTART)


class Broken(Exception):
    """The run cannot go on."""


class Run:
    wiped_in_a_round = WIPED_IN_A_ROUND
    clients_in_a_round = CLIENTS

    def __init__(self, world, arguments):
        self.world, self.seed, self.seconds = world, arguments.seed, arguments.seconds
        self.history, self.counts = History(), clients.Counts()
        self.nemesis = faults.Nemesis(world, self.counts, self.say)
        self.chance = random.Random(self.seed)
        # Another sequence, because how many changes there are is up to the machine.
        self.chance_of_changes = random.Random(f"{self.seed} changes")
        self.deck = self.chance.sample((changes.JOIN, changes.REPLACE, changes.LEAVE), 3)
        self.threads = []
        self.violations, self.said, self.answers_checked = [], [], 0
        self.began = time.monotonic()

    def say(self, text):
        line = f"{time.monotonic() - self.began:7.1f} s  {text}"
        self.said.append(line)
        # Two threads say something, so a line and its end are one write.
        print(f"{line}\n", end="", flush=True)

    def all(self):
        self.prepare()
        number, took = 0, 0.0
        # Another round is begun if it fits into the time.
        while not self.violations and (number == 0 or time.monotonic() - self.began + took < self.seconds):
            began, earlier = time.monotonic(), set(self.history.keys)
            number += 1
            self.round(number)
            self.check_round([key for place, key in self.history.keys.items() if place not in earlier])
            took = time.monotonic() - began
        self.check_everything()

    def prepare(self):
        faults.prove(self.world)
        self.say("cuts and full disks are real")
        clients.fill_quiet_bucket(self.world.first().http, self.history)
        self.settle("after the quiet bucket was written")

    def round(self, number):
        """Clients write while faults come and go, and while stores are wiped."""
        self.say(f"round {number}")
        with self.clients(number, self.clients_in_a_round):
            self.break_and_change()
            for node in self.chance.sample(sorted(self.world.members), self.wiped_in_a_round):
                self.settle("before stores are wiped", clients_write=True)
                self.wipe(node)
        self.check_alive()
        self.settle("after the round")

    @contextmanager
    def clients(self, number, count):
        """Lets so many clients write, delete and list in a round, all the time."""
        everybody = self.everybody(number)
        self.threads = [self.client(client, everybody) for client in range(count)]
        for thread in self.threads:
            thread.start()
        try:
            yield
        finally:
            everybody.stopped.set()
            for thread in self.threads:
                thread.join()

    def everybody(self, number):
        return clients.Everybody(number, self.world.addresses, self.history, self.counts)

    def client(self, number, everybody):
        return clients.Client(number, self.seed, everybody)

    def break_and_change(self):
        """Carries out faults, and meanwhile changes of the members."""
        planned = faults.plan(self.chance, faults.kinds_of(self.world), FAULT_SECONDS)
        planned += faults.rolling(self.chance, len(self.world.members), FAULT_SECONDS)
        changing = changes.Changes(self.world, self.chance_of_changes, self.deck, self.counts, self.say)
        changing.start()
        try:
            self.nemesis.carry_out(sorted(planned, key=lambda fault: fault.at), self.check_alive)
        finally:
            self.nemesis.undo_all()
            took = changing.heal()
        if changing.broken is not None:
            raise Broken(f"a change of the members: {changing.broken}")
        self.say(f"the last change ended {took:.1f} s after healing; the members are {sorted(self.world.members)}")

    def wipe(self, node):
        self.say(f"begins: wiped stores of {node}")
        self.world.kill(node)
        self.history.wiped(node, time.monotonic())
        self.world.wipe_stores(node)
        self.counts.add("wiped stores")
        self.say(f"ended:  wiped stores of {node}, which has started")

    def check_alive(self):
        """Breaks the run if a node or a client ended by itself."""
        for client in self.threads:
            if client.broken is not None:
                raise Broken(f"{client.name} ended: {client.broken!r}")
        stopped = (faults.KILL, faults.RESTART)
        killed = {node for fault in self.nemesis.active if fault.kind in stopped for node in fault.nodes}
        ended = {node: status for node, status in self.world.ended().items() if node not in killed}
        if ended:
            raise Broken(f"nodes ended by themselves, with status: {ended}")

    def settle(self, when, clients_write=False):
        """Waits until everything lies where it belongs."""
        waited_from = time.monotonic()
        try:
            began, ended = wait_until_settled(self.world.first(), SETTLED_SECONDS_MAX, clients_write)
        except Refused as error:
            raise Broken(f"not settled {when}: {error}") from error
        self.history.was_settled(began, ended)
        self.say(f"settled {when}, after {ended - waited_from:.1f} s")

    def check_round(self, keys):
        """Reads the keys of a round, and the quiet ones, through each node, and lists all
        buckets."""
        for listing in self.history.listings:
            self.violations += checker.check_listing(
                listing.bucket, [key.name for key in self.keys_in(clients.QUIET)], listing.found,
                f"by {listing.how} after {listing.at - self.began:.1f} s")
        self.answers_checked += len(self.history.listings)
        self.history.listings.clear()
        keys = keys + self.keys_in(clients.QUIET)
        numbers = sorted(self.world.members)
        with ThreadPoolExecutor(len(numbers)) as pool:
            for found in pool.map(lambda number: self.check_node(number, keys), numbers):
                self.violations += found
        self.say(f"{len(keys)} keys were read through each of {len(numbers)} nodes")

    def check_everything(self):
        """Reads all keys of all rounds once more, each through one node."""
        keys, numbers = list(self.history.keys.values()), sorted(self.world.members)
        shares = [keys[at::len(numbers)] for at in range(len(numbers))]
        with ThreadPoolExecutor(len(numbers)) as pool:
            for found in pool.map(self.check_keys, numbers, shares):
                self.violations += found
        self.say(f"all {len(keys)} keys were read once more")
        for violation in self.violations[:SHOWN_MAX]:
            self.explain(violation)

    def check_node(self, number, keys):
        """What is wrong with the answers of one node."""
        violations = self.check_keys(number, keys)
        for bucket, bucket_type in clients.TYPE_OF.items():
            node = Requests(self.world.members[number].http, bucket_type)
            for how in HOW_TO_LIST:
                found = clients.answered(lambda: node.list_keys(bucket, how))
                violations += checker.check_final_listing(
                    bucket, self.keys_in(bucket), found, self.history, f"by {how} at node {number}")
            node.close()
        return violations

    def check_keys(self, number, keys):
        violations = []
        nodes = {kind: Requests(self.world.members[number].http, kind) for kind in set(clients.TYPE_OF.values())}
        for key in keys:
            node = nodes[clients.TYPE_OF[key.bucket]]
            # The first answer of any replica has to be right: the cluster is settled.
            found = clients.answered(lambda: node.get(key.bucket, key.name, r=1))
            violations += checker.check_answer(key, clients.seen_in(key, found), self.history, f"at node {number} with r=1")
        for node in nodes.values():
            node.close()
        return violations

    def keys_in(self, bucket):
        return [key for key in self.history.keys.values() if key.bucket == bucket]

    def explain(self, violation):
        """Prints what was acknowledged and what each node answers."""
        print(f"VIOLATION {violation}", flush=True)
        key = self.history.keys.get((violation.bucket, violation.name))
        if key is None:
            return
        self.explain_writes(key)
        for number, member in self.world.members.items():
            node = Requests(member.http, clients.TYPE_OF[key.bucket])
            for r in (1, 2, 3):
                try:
                    found = node.get(key.bucket, key.name, r=r)
                    said = "not found" if found is None else f"{found.values} with clock {found.clock}"
                except NoAnswer as error:
                    said = str(error)
                print(f"    node {number}, r={r}: {said}")
            node.close()

    def explain_writes(self, key):
        for write in key.writes + ([key.delete] if key.delete else []):
            what = "delete" if write.value is None else f"write of {write.value}"
            state = f"acknowledged by {write.nodes} nodes or more" if write.acknowledged else f"not acknowledged: {write.answer}"
            ended = "" if write.ended is None else f" to {write.ended - self.began:.1f}"
            print(f"    {what} from {write.began - self.began:.1f}{ended} s: {state}")


def verdict(run, expected, changes_members=True):
    """Prints what happened and what is wrong. Returns (passed, failed)."""
    for name, count in sorted(run.counts.counts.items()):
        print(f"{count:7} x {name}")
    missing = [name for name in expected if run.counts[name] == 0]
    if changes_members and not any(run.counts[kind] for kind in (changes.JOIN, changes.REPLACE, changes.LEAVE)):
        missing.append("change of the members")
    for name in missing:
        print(f"FAILED: no {name} happened")
    for violation in run.violations[:SHOWN_MAX]:
        print(f"FAILED: {violation}")
    if len(run.violations) > SHOWN_MAX:
        print(f"FAILED: {len(run.violations)} violations in all")
    if run.violations:
        print("the faults were:", *run.said, sep="\n  ")
    return len(run.history.keys) + run.answers_checked, len(missing) + len(run.violations)


def warnings_of(logs):
    """The last warnings in the log of a node, shortened."""
    lines = [line for file in sorted(logs.glob("*.log")) for line in file.read_text(errors="replace").splitlines()]
    return [line[:400] for line in lines if '"WARN"' in line or '"ERROR"' in line][-WARNINGS_MAX:]


def supervised(run, expected, changes_members=True):
    """Starts the nodes of a run, carries it out, prints what came of it, and stops the nodes.
    `expected` must have happened in the run. Returns (passed, failed)."""
    world, passed, failed = run.world, 0, 0
    try:
        world.start_all()
        world.first().admin("bucket-type", "create", clients.SIBLINGS, '{"props": {"allow_mult": true}}')
        world.first().admin("bucket-type", "activate", clients.SIBLINGS)
        try:
            run.all()
        except (Broken, Refused, NoAnswer) as error:
            print(f"FAILED: {error}")
            failed += 1
            print("the faults were:", *run.said, sep="\n  ")
        finally:
            run.nemesis.undo_all()
        more, wrong = verdict(run, expected, changes_members)
        passed, failed = passed + more, failed + wrong
        for number, status in world.stop_all().items():
            print(f"FAILED: node {number} stopped with {status}")
            failed += 1
    except Exception:  # noqa: BLE001: whatever happens, the nodes have to be stopped and the total printed.
        traceback.print_exc(file=sys.stdout)
        failed += 1
    finally:
        world.stop_all()
        if failed:
            for number in sorted(world.processes):
                print(f"--- warnings of node {number}", *warnings_of(world.directory / f"log-{number}"), sep="\n")
    return passed, failed


def cluster_run(directory, arguments, kind=Run, settings=SETTINGS, must_happen=MUST_HAPPEN):
    """Carries out a run of a kind. Returns (passed, failed, skipped)."""
    place = Namespaces if INSIDE in os.environ else Loopback
    world = place(directory, arguments.backend, settings)
    print(f"seed {arguments.seed}, {arguments.backend}, {NODES} nodes {'in network namespaces' if place is Namespaces else 'on loopback'}")
    passed, failed = supervised(kind(world, arguments), [*must_happen, *faults.kinds_of(world)])
    return passed, failed, 0 if world.can_fill_disks else 1


def test_the_checker(tests):
    """Returns (passed, failed) of the checker's own tests."""
    done = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(unittest.defaultTestLoader.loadTestsFromModule(tests))
    wrong = len(done.failures) + len(done.errors)
    return done.testsRun - wrong, wrong


def parsed():
    parser = argparse.ArgumentParser(description="Five real nodes, clients, faults and a checker.")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--backend", choices=BACKENDS, default=BACKENDS[0])
    parser.add_argument("--loopback", action="store_true", help="do not use network namespaces")
    parser.add_argument("--keep", action="store_true", help="keep the directory with the nodes")
    arguments = parser.parse_args()
    if arguments.seed is None:
        arguments.seed = random.SystemRandom().randrange(1 << 32)
    return arguments


def main(script=Path(__file__), cluster_run=cluster_run, tests=test_checker):
    """Runs the tests of the checker here, and the cluster in namespaces if the machine has them,
    where `script` is started again."""
    arguments = parsed()
    program()
    if INSIDE in os.environ:
        counts = cluster_run(Path(os.environ[INSIDE]), arguments)
        print("{} passed, {} failed, {} skipped".format(*counts))
        return 1 if counts[1] else 0
    passed, failed = test_the_checker(tests)
    reason = "it was asked for" if arguments.loopback else why_no_namespaces()
    directory = Path(tempfile.mkdtemp(prefix="ombak-nemesis-"))
    try:
        if reason:
            print(f"no network namespaces, so proxies part the nodes and full disks are skipped: {reason}")
            counts = cluster_run(directory, arguments)
        else:
            words = ["--seconds", arguments.seconds, "--seed", arguments.seed, "--backend", arguments.backend]
            done = subprocess.Popen([*ENTER, sys.executable, str(script.resolve()), *map(str, words)],
                                    env={**os.environ, INSIDE: str(directory)}, stdout=subprocess.PIPE, text=True)
            counts, last = [0, 1, 0], ""
            for last in done.stdout:
                print(last, end="", flush=True)
            words = last.replace(",", "").split()
            if done.wait() in (0, 1) and len(words) == 6:
                counts = [int(word) for word in words[::2]]
    finally:
        if not arguments.keep:
            shutil.rmtree(directory, ignore_errors=True)
        else:
            print(f"the nodes are in {directory}")
    print(f"{passed + counts[0]} passed, {failed + counts[1]} failed, {counts[2]} skipped")
    return 1 if failed + counts[1] else 0


if __name__ == "__main__":
    sys.exit(main())
