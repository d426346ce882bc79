"""Scenarios of Riak's folds on clusters of real nodes that keep their tombstones: what one cluster
shows of those that Riak runs on several ones."""
import base64
import json
import urllib.parse

from copies import differences, stored, wait_until_equal
from moving import check, write
from world import Pb, World, ask, clock, decode, equal, key_path, put, wait_for

import stores  # noqa: E402: `world` says where it is.

KEYS = 300
SECONDS_MAX = 60
# Nothing but what a scenario asks for repairs or removes anything.
SETTINGS = {"storage_backend": "bitcask", "delete_mode": "keep", "anti_entropy": "passive", "dollarkey_readtombs": "enabled",
            "scrub.bytes_per_second_max": "0"}
REAP, ERASE, REPAIR, STATS, TOMBS = 230, 231, 219, 216, 218
COUNTS, LOCAL, JOB = 2, 1, 0


def place(resource, bucket, kind=None, rest=""):
    of_type = f"/types/{kind}" if kind else ""
    return f"/{resource}{of_type}/buckets/{bucket}{rest}"


def fold(member, path, **members):
    """What a fold answers over HTTP. `members` are those of its filter."""
    text = base64.b64encode(json.dumps(members).encode()).decode()
    status, _, body = ask(member, "GET", f"{path}?filter={urllib.parse.quote(text)}")
    equal(status, 200, f"the status of {path}: {body[:200]}")
    return json.loads(body)


def dispatched(member, resource, bucket, method, kind=None, **members):
    return fold(member, place(resource, bucket, kind), change_method=method, **members)["dispatched_count"]


def dispatched_over_pb(member, code, bucket, method=None, kind=None):
    """The same over Protocol Buffers."""
    fields = [*([(1, kind)] if kind else []), (2, bucket), *([(50, method)] if method is not None else [])]
    with Pb(member) as pb:
        answer, found = pb.ask(code, fields)
    equal(answer, 222, f"the code of the answer to {code}: {found}")
    return sum(dict(decode(value)).get(3, 0) for tag, value in found if tag == 2)


def counts(member, bucket, kind=None):
    """How many objects a bucket has, and how many of them are tombstones."""
    objects = fold(member, place("objectstats", bucket, kind))["total_count"]
    return objects, len(fold(member, place("tombs", bucket, kind))["keys-clocks"])


def wait_for_counts(member, bucket, wanted, kind=None):
    wait_for(f"that {bucket} has {wanted} objects and tombstones", lambda: counts(member, bucket, kind) == wanted, SECONDS_MAX)


def delete(member, bucket, key, kind=None):
    equal(ask(member, "DELETE", key_path(bucket, key, kind) + "?rw=3")[0], 204, f"the delete of {key}")


def jobs_of(member):
    return json.loads(member.admin("fold", "jobs", "--json"))["jobs"]


def wait_until_done(world):
    def is_done():
        return all(job["state"] == "done" for number in world.processes for job in jobs_of(world[number]))
    wait_for("that all jobs are done", is_done, SECONDS_MAX)


def verify_overflowq():
    """Keys wait on the disk of the node that was asked, also while it is killed again and again, and
    their counts fall to zero."""
    with World(3, {**SETTINGS, "key_queues.keys_per_second": 400}) as world:
        world.join_all()
        for number in range(1, 4):
            write(world[number], "b", range((number - 1) * KEYS, number * KEYS))
        equal(dispatched(world[2], "erase", "b", "count"), 3 * KEYS, "what would be erased")
        equal(dispatched(world[2], "erase", "b", "local"), 3 * KEYS, "what is erased")
        for _ in range(3):
            world.kill(2)
            world.start(2)
            world.wait_all_up()
        wait_for_counts(world[1], "b", (3 * KEYS, 3 * KEYS))
        equal(dispatched(world[3], "reap", "b", {"job_id": 1}), 3 * KEYS, "what is reaped")
        world.kill(3)
        world.start(3)
        world.wait_all_up()
        wait_for_counts(world[1], "b", (0, 0))
        wait_until_done(world)


def nextgenrepl_reaptombs():
    """Tombstones are reaped over both interfaces, also those of typed buckets. While a node is down,
    they wait."""
    with World(4, SETTINGS) as world:
        world.join_all()
        world[1].admin("bucket-type", "create", "typed", '{"props": {"allow_mult": true}}')
        world[1].admin("bucket-type", "activate", "typed")
        for bucket, kind in (("b", None), ("c", "typed")):
            write(world[1], bucket, range(60), kind)
            for key in range(50):
                delete(world[2], bucket, f"k{key}", kind)
            wait_for_counts(world[3], bucket, (60, 50), kind)
        world.kill(4)
        wait_for("the node is missed", lambda: world[4].name not in world.ups(1), SECONDS_MAX)
        equal(dispatched(world[1], "reap", "b", "local"), 50, "over HTTP")
        equal(dispatched_over_pb(world[2], REAP, "c", JOB, "typed"), 50, "over Protocol Buffers")
        wait_for("the jobs say what they wait for", lambda: jobs_of(world[1])[0]["why"], SECONDS_MAX)
        equal(counts(world[3], "b"), (60, 50), "nothing is reaped while a member is down")
        world.start(4)
        world.wait_all_up()
        wait_for_counts(world[3], "b", (10, 0))
        wait_for_counts(world[4], "c", (10, 0), "typed")
        check(world[4], "b", range(50, 60))


def nextgenrepl_deletemodes():
    """Nodes that keep tombstones have them until they are reaped, and then have as many keys as
    nodes that remove them at once."""
    with World(3, SETTINGS) as keeps, World(3, {**SETTINGS, "delete_mode": "immediate"}) as removes:
        for world in (keeps, removes):
            world.join_all()
            write(world[1], "b", range(100))
            for key in range(90):
                delete(world[2], "b", f"k{key}")
        wait_for_counts(removes[1], "b", (10, 0))
        equal(counts(keeps[1], "b"), (100, 90), "what is kept")
        equal(dispatched_over_pb(keeps[3], REAP, "b", LOCAL), 90, "what is reaped")
        wait_for_counts(keeps[1], "b", (10, 0))
        for world in (keeps, removes):
            check(world[2], "b", range(90, 100))


def nextgenrepl_deletewithfailure():
    """Keys of a time range, and siblings, are erased while a node dies, with both change methods. A
    key that was written after the fold stays."""
    with World(4, {**SETTINGS, "key_queues.keys_per_second": 200}) as world:
        world.join_all()
        world[1].admin("bucket-type", "create", "sibs", '{"props": {"allow_mult": true}}')
        world[1].admin("bucket-type", "activate", "sibs")
        for member in world.all()[:2]:
            write(member, "b", range(KEYS), "sibs")
        equal(fold(world[1], place("siblings", "b", "sibs", "/counts/1"))["results"] != [], True, "there are siblings")
        equal(dispatched(world[1], "erase", "b", "local", "sibs", date_range={"start": 0, "end": 1000}), 0, "an early range")
        begun = dispatched(world[1], "erase", "b", "local", "sibs", date_range={"start": 1000, "end": 2**32 - 1})
        equal(begun, KEYS, "what is erased")
        world.kill(4)
        last = f"k{KEYS - 1}"
        found = ask(world[1], "GET", key_path("b", last, "sibs"), headers={"Accept": "multipart/mixed, */*;q=0.5"})
        equal(put(world[2], "b", last, "later", "sibs", X_Riak_Vclock=found[1].get("x-riak-vclock", ""))[0], 204, "a later put")
        wait_for("that the others are erased", lambda: counts(world[2], "b", "sibs")[1] == KEYS - 1, SECONDS_MAX)
        world.start(4)
        world.wait_all_up()
        # The fold may ask the node that was away, which has older versions of keys that are erased.
        equal(dispatched_over_pb(world[3], ERASE, "b", JOB, "sibs") >= 1, True, "something is left")
        wait_for("that all are erased", lambda: counts(world[2], "b", "sibs")[1] == KEYS, SECONDS_MAX)
        equal(dispatched(world[4], "reap", "b", "local", "sibs"), KEYS, "what is reaped")
        wait_for_counts(world[1], "b", (0, 0), "sibs")


def keys_of_index(member, query="0/z"):
    status, _, body = ask(member, "GET", f"/buckets/b/index/$key/{query}")
    equal(status, 200, f"the status of an index query: {body[:200]}")
    return sorted(json.loads(body)["keys"])


def verify_dollarkeyreap():
    """Queries of $key find deleted keys until their tombstones are reaped."""
    with World(3, SETTINGS) as world:
        world.join_all()
        write(world[1], "b", range(100))
        for key in range(100):
            delete(world[2], "b", f"k{key}")
        every = sorted(f"k{key}" for key in range(100))
        equal(keys_of_index(world[1]), every, "the keys of tombstones")
        equal(keys_of_index(world[1], "k1/k2"), [key for key in every if "k1" <= key <= "k2"], "a range of them")
        equal(dispatched(world[1], "reap", "b", "local", key_range={"start": "k1", "end": "k2"}), 12, "a range is reaped")
        wait_for("that the range is reaped", lambda: keys_of_index(world[2], "k1/k2") == [], SECONDS_MAX)
        equal(dispatched_over_pb(world[3], REAP, "b", LOCAL), 88, "the others are reaped")
        wait_for("that all are reaped", lambda: keys_of_index(world[2]) == [], SECONDS_MAX)


def verify_aaefold_rangerepair():
    """A repair of a range makes the copies equal that a node has lost, and no others. A fold asks one
    replica of each key, so it finds all keys only after the one that has lost some has them again."""
    with World(3, SETTINGS) as world:
        world.join_all()
        write(world[1], "b", range(100))
        wait_until_equal(world, stored("b", range(100)))
        world.stop(2)
        removed = stores.remove_records(world[2].data, stored("b", range(100)), "bitcask")
        equal(bool(removed), True, "node 2 has lost something")
        world.start(2)
        world.wait_all_up()
        in_range = [key for key in range(100) if f"k{key}" <= "k4~"]

        def finds_the_range():
            found = dispatched(world[1], "rangerepair", "b", "local", key_range={"start": "k0", "end": "k4~"})
            wait_until_done(world)
            return found == len(in_range)

        wait_for("that the range is repaired", finds_the_range, SECONDS_MAX)
        equal(len(differences(world, stored("b", range(100)))), 100 - len(in_range), "the keys that are not repaired")

        def finds_all():
            found = dispatched_over_pb(world[3], REPAIR, "b")
            wait_until_done(world)
            return found == 100

        wait_for("that all are repaired", finds_all, SECONDS_MAX)
        wait_until_equal(world, stored("b", range(100)))


def ranges_of(world, kind):
    """What each node finds of a bucket over both interfaces: the same keys with clocks, tombstones,
    statistics and trees, also while a node is down. A tree shows an update."""
    write(world[1], "b", range(KEYS), kind)
    for key in range(10):
        delete(world[1], "b", f"k{key}", kind)

    def found(member):
        keys = fold(member, place("rangetrees", "b", kind, "/keysclocks"))["keys-clocks"]
        with Pb(member) as pb:
            code, fields = pb.ask(214, [*([(1, kind)] if kind else []), (2, "b")])
        equal(code, 221, "the code of the answer with clocks")
        equal(sum(tag == 2 for tag, _ in fields), len(keys), "the keys over both interfaces")
        trees = [fold(member, place("rangetrees", "b", kind, f"/trees/{size}")) for size in ("xxsmall", "small", "large")]
        return sorted(key["key"] for key in keys), trees, counts(member, "b", kind)

    first = found(world[1])
    equal((len(first[0]), first[2]), (KEYS, (KEYS, 10)), "keys, objects and tombstones")
    equal(found(world[3]), first, "what another node finds")
    world.kill(4)
    wait_for("the node is missed", lambda: world[4].name not in world.ups(1), SECONDS_MAX)
    equal(found(world[2]), first, "what is found while a node is down")
    world.start(4)
    world.wait_all_up()
    update = put(world[1], "b", "k20", "changed", kind, query="?w=3", X_Riak_Vclock=clock(world[1], "b", "k20", kind))
    equal(update[0], 204, "an update")
    changed = found(world[4])
    equal(all(now != then for now, then in zip(changed[1], first[1])), True, "the trees show the update")
    equal((changed[0], changed[2]), (first[0], first[2]), "nothing else has changed")


def verify_aaefold_range():
    """Trees and clocks of a bucket of a type, over both interfaces."""
    with World(4, SETTINGS) as world:
        world.join_all()
        world[1].admin("bucket-type", "create", "typed", '{"props": {"allow_mult": true}}')
        world[1].admin("bucket-type", "activate", "typed")
        ranges_of(world, "typed")


def verify_aaefold_range_api():
    """The same of a bucket without a type."""
    with World(4, SETTINGS) as world:
        world.join_all()
        ranges_of(world, None)
