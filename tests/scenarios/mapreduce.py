"""Scenarios of MapReduce, on a cluster of three nodes."""
import json

import erlang_terms
from erlang_terms import Atom, Function
from world import Pb, ask, equal, put, wait_for

SETTINGS = {"javascript.anonymous_functions": "on"}
MODULE = "riak_kv_mapreduce"
COUNT = 200
JSON, ERLANG = "application/json", "application/x-erlang-binary"


def function(name, **rest):
    return {"language": "erlang", "module": MODULE, "function": name, **rest}


def mapping(name="map_object_value", **rest):
    return {"map": function(name, **rest)}


def reducing(name, **rest):
    return {"reduce": function(name, **rest)}


def script(kind, **rest):
    return {kind: {"language": "javascript", **rest}}


def job(member, inputs, query, chunked=False, **rest):
    """Runs a job over HTTP. Returns the status, the headers and the body."""
    body = json.dumps({"inputs": inputs, "query": query, **rest}).encode()
    return ask(member, "POST", "/mapred" + ("?chunked=true" if chunked else ""), body, {"Content-Type": JSON})


def results(member, inputs, query, **rest):
    status, _, body = job(member, inputs, query, **rest)
    equal(status, 200, f"the status of a job: {body[:300]!r}")
    return json.loads(body)


def over_pb(member, inputs, query):
    """Runs a job over Protocol Buffers. Returns the results by their phases."""
    return by_phase(member, [(1, json.dumps({"inputs": inputs, "query": query})), (2, JSON)], json.loads)


def by_phase(member, request, read):
    """The results of a request over Protocol Buffers. `read` reads those of one answer."""
    found = {}
    with Pb(member) as pb:
        code, fields = pb.ask(23, request)
        while True:
            equal(code, 24, f"the code of results: {fields}")
            fields = dict(fields)
            if 3 in fields:
                equal(fields, {3: 1}, "the end of results")
                return found
            values = read(fields[2])
            equal(isinstance(values, list), True, f"{values!r} is a list")
            found.setdefault(fields[1], []).extend(values)
            code, fields = pb.receive()


def fill(member, bucket, kind=None, count=COUNT):
    for number in range(count):
        equal(put(member, bucket, f"k{number}", str(number), kind, query="?w=3"), (204, ""), "a put")


def create_type(world, name):
    world[1].admin("bucket-type", "create", name, json.dumps({"props": {"n_val": 3}}))
    world[1].admin("bucket-type", "activate", name)
    for member in world.all():
        wait_for(f"the type on node {member.number}", lambda: ask(member, "GET", f"/types/{name}/props")[0] == 200, 30)


def mapred_basic_compat(world):
    """Phases, `keep`, key data, what is not found, links, key filters and typed buckets."""
    first, second = world[1], world[2]
    fill(first, "basic")
    create_type(world, "mr")
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
    check_missing_seen(second)
    check_keys_of_phases(first, second)


def check_missing_seen(member):
    """Functions in Erlang are called for keys without an object, too."""
    for missing in (["basic", "missing"], ["typed", "missing", None, "mr"]):
        equal(results(member, [missing], [mapping(arg="include_notfound")]), {"error": "notfound"}, f"what {missing} gives")
        equal(results(member, [missing], [mapping("map_identity")]), {"error": "notfound"}, f"what a function sees of {missing}")
        query = [mapping(arg={"sub": ["0"]}), reducing("reduce_string_to_integer")]
        equal(results(member, [missing], query), [0], f"what stands for {missing}")


def check_keys_of_phases(first, second):
    """What a map phase gives is read by the next one, and functions get the key data of what is
    found."""
    places = [["basic", "k7"], ["basic", "k8", "data"], ["typed", "k3", None, "mr"]]
    for number, place in enumerate(places):
        equal(put(first, "places", f"p{number}", json.dumps(place), query="?w=3", Content_Type=JSON), (204, ""), "a put")
    give = script("map", name="Riak.mapValuesJson")
    equal(sorted(results(second, "places", [give]), key=str), places, "keys of a phase")
    equal(sorted(results(second, "places", [give, mapping()])), ["3", "7", "8"], "their values")
    show = script("map", source="function(object, keyData) { return [[object.bucket_type, object.key, keyData]]; }")
    shown = [["default", "k7", "undefined"], ["default", "k8", "data"], ["mr", "k3", None]]
    equal(sorted(results(second, "places", [give, show])), shown, "the key data of keys of a phase")
    inputs = [["basic", "k7", {"a": [1, "b"]}], ["typed", "k3", "data", "mr"]]
    equal(sorted(results(second, inputs, [show])), [["default", "k7", {"a": [1, "b"]}], ["mr", "k3", "data"]], "key data")


def erlang_phase(kind, name, arg=Atom("none"), keep=True):
    """A phase as Riak's client for Erlang sends it."""
    return (Atom(kind), (Atom("modfun"), Atom(MODULE), Atom(name)), arg, keep)


def erlang_request(inputs, query, timeout=60_000):
    members = [(Atom("inputs"), inputs), (Atom("query"), query), (Atom("timeout"), timeout)]
    return [(1, erlang_terms.encode(members)), (2, ERLANG)]


def in_terms(member, inputs, query):
    """Runs a job in Erlang's encoding. Returns the results by their phases, in the order of their
    texts."""
    found = by_phase(member, erlang_request(inputs, query), erlang_terms.decode)
    return {phase: sorted(values, key=repr) for phase, values in found.items()}


def mapred_erlang_terms(world):
    """Jobs in Erlang's external term format, as Riak's client for Erlang sends them, are answered
    in it."""
    first, second = world[1], world[2]
    fill(first, "terms", count=20)
    create_type(world, "terms")
    fill(first, "terms", "terms", 30)
    check_terms_as_inputs(second)
    check_terms_as_results(first, second)
    check_errors_of_terms(second)


def check_terms_as_inputs(member):
    value, count = erlang_phase("map", "map_object_value"), erlang_phase("reduce", "reduce_count_inputs")
    keys = [((b"terms", b"k8"), b"data"), (((b"terms", b"terms"), b"k29"), Atom("undefined")), (b"terms", b"k7")]
    equal(in_terms(member, keys, [value]), {0: [b"29", b"7", b"8"]}, "the values of keys")
    equal(in_terms(member, keys, []), {0: sorted(keys, key=repr)}, "a job without phases")
    data = (Atom("a"), b"\xff", [1, 2], [1, -256], 1 << 40, -(1 << 70), [], ())
    query = [erlang_phase("map", "map_object_value", b"include_keydata")]
    equal(in_terms(member, [((b"terms", b"missing"), data)], query), {0: [data]}, "key data")
    for inputs, wanted in ((b"terms", 20), ((b"terms", b"terms"), 30), ((b"terms", [[b"ends_with", b"9"]]), 2), ([], 0)):
        found = in_terms(member, inputs, [count, count])
        equal(found, {0: [wanted], 1: [wanted]}, f"the number of the keys {inputs}")


def check_terms_as_results(first, second):
    value, sums = erlang_phase("map", "map_object_value"), erlang_phase("reduce", "reduce_sum")
    integers = erlang_phase("reduce", "reduce_string_to_integer", keep=False)
    wanted = sorted((b"%d" % number for number in range(20)), key=repr)
    equal(in_terms(second, b"terms", [value, integers, sums]), {0: wanted, 2: [190]}, "two phases are kept")
    equal(in_terms(second, (b"terms", b"terms"), [(*value[:3], False), integers, sums]), {2: [435]}, "a phase is kept")
    for key, number in (("large", 1 << 70), ("negative", -1 << 40)):
        equal(put(first, "numbers", key, str(number), query="?w=3"), (204, ""), "a put")
    equal(in_terms(second, b"numbers", [value, integers, sums])[2], [(1 << 70) - (1 << 40)], "the sum of large numbers")
    missing = [(b"terms", b"missing")]
    not_found = [(Atom("error"), Atom("notfound"))]
    equal(in_terms(second, missing, [erlang_phase("map", "map_object_value", b"include_notfound")]), {0: not_found}, "no object")
    equal(in_terms(second, missing, [erlang_phase("map", "map_identity")]), {0: not_found}, "what a function sees of no object")
    keys = [(((b"terms", b"terms"), b"k29"), b"data"), ((b"terms", b"k8"), b"data")]
    identity = [[b"terms", b"k29", b"data", b"terms"], [b"terms", b"k8"]]
    equal(in_terms(second, keys, [erlang_phase("reduce", "reduce_identity"), value]), {0: identity, 1: [b"29", b"8"]}, "keys of a phase")
    retype = (Atom("map"), (Atom("jsanon"), b"function(o) { return [[o.bucket, o.key, null, 'terms']]; }"), Atom("none"), True)
    found = in_terms(second, [(b"terms", b"k8")], [retype, value])
    equal(found, {0: [[b"terms", b"k8", Atom("null"), b"terms"]], 1: [b"8"]}, "keys of a function in JavaScript")
    links = {"Link": '</buckets/terms/keys/k1>; riaktag="t", </buckets/terms/keys/k2>; riaktag="u"'}
    equal(put(first, "linked", "k", "v", query="?w=3", **links), (204, ""), "an object with links")
    found = in_terms(second, b"linked", [(Atom("link"), Atom("_"), b"t", True), value])
    equal(found, {0: [[b"terms", b"k1", b"t"]], 1: [b"1"]}, "a link phase")


def check_errors_of_terms(member):
    """Failures are JSON, as they are for jobs in JSON."""
    value = erlang_phase("map", "map_object_value")
    with Pb(member) as pb:
        def error(function, inputs=b"terms"):
            return pb.error(23, erlang_request(inputs, [(Atom("map"), function, Atom("none"), True)]))

        failure = json.loads(error(value[1], [(b"doesnot", b"exist")]))
        equal((failure["phase"], failure["error"]), (0, "function_clause"), "the failure of a function")
        equal(failure["input"], '{{error,notfound},{<<"doesnot">>,<<"exist">>},undefined}', "the input that failed")
        said = error((Atom("modfun"), Atom("zork"), Atom("map")))
        start = "Phase 0: invalid module named in PhaseSpec function:\n must be a valid module name (failed to load zork: nofile)"
        equal(said.startswith(start), True, f"the error of an unknown module: {said}")
        # No function in Erlang can run, whether the request has it, names it or has its source.
        said = error((Atom("qfun"), Function("riak_kv_mapreduce", "map_object_value", 3)))
        equal(said.startswith('{not_supported,"Erlang functions (qfun) cannot run here'), True, f"the error of a qfun: {said}")
        said = error((Atom("strfun"), b"fun(Object, _, _) -> [Object] end."))
        equal(said.startswith("Phase 0: Erlang source (strfun) cannot run here"), True, f"the error of a strfun: {said}")
        (_, request), _ = erlang_request(b"terms", [value])
        equal(pb.error(23, [(1, request), (2, "text/plain")]), '{unknown_content_type,<<"text/plain">>}', "an unknown encoding")
        equal(ask(member, "POST", "/mapred", request, {"Content-Type": ERLANG})[0], 415, "the status of terms over HTTP")
        (_, request), _ = erlang_request(Atom("foo"), [value])
        must_be = ("Inputs must be a binary bucket, a tuple of bucket and key-filters, a list of target tuples, or a search, "
                   "index, or modfun tuple:")
        equal(pb.error(23, [(1, request), (2, ERLANG)]), f'{{inputs,{{"{must_be}",\n         foo}}}}', "the error of inputs")
        (_, request), _ = erlang_request(b"terms", Atom("undefined"))
        said = pb.error(23, [(1, request), (2, ERLANG)])
        equal(said, '{query,{"Query takes a list of step tuples",undefined}}', "the error of phases")
        said = pb.error(23, [(1, json.dumps({"inputs": "terms", "query": []})), (2, ERLANG)])
        equal(said.startswith("{invalid_term,"), True, f"the error of what is no term: {said}")
    equal(in_terms(member, b"terms", [erlang_phase("reduce", "reduce_count_inputs")]), {0: [20]}, "a job after jobs that failed")
    endless = (Atom("map"), (Atom("jsanon"), b"function() { for (;;); }"), Atom("none"), True)
    with Pb(member) as pb:
        said = {pb.error(23, erlang_request([(b"terms", b"k7")], [endless], 200)) for _ in range(5)}
    equal(said, {"timeout"}, "jobs that take longer than they may")


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
    equal((status, headers["content-type"]), (500, JSON), "the status of a failure")
    error = json.loads(body)
    equal((error["phase"], error["error"]), (0, "function_clause"), "a failure")
    equal(error["input"], '{{error,notfound},{<<"doesnot">>,<<"exist">>},undefined}', "the input that failed")
    status, headers, body = job(world[2], inputs, [mapping()], chunked=True)
    equal((status, headers["content-type"].split(";")[0]), (200, "multipart/mixed"), "the status of a stream")
    equal(json.loads(body.split(b"\r\n\r\n")[1].split(b"\r\n--")[0]), error, "the failure in a stream")
    with Pb(world[2]) as pb:
        text = pb.error(23, [(1, json.dumps({"inputs": inputs, "query": [mapping()]})), (2, JSON)])
    equal(json.loads(text), error, "the failure over Protocol Buffers")


def mapred_lenient_json(world):
    """Jobs that are no strict JSON, as clients and people send them: a backslash before a letter,
    real ends of lines in a function, and a comma behind the last element."""
    put(world[1], "lenient", "k", "To be, or not to be", query="?w=3", Content_Type="text/plain")
    lines = (b'{"inputs":[["lenient","k"]],"query":[{"map":{"language":"javascript",'
             b'"source":"function(v) {\n return [1];\n}"}}]}')
    words = (b'{"inputs":"lenient","query":[{"map":{"language":"javascript","source":"function(v) {'
             b'return v.values[0].data.toLowerCase().match(/\\w+/g);}"}},],}')
    for request, expected in ((lines, [1]), (words, ["to", "be", "or", "not", "to", "be"])):
        status, _, body = ask(world[2], "POST", "/mapred", request, {"Content-Type": JSON})
        equal((status, body), (200, json.dumps(expected, separators=(",", ":")).encode()), "a job over HTTP")
        found = by_phase(world[3], [(1, request), (2, JSON)], json.loads)
        equal(found, {0: expected}, "a job over Protocol Buffers")
    status, _, body = ask(world[2], "POST", "/mapred", lines + b"x", {"Content-Type": JSON})
    equal((status, body[:32]), (400, b"The POST body was not valid JSON"), "text behind a job")
    digits = "123456789012345678901234567890"
    inputs = f'[["lenient","k",{digits}]]'
    request = f'{{"inputs":{inputs},"query":[]}}'.encode()
    status, _, body = ask(world[2], "POST", "/mapred", request, {"Content-Type": JSON})
    equal((status, body), (200, inputs.encode()), "key data of more than 64 bits")


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
