"""Scenarios of data types, on a cluster of four nodes whose network is parted in two. Both sides go
on, and afterwards every node shows what both have done."""
import json
import re

from world import TIMEOUT_SECONDS, Pb, ask, decode, equal, key_path, message, wait_for

SIDE = (1, 2)
# One node of each side.
ONE, OTHER = 1, 3
BUCKET = "b"
KINDS = ("counter", "set", "gset", "map", "hll")


def create_types(world):
    """Creates a bucket type for each data type, with its name, unless it is there."""
    for kind in KINDS:
        if kind in re.findall(r"^(\w+) \(active\)", world[ONE].admin("bucket-type", "list"), re.MULTILINE):
            continue
        world[ONE].admin("bucket-type", "create", kind, json.dumps({"props": {"datatype": kind}}))
        world[ONE].admin("bucket-type", "activate", kind)
    for member in world.all():
        path = f"/types/{KINDS[-1]}/props"
        wait_for(f"the types at node {member.number}", lambda: ask(member, "GET", path)[0] == 200, TIMEOUT_SECONDS)


def place(kind, key):
    return f"/types/{kind}/buckets/{BUCKET}/datatypes/{key}"


def update(member, kind, key, operation, query=""):
    status, _, body = ask(member, "POST", place(kind, key) + query, json.dumps(operation).encode(),
                          {"Content-Type": "application/json"})
    equal((status, body), (204, b""), f"an update of {kind}/{key}")


def fetch(member, kind, key):
    """The value and its context; `None` for both if there is none."""
    status, _, body = ask(member, "GET", place(kind, key))
    if status == 404:
        return None, None
    equal(status, 200, f"the status of {kind}/{key}")
    found = json.loads(body)
    return found["value"], found.get("context")


def value(member, kind, key):
    return fetch(member, kind, key)[0]


def update_over_pb(member, kind, key, operation):
    """`operation` is a DtOp."""
    with Pb(member) as pb:
        code, fields = pb.ask(82, [(1, BUCKET), (2, key), (3, kind), (5, operation)])
        equal((code, fields), (83, []), f"an update of {kind}/{key}")


def fetched_over_pb(member, kind, key):
    """The fields of the DtValue."""
    with Pb(member) as pb:
        code, fields = pb.ask(80, [(1, BUCKET), (2, key), (3, kind)])
    equal(code, 81, f"the code of {kind}/{key}")
    return list(decode(dict(fields)[3]))


def wait_for_value(world, kind, key, wanted):
    for member in world.all():
        wait_for(f"{wanted} in {kind}/{key} at node {member.number}", lambda: value(member, kind, key) == wanted,
                 TIMEOUT_SECONDS)


def zigzag(number):
    return number << 1 ^ number >> 63


def verify_dt_converge(world):
    """Both sides of a parted network update values of each data type, over both interfaces."""
    create_types(world)
    before, one, other = world[2], world[ONE], world[OTHER]
    update(before, "counter", "c", 10, "?w=3")
    update(before, "set", "s", {"add_all": ["a", "b"]}, "?w=3")
    update(before, "gset", "g", {"add": "a"}, "?w=3")
    update(before, "hll", "h", {"add_all": ["a", "b"]}, "?w=3")
    update(before, "map", "m", {"update": {"n_counter": 1, "s_set": {"add": "a"}, "r_register": "old", "f_flag": "enable",
                                           "in_map": {"update": {"deep_set": {"add": "x"}}}}}, "?w=3")
    world.part(SIDE)
    update(one, "counter", "c", 5)
    update_over_pb(other, "counter", "c", message((1, message((1, zigzag(-3))))))
    update_over_pb(one, "set", "s", message((2, message((1, "c")))))
    update(other, "set", "s", {"remove": "a", "add": "d", "context": fetch(other, "set", "s")[1]})
    update(one, "gset", "g", {"add": "b"})
    update_over_pb(other, "gset", "g", message((5, message((1, "c")))))
    update(one, "hll", "h", {"add_all": ["b", "c"]})
    update_over_pb(other, "hll", "h", message((4, message((1, "c"), (1, "d")))))
    update(one, "map", "m", {"update": {"n_counter": 2, "s_set": {"add": "b"}, "in_map": {"update": {"deep_set": {"add": "y"}}}}})
    field = message((1, message((1, "n"), (2, 1))), (2, message((1, zigzag(4)))))
    update_over_pb(other, "map", "m", message((3, message((2, field)))))
    update(other, "map", "m", {"update": {"r_register": "new", "in_map": {"update": {"deep_set": {"add": "z"}}}}})
    update(other, "map", "m", {"remove": "f_flag", "context": fetch(other, "map", "m")[1]})
    equal((value(one, "counter", "c"), value(other, "counter", "c")), (15, 7), "what the sides see")
    equal((value(one, "set", "s"), value(other, "set", "s")), (["a", "b", "c"], ["b", "d"]), "what the sides see")
    world.heal(SIDE)
    wait_for_value(world, "counter", "c", 12)
    wait_for_value(world, "set", "s", ["b", "c", "d"])
    wait_for_value(world, "gset", "g", ["a", "b", "c"])
    wait_for_value(world, "hll", "h", 4)
    wait_for_value(world, "map", "m", {"n_counter": 7, "s_set": ["a", "b"], "r_register": "new",
                                       "in_map": {"deep_set": ["x", "y", "z"]}})
    for member in world.all():
        equal(fetched_over_pb(member, "counter", "c"), [(1, zigzag(12))], "the counter over Protocol Buffers")
        equal(fetched_over_pb(member, "set", "s"), [(2, b"b"), (2, b"c"), (2, b"d")], "the set over Protocol Buffers")
        equal(fetched_over_pb(member, "gset", "g"), [(5, b"a"), (5, b"b"), (5, b"c")], "the gset over Protocol Buffers")
        equal(fetched_over_pb(member, "hll", "h"), [(4, 4)], "the HyperLogLog over Protocol Buffers")


def verify_dt_context(world):
    """A removal with a context takes effect where the additions that it has seen arrive later."""
    create_types(world)
    one, other = world[ONE], world[OTHER]
    update(one, "set", "context", {"add": "a"}, "?w=3")
    nested = {"s_set": {"add": "a"}, "in_map": {"update": {"deep_set": {"add": "a"}}}}
    update(one, "map", "context", {"update": nested}, "?w=3")
    world.part(SIDE)
    update(one, "set", "context", {"add_all": ["b", "c"]})
    nested = {"s_set": {"add_all": ["b", "c"]}, "r_register": "seen", "in_map": {"update": {"deep_set": {"add": "b"}}}}
    update(one, "map", "context", {"update": nested})
    # The other side has not seen what these contexts have.
    update(other, "set", "context", {"remove_all": ["a", "b"], "context": fetch(one, "set", "context")[1]})
    removal = {"remove": "r_register", "update": {"s_set": {"remove_all": ["a", "b"]},
                                                  "in_map": {"update": {"deep_set": {"remove": "b"}}}}}
    update(other, "map", "context", {**removal, "context": fetch(one, "map", "context")[1]})
    # What this side adds now, no context has seen.
    update(one, "set", "context", {"add": "a"})
    equal(value(other, "set", "context"), [], "the other side had only one of the members")
    world.heal(SIDE)
    wait_for_value(world, "set", "context", ["a", "c"])
    wait_for_value(world, "map", "context", {"s_set": ["c"], "in_map": {"deep_set": ["a"]}})


def verify_no_datatype_siblings(world):
    """A plain read never shows siblings of a data type, also after first updates on both sides."""
    create_types(world)
    first = {"counter": [1, 2], "set": [{"add": "a"}, {"add": "b"}], "gset": [{"add": "a"}, {"add": "b"}],
             "hll": [{"add": "a"}, {"add": "b"}], "map": [{"update": {"a_set": {"add": "a"}}}, {"update": {"a_set": {"add": "b"}}}]}
    both = {"counter": 3, "set": ["a", "b"], "gset": ["a", "b"], "hll": 2, "map": {"a_set": ["a", "b"]}}

    def status_of_plain_read(member, kind):
        return ask(member, "GET", key_path(BUCKET, "first", kind))[0]

    world.part(SIDE)
    for kind, (here, there) in first.items():
        update(world[ONE], kind, "first", here)
        update(world[OTHER], kind, "first", there)
    world.heal(SIDE)
    for kind, wanted in both.items():
        for member in world.all():
            # A node that has not heard of the key yet answers that it is absent.
            status = status_of_plain_read(member, kind)
            equal(status in (200, 404), True, f"the status {status} of a plain read of {kind}")
        wait_for_value(world, kind, "first", wanted)
        for member in world.all():
            equal(status_of_plain_read(member, kind), 200, f"a plain read of {kind} at node {member.number}")


def verify_counter_converge(world):
    """The counters of Riak 1.4 count on both sides."""
    bucket = "counted"
    ask(world[ONE], "PUT", f"/buckets/{bucket}/props", b'{"props":{"allow_mult":true}}')
    path = f"/buckets/{bucket}/counters/c"

    def count(number, amount, query=""):
        status, _, body = ask(world[number], "POST", path + query, str(amount).encode())
        equal((status, body), (204, b""), "the status of a count")

    def count_over_pb(number, amount):
        with Pb(world[number]) as pb:
            equal(pb.ask(50, [(1, bucket), (2, "c"), (3, zigzag(amount))]), (51, []), "the answer of a count")

    def counted(number):
        return int(ask(world[number], "GET", path)[2])

    for member in world.all():
        wait_for("the property", lambda: b'"allow_mult":true' in ask(member, "GET", f"/buckets/{bucket}/props")[2], TIMEOUT_SECONDS)
    count(1, 10, "?w=3")
    count(3, 5, "?w=3")
    equal([counted(number) for number in (1, 2, 3, 4)], [15] * 4, "before")
    world.part(SIDE)
    count(1, 10)
    count_over_pb(2, -2)
    count(3, 7)
    count_over_pb(4, 3)
    equal([counted(number) for number in (1, 2, 3, 4)], [23, 23, 25, 25], "what the sides see")
    world.heal(SIDE)
    for number in (1, 2, 3, 4):
        wait_for(f"the sum at node {number}", lambda: counted(number) == 33, TIMEOUT_SECONDS)


def test_hll(world):
    """The precision has bounds and can only become lower, additions of the same member count once,
    and both sides of a parted network count together."""
    create_types(world)
    one, other = world[ONE], world[OTHER]
    props = json.loads(ask(one, "GET", f"/types/hll/buckets/{BUCKET}/props")[2])["props"]
    equal(props["hll_precision"], 14, "the default")

    def set_precision(precision):
        body = json.dumps({"props": {"hll_precision": precision}}).encode()
        return ask(one, "PUT", "/types/hll/buckets/precise/props", body)[0]

    equal([set_precision(precision) for precision in (1, 17, 15)], [400] * 3, "what is refused")
    path = "/types/hll/buckets/precise/datatypes/k"
    headers = {"Content-Type": "application/json"}

    def add(names):
        equal(ask(one, "POST", path, json.dumps({"add_all": names}).encode(), headers)[0], 204, "the status of additions")

    def counted(member):
        return json.loads(ask(member, "GET", path)[2])["value"]

    add([f"member {number}" for number in range(500)])
    equal(abs(counted(one) - 500) < 25, True, "the count with the precision 14")
    equal([set_precision(precision) for precision in (7, 8)], [204, 400], "a lower precision, and a higher one")
    add(["member 0"])
    for member in world.all():
        equal(abs(counted(member) - 500) < 150, True, "the count with the precision 7")
    world.part(SIDE)
    update(one, "hll", "parted", {"add_all": ["a", "b", "c"]})
    update(one, "hll", "parted", {"add_all": ["a", "b"]})
    update_over_pb(other, "hll", "parted", message((4, message((1, "c"), (1, "d")))))
    equal((value(one, "hll", "parted"), value(other, "hll", "parted")), (3, 2), "what the sides see")
    world.heal(SIDE)
    wait_for_value(world, "hll", "parted", 4)
