"""Scenarios of clusters whose nodes run two versions.

The older nodes run the program that OMBAK_OLD_PROGRAM names. Without it they run this one, which
then says and does among nodes only what the version before it could (`cluster.speaks`)."""
import json
import os
import random
import re

from datatypes import BUCKET, create_types, place, value
from forming import commit, refusal, shares
from moving import CHANGE_SECONDS_MAX, KEYS, Watch, check, has_joined, query, wait_until_changed, write
from world import Pb, Refused, World, ask, clock, equal, key_path, put, values, wait_for

OLD_PROGRAM = os.environ.get("OMBAK_OLD_PROGRAM")
SPEAKS = "cluster.speaks"
# Tombstones that were to be reaped by a node which has restarted meanwhile are reaped by another
# primary a minute later.
SETTLED = ("cluster", "settled", "--reaped", "--wait", "80")
OLDER = re.compile("An earlier version of ombak runs on ([^:]+): upgrade it there first.")
# How long nodes may take to learn what another one can do.
LEARNED_SECONDS_MAX = 60


class Versions(World):
    """Nodes of two versions: those with the numbers `older` run the older one."""

    def __init__(self, count, older, settings=None):
        super().__init__(count, settings)
        self.older = set(older)

    def start(self, number):
        is_older, member = number in self.older, self[number]
        member.program = OLD_PROGRAM if is_older else None
        member.settings.pop(SPEAKS, None)
        if is_older and OLD_PROGRAM is None:
            member.settings[SPEAKS] = "previous"
        super().start(number)

    def upgrade(self, number):
        self.older.discard(number)
        self.restart(number)

    def upgrade_alone(self, number):
        """Upgrades a node that is no member yet."""
        self.older.discard(number)
        self.stop(number)
        self.start(number)

    def downgrade(self, number):
        self.older.add(number)
        self.restart(number)

    def restart(self, number):
        """Restarts a node, and waits until the others have handed over what they took for it."""
        self.stop(number)
        self.start(number)
        self.wait_all_up()
        self[1].admin(*SETTLED)


def copies(world):
    """How many copies of keys the stores of all nodes hold."""
    found = 0
    for member in world.all():
        vnodes = json.loads(member.admin("vnode-status", "--json"))["vnodes"]
        found += sum(vnode["status"]["key_count"] for vnode in vnodes)
    return found


def called_older(said):
    """The names of the nodes that a refusal calls older."""
    found = OLDER.search(said)
    return set(re.findall("'([^']+)'", found[1])) if found else None


def wait_for_refusal(world, through, older, *words):
    """Waits until a command is refused because exactly these nodes are older: nodes tell each other
    what they can do."""
    said, wanted = None, {world[number].name for number in older}

    def is_refused():
        nonlocal said
        said = refusal(world[through], *words)
        return called_older(said) == wanted

    try:
        wait_for(f"the refusal of {' '.join(words)}", is_refused, LEARNED_SECONDS_MAX)
    except Refused as error:
        raise AssertionError(f"{error}; it was refused because of: {said}") from error


def verify_basic_upgrade():
    """What was written is readable through every node while the nodes are upgraded one by one, and
    while they go back. The nodes compress in different ways."""
    chance = random.Random(1)
    texts = {"long": "compressible " * 800, "noise": chance.randbytes(4000).hex(), "short": "v"}
    with Versions(0, {1, 2, 3}, {"storage_backend": "leveled"}) as world:
        for number, how in enumerate(("none", "native", "lz4"), 1):
            world.add(number, leveled__compression_method=how)
        world.join_all()
        written = {}

        def write_some(what):
            for number in (1, 2, 3):
                for kind, text in texts.items():
                    key, value = f"{what} {number} {kind}", f"{what} {number} {text}"
                    equal(put(world[number], "b", key, value, query="?w=3"), (204, ""), f"the put of {key}")
                    written[key] = value

        def read_all(what):
            for member in world.all():
                for key, value in written.items():
                    equal(values(member, "b", key, query="?r=3&pr=3"), [value], f"{key} at node {member.number} {what}")

        write_some("before")
        for number in (1, 2, 3):
            world.upgrade(number)
            write_some(f"upgraded {number}")
            read_all(f"after the upgrade of node {number}")
        for number in (3, 1, 2):
            world.downgrade(number)
            write_some(f"back {number}")
            read_all(f"after node {number} went back")


def ask_everything(world, number, seen):
    """Each kind of request through a node. `seen` are the keys of the bucket with their values."""
    node, key = world[number], f"k{len(seen):03}"
    equal(put(node, "b", key, f"v {key}", query="?w=3", **index_of(len(seen))), (204, ""), "a put")
    seen[key] = f"v {key}"
    equal(values(node, "b", key, query="?r=3"), [seen[key]], "a get")
    first = clock(node, "b", key)
    equal(put(node, "b", key, "again", query="?w=3", X_Riak_Vclock=first, **index_of(len(seen) - 1))[0], 204, "an update")
    seen[key] = "again"
    equal(put(node, "b", key, "x", X_Riak_If_Not_Modified=first, X_Riak_Vclock=first)[0], 409, "a put with a stale condition")
    equal(put(node, "gone", key, "v", query="?w=3"), (204, ""), "a put")
    equal(ask(node, "DELETE", key_path("gone", key) + "?w=3")[0], 204, "a delete")
    equal(values(node, "gone", key, query="?r=3"), [], "a deleted key")
    with Pb(node) as pb:
        equal(pb.list_keys("b"), sorted(seen), "the keys")
        equal(pb.list_keys("gone"), [], "the keys of the other bucket")
    listed = json.loads(ask(node, "GET", "/buckets?buckets=true")[2])["buckets"]
    equal(listed, ["b"], "the buckets")
    equal(query(node, "b", f"number_int/0/{KEYS}"), sorted(seen), "all by number")


def index_of(number):
    return {"x-riak-index-number_int": str(number), "x-riak-index-word_bin": f"w{number % 7}"}


def kv_vnode_requests_upgrade_downgrade():
    """Every kind of request works through every node, whichever of them are upgraded or have gone
    back."""
    seen = {}
    with Versions(3, {1, 2, 3}, {"storage_backend": "leveldb", "delete_mode": "immediate"}) as world:
        world.join_all()
        for change, number in ((None, 0), ("upgrade", 2), ("upgrade", 1), ("upgrade", 3), ("downgrade", 1), ("downgrade", 2)):
            if change:
                getattr(world, change)(number)
            for asked in (1, 2, 3):
                ask_everything(world, asked, seen)


def loaded_upgrade():
    """Each node in turn is upgraded while clients write and read keys, list them and query indexes
    at the other nodes. No request fails, and no answer lacks anything."""
    everything = sorted(f"k{key}" for key in range(KEYS))
    with Versions(4, {1, 2, 3, 4}, {"storage_backend": "leveldb"}) as world:
        world.join_all()
        for key in range(KEYS):
            equal(put(world[1], "b", f"k{key}", f"value {key}", query="?w=3", **index_of(key)), (204, ""), "a put")
        written = []

        def load(node):
            key = f"n{len(written)}"
            equal(put(node, "written", key, f"value {key}"), (204, ""), f"the put of {key}")
            written.append(key)
            equal(values(node, "b", f"k{len(written) % KEYS}"), [f"value {len(written) % KEYS}"], "a get")
            with Pb(node) as pb:
                equal(pb.list_keys("b"), everything, "the keys")
            equal(query(node, "b", f"number_int/0/{KEYS}"), everything, "all by number")
            equal(query(node, "b", "word_bin/w3"), [f"k{key}" for key in sorted(range(3, KEYS, 7), key=str)], "a word")

        for number in (1, 2, 3, 4):
            with Watch([world[other] for other in (1, 2, 3, 4) if other != number], load):
                world.stop(number)
                world.older.discard(number)
                world.start(number)
                world.wait_all_up()
                world[number].admin(*SETTLED)
        for member in world.all():
            check(member, "b")
            for key in written:
                equal(values(member, "written", key, query="?r=3&pr=3"), [f"value {key}"], f"{key} at node {member.number}")


def rolling_capabilities():
    """While a cluster is upgraded, what only the new version knows is refused at every new node,
    and the refusal names the nodes that are older. After the last upgrade it works."""
    with Versions(3, {1, 2, 3}) as world:
        world.join_all()
        write(world[1], "b")
        for number, older in ((2, (1, 3)), (3, (1,))):
            world.upgrade(number)
            for asked in sorted({2, 3} - set(older)):
                wait_for_refusal(world, asked, older, "cluster", "location", "rack1")
        world.upgrade(1)
        for member in world.all():
            wait_for(f"node {member.number} knows that all are new",
                     lambda: is_accepted(member, "cluster", "location", f"rack{member.number}"), LEARNED_SECONDS_MAX)
        commit(world[1])
        wait_until_changed(world, 2, [1, 2, 3])
        found = json.loads(world[3].admin("member-status", "--json"))["members"]
        equal({member["location"] for member in found}, {"rack1", "rack2", "rack3"}, "the locations")
        check(world[2], "b")


def is_accepted(member, *words):
    """Whether a command is not refused because of older nodes."""
    try:
        member.admin(*words)
    except Exception as error:  # noqa: BLE001: any other reason ends the scenario.
        if called_older(str(error)) or "It is not known yet" in str(error):
            return False
        raise
    return True


def verify_capabilities():
    """What a node can do counts as it said last, also while it is down after a kill, and at a node
    that was restarted meanwhile. An upgraded node that is told to speak as before counts as
    older."""
    words = ("cluster", "location", "rack1")
    with Versions(3, {3}) as world:
        world.join_all()
        for asked in (1, 2):
            wait_for_refusal(world, asked, [3], *words)
        world.kill(3)
        for asked in (1, 2):
            equal(called_older(refusal(world[asked], *words)), {world[3].name}, f"the older nodes at node {asked} after the kill")
        saved = world[1].data / "capabilities.json"
        wait_for("what was heard is on the disk", lambda: saved.exists() and saved.read_text().count('node"') == 2, LEARNED_SECONDS_MAX)
        world.stop(1)
        world.start(1)
        equal(called_older(refusal(world[1], *words)), {world[3].name}, "the older nodes at a node that was restarted")
        world.older.clear()
        world.start(3)
        world.wait_all_up()
        for asked in (1, 2):
            wait_for("the upgrade is known", lambda: is_accepted(world[asked], *words), LEARNED_SECONDS_MAX)
        world[1].admin("cluster", "clear")
        world.stop(2)
        world[2].settings[SPEAKS] = "previous"
        World.start(world, 2)
        world.wait_all_up()
        for asked in (1, 2):
            wait_for_refusal(world, asked, [2], *words)
        world.upgrade(2)
        wait_for("the node speaks all again", lambda: is_accepted(world[1], *words), LEARNED_SECONDS_MAX)


def verify_handoff_mixed():
    """What a node missed while it was away is handed over between the versions, in both directions.
    A node that joins a cluster with objects waits for the upgrade, and then gets its share."""
    with Versions(4, {1, 2}) as world:
        world.join_all()
        write(world[1], "b", query="?w=3")
        for away in (1, 3):
            world.stop(away)
            world.wait_all_up()
            write(world[4], f"without {away}", query="?w=3")
            world.start(away)
            world.wait_all_up()
            world[4].admin(*SETTLED)
        equal(copies(world), 3 * 3 * KEYS, "the copies that all nodes hold")
        world.add(5)
        world[5].admin("cluster", "join", world[3].peer)
        world[4].admin("cluster", "plan")
        wait_for_refusal(world, 4, [1, 2], "cluster", "commit")
        equal(shares(world[4])[world[5].name], ("joining", 0), "the node that joins before the upgrade")
        # A node that waits for a commit keeps what it brings, so the cluster is not settled.
        world[4].admin("cluster", "clear")
        wait_for("the end of the join", lambda: shares(world[5]) == {world[5].name: ("valid", 16)}, CHANGE_SECONDS_MAX)
        world.outside.add(5)
        for number in (1, 2):
            world.upgrade(number)
        wait_for("the new join", lambda: has_joined(world[5], world[3]), LEARNED_SECONDS_MAX)
        world[4].admin("cluster", "plan")
        wait_for("the commit", lambda: is_accepted(world[4], "cluster", "commit"), LEARNED_SECONDS_MAX)
        wait_until_changed(world, 4, [1, 2, 3, 4, 5])
        equal(copies(world), 3 * 3 * KEYS, "the copies that all nodes hold after the change")
        for member in world.all():
            for bucket in ("b", "without 1", "without 3"):
                check(member, bucket)


def verify_2i_mixed_cluster():
    """Nodes of both versions answer exact queries and ranges alike, over both interfaces, after
    deletes too, and with siblings of different terms."""
    with Versions(4, {2, 4}, {"storage_backend": "leveldb", "delete_mode": "immediate"}) as world:
        world.join_all()
        for key in range(KEYS):
            node = world[key % 4 + 1]
            equal(put(node, "b", f"k{key}", f"value {key}", query="?w=3", **index_of(key)), (204, ""), "a put")
        for key in range(0, KEYS, 5):
            equal(ask(world[key % 4 + 1], "DELETE", key_path("b", f"k{key}") + "?w=3")[0], 204, "a delete")
        # Another version changes the terms of some keys.
        for key in range(1, KEYS, 5):
            node = world[(key + 1) % 4 + 1]
            equal(put(node, "b", f"k{key}", f"value {key}", query="?w=3", X_Riak_Vclock=clock(node, "b", f"k{key}"),
                      **index_of(KEYS + key)), (204, ""), "a put")
        number = {f"k{key}": KEYS + key if key % 5 == 1 else key for key in range(KEYS) if key % 5}
        for asked in world.all():
            for low, high in ((0, KEYS - 1), (KEYS, 2 * KEYS), (17, 91), (0, 2 * KEYS)):
                expected = sorted(key for key, of in number.items() if low <= of <= high)
                equal(query(asked, "b", f"number_int/{low}/{high}"), expected, f"{low} to {high} over HTTP")
                with Pb(asked) as pb:
                    fields = [(1, "b"), (2, "number_int"), (3, 1), (5, str(low)), (6, str(high))]
                    code, found = pb.ask(25, fields)
                equal((code, sorted(key.decode() for tag, key in found if tag == 1)), (26, expected),
                      f"{low} to {high} over Protocol Buffers")
            for word in range(7):
                expected = sorted(key for key, of in number.items() if of % 7 == word)
                equal(query(asked, "b", f"word_bin/w{word}"), expected, f"the word {word}")


def location_upgrade():
    """A location is refused while a member runs the earlier version. From the first location on, no
    older node can join."""
    with Versions(4, {2, 3}, {"target_n_val": 3}) as world:
        world.join_all()
        write(world[1], "b")
        words = ("cluster", "location", "rack1")
        wait_for_refusal(world, 1, [2, 3], *words)
        refusal(world[1], "cluster", "commit")
        for number in (2, 3):
            world.upgrade(number)
        wait_for("that all know of the upgrade", lambda: is_accepted(world[1], *words), LEARNED_SECONDS_MAX)
        for number in (2, 3, 4):
            world[1].admin("cluster", "location", f"rack{number}", "-n", world[number].name)
        commit(world[1])
        wait_until_changed(world, 1, [1, 2, 3, 4])
        world.older.add(5)
        world.add(5)
        said = refusal(world[5], "cluster", "join", world[2].peer)
        equal(said.partition("Failed: ")[2].startswith("Unable to get ring from"), True, f"the join of an older node: {said}")
        world.upgrade_alone(5)
        world[5].admin("cluster", "join", world[2].peer)
        world[3].admin("cluster", "location", "rack1", "-n", world[5].name)
        commit(world[3])
        wait_until_changed(world, 1, [1, 2, 3, 4, 5])
        check(world[5], "b")


def verify_crdt_capability():
    """Updates of data types and counters are refused while a member runs the earlier version, which
    could not read what they store. A plain value that was put meanwhile stays. From the first
    bucket type with a data type on, no older node can join."""
    counters = "/buckets/counted/counters/c"
    with Versions(3, {2, 3}) as world:
        world.join_all()
        create_types(world)
        ask(world[1], "PUT", "/buckets/counted/props", b'{"props":{"allow_mult":true}}')
        equal(put(world[1], BUCKET, "plain", "a value", "set", "?w=3"), (204, ""), "a plain put")

        def answers():
            add = ask(world[1], "POST", place("set", "s"), b'{"add":"a"}', {"Content-Type": "application/json"})
            count = ask(world[1], "POST", counters, b"5")
            return [(status, body.decode()) for status, _, body in (add, count)]

        def names_older():
            said = answers()
            older = {world[number].name for number in world.older}
            return all(status == 501 and "know data types" in text and called_older(text) == older for status, text in said)

        wait_for("that both are refused", names_older, LEARNED_SECONDS_MAX)
        world.upgrade(2)
        wait_for("that both are refused because of one", names_older, LEARNED_SECONDS_MAX)
        world.upgrade(3)
        wait_for("that both are done", lambda: answers() == [(204, ""), (204, "")], LEARNED_SECONDS_MAX)
        for member in world.all():
            wait_for("the set", lambda: value(member, "set", "s") == ["a"], LEARNED_SECONDS_MAX)
            equal(values(member, BUCKET, "plain", "set"), ["a value"], "the plain value")
        world.older.add(4)
        world.add(4)
        said = refusal(world[4], "cluster", "join", world[2].peer)
        equal(said.partition("Failed: ")[2].startswith("Unable to get ring from"), True, f"the join of an older node: {said}")
        world.upgrade_alone(4)
        world[4].admin("cluster", "join", world[2].peer)
