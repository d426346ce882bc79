"""Scenarios of the commands of operators."""
import json
import re
import subprocess

from forming import START_SECONDS, commit, refusal, shares
from world import World, clean_environment, equal, program, put, wait_for

# What the stores of each backend say of themselves, beside what all say.
BACKENDS = {
    "bitcask": ("files", "dead_bytes", "merges", "merge_pending_bytes"),
    "leveled": ("files", "ledger"),
    "leveldb": ("files", "index_bytes"),
    "memory": ("live_bytes",),
}
ROW = re.compile(r"(valid|joining|leaving|down) +(\d+\.\d)% +(--|\d+\.\d%) +'([^']+)'( \([^)]+\))?")


def rows(text):
    """The rows of a table of members: name, status, share and planned share."""
    found = [ROW.fullmatch(line) for line in text.splitlines()]
    return {match[4]: match.groups()[:3] for match in found if match}


def words_of(member, *words):
    """What a command prints and its exit status. It may end with any status."""
    done = subprocess.run([str(program()), "admin", "--data", str(member.data), *words], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, cwd=member.directory, env=clean_environment())
    return done.returncode, done.stdout


def is_understood(member, *words):
    """Whether the program knows the command, whatever came of it."""
    return words_of(member, *words)[0] != 2


def riak_admin_console_tests():
    """Every command takes the arguments that Riak's takes, in both spellings, and refuses
    others."""
    with World(3) as world:
        node, second, third = world.all()
        for words in (
            ("cluster", "join", second.peer), ("cluster", "clear"), ("cluster", "plan"), ("cluster", "commit"), ("cluster", "status"),
            ("cluster", "leave", third.name), ("cluster", "force-remove", third.name), ("cluster", "replace", second.name, third.name),
            ("cluster", "force-replace", second.name, third.name), ("cluster", "location", "rack1"),
            ("cluster", "location", "rack1", "-n", third.name), ("cluster", "partitions"), ("cluster", "partition-count"),
            ("cluster", "partition_count"), ("cluster", "partition", "id=0"), ("bucket-type", "list"), ("bucket_type", "list"),
            ("bucket-type", "status", "t"), ("bucket-type", "create", "t", "{}"), ("bucket-type", "activate", "t"),
            ("bucket-type", "update", "t", '{"props": {}}'), ("down", third.name), ("status",), ("vnode-status",), ("vnode_status",),
            ("ringready",), ("transfers",), ("transfer-limit",), ("transfer_limit",), ("transfer-limit", "1"),
            ("transfer-limit", node.name, "1"), ("member-status",), ("member_status",), ("ring-status",), ("ring_status",),
            ("handoff", "summary"), ("handoff", "details"), ("handoff", "enable", "both"), ("handoff", "disable", "inbound"), ("test",),
        ):
            equal(is_understood(node, *words), True, f"whether '{' '.join(words)}' is understood")
        for words in (
            ("cluster",), ("cluster", "join"), ("cluster", "join", "a", "b"), ("cluster", "leave", "a", "b"), ("cluster", "force-remove"),
            ("cluster", "replace", "a"), ("cluster", "force-replace", "a"), ("cluster", "location"), ("cluster", "plan", "a"),
            ("cluster", "commit", "a"), ("cluster", "partition"), ("bucket-type",), ("bucket-type", "status"), ("bucket-type", "create"),
            ("down",), ("ringready", "a"), ("member-status", "a"), ("handoff", "enable"), ("handoff", "enable", "sideways"), ("nonsense",),
        ):
            equal(is_understood(node, *words), False, f"whether '{' '.join(words)}' is understood")
        world[1].admin("handoff", "enable", "both")
        equal("is not a member of the cluster" in refusal(node, "down", "nobody@nowhere"), True, "down of a stranger")
        columns_of_members(world)


def columns_of_members(world):
    """`member-status` shows status, share, planned share and location of each member, and counts
    them."""
    first, second, third = world.all()
    said = first.admin("member-status")
    equal(rows(said), {first.name: ("valid", "100.0", "--")}, "a node that is alone")
    second.admin("cluster", "join", first.peer)
    said = first.admin("member-status")
    equal(rows(said), {first.name: ("valid", "100.0", "--"), second.name: ("joining", "0.0", "--")}, "a staged join")
    equal("Valid:1 / Leaving:0 / Exiting:0 / Joining:1 / Down:0" in said, True, "the numbers of members")
    plan = first.admin("cluster", "plan")
    equal(rows(plan), {first.name: ("valid", "100.0", "50.0%"), second.name: ("valid", "0.0", "50.0%")}, "the plan")
    first.admin("cluster", "commit")
    wait_for("the end of the join", lambda: shares(first).get(second.name) == ("valid", 8), START_SECONDS)
    third.admin("cluster", "join", second.peer)
    first.admin("cluster", "location", "rack1", "-n", third.name)
    commit(second)
    wait_for("the end of the join", lambda: shares(first).get(third.name) == ("valid", 5), START_SECONDS)
    for member in world.all():
        wait_for("the agreement about the ring", member.agrees, START_SECONDS)
        said = member.admin("member-status")
        equal({row[:2] for row in rows(said).values()}, {("valid", "37.5"), ("valid", "31.2")}, f"the shares at node {member.number}")
        equal(f"'{third.name}' (rack1)" in said, True, f"the location at node {member.number}")
    world.stop(3)
    wait_for("the stop is noticed", lambda: third.name not in world.ups(1), START_SECONDS)
    first.admin("down", third.name)
    wait_for("the member is down", lambda: rows(second.admin("member-status"))[third.name][0] == "down", START_SECONDS)
    equal("Down:1" in second.admin("member-status"), True, "the number of members that are down")


def vnode_status_test():
    """`vnode-status` is JSON with what the stores of each backend say of themselves."""
    for backend, names in BACKENDS.items():
        with World(1, {"storage_backend": backend}) as world:
            equal(put(world[1], "b", "k", "v"), (204, ""), "a put")
            told = json.loads(world[1].admin("vnode-status", "--json"))
            equal(told["node"], world[1].name, "the node")
            equal([vnode["partition"] for vnode in told["vnodes"]], list(range(16)), "the partitions")
            for vnode in told["vnodes"]:
                equal(vnode["backend"], backend, "the backend")
                missing = [name for name in ("key_count", "read_errors", "disk_full", *names) if name not in vnode["status"]]
                equal(missing, [], f"what {backend} does not say")
                equal(vnode["cluster"]["owner"], True, "whether the node owns the partition")
            equal(sum(vnode["status"]["key_count"] for vnode in told["vnodes"]), 1, f"the keys in {backend}")
