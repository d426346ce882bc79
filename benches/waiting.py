#!/usr/bin/env python3
"""Measures how long a client of a healthy node waits at most, and how that ends, by command, while
another node fails and returns.

Usage: waiting.py [--rounds N] [--seconds S] [--faults NAME,…] [--loopback] [--keep]

Five nodes, n_val 3. For each command some clients ask the four healthy nodes, one request after the
other, with the time limits that the node sets by itself. A round has one fault: it begins when all
clients have had answers, lasts S seconds, ends, and the clients go on for a while. The victim is
another node in each round.

  kill             kill -9; the node is started again
  pause            SIGSTOP, then SIGCONT
  cut from others  the victim hears nobody, and everybody hears the victim
  cut to others    nobody hears the victim, and the victim hears everybody
  slow disk        each write, sync and read beyond the page cache takes 300 ms longer
  full disk        nothing fits on the disk of the victim
  restart          SIGTERM, and a start

It prints a table in Markdown. A cell has the longest wait in seconds, how that request ended, and
how many requests failed of how many. The nodes are in network namespaces where the machine allows
it; otherwise, or with --loopback, they are on loopback behind proxies, without full disks. The
program comes from the directory of OMBAK_PROGRAM, or else is the debug program."""
import argparse
import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "nemesis"), str(ROOT / "tests" / "support")]

from world import ENTER, Loopback, Namespaces, Refused, wait_until_settled, why_no_namespaces  # noqa: E402

# Set in the environment of the script that runs in namespaces: the directory of the nodes.
INSIDE = "OMBAK_BENCH_WAITING_AT"
KEYS = 200
CLIENTS_PER_COMMAND = 3
# The pause of a client between two requests: a debug build on two cores must not be overloaded.
PAUSE_SECONDS = 0.02
BEFORE_SECONDS, AFTER_SECONDS = 2, 4
SOCKET_SECONDS_MAX = 90
SETTLED_SECONDS_MAX = 180
SLOW_DISK_US = 300_000
# What a client should wait at most.
GOAL_SECONDS = 2.5
COUNTERS = "waiting_counters"
JSON = {"Content-Type": "application/json"}
JOB = json.dumps({
    "inputs": "objects",
    "query": [{"reduce": {"language": "erlang", "module": "riak_kv_mapreduce", "function": "reduce_count_inputs"}}],
})

KILL, PAUSE, FROM, TO = "kill", "pause", "cut from others", "cut to others"
SLOW, FULL, RESTART = "slow disk", "full disk", "restart"
FAULTS = (KILL, PAUSE, FROM, TO, SLOW, FULL, RESTART)


def object_at(number, **options):
    query = "&".join(f"{name}={value}" for name, value in options.items())
    return f"/buckets/objects/keys/k{number}{'?' if query else ''}{query}"


def put(number, **options):
    headers = {"Content-Type": "text/plain", "x-riak-index-n_int": str(number)}
    return "PUT", object_at(number, **options), f"value {random.random()}", headers


def deleted(number):
    """A put or a delete of a key of its own, in turn, so that there is mostly something to
    delete."""
    path = f"/buckets/deleted/keys/k{number}"
    if random.random() < 0.5:
        return "PUT", path, "value", {"Content-Type": "text/plain"}
    return "DELETE", path, None, {}


# How each command asks: from the number of a key to (method, path, body, headers).
COMMANDS = {
    "get, r=1": lambda number: ("GET", object_at(number, r=1), None, {}),
    "get": lambda number: ("GET", object_at(number), None, {}),
    "get, r=all": lambda number: ("GET", object_at(number, r="all"), None, {}),
    "put": put,
    "put, w=all": lambda number: put(number, w="all"),
    "put, if absent": lambda number: ("PUT", f"/buckets/absent/keys/{random.random()}", "value",
                                      {"Content-Type": "text/plain", "If-None-Match": "*"}),
    "put and delete": deleted,
    "counter update": lambda number: ("POST", f"/types/{COUNTERS}/buckets/c/datatypes/k{number}", '{"increment": 1}', JSON),
    "counter fetch": lambda number: ("GET", f"/types/{COUNTERS}/buckets/c/datatypes/k{number}", None, {}),
    "list keys": lambda number: ("GET", "/buckets/objects/keys?keys=true", None, {}),
    "list buckets": lambda number: ("GET", "/buckets?buckets=true", None, {}),
    "index query": lambda number: ("GET", f"/buckets/objects/index/n_int/{number}/{number + 20}", None, {}),
    "MapReduce job": lambda number: ("POST", "/mapred", JOB, JSON),
}
ANSWERED = (200, 201, 204, 300, 404, 412)


class Waits:
    """What the requests of one command have waited."""

    def __init__(self):
        self.lock = threading.Lock()
        self.longest, self.end, self.count, self.failed = 0.0, "", 0, 0
        self.ends = {}

    def add(self, took, end, is_answered):
        with self.lock:
            self.count += 1
            if took > self.longest:
                self.longest, self.end = took, end
            if not is_answered:
                self.failed += 1
                self.ends[end] = self.ends.get(end, 0) + 1

    def merge(self, other):
        self.count += other.count
        self.failed += other.failed
        if other.longest > self.longest:
            self.longest, self.end = other.longest, other.end
        for end, count in other.ends.items():
            self.ends[end] = self.ends.get(end, 0) + count

    def cell(self):
        failed = f"; {self.failed} of {self.count} failed" if self.failed else ""
        return f"{self.longest:.1f} s, {self.end}{failed}"


class Client(threading.Thread):
    """Asks one command of healthy nodes, again and again."""

    def __init__(self, ask, addresses, waits, is_over):
        super().__init__(daemon=True)
        self.ask, self.waits, self.is_over = ask, waits, is_over
        self.address = random.choice(addresses)
        self.connection = None
        self.asked = 0

    def run(self):
        while not self.is_over.is_set():
            began = time.monotonic()
            end, is_answered = self.request(*self.ask(random.randrange(KEYS)))
            self.waits.add(time.monotonic() - began, end, is_answered)
            self.asked += 1
            time.sleep(PAUSE_SECONDS)

    def request(self, method, path, body, headers):
        """How a request has ended, and whether with an answer."""
        try:
            if self.connection is None:
                self.connection = http.client.HTTPConnection(self.address, timeout=SOCKET_SECONDS_MAX)
            self.connection.request(method, path, body, headers)
            answer = self.connection.getresponse()
            content = answer.read()
            if answer.will_close:
                self.close()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return type(error).__name__, False
        if answer.status in ANSWERED:
            return "answered", True
        words = content.decode(errors="replace").split("\n")[0].strip()
        return f"{answer.status} {words[:60]}", False

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None


class Measured:
    """The world, and what was measured in it."""

    def __init__(self, world):
        self.world = world
        self.table = {}

    def prepare(self):
        first = self.world.first()
        first.admin("bucket-type", "create", COUNTERS, '{"props": {"datatype": "counter"}}')
        first.admin("bucket-type", "activate", COUNTERS)
        client = Client(None, [first.http], None, None)
        for number in range(KEYS):
            end, is_answered = client.request(*put(number))
            if not is_answered:
                raise Refused(f"the objects cannot be written: {end}")
        client.close()

    def round(self, fault, victim, seconds):
        healthy = [member.http for number, member in self.world.members.items() if number != victim]
        is_over, all_waits = threading.Event(), {command: Waits() for command in COMMANDS}
        clients = [Client(ask, healthy, all_waits[command], is_over)
                   for command, ask in COMMANDS.items() for _ in range(CLIENTS_PER_COMMAND)]
        for client in clients:
            client.start()
        time.sleep(BEFORE_SECONDS)
        while not all(client.asked for client in clients):
            time.sleep(0.1)
        # What was slow before the fault is not its doing.
        for waits in all_waits.values():
            with waits.lock:
                waits.longest, waits.end, waits.count, waits.failed, waits.ends = 0.0, "", 0, 0, {}
        self.begin(fault, victim)
        time.sleep(seconds)
        self.end(fault, victim)
        time.sleep(AFTER_SECONDS)
        is_over.set()
        for client in clients:
            client.join()
        for command, waits in all_waits.items():
            self.table.setdefault((command, fault), Waits()).merge(waits)
        wait_until_settled(self.world.first(), SETTLED_SECONDS_MAX, clients_write=True)

    def begin(self, fault, victim):
        others = [number for number in self.world.members if number != victim]
        if fault == KILL:
            self.world.kill(victim)
        elif fault == PAUSE:
            self.world.pause(victim)
        elif fault == FROM:
            for other in others:
                self.world.cut(other, victim)
        elif fault == TO:
            for other in others:
                self.world.cut(victim, other)
        elif fault == SLOW:
            self.delay_file(victim).write_text(f"{SLOW_DISK_US}\n")
        elif fault == FULL:
            self.world.fill_disk(victim)
        elif fault == RESTART:
            self.world.stop(victim)

    def end(self, fault, victim):
        others = [number for number in self.world.members if number != victim]
        if fault in (KILL, RESTART):
            self.world.start(victim)
        elif fault == PAUSE:
            self.world.resume(victim)
        elif fault == FROM:
            for other in others:
                self.world.mend(other, victim)
        elif fault == TO:
            for other in others:
                self.world.mend(victim, other)
        elif fault == SLOW:
            self.delay_file(victim).unlink()
        elif fault == FULL:
            self.world.empty_disk(victim)

    def delay_file(self, number):
        return Path(self.world.members[number].settings["disk_delay_file"])

    def print_table(self, faults):
        print(f"\n| command | {' | '.join(faults)} |")
        print("| --- |" + " --- |" * len(faults))
        for command in COMMANDS:
            cells = [self.table[command, fault].cell() if (command, fault) in self.table else "–" for fault in faults]
            print(f"| {command} | {' | '.join(cells)} |")
        print("\nRequests that failed:")
        for (command, fault), waits in self.table.items():
            for end, count in sorted(waits.ends.items()):
                print(f"* {command}, {fault}: {count} of {waits.count} ended with `{end}`")
        too_long = [f"{command} during {fault}" for (command, fault), waits in self.table.items() if waits.longest > GOAL_SECONDS]
        print(f"\nOver {GOAL_SECONDS} s: {', '.join(too_long) if too_long else 'nothing'}", flush=True)


def with_delay_files(place):
    """The same world, in which each disk can become slow."""

    class Slow(place):
        def member(self, number, name, addresses, prefix=()):
            member = super().member(number, name, addresses, prefix)
            member.settings = {**member.settings, "disk_delay_file": self.directory / f"delay-{number}"}
            return member

    return Slow


def measure(directory, arguments):
    place = Namespaces if INSIDE in os.environ else Loopback
    world = with_delay_files(place)(directory, "bitcask", {"ring_size": 16})
    faults = [fault for fault in arguments.faults if fault != FULL or world.can_fill_disks]
    print(f"five nodes {'in network namespaces' if place is Namespaces else 'on loopback'}", flush=True)
    measured = Measured(world)
    try:
        world.start_all()
        measured.prepare()
        for number in range(arguments.rounds):
            for place_of_fault, fault in enumerate(faults):
                victim = sorted(world.members)[(number + place_of_fault) % len(world.members)]
                began = time.monotonic()
                measured.round(fault, victim, arguments.seconds)
                print(f"round {number + 1}: {fault} of node {victim}, {time.monotonic() - began:.0f} s", flush=True)
    finally:
        world.stop_all()
    measured.print_table(faults)


def parsed():
    parser = argparse.ArgumentParser(description="How long clients of healthy nodes wait while a node fails.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--faults", default=",".join(FAULTS), help=f"some of: {', '.join(FAULTS)}")
    parser.add_argument("--loopback", action="store_true", help="do not use network namespaces")
    parser.add_argument("--keep", action="store_true", help="keep the directory with the nodes")
    arguments = parser.parse_args()
    arguments.faults = [fault.strip() for fault in arguments.faults.split(",")]
    unknown = [fault for fault in arguments.faults if fault not in FAULTS]
    if unknown:
        raise SystemExit(f"there is no fault {', '.join(unknown)}; there are {', '.join(FAULTS)}")
    return arguments


def main():
    arguments = parsed()
    if INSIDE in os.environ:
        return measure(Path(os.environ[INSIDE]), arguments)
    directory = Path(tempfile.mkdtemp(prefix="ombak-waiting-"))
    try:
        if arguments.loopback or why_no_namespaces() is not None:
            return measure(directory, arguments)
        again = [*ENTER, sys.executable, *sys.argv]
        ended = subprocess.run(again, env={**os.environ, INSIDE: str(directory)}, check=False)
        sys.exit(ended.returncode)
    finally:
        if not arguments.keep:
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
