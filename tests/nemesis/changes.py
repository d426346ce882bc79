"""Changes of the members while clients write and faults last: nodes join, take the places of
others, and leave.

A change is committed when a member accepts it, which may take until a majority of the members can
be reached again. It has ended when every home has its new replicas, the node that leaves has ended
by itself, and all members agree on the ring."""
import json
import threading
import time

from world import Refused

JOIN, REPLACE, LEAVE = "join", "replace", "leave"
MEMBERS_MIN, MEMBERS_MAX = 4, 7
# How long a change may take once nothing is broken any more.
SECONDS_AFTER_HEALING_MAX = 300
LOOK_SECONDS = 0.3
# How much is shown of why a change does not go on.
PROBLEM_CHARACTERS_MAX = 120


def possible(kind, members):
    """Whether a cluster of so many members may change so."""
    return {JOIN: members < MEMBERS_MAX, REPLACE: True, LEAVE: members > MEMBERS_MIN}[kind]


class Changes(threading.Thread):
    """Carries out changes one after another until faults are over, and then ends the one under way.
    `deck` are the kinds of changes in the order in which they come."""

    def __init__(self, world, chance, deck, counts, say):
        super().__init__(name="changes", daemon=True)
        self.world, self.chance, self.deck, self.counts, self.say = world, chance, deck, counts, say
        self.healed_at = None
        self.broken = None

    def run(self):
        try:
            while self.healed_at is None:
                kind = self.draw()
                began = time.monotonic()
                self.carry_out(kind)
                self.counts.add(kind)
                self.say(f"ended:  {kind}, after {time.monotonic() - began:.1f} s")
        except Exception as error:  # noqa: BLE001: the run has to learn of it.
            self.broken = error

    def heal(self):
        """Says that nothing is broken any more, and waits for the end of the change under way."""
        self.healed_at = time.monotonic()
        self.join()
        return time.monotonic() - self.healed_at

    def draw(self):
        """The next kind of change that the cluster can take. It goes to the end of the deck."""
        at = next(at for at, kind in enumerate(self.deck) if possible(kind, len(self.world.members)))
        kind = self.deck.pop(at)
        self.deck.append(kind)
        return kind

    def carry_out(self, kind):
        world = self.world
        old, new = None, None
        if kind in (REPLACE, LEAVE):
            old = self.chance.choice(sorted(world.members))
        if kind in (JOIN, REPLACE):
            new = world.add()
        self.say(f"begins: {' '.join(str(part) for part in (kind, old, new and f'by {new}' if old else new) if part)}")
        if old:
            world.leaving.add(old)
        self.wait("was accepted", lambda: self.is_committed(old, new))
        world.alone.discard(new)
        self.say(f"accepted: {kind}")
        self.wait("ended", lambda: self.is_over(old, new))
        if old:
            with world.changing:
                world.remove(old)
                world.leaving.discard(old)

    def wait(self, what, holds):
        """Waits until something holds, which after healing takes a bounded time."""
        problem = None
        while True:
            before = problem
            try:
                if holds():
                    return
                problem = "it is under way"
            except Refused as error:
                problem = str(error)[:PROBLEM_CHARACTERS_MAX]
            if problem != before:
                self.say(f"not {what} yet: {problem}")
            healed_at = self.healed_at
            if healed_at is not None and time.monotonic() - healed_at > SECONDS_AFTER_HEALING_MAX:
                told = self.stayers(None)[0].admin("cluster", "status")
                raise Refused(f"no change {what} within {SECONDS_AFTER_HEALING_MAX} s of healing: {problem}\n{told}")
            time.sleep(LOOK_SECONDS)

    def stayers(self, old):
        """The members that stay, in an order by chance."""
        numbers = [number for number in self.world.members if number not in (old, *self.world.leaving)]
        return [self.world.members[number] for number in self.chance.sample(numbers, len(numbers))]

    def is_committed(self, old, new):
        """Stages, plans and commits the change through a member. What an earlier attempt has done
        already is not done again."""
        stayers = [member for member in self.stayers(old) if member.number != new]
        through = stayers[0]
        found = statuses(through)
        names = {number: member.name for number, member in self.world.members.items()}
        if new and found.get(names[new]) is None:
            join(self.world.members[new], stayers[-1])
            found = statuses(through)
        is_decided = found.get(names[new]) == "valid" if new else found.get(names[old]) != "valid"
        if is_decided:
            return True
        if old:
            words = ("replace", names[old], names[new]) if new else ("leave", names[old])
            try:
                through.admin("cluster", *words)
            except Refused as error:
                # An earlier attempt has staged it.
                if "already" not in str(error):
                    raise
        through.admin("cluster", "plan")
        through.admin("cluster", "commit")
        return True

    def is_over(self, old, new):
        through = self.stayers(old)[0]
        status = json.loads(through.admin("cluster", "status", "--json"))
        if status["ring_change"] is not None:
            return False
        found = {member["name"]: member["status"] for member in status["members"]}
        names = {number: member.name for number, member in self.world.members.items()}
        if new and found.get(names[new]) != "valid":
            return False
        if not old:
            return True
        return names[old] not in found and self.world.processes[old].poll() is not None


def statuses(member):
    return {found["name"]: found["status"] for found in json.loads(member.admin("member-status", "--json"))["members"]}


def join(new, through):
    """Stages the join of a node through a member."""
    new.admin("cluster", "join", through.settings.get("cluster.advertised_address", through.peer))
