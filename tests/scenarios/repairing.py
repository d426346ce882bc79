"""Scenarios of nodes that get back what they have lost."""
import json
import shutil

from moving import CHANGE_SECONDS_MAX
from program import ombak
from world import Pb, World, equal, put, values, wait_for

from exchanges import EXCHANGES  # noqa: E402: `world` says where its modules are.

KEYS = 200
VALUE = "v" * 2000


def keys_of(member):
    """How many keys each store of a node holds, by partition."""
    vnodes = json.loads(member.admin("vnode-status", "--json"))["vnodes"]
    return {vnode["partition"]: vnode["status"]["key_count"] for vnode in vnodes}


def lose(world, number, partition):
    """Stops a node and deletes the store of one of its partitions. A start refuses, and says what
    to do."""
    world.stop(number)
    shutil.rmtree(world[number].data / "bitcask" / str(partition))
    process = world[number].start()
    equal(process.wait(CHANGE_SECONDS_MAX) != 0, True, "a start without the store is refused")
    said = world[number].said()
    equal(f"partition {partition} lacks what it had durably stored" in said and "--accept-loss" in said, True, f"the refusal: {said}")


def partition_repair():
    """The store of a partition is deleted. The other replicas bring back exactly the same objects,
    also when one that sends is killed meanwhile. The same for other partitions of other nodes,
    after each of the commands that accept a loss. Exchanges run all the time."""
    with World(4, {"storage_backend": "bitcask", "handoff.bytes_per_second": "100KB", **EXCHANGES}) as world:
        world.join_all()
        for key in range(KEYS):
            equal(put(world[1], "b", f"k{key}", f"{key} {VALUE}", query="?w=3"), (204, ""), "a put")
        before = {member.number: keys_of(member) for member in world.all()}
        equal(sum(sum(found.values()) for found in before.values()), 3 * KEYS, "the copies that all nodes hold")
        for number, sender in ((4, 2), (2, 3), (3, None)):
            partition = max(before[number], key=before[number].get)
            lose(world, number, partition)
            if sender is None:
                code, said = ombak(world[number], "admin", "backend", "verify", "--repair", "--config", str(world[number].config))
                equal(code in (0, 1), True, f"the repair: {said}")
                world.start(number)
            else:
                world.processes[number] = world[number].start("--accept-loss")
                world[number].wait_ready(world.processes[number])
                wait_for("the first objects", lambda: keys_of(world[number])[partition] > 0, CHANGE_SECONDS_MAX)
                world.kill(sender)
                world.start(sender)
            world.wait_all_up()
            world[number].admin("cluster", "settled", "--reaped", "--wait", str(CHANGE_SECONDS_MAX))
            for member in world.all():
                equal(keys_of(member), before[member.number], f"the keys of node {member.number} after partition {partition} of {number}")
        check_alone(world, 3)


def check_alone(world, number):
    """Checks what a node holds itself: the others are gone."""
    with Pb(world[number]) as pb:
        lists = {key: pb.preference_list("b", f"k{key}") for key in range(KEYS)}
    owned = [key for key, found in lists.items() if (world[number].name, True) in found]
    for other in set(world.processes) - {number}:
        world.kill(other)
    world.wait_all_up()
    for key in owned:
        equal(values(world[number], "b", f"k{key}", query="?r=1"), [f"{key} {VALUE}"], f"key {key}, which node {number} has")
