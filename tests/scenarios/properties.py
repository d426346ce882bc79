"""Scenarios of bucket types and bucket properties, on a cluster of three nodes."""
import json

from world import Pb, ask, decode, equal, key_path, message, put, values, wait_for

DEFAULTS = {
    "allow_mult": False, "basic_quorum": False, "big_vclock": 50, "dvv_enabled": False, "dw": "quorum",
    "chash_keyfun": {"mod": "riak_core_util", "fun": "chash_std_keyfun"}, "last_write_wins": False,
    "linkfun": {"mod": "riak_kv_wm_link_walker", "fun": "mapreduce_linkfun"}, "n_val": 3, "notfound_ok": True,
    "old_vclock": 86400, "postcommit": [], "pr": 0, "precommit": [], "pw": 0, "r": "quorum", "rw": "quorum",
    "small_vclock": 50, "w": "quorum", "write_once": False, "young_vclock": 20,
}
# The tags of the properties in RpbBucketProps, and the code of the quorum `quorum`.
TAGS = {
    "n_val": 1, "allow_mult": 2, "last_write_wins": 3, "old_vclock": 10, "young_vclock": 11, "big_vclock": 12,
    "small_vclock": 13, "pr": 14, "r": 15, "w": 16, "pw": 17, "dw": 18, "rw": 19, "basic_quorum": 20, "notfound_ok": 21,
}
QUORUMS = {0xFFFFFFFE: "one", 0xFFFFFFFD: "quorum", 0xFFFFFFFC: "all", 0xFFFFFFFB: "default"}


def props_path(bucket, kind=None):
    return f"/types/{kind}/buckets/{bucket}/props" if kind else f"/buckets/{bucket}/props"


def props(member, bucket, kind=None):
    status, _, body = ask(member, "GET", props_path(bucket, kind))
    equal(status, 200, "the status of properties")
    return json.loads(body)["props"]


def set_props(member, bucket, wanted, kind=None):
    status, _, body = ask(member, "PUT", props_path(bucket, kind), json.dumps({"props": wanted}).encode())
    return status, body.decode()


def reset(member, bucket, kind=None):
    equal(ask(member, "DELETE", props_path(bucket, kind))[0], 204, "the status of a reset")


def everywhere(world, what, holds):
    for member in world.all():
        wait_for(f"{what} on node {member.number}", lambda: holds(member), 30)


def create_type(world, name, wanted, through=1):
    member = world[through]
    member.admin("bucket-type", "create", name, json.dumps({"props": wanted}))
    member.admin("bucket-type", "activate", name)


def over_pb(member, bucket):
    """Properties over Protocol Buffers."""
    with Pb(member) as pb:
        code, fields = pb.ask(19, [(1, bucket)])
    equal(code, 20, "the code of properties")
    found = dict(decode(dict(fields)[1]))
    names = {tag: name for name, tag in TAGS.items()}
    flags = {"allow_mult", "last_write_wins", "basic_quorum", "notfound_ok"}
    read = {names[tag]: value for tag, value in found.items() if tag in names}
    return {name: bool(value) if name in flags else QUORUMS.get(value, value) for name, value in read.items()}


def bucket_props_roundtrip(world):
    """Each property that one interface sets at one node is read by the other at another node."""
    wanted = {"allow_mult": True, "last_write_wins": False, "old_vclock": 10_000, "young_vclock": 10, "big_vclock": 100,
              "small_vclock": 10, "pr": 1, "r": "one", "w": "all", "pw": 1, "dw": "one", "rw": "all",
              "basic_quorum": True, "notfound_ok": False}
    for number, (name, value) in enumerate(sorted(wanted.items())):
        by, at = world[number % 3 + 1], world[(number + 1) % 3 + 1]
        equal(set_props(by, "trip", {name: value}), (204, ""), f"setting {name}")
        wait_for(f"{name} over Protocol Buffers", lambda: over_pb(at, "trip")[name] == value, 30)
        equal(props(by, "trip")[name], value, f"{name} over HTTP")
    reset(world[1], "trip")
    quorums = {name: code for code, name in QUORUMS.items()}
    for number, (name, value) in enumerate(sorted(wanted.items())):
        by, at = world[(number + 2) % 3 + 1], world[number % 3 + 1]
        with Pb(by) as pb:
            code, _ = pb.ask(21, [(1, "trip"), (2, message((TAGS[name], quorums.get(value, value))))])
        equal(code, 22, f"the code of setting {name}")
        wait_for(f"{name} over HTTP", lambda: props(at, "trip")[name] == value, 30)


def bucket_props_validation(world):
    """An untyped bucket has Riak's defaults. One request with bad values is refused with all errors
    and changes nothing on any node. Good values are stored."""
    for member in world.all():
        found = props(member, "validated")
        equal({name: found.get(name) for name in DEFAULTS}, DEFAULTS, f"the defaults at node {member.number}")
    bad = {"allow_mult": "maybe", "basic_quorum": "x", "last_write_wins": "no", "notfound_ok": "x",
           "big_vclock": "x", "n_val": "three", "old_vclock": "x", "small_vclock": "x", "young_vclock": "x",
           "dw": "x", "r": "x", "rw": "x", "w": "x"}
    kinds = ["not_boolean"] * 4 + ["not_integer"] * 5 + ["not_valid_quorum"] * 4
    status, body = set_props(world[2], "validated", bad)
    equal((status, json.loads(body)), (400, dict(zip(bad, kinds))), "the refusal of bad values")
    for member in world.all():
        found = props(member, "validated")
        equal({name: found.get(name) for name in DEFAULTS}, DEFAULTS, f"what bad values changed at node {member.number}")
    good = {"allow_mult": True, "r": 1, "w": "all", "big_vclock": 60}
    equal(set_props(world[3], "validated", good), (204, ""), "good values")
    everywhere(world, "the good values", lambda member: {name: props(member, "validated")[name] for name in good} == good)


def verify_reset_bucket_props(world):
    """A reset at one node reaches all."""
    for kind in (None, "resettable"):
        if kind:
            create_type(world, kind, {"r": 2})
        equal(set_props(world[1], "reset", {"r": 1, "w": 1}, kind), (204, ""), "setting properties")
        everywhere(world, "the properties", lambda member: props(member, "reset", kind)["w"] == 1)
        reset(world[3], "reset", kind)
        everywhere(world, "the reset", lambda member: props(member, "reset", kind)["w"] == "quorum")
        everywhere(world, "the property of the type",
                   lambda member: props(member, "reset", kind)["r"] == (2 if kind else "quorum"))


def bucket_types(world):
    """Over Protocol Buffers: the default type is the untyped bucket, typed buckets are apart, names
    may be any UTF-8, properties come from the type, and an unknown type is an error."""
    create_type(world, "kinds", {"allow_mult": False, "n_val": 3, "r": "all"}, through=2)
    name, key = "ведро", "ключ"
    with Pb(world[1]) as pb, Pb(world[2]) as other:
        def get(pb, kind):
            code, fields = pb.ask(9, [(1, name), (2, key), *([(13, kind)] if kind else [])])
            equal(code, 10, "the code of a get")
            contents = [dict(decode(value))[1] for tag, value in fields if tag == 1]
            return [content.decode() for content in contents]

        def store(pb, kind, value):
            fields = [(1, name), (2, key), (4, message((1, value))), (5, 3), *([(16, kind)] if kind else [])]
            equal(pb.ask(11, fields)[0], 12, "the code of a put")

        store(pb, None, "untyped")
        equal(get(other, "default"), ["untyped"], "the default type")
        equal(get(other, "kinds"), [], "the key in a typed bucket")
        store(other, "kinds", "typed")
        equal((get(pb, "kinds"), get(pb, None)), (["typed"], ["untyped"]), "both")
        equal(pb.list_keys(name, "kinds"), [key], "the keys of the typed bucket")
        error = pb.error(9, [(1, name), (2, key), (13, "nonexistent")])
        if "nonexistent" not in error and error != "no_type":
            raise AssertionError(f"the error of an unknown type: {error}")
        equal(pb.ask(13, [(1, name), (2, key), (13, "kinds")])[0], 14, "the code of a delete")
        equal((get(other, "kinds"), get(other, None)), ([], ["untyped"]), "after the delete of the typed one")
    found = props(world[3], "any", "kinds")
    equal((found["r"], found["allow_mult"]), ("all", False), "the properties of the type")


def http_bucket_types(world):
    """The same over HTTP, with properties of bucket, type and node, one over the other."""
    create_type(world, "layers", {"allow_mult": False, "w": 2}, through=3)
    equal(put(world[1], "t", "k", "untyped", query="?w=3"), (204, ""), "a put")
    equal(values(world[2], "t", "k", "default"), ["untyped"], "the default type")
    equal(values(world[2], "t", "k", "layers"), [], "the key in a typed bucket")
    equal(put(world[2], "t", "k", "typed", "layers", query="?w=3"), (204, ""), "a put")
    equal((values(world[3], "t", "k", "layers"), values(world[3], "t", "k")), (["typed"], ["untyped"]), "both")
    for kind, listed in (("layers", ["k"]), (None, ["k"])):
        path = f"/types/{kind}/buckets/t/keys?keys=true" if kind else "/buckets/t/keys?keys=true"
        equal(json.loads(ask(world[1], "GET", path)[2])["keys"], listed, "the keys")
    equal(json.loads(ask(world[1], "GET", "/types/layers/buckets?buckets=true")[2])["buckets"], ["t"], "typed buckets")
    status, _, body = ask(world[1], "GET", key_path("t", "k", "nonexistent"))
    equal((status, "Unknown bucket type" in body.decode()), (404, True), "an unknown type")
    equal(set_props(world[1], "t", {"w": 1, "sync_on_write": "all"}, "layers"), (204, ""), "setting properties")
    everywhere(world, "the property of the bucket", lambda member: props(member, "t", "layers")["w"] == 1)
    everywhere(world, "syncs", lambda member: props(member, "t", "layers")["sync_on_write"] == "all")
    equal(props(world[2], "u", "layers")["w"], 2, "another bucket of the type")
    equal(put(world[2], "t", "synced", "v", "layers"), (204, ""), "a put that is synced")
    reset(world[2], "t", "layers")
    everywhere(world, "the property of the type", lambda member: props(member, "t", "layers")["w"] == 2)
    equal(ask(world[3], "DELETE", key_path("t", "k", "layers"))[0], 204, "a delete")
    equal((values(world[1], "t", "k", "layers"), values(world[1], "t", "k")), ([], ["untyped"]), "after the delete")


def cluster_meta_basic(world):
    """What is written at one node reaches all, also a node that was down meanwhile, while a peer is
    gone, and through every node."""
    for number in (1, 2, 3):
        equal(set_props(world[number], "meta", {"young_vclock": 20 + number}), (204, ""), "setting a property")
        everywhere(world, "the property", lambda member: props(member, "meta")["young_vclock"] == 20 + number)
    world.kill(3)
    wait_for("the node is missed", lambda: world.ups(1) == {world[1].name, world[2].name}, 60)
    wait_for("a change without the node", lambda: set_props(world[1], "meta", {"young_vclock": 30}) == (204, ""), 60)
    wait_for("the change", lambda: props(world[2], "meta")["young_vclock"] == 30, 30)
    world.start(3)
    everywhere(world, "the change", lambda member: props(member, "meta")["young_vclock"] == 30)
    world.wait_all_up()
