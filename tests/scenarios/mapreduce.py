"""Scenarios of MapReduce, on a cluster of three nodes."""
import json

from world import Pb, ask, equal, put, wait_for

MODULE = "riak_kv_mapreduce"
COUNT = 200


def function(name, **rest):
    return {"language": "erlang", "module": MODULE, "function": name, **rest}


def mapping(name="map_object_value", **rest):
    return {"map": function(name, **rest)}


def reducing(name, **rest):
    return {"reduce": function(name, **rest)}


def job(member, inputs, query, chunked=False, **rest):
    """Runs a job over HTTP. Returns the status, the headers and the body."""
    body = json.dumps({"inputs": inputs, "query": query, **rest}).encode()
    return ask(member, "POST", "/mapred" + ("?chunked=true" if chunked else ""), body, {"Content-Type": "application/json"})


def results(member, inputs, query, **rest):
    status, _, body = job(member, inputs, query, **rest)
    equal(status, 200, f"the status of a job: {body[:300]!r}")
    return json.loads(body)


def over_pb(member, inputs, query):
    """Runs a job over Protocol Buffers. Returns the results by their phases."""
    request = json.dumps({"inputs": inputs, "query": query}).encode()
    found = {}
    with Pb(member) as pb:
        code, fields = pb.ask(23, [(1, request), (2, "application/json")])
        while True:
            equal(code, 24, "the code of results")
            fields = dict(fields)
            if fields.get(3):
                return found
            found.setdefault(fields.get(1, 0), []).extend(json.loads(fields[2]))
            code, fields = pb.receive()


def fill(member, bucket, kind=None, count=COUNT):
    for number in range(count):
        equal(put(member, bucket, f"k{number}", str(number), kind, query="?w=3"), (204, ""), "a put")


def mapred_basic_compat(world):
    """Phases, `keep`, key data, what is not found, links, key filters and typed buckets."""
    first, second = world[1], world[2]
    fill(first, "basic")
    first.admin("bucket-type", "create", "mr", json.dumps({"props": {"n_val": 3}}))
    first.admin("bucket-type", "activate", "mr")
    wait_for("the type on node 2", lambda: ask(second, "GET", "/types/mr/props")[0] == 200, 30)
    fill(first, "typed", "mr", 20)
    keys = sorted(["basic", f"k{number}"] for number in range(COUNT))
    equal(sorted(results(second, "basic", [])), keys, "a job without phases")
    equal(results(second, "none", [reducing("reduce_count_inputs")]), [0], "a reduce phase without inputs")
    value, count = mapping(), reducing("reduce_count_inputs")
    inputs = [["basic", "k7"], ["basic", "k8"]]
    keep = lambda phase, keep: {kind: {**spec, "keep": keep} for kind, spec in phase.items()}  # noqa: E731
    equal(results(second, inputs, [keep(value, True), keep(count, True)]), [["7", "8"], [2]], "both phases are kept")
    equal(results(second, inputs, [keep(value, False), keep(count, False)]), [], "no phase is kept")
    equal(results(second, inputs, [keep(value, True), keep(count, False)]), ["7", "8"], "the first phase is kept")
    equal(results(second, inputs, [value, count]), [2], "the last phase is kept")
    found = over_pb(second, inputs, [keep(value, True), keep(count, True)])
    equal({phase: sorted(values) for phase, values in found.items()}, {0: ["7", "8"], 1: [2]}, "over Protocol Buffers")
    missing = [["basic", "missing", "data"]]
    equal(results(second, missing, [mapping(arg="include_keydata")]), ["data"], "key data")
    equal(results(second, missing, [mapping(arg="filter_notfound")]), [], "what is not found is left out")
    equal(results(second, {"bucket": "basic", "key_filters": [["ends_with", "9"]]}, [count]), [COUNT // 10], "a key filter")
    equal(results(second, ["mr", "typed"], [value, count]), [20], "a typed bucket")
    equal(results(second, [["typed", "k3", "", "mr"]], [value]), ["3"], "a typed key")
    links = {"Link": '</buckets/basic/keys/k1>; riaktag="t", </buckets/basic/keys/missing>; riaktag="u"'}
    equal(put(first, "basic", "links", "v", query="?w=3", **links), (204, ""), "an object with links")
    link = {"link": {"bucket": "_", "tag": "t"}}
    equal(results(second, [["basic", "links"]], [link, value]), ["1"], "a link phase")
    link = {"link": {"bucket": "basic", "tag": "u"}}
    equal(results(second, [["basic", "links"]], [link, mapping(arg="filter_notfound")]), [], "a link to a missing key")
    equal(job(second, {"module": "m", "function": "f", "arg": 1}, [])[0], 500, "inputs of an Erlang function")


def mapred_verify_rt(world):
    """Combinations of phases over a bucket, keys, missing keys and filters."""
    fill(world[1], "verify")
    keys = [["verify", f"k{number}"] for number in range(COUNT)]
    missing = [["verify", f"missing{number}"] for number in range(10)]
    total = sum(range(COUNT))
    integer, count, sums = (reducing(f"reduce_{name}") for name in ("string_to_integer", "count_inputs", "sum"))
    for member in world.all():
        for inputs in ("verify", keys):
            equal(results(member, inputs, [mapping(), integer, sums]), [total], "the sum of all values")
            equal(results(member, inputs, [mapping(), count]), [COUNT], "the number of values")
            equal(results(member, inputs, [count]), [COUNT], "the number of keys")
            found = results(member, inputs, [mapping(), integer, reducing("reduce_sort")])
            equal(found, list(range(COUNT)), "the values in order")
            found = results(member, inputs, [mapping(), reducing("reduce_set_union")])
            equal(len(found), COUNT, "the values as a set")
            equal(results(member, inputs, [reducing("reduce_identity"), mapping(), count]), [COUNT], "values of keys of a phase")
        found = results(member, keys + missing, [mapping(arg="filter_notfound"), count])
        equal(found, [COUNT], "the values of keys of which some are missing")
        tens = {"bucket": "verify", "key_filters": [["tokenize", "k", 1], ["string_to_int"], ["less_than", 10]]}
        equal(results(member, tens, [mapping(), integer, sums]), [45], "the sum of few values")


def mapred_buffer_prereduce(world):
    """Small batches and reducing near the data give the same sums as without."""
    fill(world[1], "prereduce")
    total = sum(range(COUNT))
    phases = [mapping(), reducing("reduce_string_to_integer")]
    for arg in (None, {"reduce_phase_batch_size": 1}, {"reduce_phase_batch_size": 7}, {"reduce_phase_only_1": True}):
        more = {} if arg is None else {"arg": arg}
        equal(results(world[2], "prereduce", [*phases, reducing("reduce_sum", **more)]), [total], f"the sum with {arg}")
        for prereduce in (True, False):
            query = [mapping(arg={"prereduce": prereduce}), reducing("reduce_count_inputs", **more)]
            equal(results(world[2], "prereduce", query), [COUNT], f"the count with {arg}")


def mapred_http_errors(world):
    """A function that fails gives Riak's error, in one piece and in the stream of parts."""
    inputs = [["doesnot", "exist"]]
    status, headers, body = job(world[2], inputs, [mapping()])
    equal((status, headers["content-type"]), (500, "application/json"), "the status of a failure")
    error = json.loads(body)
    equal((error["phase"], error["error"]), (0, "function_clause"), "a failure")
    equal(error["input"], '{{error,notfound},{<<"doesnot">>,<<"exist">>},undefined}', "the input that failed")
    status, headers, body = job(world[2], inputs, [mapping()], chunked=True)
    equal((status, headers["content-type"].split(";")[0]), (200, "multipart/mixed"), "the status of a stream")
    equal(json.loads(body.split(b"\r\n\r\n")[1].split(b"\r\n--")[0]), error, "the failure in a stream")
    with Pb(world[2]) as pb:
        text = pb.error(23, [(1, json.dumps({"inputs": inputs, "query": [mapping()]})), (2, "application/json")])
    equal(json.loads(text), error, "the failure over Protocol Buffers")


def mapred_notfound_failover(world):
    """A replica that is down, and keys that do not exist, do not fail a job."""
    fill(world[1], "failover")
    keys = [["failover", f"k{number}"] for number in range(COUNT)]
    missing = [["failover", f"missing{number}"] for number in range(COUNT)]
    world.kill(3)
    query = [mapping(arg="filter_notfound"), reducing("reduce_count_inputs")]
    for _ in range(5):
        equal(results(world[1], keys + missing, query), [COUNT], "the values while a node is down")
    world.start(3)
    world.wait_all_up()


def verify_mr_prereduce_node_down(world):
    """With a node down, also right after its death, a count is the count."""
    fill(world[1], "down")
    query = [mapping(arg={"prereduce": True}), reducing("reduce_count_inputs")]
    world.kill(2)
    for _ in range(10):
        equal(results(world[1], "down", query), [COUNT], "the count while a node is down")
    world.start(2)
    world.wait_all_up()
    equal(results(world[2], "down", query), [COUNT], "the count after the node has returned")
