"""The faults: which come when, decided by a seed, and how each is done and undone."""
import json
import time
from dataclasses import dataclass

from riak_http import NoAnswer, Requests
from world import NODES, wait_for

KILL, PAUSE, PART, CUT, FULL = "kill", "pause", "partition", "one-way cut", "full disk"
# A node is stopped in an orderly way, and starts again. All are restarted, one after another.
RESTART = "restart"
# Seconds between the beginnings of two faults, and how long a fault lasts. With these, up to three
# overlap.
GAP = (0.5, 4.0)
LASTS = (2.0, 8.0)
# How many nodes a fault hits.
HOW_MANY = {KILL: (1, 1, 2, 3), PAUSE: (1, 1, 2), PART: (1, 2), CUT: (2,), FULL: (1, 1, 2)}
# Faults that a node can have only one of at a time: a process that is down cannot be killed, and
# one that is paused does not start.
ALONE = (KILL, PAUSE, FULL, RESTART)
RESTART_LASTS = (0.2, 1.0)
PROOF_SECONDS_MAX = 120


@dataclass
class Fault:
    """A fault of some nodes. A partition parts them from all others, and not from each other. A cut
    drops what the first sends to the second. The nodes are chosen when the fault begins, because
    other nodes may be there by then: `luck` is a number from 0 to 1 for each."""

    at: float
    kind: str
    luck: tuple
    lasts: float
    nodes: tuple = ()
    # What it hits: nodes, or links from one node to another.
    hits: tuple = ()

    def choose(self, numbers):
        left, chosen = sorted(numbers), []
        for luck in self.luck[:len(left) - 1]:
            chosen.append(left.pop(int(luck * len(left))))
        self.nodes = tuple(chosen)
        self.hits = tuple(links(self.kind, self.nodes, left)) if self.kind in (PART, CUT) else self.nodes

    def __str__(self):
        return f"{self.kind} of {', '.join(map(str, self.nodes))} for {self.lasts:.1f} s"


def links(kind, nodes, others):
    """The links that a fault cuts."""
    if kind == CUT:
        return [nodes]
    return [link for a in nodes for b in others for link in ((a, b), (b, a))]


def kinds_of(world):
    return [KILL, PAUSE] + ([PART, CUT] if world.can_cut else []) + ([FULL] if world.can_fill_disks else [])


def plan(chance, kinds, seconds):
    """The faults of a round that takes some time. Each kind comes once before one comes again."""
    faults, at, deck = [], 0.0, []
    while True:
        at += chance.uniform(*GAP)
        lasts = chance.uniform(*LASTS)
        if at + lasts > seconds:
            return faults
        deck = deck or chance.sample(kinds, len(kinds))
        kind = deck.pop()
        count = chance.choice(HOW_MANY[kind])
        faults.append(Fault(at, kind, tuple(chance.random() for _ in range(count)), lasts))


def rolling(chance, count, seconds):
    """The restarts of so many nodes, one after another, each at its own place of the line of
    numbers."""
    return [Fault(seconds * place / count, RESTART, ((place + 0.5) / count,), chance.uniform(*RESTART_LASTS))
            for place in range(count)]


def prove(world):
    """Shows that cuts and full disks are real: a node that is cut off is down for the others, and a
    node whose disk is full says so. Both end."""
    last, first = world.members[NODES], world.members[1]
    if world.can_cut:
        cuts = links(PART, (NODES,), range(1, NODES))
        for link in cuts:
            world.cut(*link)
        wait_for("that a node that is cut off is down", lambda: not first.agrees(), PROOF_SECONDS_MAX)
        for link in cuts:
            world.mend(*link)
        wait_for("that it is up again", first.agrees, PROOF_SECONDS_MAX)
    if world.can_fill_disks:
        world.fill_disk(NODES)
        wait_for("that a full disk is noticed", lambda: is_disk_full(last), PROOF_SECONDS_MAX)
        world.empty_disk(NODES)
        wait_for("that the disk has room again", lambda: not is_disk_full(last), PROOF_SECONDS_MAX)


def is_disk_full(member):
    try:
        _, _, body = Requests(member.http, "default").ask("GET", "/health/ready")
    except NoAnswer:
        return None
    return json.loads(body).get("disk_full") is True


class Nemesis:
    """Carries out faults. `say` prints a line of the history of faults."""

    def __init__(self, world, counts, say):
        self.world, self.counts, self.say = world, counts, say
        self.active = []
        self.cuts = {}

    def carry_out(self, faults, ended):
        """Carries out the faults at their times, and undoes them, until all are over. `ended` may
        raise when the run is broken."""
        began, left = time.monotonic(), list(faults)
        while left or self.active:
            now = time.monotonic() - began
            for fault in [fault for fault in self.active if fault.at + fault.lasts <= now]:
                self.undo(fault)
            # A fault that has to wait for its nodes is not left out, and holds up the later ones.
            if left and left[0].at <= now:
                # A node that is chosen may not go before it is hit.
                with self.world.changing:
                    left[0].choose(self.world.members)
                    if not self.is_busy(left[0]):
                        self.do(left.pop(0), now)
            ended()
            time.sleep(0.05)

    def is_busy(self, fault):
        if fault.kind not in ALONE:
            return False
        return any(set(fault.nodes) & set(other.nodes) for other in self.active if other.kind in ALONE)

    def do(self, fault, now):
        self.say(f"begins: {fault}")
        fault.at = now
        self.active.append(fault)
        self.counts.add(fault.kind)
        world = self.world
        for thing in fault.hits:
            # Two faults may cut the same link: it is mended when both are over.
            if fault.kind in (PART, CUT):
                self.cuts[thing] = self.cuts.get(thing, 0) + 1
                if self.cuts[thing] == 1:
                    world.cut(*thing)
            else:
                {KILL: world.kill, PAUSE: world.pause, FULL: world.fill_disk, RESTART: world.stop}[fault.kind](thing)

    def undo(self, fault):
        self.active.remove(fault)
        world = self.world
        for thing in fault.hits:
            if fault.kind in (PART, CUT):
                self.cuts[thing] -= 1
                if self.cuts[thing] == 0:
                    world.mend(*thing)
            else:
                {KILL: world.start, PAUSE: world.resume, FULL: world.empty_disk, RESTART: world.start}[fault.kind](thing)
        self.say(f"ended:  {fault}")

    def undo_all(self):
        for fault in list(self.active):
            self.undo(fault)
