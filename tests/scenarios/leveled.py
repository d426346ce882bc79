"""Scenarios of the backend leveled: what a start builds again from the journal, and backups."""
import json
import shutil
import threading

from program import ombak
from world import Member, World, ask, equal, free_port, free_ports, key_path, put, values

KEYS = 120
LEVELED = {"storage_backend": "leveled"}


def term(number):
    return f"t{number % 4}"


def found(member, bucket):
    """The keys of a bucket and of each of its index terms, in order."""
    listed = sorted(json.loads(ask(member, "GET", f"/buckets/{bucket}/keys?keys=true")[2])["keys"])
    terms = {}
    for number in range(5):
        body = ask(member, "GET", f"/buckets/{bucket}/index/t_bin/t{number}")[2]
        terms[f"t{number}"] = sorted(json.loads(body)["keys"])
    return listed, terms


def journalreload_leveled():
    """A start without the ledgers builds them from the journal: keys, values and index entries are
    as they were, after overwrites and deletes, after a kill, and once more after that."""
    with World(1, LEVELED) as world:
        node, wanted = world[1], {}
        for number in range(KEYS):
            put(node, "b", f"k{number}", f"v{number}", **{"x-riak-index-t_bin": term(number)})
            wanted[f"k{number}"] = (f"v{number}", term(number))
        for number in range(0, KEYS, 3):
            put(node, "b", f"k{number}", "later", **{"x-riak-index-t_bin": "t4"})
            wanted[f"k{number}"] = ("later", "t4")
        for number in range(0, KEYS, 5):
            equal(ask(node, "DELETE", key_path("b", f"k{number}"))[0], 204, "a delete")
            del wanted[f"k{number}"]
        terms = {f"t{number}": sorted(key for key, (_, of) in wanted.items() if of == f"t{number}") for number in range(5)}
        for end in (world.stop, world.kill, world.stop):
            equal(found(node, "b"), (sorted(wanted), terms), "the keys before the ledgers are lost")
            end(1)
            ledgers = list((node.data / "leveled").glob("*.ledger"))
            equal(len(ledgers) > 0, True, "there are ledgers")
            for ledger in ledgers:
                shutil.rmtree(ledger)
            world.start(1)
        equal(found(node, "b"), (sorted(wanted), terms), "the keys that were found again")
        for key, (value, _) in wanted.items():
            equal(values(node, "b", key), [value], f"the value of {key}")


def hotbackup_leveled():
    """Each member is backed up while objects change. A cluster that was lost is brought back from
    one of the backups, with the older values of what has changed since."""
    with World(3, LEVELED) as world:
        world.join_all()
        for number in range(KEYS):
            equal(put(world[1], "b", f"k{number}", "old", query="?w=3"), (204, ""), "a put")
        stop, written = threading.Event(), []

        def change():
            while not stop.is_set():
                put(world[2], "changing", "k", str(len(written)), query="?w=3")
                written.append(len(written))

        changes = threading.Thread(target=change)
        changes.start()
        try:
            for member in world.all():
                before = len(written)
                equal("backup taken in" in member.admin("backup", "saved"), True, "a backup")
                itself = ombak(member, "admin", "backup", str(member.data))
                equal((itself[0], "the node's own data directory" in itself[1]), (1, True), "a backup onto the node itself")
        finally:
            stop.set()
            changes.join()
        for number in range(0, KEYS, 2):
            equal(put(world[1], "b", f"k{number}", "new", query="?w=3", **{"X-Riak-Vclock": clock_of(world[1], number)})[0], 204, "a put")
        last = world[3]
        for number in (1, 2, 3):
            world.stop(number)
        restored(world, f"{last.data}-backups/saved", before)


def clock_of(member, number):
    return ask(member, "GET", key_path("b", f"k{number}"))[1]["x-riak-vclock"]


def restored(world, backup, changes_min):
    """Starts a node of its own from the backup of a member."""
    http, pb = free_ports(2)
    node = Member(world.directory, 4, "dev4@127.0.0.1", pb=f"127.0.0.1:{pb}", http=f"127.0.0.1:{http}",
                  peer=f"127.0.1.4:{free_port('127.0.1.4')}", settings=dict(world.settings))
    node.config.write_text(node.configuration())
    code, said = ombak(node, "restore", "--config", str(node.config), backup)
    equal((code, "--new-cluster" in said), (1, True), "a member's backup without a decision")
    equal(ombak(node, "restore", "--config", str(node.config), "--new-cluster", backup)[0], 0, "a restore")
    world.members[4] = node
    world.start(4)
    for number in range(KEYS):
        equal(values(node, "b", f"k{number}"), ["old"], f"the value of k{number}")
    found_change = [int(value) for value in values(node, "changing", "k")]
    equal(len(found_change) > 0 and max(found_change) >= changes_min - 1, True, f"what changed: {found_change} of {changes_min}")
