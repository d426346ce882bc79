"""Scenarios of rings that change while there are objects."""
import json
import threading
import time

from forming import START_SECONDS, commit, refusal, shares
from world import Pb, Refused, World, ask, clock, equal, form, key_path, put, values, wait_for

from copies import stored, wait_until_equal  # noqa: E402: `world` says where its modules are.
from exchanges import EXCHANGES, wait_for_a_round  # noqa: E402

# How long a change of the ring may take on a loaded machine.
CHANGE_SECONDS_MAX = 120
KEYS = 200
TYPE = "typed"


def ring_change(member):
    return json.loads(member.admin("cluster", "status", "--json"))["ring_change"]


def wait_until_changed(world, through, wanted):
    """Waits until a change of the ring is over, and then until every member shows the wanted
    members, all of them valid, and everything lies where it belongs."""
    member = world[through]
    names = {world[number].name for number in wanted}
    for number in wanted:
        wait_for("the end of the change", lambda: ring_change(world[number]) is None, CHANGE_SECONDS_MAX)
        wait_for(f"the members {wanted} at node {number}",
                 lambda: {name for name, (status, _) in shares(world[number]).items() if status == "valid"} == names
                 == set(shares(world[number])), CHANGE_SECONDS_MAX)
        # A member that had not heard of the change before has heard of it now.
        wait_for("the end of the change", lambda: ring_change(world[number]) is None, CHANGE_SECONDS_MAX)
        wait_for("the agreement about the ring", world[number].agrees, CHANGE_SECONDS_MAX)
    equal(sum(count for _, count in shares(member).values()), 16, "the partitions together")
    member.admin("cluster", "settled", "--reaped", "--wait", str(CHANGE_SECONDS_MAX))


def wait_until_ended(world, number):
    """Waits until a node that has left ends by itself."""
    process = world.processes.pop(number)
    equal(process.wait(CHANGE_SECONDS_MAX), 0, f"the status with which node {number} ends")


def write(member, bucket, keys=range(KEYS), kind=None, **headers):
    for key in keys:
        equal(put(member, bucket, f"k{key}", f"value {key}", kind, **headers), (204, ""), f"the put of {key}")


def check(member, bucket, keys=range(KEYS), kind=None, query="?r=3&pr=3"):
    for key in keys:
        equal(values(member, bucket, f"k{key}", kind, query), [f"value {key}"], f"key {key} at node {member.number}")


def create_type(world, through):
    world[through].admin("bucket-type", "create", TYPE, json.dumps({"props": {"allow_mult": True}}))
    world[through].admin("bucket-type", "activate", TYPE)


class Watch(threading.Thread):
    """Asks something all the time, of nodes in turn, and keeps what was wrong."""

    def __init__(self, nodes, question):
        super().__init__(daemon=True)
        self.nodes, self.question, self.is_over = nodes, question, threading.Event()
        self.asked, self.wrong = 0, []

    def run(self):
        while not self.is_over.is_set():
            node = self.nodes[self.asked % len(self.nodes)]
            try:
                self.question(node)
            except Exception as error:  # noqa: BLE001: whatever went wrong, the scenario has failed.
                self.wrong.append(f"at node {node.number}: {type(error).__name__}: {error}")
            self.asked += 1
            time.sleep(0.02)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.join()
        if self.wrong or not self.asked:
            raise AssertionError(f"{len(self.wrong)} of {self.asked} answers were wrong: {self.wrong[:3]}")


def verify_leave():
    """A node leaves: it gives up its partitions, the others forget it, and it ends. Another one is
    removed by force: it is gone at once, and serves nobody any more."""
    with World(5) as world:
        world.join_all()
        write(world[1], "b")
        equal(world[2].admin("cluster", "leave").strip(), f"Success: staged leave request for '{world[2].name}'", "leave")
        commit(world[1])
        wait_until_changed(world, 1, [1, 3, 4, 5])
        wait_until_ended(world, 2)
        if "has left its cluster" not in world[2].said():
            raise AssertionError("the node that left does not say so")
        check(world[3], "b")
        # As in Riak, the claimant cannot be removed by force.
        claimant = json.loads(world[1].admin("ring-status", "--json"))["claimant"]
        number = next(number for number in (3, 4, 5) if world[number].name != claimant)
        said = world[1].admin("cluster", "force-remove", world[number].name).strip()
        equal(said, f"Success: staged remove request for '{world[number].name}'", "force-remove")
        plan = world[1].admin("cluster", "plan")
        if f"WARNING: All of '{world[number].name}' replicas will be lost" not in plan:
            raise AssertionError(f"the plan does not warn: {plan}")
        world[1].admin("cluster", "commit")
        stayers = [n for n in (1, 3, 4, 5) if n != number]
        wait_until_changed(world, 1, stayers)
        for n in stayers:
            check(world[n], "b")
        wait_for("that the removed node serves nobody", lambda: takes_no_part(world[number]), START_SECONDS)


def takes_no_part(member):
    status, said = put(member, "b", "k", "v")
    return status in (500, 503) and "takes no part" in said


def verify_handoff():
    """Nodes are added one by one, and every replica has every object, of a typed bucket too.
    Clients read and write meanwhile."""
    with World(4) as world:
        write(world[1], "b")
        create_type(world, 1)
        write(world[1], "b", kind=TYPE)
        for joiner in (2, 3, 4):
            world[joiner].admin("cluster", "join", world[1].peer)
            known = [world[number] for number in range(1, joiner)]
            reads = Watch(known, lambda node: check(node, "b", range(0, KEYS, 41), query=""))
            with reads:
                commit(world[1])
                write(world[1], f"during {joiner}", range(40))
                wait_until_changed(world, 1, list(range(1, joiner + 1)))
        # A ring of fewer nodes than replicas has several of them on one node.
        for number in (1, 2, 3, 4):
            check(world[number], "b")
            check(world[number], "b", kind=TYPE)
        for joiner in (2, 3, 4):
            check(world[joiner], f"during {joiner}", range(40))
        # Each node in turn may be lost: the others have everything.
        for stopped in (2, 4):
            world.stop(stopped)
            world.wait_all_up()
            check(world[1], "b", query="?r=2&pr=2")
            check(world[1], "b", kind=TYPE, query="?r=2&pr=2")
            world.restart_missing()


def query(node, bucket, path, kind=None):
    place = f"/types/{kind}/buckets/{bucket}" if kind else f"/buckets/{bucket}"
    status, _, body = ask(node, "GET", f"{place}/index/{path}")
    equal(status, 200, f"the status of the query {path}")
    return sorted(json.loads(body)["keys"])


def verify_2i_handoff():
    """Queries are complete at every moment of joins, of a leave, and while a node is stopped."""
    everything = sorted(f"k{key}" for key in range(KEYS))
    with World(4, {"storage_backend": "leveldb"}) as world:
        create_type(world, 1)
        for kind in (None, TYPE):
            for key in range(KEYS):
                headers = {"x-riak-index-number_int": str(key), "x-riak-index-word_bin": f"w{key}"}
                equal(put(world[1], "b", f"k{key}", f"value {key}", kind, **headers), (204, ""), "a put")

        def ask_all(node):
            for kind in (None, TYPE):
                equal(query(node, "b", f"number_int/0/{KEYS}", kind), everything, "all by number")
                equal(query(node, "b", "word_bin/w7/w7~", kind), [key for key in everything if key.startswith("k7")], "words")
                equal(query(node, "b", "$bucket/_", kind), everything, "the bucket")

        for joiner in (2, 3, 4):
            world[joiner].admin("cluster", "join", world[1].peer)
            with Watch([world[number] for number in range(1, joiner)], ask_all):
                commit(world[1])
                wait_until_changed(world, 1, list(range(1, joiner + 1)))
            ask_all(world[joiner])
        world.wait_all_up()
        world.stop(3)
        world.wait_all_up()
        with Watch([world[1], world[2], world[4]], ask_all):
            world.start(3)
            world.wait_all_up()
            world[1].admin("cluster", "settled", "--reaped", "--wait", str(CHANGE_SECONDS_MAX))
        ask_all(world[3])
        with Watch([world[1], world[3], world[4]], ask_all):
            world[2].admin("cluster", "leave")
            commit(world[1])
            wait_until_changed(world, 1, [1, 3, 4])
        wait_until_ended(world, 2)


def verify_listkeys_growing():
    """Listings equal what was written, at every moment, while nodes join and leave one by one."""
    everything = sorted(f"k{key}" for key in range(KEYS))

    def list_all(node):
        with Pb(node) as pb:
            equal(pb.list_keys("b"), everything, "the keys")
        status, _, body = ask(node, "GET", "/buckets?buckets=true")
        equal((status, json.loads(body)), (200, {"buckets": ["b"]}), "the buckets")

    with World(4) as world:
        write(world[1], "b")
        for joiner in (2, 3, 4):
            world[joiner].admin("cluster", "join", world[1].peer)
            with Watch([world[number] for number in range(1, joiner)], list_all):
                commit(world[1])
                wait_until_changed(world, 1, list(range(1, joiner + 1)))
        for leaver, left in ((2, [1, 3, 4]), (4, [1, 3])):
            with Watch([world[number] for number in left], list_all):
                world[leaver].admin("cluster", "leave")
                commit(world[1])
                wait_until_changed(world, 1, left)
            wait_until_ended(world, leaver)


def verify_rejoin():
    """A node leaves and comes back with an empty directory, while clients write. No exchange and no
    read needs a repair afterwards: the changes have brought everything."""
    with World(4, EXCHANGES) as world:
        world.join_all()
        write(world[1], "b")
        world[4].admin("cluster", "leave")
        commit(world[1])
        write(world[1], "left", range(60))
        wait_until_changed(world, 1, [1, 2, 3])
        wait_until_ended(world, 4)
        # Its old directory was removed from the cluster.
        world.directory.joinpath("node-4").rename(world.directory / "old-4")
        world.add(4)
        world[4].admin("cluster", "join", world[1].peer)
        commit(world[1])
        write(world[1], "back", range(60))
        wait_until_changed(world, 1, [1, 2, 3, 4])
        world.wait_all_up()
        equal(wait_for_a_round(world[1], wait_for), 0, "the repairs of a round of exchanges")
        repairs = [read_repairs(world[number]) for number in (1, 2, 3, 4)]
        for number in (1, 2, 3, 4):
            check(world[number], "b")
            check(world[number], "left", range(60))
            check(world[number], "back", range(60))
        equal([read_repairs(world[number]) for number in (1, 2, 3, 4)], repairs, "the repairs of reads")


def read_repairs(member):
    return json.loads(ask(member, "GET", "/stats")[2])["read_repairs_total"]


def verify_delete_onreplace():
    """Keys are deleted while a node is replaced. None of them comes back, and with delete_mode keep
    the tombstones move to the new node. Exchanges run all the time."""
    for mode in ("immediate", "keep"):
        with World(4, {"delete_mode": mode, "storage_backend": "bitcask", **EXCHANGES}) as world:
            form([world[number] for number in (1, 2, 3)])
            write(world[1], "b")
            world[4].admin("cluster", "join", world[1].peer)
            said = world[1].admin("cluster", "replace", world[2].name, world[4].name).strip()
            equal(said, f"Success: staged replacement of '{world[2].name}' with '{world[4].name}'", "replace")
            commit(world[1])
            for key in range(0, KEYS, 2):
                known = clock(world[3], "b", f"k{key}")
                status, _, _ = ask(world[3], "DELETE", key_path("b", f"k{key}"), headers={"X-Riak-Vclock": known})
                equal(status, 204, f"the delete of {key}")
            wait_until_changed(world, 1, [1, 3, 4]) if mode == "immediate" else wait_for(
                "the end of the change", lambda: ring_change(world[1]) is None
                and set(shares(world[1])) == {world[number].name for number in (1, 3, 4)}, CHANGE_SECONDS_MAX)
            wait_until_ended(world, 2)
            wait_for_a_round(world[1], wait_for)
            # A tombstone is a copy, too.
            wait_until_equal(world, stored("b", range(1, KEYS, 2) if mode == "immediate" else range(KEYS)))
            for number in (1, 3, 4):
                check(world[number], "b", range(1, KEYS, 2))
                for key in range(0, KEYS, 2):
                    equal(values(world[number], "b", f"k{key}", query="?r=3&pr=3"), [], f"key {key}, which was deleted")
                status, headers, _ = ask(world[number], "GET", key_path("b", "k0") + "?r=3&deletedvclock=true")
                equal((status, "x-riak-vclock" in headers), (404, mode == "keep"), "whether there is a tombstone")


def verify_staged_clustering_with_objects():
    """Riak's script: replace, force-replace, and a leave together with a force-remove, which are
    staged twice because the first time they are cleared."""
    with World(4) as world:
        form([world[number] for number in (1, 2, 3)])
        write(world[1], "b")
        world[4].admin("cluster", "join", world[1].peer)
        world[1].admin("cluster", "replace", world[2].name, world[4].name)
        plan = world[1].admin("cluster", "plan")
        if f"replace        '{world[2].name}' with '{world[4].name}'" not in plan:
            raise AssertionError(f"the plan does not name the replacement: {plan}")
        equal(world[1].admin("cluster", "commit").splitlines()[0], "Cluster changes committed", "the commit")
        wait_until_changed(world, 1, [1, 3, 4])
        wait_until_ended(world, 2)
        check(world[4], "b")
        # Node 3 is lost. Node 2 comes back with an empty directory, and takes its place.
        world.kill(3)
        world.wait_all_up()
        world[1].admin("down", world[3].name)
        world.directory.joinpath("node-2").rename(world.directory / "old-2")
        world.add(2)
        world[2].admin("cluster", "join", world[1].peer)
        said = world[1].admin("cluster", "force-replace", world[3].name, world[2].name).strip()
        equal(said, f"Success: staged forced replacement of '{world[3].name}' with '{world[2].name}'", "force-replace")
        commit(world[1])
        wait_until_changed(world, 1, [1, 2, 4])
        check(world[2], "b")
        world.kill(4)
        world.wait_all_up()
        world[1].admin("down", world[4].name)

        def stage():
            world[1].admin("cluster", "leave", world[2].name)
            world[1].admin("cluster", "force-remove", world[4].name)

        stage()
        equal(world[1].admin("cluster", "clear").strip(), "Cleared staged cluster changes", "clear")
        refusal(world[1], "cluster", "commit")
        equal({name: status for name, (status, _) in shares(world[1]).items()},
              {world[1].name: "valid", world[2].name: "valid", world[4].name: "down"}, "the members after the clear")
        stage()
        commit(world[1])
        wait_until_changed(world, 1, [1])
        wait_until_ended(world, 2)
        check(world[1], "b")


def verify_staged_clustering_with_own_objects():
    """A node that joins brings its objects. Until the commit it keeps them, and requests to it
    reach the cluster. After a clear it is alone with them again. After a commit every node has the
    objects of both, and values of one key are siblings."""
    theirs, own, both = range(60), range(60, 120), range(120, 140)
    with World(4) as world:
        form([world[number] for number in (1, 2, 3)])
        joiner = world[4]
        create_type(world, 4)
        for member, keys in ((world[1], theirs), (joiner, own)):
            write(member, "b", keys)
        write(joiner, "b", own, kind=TYPE)
        said = refusal(joiner, "cluster", "join", world[1].peer)
        equal(TYPE in said, True, f"the refusal of a node whose bucket type is unknown: {said}")
        create_type(world, 1)
        for key in both:
            for member in (world[1], joiner):
                equal(put(member, "b", f"k{key}", f"of {member.number}", TYPE), (204, ""), "a put")
        joiner.admin("cluster", "join", world[2].peer)
        equal(values(joiner, "b", "k0"), ["value 0"], "a key of the cluster through the node that joins")
        equal(values(joiner, "b", "k60"), [], "a key of the node before the commit")
        equal(values(world[3], "b", "k60"), [], "a key of the node before the commit, at a member")
        world[1].admin("cluster", "clear")
        wait_for("the end of the join", lambda: shares(joiner) == {joiner.name: ("valid", 16)}, START_SECONDS)
        check(joiner, "b", own, query="")
        equal(values(joiner, "b", "k0"), [], "a key of the cluster after the clear")
        wait_for("the new join", lambda: has_joined(joiner, world[3]), START_SECONDS)
        with Watch([world[number] for number in (1, 2, 3)], lambda node: check(node, "b", theirs[::7], query="")):
            commit(world[2])
            wait_until_changed(world, 1, [1, 2, 3, 4])
        for member in world.all():
            check(member, "b", [*theirs, *own])
            check(member, "b", own, kind=TYPE)
            for key in both:
                equal(values(member, "b", f"k{key}", TYPE, "?r=3&pr=3"), ["of 1", "of 4"], f"key {key}, which both had")


def has_joined(joiner, through):
    try:
        joiner.admin("cluster", "join", through.peer)
    except Refused:
        return False
    return True
