"""The clients. Each is a thread that writes and reads through nodes at random, and notes in the
history what it asked for and what it was told.

* A set is a key whose siblings are sets of elements. Several clients add to it: with a clock (read,
  merge, write) or blindly. An element is a text that nobody else writes.
* A register is a key with one writer, which writes growing numbers, each with the clock of the one
  before, or blindly where the bucket keeps only one sibling.
* A mortal is a register that its writer deletes after some writes, with the newest clock.
* A quiet bucket is listed and not written to."""
import random
import threading
import time

from history import REGISTER, SET
from riak_http import HOW_TO_LIST, NoAnswer, Requests

# The type keeps siblings; the default type keeps one.
SIBLINGS, SINGLE = "siblings", "default"
# The buckets, with their types.
SETS, REGISTERS, LATEST, MORTALS, QUIET = "sets", "registers", "latest", "mortals", "quiet"
TYPE_OF = {SETS: SIBLINGS, REGISTERS: SIBLINGS, LATEST: SINGLE, MORTALS: SIBLINGS, QUIET: SIBLINGS}
QUIET_KEYS = 200
# A set takes no more elements than this; then another set takes its place.
SET_ELEMENTS_MAX = 24
# Clients of one round use this many sets at a time.
SETS_OPEN = 8
PAUSE_SECONDS = 0.01
# How often and when a request to a cluster without faults is tried again.
TRIES_MAX = 40
TRY_AGAIN_SECONDS = 0.5


class Counts:
    """How often something happened, by name."""

    def __init__(self):
        self.lock, self.counts = threading.Lock(), {}

    def add(self, name, count=1):
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + count

    def __getitem__(self, name):
        return self.counts.get(name, 0)


class Everybody:
    """What all clients of a round share. Each round has keys of its own."""

    def __init__(self, number, addresses, history, counts):
        # `addresses` says which nodes are there at the moment.
        self.number, self.addresses, self.history, self.counts = number, addresses, history, counts
        self.stopped = threading.Event()
        self.lock = threading.Lock()
        self.open_sets, self.sets_made = {}, 0

    def some_set(self, chance):
        """A set that takes elements."""
        with self.lock:
            slot = chance.randrange(SETS_OPEN)
            key = self.open_sets.get(slot)
            if key is None or len(key.writes) >= SET_ELEMENTS_MAX:
                key = self.open_sets[slot] = self.history.key(SETS, f"{self.number}-{self.sets_made}", SET)
                self.sets_made += 1
            return key


class Client(threading.Thread):
    """One client. `seed` decides what it does, as far as answers do not."""

    def __init__(self, number, seed, everybody):
        super().__init__(name=f"client-{number}", daemon=True)
        self.number, self.everybody = number, everybody
        self.chance = random.Random(f"{seed} {everybody.number} {number}")
        self.history, self.counts = everybody.history, everybody.counts
        self.connections = {}
        self.made = 0
        self.registers = {}
        self.broken = None

    def run(self):
        try:
            while not self.everybody.stopped.is_set():
                self.step()
                self.everybody.stopped.wait(PAUSE_SECONDS)
        except Exception as error:  # noqa: BLE001: a client that ends must not go unnoticed.
            self.broken = error
        finally:
            for connection in self.connections.values():
                connection.close()

    def step(self):
        what = self.chance.choices((self.add_to_set, self.count_up, self.live_and_die, self.list_quiet), (50, 25, 20, 5))[0]
        what()

    def requests(self, bucket):
        """A node at random."""
        place = (self.chance.choice(self.everybody.addresses()), TYPE_OF[bucket])
        if place not in self.connections:
            self.connections[place] = Requests(*place)
        return self.connections[place]

    def quorums(self):
        """Quorums of a write at random, and how many nodes an acknowledgement stands for."""
        w = self.chance.choice((1, 1, 2, 2, 3))
        if w == 1:
            return {"w": 1, "dw": self.chance.choice((0, 1))}, 1
        return {"w": w, "dw": self.chance.choice((1, w)), "node_confirms": 2}, 2

    def carry_out(self, what, write, request):
        """Sends a write and notes the answer. Returns what `request` returns, or None."""
        try:
            answer = request()
        except NoAnswer as error:
            self.history.end(write, False, str(error), time.monotonic())
            self.counts.add(f"{what} without acknowledgement")
            return None
        self.history.end(write, True, "", time.monotonic())
        self.counts.add(what)
        return answer

    def add_to_set(self):
        key = self.everybody.some_set(self.chance)
        element, held, clock, what = f"c{self.number}-{self.made}", set(), None, "blind add"
        self.made += 1
        if self.chance.random() < 0.7:
            what = "add with a clock"
            try:
                found = self.requests(SETS).get(SETS, key.name, r=self.chance.choice((1, 2)))
            except NoAnswer:
                self.counts.add("read without answer")
                return
            if found is not None:
                held, clock = elements(found.values), found.clock
        quorums, nodes = self.quorums()
        value = " ".join(sorted(held | {element}))
        node = self.requests(SETS)
        write = self.history.begin(key, element, nodes, time.monotonic())
        self.carry_out(what, write, lambda: node.put(SETS, key.name, value, clock, **quorums) or "")

    def count_up(self):
        bucket = self.chance.choice((REGISTERS, LATEST))
        name = f"{self.everybody.number}-{self.number}-{self.chance.randrange(4)}"
        key = self.history.key(bucket, name, REGISTER)
        clock = self.registers.get((bucket, name))
        found = self.put_number(key, clock if bucket == REGISTERS else None)
        if found:
            self.registers[bucket, name] = found

    def live_and_die(self):
        key = self.history.key(MORTALS, f"{self.everybody.number}-{self.number}-{self.made}", REGISTER)
        self.made += 1
        clock = self.put_number(key, None)
        if clock and self.chance.random() < 0.5:
            clock = self.put_number(key, clock)
        # Without the clock of each of its writes, a delete may leave a sibling behind.
        if not clock or self.chance.random() < 0.1:
            return
        quorums, nodes = self.quorums()
        node = self.requests(MORTALS)
        write = self.history.begin_delete(key, nodes, time.monotonic())
        self.carry_out("delete", write, lambda: node.delete(MORTALS, key.name, clock, **quorums) or "")

    def put_number(self, key, clock):
        """Writes the next number of a register. Returns the new clock if it was acknowledged."""
        quorums, nodes = self.quorums()
        node = self.requests(key.bucket)
        number = len(key.writes)
        write = self.history.begin(key, number, nodes, time.monotonic())
        return self.carry_out("put", write, lambda: node.put(key.bucket, key.name, str(number), clock, **quorums))

    def list_quiet(self):
        how = self.chance.choice(sorted(HOW_TO_LIST))
        try:
            found = self.requests(QUIET).list_keys(QUIET, how)
        except NoAnswer:
            self.counts.add("listing without answer")
            return
        self.history.listed(QUIET, how, found, time.monotonic())
        self.counts.add("listing")


def elements(values):
    return {element for value in values for element in value.split()}


def seen_in(key, found):
    """What an answer to a read of a key has, for the checker."""
    if found is None:
        return set()
    if key.kind == SET:
        return elements(found.values)
    return {int(value) for value in found.values}


def fill_quiet_bucket(address, history):
    """Writes the keys of the quiet bucket, each to three nodes."""
    node = Requests(address, TYPE_OF[QUIET])
    for number in range(QUIET_KEYS):
        key = history.key(QUIET, f"q{number}", REGISTER)
        write = history.begin(key, 0, 3, time.monotonic())
        # Only a put that all three nodes confirm ends this: another put of the same value does no
        # harm.
        answered(lambda: node.put(QUIET, key.name, "0", w=3, node_confirms=3))
        history.end(write, True, "", time.monotonic())
    node.close()


def answered(request):
    """The answer of a cluster without faults. On a loaded machine it may need several tries."""
    for attempt in range(TRIES_MAX):
        try:
            return request()
        except NoAnswer as error:
            problem = error
            time.sleep(TRY_AGAIN_SECONDS)
    raise NoAnswer(f"a cluster without faults does not answer: {problem}")
