"""Scenarios of replicas that differ although nobody reads, and become equal by exchanges.

Copies are compared by the files of the nodes (copies.py), so that no read repairs anything.
Scenarios of clocks, kv679, run here with real nodes and exchanges."""
import json
import shutil
import signal
import time

from copies import EQUAL_SECONDS_MAX, NAMES, differences, stored, wait_until_equal
from forming import commit
from moving import CHANGE_SECONDS_MAX, check, wait_until_changed, wait_until_ended, write
from world import Pb, World, ask, clock, equal, key_path, put, values, wait_for

import stores  # noqa: E402: `world` says where it is.
from exchanges import DROPPED, EXCHANGES, REPAIRED, total, wait_for_a_round  # noqa: E402

KEYS = 120
SETTINGS = {**EXCHANGES, "storage_backend": "bitcask", "delete_mode": "500ms", "scrub.bytes_per_second_max": "0"}


def all_stats(world):
    return [json.loads(ask(world[number], "GET", "/stats")[2]) for number in world.processes]


def halt(world, number, is_killed):
    """A node that is killed sums up anew when it starts. One that stops in order has saved its
    sums."""
    world.kill(number) if is_killed else world.stop(number)


def lose_sums(world, number):
    shutil.rmtree(world[number].data / "sums", ignore_errors=True)


def damage_and_wait(settings, is_killed):
    """What verify_aae of Riak does to one replica after another: its data, its sums, or both are
    lost; keys were stored at one of them alone; keys were updated at the other replicas alone. All
    copies become equal without a read, and after that nothing is repaired any more."""
    backend = settings["storage_backend"]
    with World(4, settings) as world:
        world.join_all()
        write(world[1], "b", range(KEYS), query="?w=3")
        wanted = stored("b", range(KEYS))
        wait_until_equal(world, wanted, backend)
        # A partition is lost.
        halt(world, 2, is_killed)
        counts = {number: len(stores.newest(store)) for number, store in stores.stores(world[2].data, backend).items()}
        lost = max(counts, key=counts.get)
        for path in (world[2].data / backend).iterdir():
            if path.name.partition(".")[0] == str(lost):
                shutil.rmtree(path)
        world.processes[2] = world[2].start("--accept-loss")
        world[2].wait_ready(world.processes[2])
        wait_until_equal(world, wanted, backend)
        # Only the sums are lost.
        halt(world, 3, is_killed)
        lose_sums(world, 3)
        world.start(3)
        # Records are lost, with the sums and without them.
        for number, loses_sums in ((4, True), (1, False)):
            halt(world, number, is_killed)
            if loses_sums:
                lose_sums(world, number)
            removed = stores.remove_records(world[number].data, wanted[::5], backend)
            equal(bool(removed), True, f"node {number} has lost something")
            world.start(number)
            world.wait_all_up()
            wait_until_equal(world, wanted, backend)
        once = write_one_copy(world)
        wanted += stored("one", once)
        wait_until_equal(world, wanted, backend)
        update_at_all_but_one(world, wanted, backend, is_killed)
        wait_for_a_round(world[1], wait_for)
        before = total(all_stats(world), REPAIRED)
        equal(wait_for_a_round(world[1], wait_for), 0, "what a round repairs that finds no difference")
        equal(total(all_stats(world), REPAIRED), before, "the repairs when nothing happens")
        for member in world.all():
            check(member, "one", once)


def write_one_copy(world):
    """Writes keys of which node 1 has the only copy: the others hang, and then all nodes die.
    Returns the numbers of the keys."""
    with Pb(world[1]) as pb:
        names = {key: pb.preference_list("one", NAMES.format(key)) for key in range(KEYS)}
    once = [key for key, found in names.items() if (world[1].name, True) in found]
    for number in (2, 3, 4):
        world.processes[number].send_signal(signal.SIGSTOP)
    write(world[1], "one", once, query="?w=1&dw=1")
    for number in (1, 2, 3, 4):
        world.kill(number)
    # Each waits until it sees some others.
    for number in (1, 2, 3, 4):
        world.processes[number] = world[number].start()
    for number in (1, 2, 3, 4):
        world[number].wait_ready(world.processes[number])
    world.wait_all_up()
    return once


def update_at_all_but_one(world, wanted, backend, is_killed):
    """Some keys are updated, and one replica has the versions of before."""
    updated = range(0, KEYS, 3)
    for key in updated:
        name = NAMES.format(key)
        equal(put(world[1], "b", name, f"value {key}", query="?w=3", X_Riak_Vclock=clock(world[1], "b", name)), (204, ""), "an update")
    halt(world, 3, is_killed)
    older = stores.remove_records(world[3].data, stored("b", updated), backend, only_newest=True)
    equal(bool(older), True, "node 3 has older versions")
    world.start(3)
    world.wait_all_up()
    wait_until_equal(world, wanted, backend)


def verify_aae():
    """Whatever one replica has lost comes back without a read: sums outlive the stops of nodes."""
    damage_and_wait(SETTINGS, is_killed=False)


def verify_tictac_aae():
    """The same on leveled, with nodes that are killed: they make their sums anew."""
    damage_and_wait({**SETTINGS, "storage_backend": "leveled"}, is_killed=True)


def verify_tictacaae_nodedown():
    """Exchanges go on between the nodes that are up while another one is down. They repair what one
    of them lacks and no other primary could have seen removed. The rest waits for the node that is
    down: nothing is dropped."""
    with World(4, SETTINGS) as world:
        world.join_all()
        write(world[1], "b", range(KEYS), query="?w=3")
        wanted = stored("b", range(KEYS))
        wait_until_equal(world, wanted)
        world.stop(4)
        at_4 = stores.held(world[4].data)
        world.stop(2)
        removed = stores.remove_records(world[2].data, wanted[::2])
        at_once = [key for key in removed if key not in at_4]
        equal(0 < len(at_once) < len(removed), True, "node 4 has copies of some of the keys that node 2 has lost")
        world.start(2)
        world.wait_all_up()

        def has_them():
            held = stores.held(world[2].data)
            return all(held.get(key) for key in at_once)

        wait_for("the keys that node 2 lacks", has_them, EQUAL_SECONDS_MAX)
        equal(total(all_stats(world), DROPPED), 0, "what was dropped")
        world.start(4)
        world.wait_all_up()
        wait_until_equal(world, wanted)
        equal(total(all_stats(world), DROPPED), 0, "what was dropped")


def verify_tictacaae_rebuildcrash():
    """A node is killed again and again while it sums up its stores anew. It ends that some time,
    and then repairs what it lacks."""
    with World(3, SETTINGS) as world:
        world.join_all()
        write(world[1], "b", range(KEYS), query="?w=3")
        wanted = stored("b", range(KEYS))
        wait_until_equal(world, wanted)
        world.stop(2)
        stores.remove_records(world[2].data, wanted[::6])
        for pause_seconds in (0, 0.05, 0.2, 0.5):
            lose_sums(world, 2)
            world.start(2)
            time.sleep(pause_seconds)
            world.kill(2)
        world.start(2)
        world.wait_all_up()
        wait_until_equal(world, wanted)
        wait_for_a_round(world[1], wait_for)


def verify_corruption_filtering():
    """Some values of a node are corrupt. Gets, puts, listings and the transfers of its leave are
    complete nevertheless, and all copies are right in the end."""
    with World(4, SETTINGS) as world:
        world.join_all()
        write(world[1], "b", range(KEYS), query="?w=3")
        wanted = stored("b", range(KEYS))
        wait_until_equal(world, wanted)
        flipped = stores.flip_bits(world[2].data, wanted[::3])
        equal(bool(flipped), True, "node 2 has corrupt values")
        for key in range(0, KEYS, 7):
            name = NAMES.format(key)
            known = clock(world[2], "b", name)
            equal(put(world[2], "b", name, f"value {key}", X_Riak_Vclock=known), (204, ""), f"the put of {key}")
        keys = json.loads(ask(world[2], "GET", "/buckets/b/keys?keys=true")[2])["keys"]
        equal(sorted(keys), sorted(NAMES.format(key) for key in range(KEYS)), "a listing")
        world[2].admin("cluster", "leave")
        commit(world[1])
        wait_until_changed(world, 1, [1, 3, 4])
        wait_until_ended(world, 2)
        wait_until_equal(world, wanted)
        for number in (1, 3, 4):
            check(world[number], "b", range(KEYS))


def delete(member, bucket, name, known):
    status, _, _ = ask(member, "DELETE", key_path(bucket, name), headers={"X-Riak-Vclock": known})
    equal(status, 204, f"the delete of {name}")


def kv679_dataloss():
    """The coordinator's copies are destroyed after several writes. New writes without a context are
    no events that the other replicas know: both values are siblings, also after exchanges."""
    with World(3, SETTINGS) as world:
        world.join_all()
        equal(ask(world[1], "PUT", "/buckets/b/props", b'{"props":{"allow_mult":true}}')[0], 204, "siblings")
        names = [NAMES.format(key) for key in range(20)]
        for name in names:
            for turn in range(4):
                # The same length each time.
                known = {"X_Riak_Vclock": clock(world[1], "b", name)} if turn else {}
                equal(put(world[1], "b", name, f"old {turn}", query="?w=3", **known), (204, ""), "a put")
        wanted = stored("b", range(20))
        write(world[1], "others", range(KEYS), query="?w=3")
        wanted += stored("others", range(KEYS))
        world.stop(1)
        shutil.rmtree(world[1].data / "bitcask")
        world.processes[1] = world[1].start("--accept-loss")
        world[1].wait_ready(world.processes[1])
        for name in names:
            equal(put(world[1], "b", name, "new"), (204, ""), "a put without a context")
        world.wait_all_up()
        wait_until_equal(world, wanted)
        wait_for_a_round(world[1], wait_for)
        for member in world.all():
            for name in names:
                equal(values(member, "b", name, query="?r=3"), ["new", "old 3"], f"{name} at node {member.number}")


def kv679_tombstone2():
    """Keys are deleted while a primary is down that has crashed. They are written anew. When it
    returns with what it had, neither its old values nor a tombstone hide the new ones."""
    with World(3, SETTINGS) as world:
        world.join_all()
        write(world[1], "b", range(KEYS), query="?w=3")
        world.kill(3)
        world.wait_all_up()
        for key in range(KEYS):
            name = NAMES.format(key)
            delete(world[1], "b", name, clock(world[1], "b", name))
        for key in range(0, KEYS, 2):
            equal(put(world[2], "b", NAMES.format(key), f"value {key}"), (204, ""), "a put after the delete")
        world.start(3)
        world.wait_all_up()
        world[1].admin("cluster", "settled", "--reaped", "--wait", str(CHANGE_SECONDS_MAX))
        wanted = stored("b", range(0, KEYS, 2))
        wait_until_equal(world, wanted)
        wait_for_a_round(world[1], wait_for)
        equal(differences(world, wanted), [], "the copies after a round")
        for member in world.all():
            check(member, "b", range(0, KEYS, 2))


def kv679_tombstone():
    """Keys are deleted while a primary is down, so that a stand-in has their tombstones. They are
    written anew. When the stand-in hands back, the old tombstones hide nothing."""
    with World(5, SETTINGS) as world:
        world.join_all()
        write(world[1], "b", range(KEYS), query="?w=3")
        world.stop(5)
        world.wait_all_up()
        for key in range(KEYS):
            name = NAMES.format(key)
            delete(world[1], "b", name, clock(world[1], "b", name))
        # One that may stand in for node 5 is down when the keys are written again.
        world.stop(4)
        world.wait_all_up()
        for key in range(KEYS):
            equal(put(world[1], "b", NAMES.format(key), f"value {key}"), (204, ""), "a put after the delete")
        world.start(5)
        world.start(4)
        world.wait_all_up()
        world[1].admin("cluster", "settled", "--reaped", "--wait", str(CHANGE_SECONDS_MAX))
        wait_until_equal(world, stored("b", range(KEYS)))
        wait_for_a_round(world[1], wait_for)
        for member in world.all():
            check(member, "b", range(KEYS))


def query(member, low, high):
    status, _, body = ask(member, "GET", f"/buckets/b/index/number_int/{low}/{high}")
    equal(status, 200, f"the status of a query: {body[:200]}")
    return sorted(json.loads(body)["keys"])


def number_of(key, is_updated):
    """The index entry of a key. Updates move it far away. All have the same length."""
    return {"x-riak-index-number_int": str(key + (50_000 if is_updated else 10_000))}


def alone(world, number):
    for other in set(world.processes) - {number}:
        world.stop(other)
    world.wait_all_up()


def damage_index(world, number, updated):
    """Gives a node an index that has seen its whole journal and has the entries of before for the
    keys that were updated. It is made by the node itself, from a journal without the updates."""
    alone(world, number)
    world.stop(number)
    data = world[number].data
    journal = {file: file.read_bytes() for store in stores.stores(data).values() for file in stores.data_files(store)}
    equal(len(stores.remove_records(data, updated, only_newest=True)), len(updated), "the updates at the node")
    lose_sums(world, number)
    world.start(number)
    world.wait_all_up()
    equal(len(query(world[number], 10_000, 19_999)), KEYS, "the entries of before")
    world.stop(number)
    lose_sums(world, number)
    for file, content in journal.items():
        file.write_bytes(content)
    for store in stores.stores(data).values():
        for hint in store.glob("*.hint"):
            hint.unlink()


def damaged_index(world):
    """Gives node 1 an index that lacks entries and has surplus ones, and starts it. Returns a
    function that says whether the node answers queries as it should. The other nodes are down."""
    world.join_all()
    for key in range(KEYS):
        equal(put(world[1], "b", NAMES.format(key), f"value {key}", query="?w=3", **number_of(key, False)), (204, ""), "a put")
    updated = range(0, KEYS, 4)
    for key in updated:
        name = NAMES.format(key)
        known = clock(world[1], "b", name)
        equal(put(world[1], "b", name, f"value {key}", query="?w=3", X_Riak_Vclock=known, **number_of(key, True)), (204, ""), "an update")
    # Of each partition, the newest record is none of an update.
    write(world[1], "later", range(KEYS), query="?w=3")
    moved = sorted(NAMES.format(key) for key in updated)
    kept = sorted(NAMES.format(key) for key in range(KEYS) if key not in updated)
    damage_index(world, 1, stored("b", updated))
    world.start(1)
    world.wait_all_up()
    return lambda: (query(world[1], 50_000, 59_999), query(world[1], 10_000, 19_999)) == (moved, kept)


def verify_2i_aae():
    """The index of a node lacks entries and has surplus ones. `repair-2i` mends it, also when the
    node is killed in the middle of it and is told again."""
    with World(3, {"storage_backend": "bitcask", "scrub.enabled": "off"}) as world:
        is_right = damaged_index(world)
        equal(is_right(), False, "whether the damaged index answers as it should")
        for number in (2, 3):
            world.start(number)
        world.wait_all_up()
        world[1].admin("repair-2i")
        world.kill(1)
        world.start(1)
        world.wait_all_up()
        world[1].admin("repair-2i")
        # Nobody else answers, and the node needs nobody for it.
        alone(world, 1)
        wait_for("that the index is right", is_right, EQUAL_SECONDS_MAX)


def index_is_scrubbed():
    """The same damage is mended without a command about indexes: by a round of scrubbing."""
    with World(3, {"storage_backend": "bitcask", "scrub.bytes_per_second_max": "0"}) as world:
        is_right = damaged_index(world)
        world[1].admin("scrub", "start")
        wait_for("that the index is right", is_right, EQUAL_SECONDS_MAX)
