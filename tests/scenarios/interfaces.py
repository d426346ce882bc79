"""Scenarios of requests over both interfaces, on a cluster of five nodes."""
import json

import datatypes
from properties import everywhere, props, set_props
from world import Pb, ask, clock, equal, key_path, message, put, values, wait_for

N = 3


def owners(world, bucket, key):
    """The numbers of the nodes of a key's preference list, in order."""
    numbers = {member.name: member.number for member in world.all()}
    with Pb(world[1]) as pb:
        return [numbers[name] for name, _ in pb.preference_list(bucket, key)]


def key_that_lives_on(world, bucket, prefix, wanted):
    """A key of which one of the primaries is this node and node 1 is another."""
    for number in range(1000):
        found = owners(world, bucket, f"{prefix}{number}")
        if wanted in found and 1 in found and len(set(found)) == N:
            return f"{prefix}{number}"
    raise AssertionError(f"no key lives on nodes 1 and {wanted}")


def pr_pw(world):
    """A primary is down: `pr`, `pw` are not satisfied, in Riak's words over both interfaces, and
    quorums without primaries are."""
    key = key_that_lives_on(world, "pr", "k", 5)
    equal(put(world[1], "pr", key, "v", query="?w=3"), (204, ""), "a put")
    equal(ask(world[1], "GET", key_path("pr", key) + "?pr=4")[0], 400, "pr above n_val")
    world.kill(5)
    wait_for("the node is missed", lambda: world[5].name not in world.ups(1), 60)
    answer = ask(world[1], "GET", key_path("pr", key) + "?pr=3")
    equal((answer[0], answer[2].decode()), (503, "PR-value unsatisfied: 2/3\n"), "pr")
    equal(put(world[1], "pr", key, "w", query="?pw=3"), (503, "PW-value unsatisfied: 2/3\n"), "pw")
    with Pb(world[1]) as pb:
        equal(pb.error(9, [(1, "pr"), (2, key), (4, 3)]), "{pr_val_unsatisfied,3,2}", "pr")
        fields = [(1, "pr"), (2, key), (4, message((1, "w"))), (8, 3)]
        equal(pb.error(11, fields), "{pw_val_unsatisfied,3,2}", "pw")
    equal(values(world[1], "pr", key, query="?pr=2"), ["v"], "a quorum of primaries")
    equal(values(world[1], "pr", key, query="?r=3"), ["v"], "a quorum with a stand-in")
    world.start(5)
    world.wait_all_up()
    equal(values(world[1], "pr", key, query="?pr=3"), ["v"], "all primaries")


def of_data_type(kind, body, *operation):
    headers = {"Content-Type": "application/json"}
    fields = [(1, datatypes.BUCKET), (3, kind)]
    return datatypes.place(kind, ""), ("POST", body, headers), fields, (82, (5, message(*operation)), 14), (80, 12)


# What `node_confirms` is an option of. For HTTP: the path without the key; method, body and headers
# of a write. For Protocol Buffers: the fields of each request besides the key; the code of a write,
# its own field and the tag of the option; the code of a read and the tag of the option.
CONFIRMED = {
    "an object": ("/buckets/nc/keys/", ("PUT", b"v", {}), [(1, "nc")], (11, (4, message((1, "v"))), 17), (9, 14)),
    "a counter of Riak 1.4": ("/buckets/counted/counters/", ("POST", b"1", {}), [(1, "counted")],
                              (50, (3, datatypes.zigzag(1)), 8), (52, 7)),
    "a counter": of_data_type("counter", b"1", (1, message((1, datatypes.zigzag(1))))),
    "a set": of_data_type("set", b'{"add": "a"}', (2, message((1, "a")))),
    "a map": of_data_type("map", b'{"update": {"f_flag": "enable"}}', (3, message((2, message((1, message((1, "f"), (2, 4))), (5, 1)))))),
}


def confirmed(member, what, key, confirms):
    """Writes and reads a key that so many nodes have to confirm. Returns the outcomes of the write
    and the read over HTTP, and of those over Protocol Buffers."""
    path, (method, body, headers), fields, (write, content, write_tag), (read, read_tag) = CONFIRMED[what]
    path += f"{key}?node_confirms={confirms}"

    def outcome_over_http(method, *rest):
        status, _, said = ask(member, method, path, *rest)
        return (status, said.decode()) if status >= 300 else status

    def outcome_over_pb(code, *more):
        with Pb(member) as pb:
            answer, found = pb.ask(code, [*fields, (2, key), *more])
        return dict(found)[1].decode() if answer == 0 else answer

    return (outcome_over_http(method, body, headers), outcome_over_http("GET"),
            outcome_over_pb(write, content, (write_tag, confirms)), outcome_over_pb(read, (read_tag, confirms)))


def verify_put_opt_node_confirms(world):
    """`node_confirms` as an option of a request counts nodes, over both interfaces, for objects,
    counters and data types."""
    datatypes.create_types(world)
    equal(set_props(world[1], "counted", {"allow_mult": True}), (204, ""), "a property")
    everywhere(world, "the property", lambda member: props(member, "counted")["allow_mult"])
    done = {what: (204, 200, write + 1, read + 1) for what, (*_, (write, *_), (read, _)) in CONFIRMED.items()}
    equal({what: confirmed(world[1], what, "k", 3) for what in CONFIRMED}, done, "three nodes")
    for number in (3, 4, 5):
        world.kill(number)
    up = {world[1].name, world[2].name}
    wait_for("the nodes are missed", lambda: world.ups(1) == up and world.ups(2) == up, 60)
    equal({what: confirmed(world[1], what, "k2", 2) for what in CONFIRMED}, done, "two nodes")
    few = "{insufficient_nodes,2,need,3}"
    for what in CONFIRMED:
        written, read, written_over_pb, read_over_pb = confirmed(world[1], what, "k2", 3)
        # The second node may not have answered yet when the failure is certain.
        equal(written in {(503, f"node_confirms-value unsatisfied: {got}/3\n") for got in (1, 2)}, True,
              f"a write of {what} that more nodes than are up have to confirm: {written}")
        equal(written_over_pb in {f"{{node_confirms_val_unsatisfied,3,{got}}}" for got in (1, 2)}, True,
              f"a write of {what} that more nodes than are up have to confirm: {written_over_pb}")
        equal((read, read_over_pb), ((500, f"Error:\n{few}\n"), few), f"a read of {what} that more nodes have to confirm")
    for number in (3, 4, 5):
        world.start(number)
    world.wait_all_up()


def verify_api_timeouts(world):
    """A timeout that is none is refused, and one that suffices is not noticed."""
    for method in ("GET", "PUT", "DELETE"):
        answer = ask(world[1], method, key_path("to", "k") + "?timeout=asdasdasd", b"v" if method == "PUT" else None)
        equal((answer[0], answer[2].decode()), (400, 'Bad timeout value "asdasdasd"\n'), f"{method} with a bad timeout")
    equal(put(world[1], "to", "k", "v", query="?timeout=60000&w=3"), (204, ""), "a put with a long timeout")
    equal(values(world[2], "to", "k", query="?timeout=60000"), ["v"], "a get with a long timeout")
    answer = ask(world[3], "GET", "/buckets/to/keys?keys=true&timeout=60000")
    equal((answer[0], json.loads(answer[2])["keys"]), (200, ["k"]), "a listing with a long timeout")


def verify_asis_put(world):
    """An object that is put `asis` keeps its clock, over both interfaces and on another node."""
    equal(put(world[1], "asis", "k", "v", query="?w=3"), (204, ""), "a put")
    seen = clock(world[2], "asis", "k")
    equal(put(world[2], "asis", "http", "v", query="?asis=true&w=3", X_Riak_Vclock=seen), (204, ""), "asis over HTTP")
    equal(clock(world[3], "asis", "http"), seen, "the clock on another node")
    with Pb(world[3]) as pb, Pb(world[4]) as other:
        own = dict(pb.ask(9, [(1, "asis"), (2, "k")])[1])[2]
        fields = [(1, "asis"), (2, "pb"), (3, own), (4, message((1, "v"))), (5, 3), (13, 1)]
        equal(pb.ask(11, fields)[0], 12, "asis over Protocol Buffers")
        equal(dict(other.ask(9, [(1, "asis"), (2, "pb")])[1])[2], own, "the clock on another node")


def verify_conditionalput_api(world):
    """Conditions that do not hold have Riak's statuses and texts."""
    equal(put(world[1], "cond", "k", "1"), (204, ""), "a put")
    old = clock(world[2], "cond", "k")
    equal(put(world[2], "cond", "k", "x", If_None_Match="*")[0], 412, "a key that exists")
    equal(put(world[3], "cond", "new", "1", If_None_Match="*")[0], 204, "a key that is new")
    equal(put(world[3], "cond", "k", "2", X_Riak_Vclock=old)[0], 204, "an update")
    status = put(world[1], "cond", "k", "x", X_Riak_Vclock=old, X_Riak_If_Not_Modified=old)[0]
    equal(status, 409, "a stale clock")
    current = clock(world[1], "cond", "k")
    status = put(world[4], "cond", "k", "3", X_Riak_Vclock=current, X_Riak_If_Not_Modified=current)[0]
    equal(status, 204, "the current clock")
    status = put(world[4], "cond", "missing", "3", X_Riak_If_Not_Modified=current)[0]
    equal(status, 409, "a clock for a key that is absent")
    with Pb(world[5]) as pb:
        own = dict(pb.ask(9, [(1, "cond"), (2, "k")])[1])[2]
        content = (4, message((1, "x")))
        equal(pb.error(11, [(1, "cond"), (2, "k"), content, (10, 1)]), "match_found", "a key that exists")
        equal(pb.ask(11, [(1, "cond"), (2, "k"), (3, own), (4, message((1, "4")))])[0], 12, "an update")
        equal(pb.error(11, [(1, "cond"), (2, "k"), (3, own), content, (9, 1)]), "modified", "a stale clock")
        equal(pb.error(11, [(1, "cond"), (2, "nothing"), (3, own), content, (9, 1)]), "notfound", "an absent key")
    equal(values(world[2], "cond", "k"), ["4"], "the value in the end")


def verify_2i_returnterms(world):
    """Ranges give pairs of term and key when they are asked to, through every node; exact queries
    and queries of keys and buckets give keys."""
    for number in range(12):
        equal(put(world[number % 5 + 1], "2i", f"k{number:02}", "v", query="?w=3",
                  **{"X-Riak-Index-f_int": str(number)})[0], 204, "a put")
    for member in world.all():
        def query(path):
            return json.loads(ask(member, "GET", f"/buckets/2i/index/{path}")[2])
        pairs = [{str(number): f"k{number:02}"} for number in range(3, 8)]
        equal(query("f_int/3/7?return_terms=true"), {"results": pairs}, "a range with terms")
        keys = [f"k{number:02}" for number in range(3, 8)]
        equal(query("f_int/3/7"), {"keys": keys}, "a range")
        equal(query("f_int/5?return_terms=true"), {"keys": ["k05"]}, "one term")
        equal(query("$key/k03/k07?return_terms=true"), {"keys": keys}, "keys")
        equal(len(query("$bucket/2i?return_terms=true")["keys"]), 12, "the bucket")


def verify_listkeys(world):
    """Listings over both interfaces are what was written, with each node killed in turn, and an
    undefined type is an error."""
    written = sorted(f"k{number:03}" for number in range(100))
    for number, key in enumerate(written):
        equal(put(world[number % 5 + 1], "list", key, "v", query="?w=3")[0], 204, "a put")

    def listed(member):
        over_http = sorted(json.loads(ask(member, "GET", "/buckets/list/keys?keys=true")[2])["keys"])
        with Pb(member) as pb:
            return over_http, pb.list_keys("list")

    def has_bucket(member):
        return "list" in json.loads(ask(member, "GET", "/buckets?buckets=true")[2])["buckets"]

    for down in (None, 2, 4):
        if down:
            world.kill(down)
            world.wait_all_up()
        for number in sorted(world.processes):
            equal(listed(world[number]), (written, written), f"a listing through node {number} without node {down}")
            equal(has_bucket(world[number]), True, "the listing of buckets")
        if down:
            world.start(down)
            world.wait_all_up()
    with Pb(world[1]) as pb:
        said = pb.error(17, [(1, "list"), (3, "undefined")])
        equal(said.startswith("No bucket-type named 'undefined'"), True, f"the error of an undefined type: {said}")


def post_generate_key(world):
    """A put without a key gets one. The answer names it in the style of the path of the request,
    and a read of that path finds the value."""
    for number, (path, place) in enumerate([("/riak/generated", "/riak/generated/"),
                                            ("/buckets/generated/keys", "/buckets/generated/keys/"),
                                            ("/types/default/buckets/generated/keys", "/types/default/buckets/generated/keys/")]):
        status, headers, body = ask(world[number + 1], "POST", path, b"v%d" % number)
        location = headers.get("location", "")
        equal((status, body, location.startswith(place)), (201, b"", True), f"the answer to POST {path}: {location}")
        status, _, body = ask(world[5], "GET", location + "?r=3")
        equal((status, body), (200, b"v%d" % number), f"a read of {location}")
