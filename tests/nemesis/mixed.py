#!/usr/bin/env python3
"""A mixed cluster under load: four nodes on leveldb and three on leveled. One node is killed,
another one is replaced meanwhile by a node of the other backend, and the killed one returns. Then
the checker of the nemesis reads every key through every node (`checker.py`).

Usage: mixed.py [--seed N]. The last line is `N passed, N failed, N skipped`."""
import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

import changes  # noqa: E402
import clients  # noqa: E402
from run import SETTINGS, Broken, Run, supervised  # noqa: E402
from world import Loopback, wait_for  # noqa: E402

BACKENDS = ["leveldb"] * 4 + ["leveled"] * 3
CLIENTS = 4
LOAD_SECONDS = 5
REPLACE_SECONDS_MAX = 300


class Mixed(Loopback):
    """Nodes on the backends of a list. One that joins has the backend of the last one."""

    nodes = len(BACKENDS)

    def place(self, number):
        member = super().place(number)
        member.settings["storage_backend"] = BACKENDS[min(number, len(BACKENDS)) - 1]
        return member


class MixedRun(Run):
    def all(self):
        clients.fill_quiet_bucket(self.world.first().http, self.history)
        with self.clients(1, CLIENTS):
            self.kill_and_replace()
        self.check_alive()
        self.settle("after the replacement")
        self.check_round(list(self.history.keys.values()))
        for violation in self.violations[:10]:
            self.explain(violation)

    def kill_and_replace(self):
        world = self.world
        time.sleep(LOAD_SECONDS)
        # Both are on leveldb, and the new node is on leveled.
        killed, replaced = self.chance.sample(range(1, 5), 2)
        new = world.add()
        old_name, new_name = world.members[replaced].name, world.members[new].name
        asked = world.members[5]
        changes.join(world.members[new], world.members[self.chance.randint(1, len(BACKENDS))])
        asked.admin("cluster", "replace", old_name, new_name)
        asked.admin("cluster", "plan")
        world.leaving.add(replaced)
        asked.admin("cluster", "commit")
        world.alone.discard(new)
        world.kill(killed)
        world.leaving.add(killed)
        self.say(f"{replaced} is replaced by {new}, and {killed} was killed")
        time.sleep(LOAD_SECONDS)
        world.start(killed)
        world.leaving.discard(killed)
        self.say(f"{killed} has started again")
        wait_for("the end of the replacement", lambda: self.is_replaced(asked, old_name, new_name), REPLACE_SECONDS_MAX)
        status = world.processes[replaced].wait(REPLACE_SECONDS_MAX)
        if status != 0:
            raise Broken(f"node {replaced} left with status {status}")
        world.remove(replaced)
        world.leaving.discard(replaced)
        self.counts.add("replaced node")
        self.say(f"{replaced} has left")
        time.sleep(LOAD_SECONDS)

    @staticmethod
    def is_replaced(asked, old_name, new_name):
        found = changes.statuses(asked)
        return old_name not in found and found.get(new_name) == "valid"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.rpartition("Usage: ")[2])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    arguments = parser.parse_args()
    arguments.seconds = 0
    directory = Path(tempfile.mkdtemp(prefix="ombak-mixed-"))
    print(f"seed {arguments.seed}, {BACKENDS}")
    expected = ["add with a clock", "blind add", "put", "delete", "listing", "replaced node"]
    try:
        run = MixedRun(Mixed(directory, BACKENDS[0], SETTINGS), arguments)
        passed, failed = supervised(run, expected, changes_members=False)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
