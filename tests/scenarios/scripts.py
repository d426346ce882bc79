"""Scenarios of MapReduce with functions in JavaScript."""
import json
import shutil
import tempfile
from pathlib import Path

from mapreduce import job, over_pb, reducing, results, script
from properties import everywhere, props, set_props
from world import World, equal, put

FUNCTIONS = """
function pricesAbove(object, keyData, least) {
    var price = JSON.parse(object.values[0].data).price;
    return price > least ? [price] : [];
}
function endless(object) { for (;;); }
"""
SALES = 100
WORDS = "function(object) { return object.values[0].data.split(' ').map(function(word) { var one = {}; one[word] = 1; return one; }); }"
COUNTS = """function(counts) {
    var all = {};
    counts.forEach(function(some) { for (var word in some) { all[word] = (all[word] || 0) + some[word]; } });
    return [all];
}"""


def refused(member, phase, *words):
    status, _, body = job(member, [["sales", "k1"]], [phase])
    equal((status, [word for word in words if word not in body.decode()]), (500, []), f"a refusal: {body[:400]!r}")


def mapred_javascript():
    """Functions by name, built in and from a file, source in the job, and source that is stored in
    an object, on three nodes. A function that does not exist or fails, fails its job."""
    directory = Path(tempfile.mkdtemp(prefix="ombak-functions-"))
    try:
        (directory / "functions.js").write_text(FUNCTIONS)
        settings = {"javascript.source_dir": directory, "javascript.call_time": "300ms", "javascript.anonymous_functions": "on"}
        with World(3, settings) as world:
            world.join_all()
            check_scripts(world)
        with World(1, {"javascript.source_dir": directory}) as world:
            put(world[1], "sales", "k1", "{}")
            refused(world[1], script("map", source=WORDS), "javascript.anonymous_functions")
    finally:
        shutil.rmtree(directory)


def check_scripts(world):
    for number in range(SALES):
        put(world[1], "sales", f"k{number}", json.dumps({"price": number}), query="?w=3", Content_Type="application/json")
    values, above = script("map", name="Riak.mapValuesJson"), script("map", name="pricesAbove", arg=89)
    for member in world.all():
        found = results(member, "sales", [values])
        equal(sorted(value["price"] for value in found), list(range(SALES)), "all values")
        equal(sorted(results(member, "sales", [above])), list(range(90, SALES)), "a function with an argument")
        equal(results(member, "sales", [above, script("reduce", name="Riak.reduceSum")]), [sum(range(90, SALES))], "a sum")
        equal(results(member, "sales", [above, script("reduce", name="Riak.reduceNumericSort")]), list(range(90, SALES)), "an order")
        equal(results(member, "sales", [values, reducing("reduce_count_inputs")]), [SALES], "both languages in one job")
        missing = [["sales", "missing"], ["sales", "k95"]]
        found = {"not_found": {"bucket": "sales", "key": "missing", "keydata": "undefined"}}
        equal(sorted(results(member, missing, [above]), key=str), [95, found], "a key without an object")
        equal(results(member, missing, [above, script("reduce", name="Riak.filterNotFound")]), [95], "what was found")
    for number, text in enumerate(["to be or", "not to be", "be"]):
        put(world[2], "texts", f"t{number}", text, query="?w=3", Content_Type="text/plain")
    wanted = [{"be": 3, "not": 1, "or": 1, "to": 2}]
    equal(results(world[3], "texts", [script("map", source=WORDS), script("reduce", source=COUNTS)]), wanted, "words")
    put(world[2], "functions", "words", WORDS, query="?w=3", Content_Type="text/plain")
    stored = script("map", bucket="functions", key="words")
    equal(results(world[1], "texts", [stored, script("reduce", source=COUNTS)]), wanted, "words by a function in an object")
    equal(over_pb(world[2], "texts", [stored, script("reduce", source=COUNTS)]), {1: wanted}, "words over Protocol Buffers")
    refused(world[2], script("map", name="nonesuch"), "nonesuch")
    refused(world[2], script("map", source="function(object) { throw new Error('on purpose'); }"), "on purpose")
    refused(world[2], script("map", source="function(object) {"), "SyntaxError")
    status, _, body = job(world[2], [["sales", "k1"]], [script("map", name="endless")])
    equal(status, 500, f"a function without an end: {body!r}")
    # The node that ran it goes on.
    equal(results(world[2], [["sales", "k1"]], [values]), [{"price": 1}], "a value after that")


def register(member, directory, name, source, *options):
    (directory / "function.js").write_text(source)
    equal(member.admin("function", "create", name, str(directory / "function.js"), *options), f"{name} is registered\n", "a registration")


def registered_functions():
    """Functions that an operator registers on one node, on the next request to each node: in jobs
    and as commit hooks, replaced and deleted, after restarts, and on a node that was away. Riak has
    no such scenario."""
    directory = Path(tempfile.mkdtemp(prefix="ombak-functions-"))
    try:
        with World(3) as world:
            world.join_all()
            check_registered(world, directory)
    finally:
        shutil.rmtree(directory)


def check_registered(world, directory):
    for number in range(SALES):
        put(world[1], "sales", f"k{number}", json.dumps({"price": number}), query="?w=3", Content_Type="application/json")
    prices, above = "function(object) { return [JSON.parse(object.values[0].data).price%s]; }", script("map", name="My.prices")
    total = [above, script("reduce", name="Riak.reduceSum")]
    register(world[1], directory, "My.prices", prices % "")
    for member in world.all():
        equal(results(member, "sales", total), [sum(range(SALES))], f"a sum by node {member.number}")
    register(world[2], directory, "My.prices", prices % " + 1", "--replace")
    for member in world.all():
        equal(results(member, "sales", total), [sum(range(SALES)) + SALES], f"a sum with the new function by node {member.number}")

    register(world[1], directory, "noDigits", "function(object) { return /[0-9]/.test(object.values[0].data) ? {fail: 'digits'} : object; }")
    equal(set_props(world[2], "words", {"precommit": [{"name": "noDigits"}]}), (204, ""), "the hook")
    everywhere(world, "the hook", lambda member: props(member, "words")["precommit"] == [{"name": "noDigits"}])
    for member in world.all():
        equal(put(member, "words", "k", "7"), (403, "digits"), f"a refusal by node {member.number}")
        equal(put(member, "words", "k", "seven"), (204, ""), f"a put that node {member.number} allows")

    # What changes while a node is away, it has after its start.
    world.stop(3)
    register(world[1], directory, "My.prices", prices % " + 2", "--replace")
    world.stop(2)
    world.start(3)
    world.start(2)
    world.wait_all_up()
    # A node that starts follows what was decided while it was away a moment later.
    newest = [sum(range(SALES)) + 2 * SALES]
    everywhere(world, "the newest function after restarts", lambda member: results(member, "sales", total) == newest)
    for member in world.all():
        equal(put(member, "words", "k", "7"), (403, "digits"), f"a refusal after restarts by node {member.number}")

    equal(world[3].admin("function", "delete", "My.prices"), "My.prices is deleted\n", "a deletion")
    for member in world.all():
        refused(member, above, "My.prices")
