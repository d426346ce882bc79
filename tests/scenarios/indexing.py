"""Scenarios of Riak's search on nodes of their own: clusters that change, whose nodes join, leave, die
and lose files, and nodes with other settings."""
import json
import random
import shutil
import time
import urllib.parse

from forming import commit
from mapreduce import job, mapping, results
from moving import Watch, wait_until_changed, wait_until_ended
from properties import set_props
from searches import (
    GET_INDEX, JSON, SECONDS_MAX, SETTINGS, create_index, docs, index_status, indexed_bucket, is_complete, is_partial,
    keys, put_index, query_path, refused, search, store, until_found, wait_until_settled,
)
from securing import MAP_REDUCE, SecuredWorld, SecurePb, denied, request
from world import Pb, World, ask, clock, equal, form, key_path, wait_for

DOCUMENTS = 150
# Indexes follow their stores within half a second, apart from machines that are loaded.
GRACE_SECONDS = 10
# The characters that mean something in a query.
SPECIAL = '+-&|!(){}[]^"~*?:\\/ '


def load(member, bucket, numbers=range(DOCUMENTS)):
    for number in numbers:
        store(member, bucket, f"k{number}", {"n_i": number, "name_s": f"n{number % 7}"})


def finds(index, wanted):
    """What a watch asks: the number of documents never changes, and nothing is missing."""
    def ask_once(member):
        answer = search(member, index, rows=0)
        equal((answer["response"]["numFound"], is_partial(answer)), (wanted, False), "what a query finds and whether it is partial")
    return ask_once


def phrase(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def escaped(text):
    return "".join(f"\\{character}" if character in SPECIAL else character for character in text)


def yokozuna_essential():
    """A cluster is loaded and grows while clients search. Each object has one document, whose id
    has its type, bucket, key and partition. Keys may have any character, tags are fields, and
    siblings and deletes change what is found."""
    with World(4, SETTINGS) as world:
        world.outside = {4}
        form([world[number] for number in (1, 2, 3)])
        world.wait_all_up()
        indexed_bucket(world, "fruit")
        load(world[1], "fruit")
        until_found(world, "fruit", "*:*", DOCUMENTS)
        with Watch([world[1], world[2], world[3]], finds("fruit", DOCUMENTS)):
            world[4].admin("cluster", "join", world[1].peer)
            commit(world[1])
            wait_until_changed(world, 1, [1, 2, 3, 4])
        world.outside = set()
        until_found(world, "fruit", "*:*", DOCUMENTS)
        ids_are_unique(world)
        wait_until_owned(world)
        keys_have_special_characters(world)
        tags_are_fields(world)
        siblings_come_and_go(world)
        for number in range(10):
            equal(ask(world[4], "DELETE", key_path("fruit", f"k{number}") + "?rw=3")[0], 204, "a delete")
        until_found(world, "fruit", "n_i:*", DOCUMENTS - 10)


def ids_are_unique(world):
    for member in world.all():
        found = docs(member, "fruit")
        equal(sorted(doc["_yz_rk"] for doc in found), sorted(f"k{number}" for number in range(DOCUMENTS)), "the keys")
        for doc in found:
            parts = doc["_yz_id"].split("*")
            equal(parts[:4], ["1", "default", "fruit", doc["_yz_rk"]], f"the id {doc['_yz_id']}")


def wait_until_owned(world):
    """Entries of partitions that a node no longer has are removed: all nodes together have as many
    documents as there are replicas."""
    def documents():
        return sum(index_status(member, "fruit")["documents"] for member in world.all())
    wait_for("the end of entries that are not owned", lambda: documents() == 3 * DOCUMENTS, SECONDS_MAX)


def keys_have_special_characters(world):
    names = [f"a{character}b" for character in SPECIAL] + ["_+-!*%/ä(b)", "AND", "1*2%3"]
    for name in names:
        store(world[2], "fruit", name, {"special_s": name})
    until_found(world, "fruit", "special_s:*", len(names))
    for name in names:
        equal(keys(world[3], "fruit", f"_yz_rk:{phrase(name)}"), [name], f"the key {name!r} as a phrase")
        equal(keys(world[1], "fruit", f"special_s:{phrase(name)}"), [name], f"the value {name!r} as a phrase")
        if name != "AND":
            equal(keys(world[1], "fruit", f"_yz_rk:{escaped(name)}"), [name], f"the key {name!r} with escapes")
        equal(ask(world[1], "DELETE", key_path("fruit", name) + "?rw=3")[0], 204, f"the delete of {name!r}")
    until_found(world, "fruit", "special_s:*", 0)


def tags_are_fields(world):
    store(world[1], "fruit", "tagged", "a picture", Content_Type="image/png", **{
        "X-Riak-Meta-yz-tags": "X-Riak-Meta-user_s, X-Riak-Meta-time_i", "X-Riak-Meta-user_s": "rzezeski",
        "X-Riak-Meta-time_i": "1234", "X-Riak-Meta-hidden_s": "x"})
    until_found(world, "fruit", "user_s:rzezeski AND time_i:1234", 1)
    until_found(world, "fruit", "hidden_s:x", 0)


def siblings_come_and_go(world):
    indexed_bucket(world, "twins")
    equal(ask(world[1], "PUT", "/buckets/twins/props", b'{"props":{"allow_mult":true}}')[0], 204, "allow_mult")
    for member in world.all():
        wait_for("allow_mult", lambda: b'"allow_mult":true' in ask(member, "GET", "/buckets/twins/props")[2], SECONDS_MAX)
    for name in ("alpha", "beta"):
        store(world[1], "twins", "k", {"name_s": name})
    until_found(world, "twins", "_yz_vtag:*", 2)
    store(world[2], "twins", "k", {"name_s": "one"}, **{"X-Riak-Vclock": clock(world[2], "twins", "k")})
    until_found(world, "twins", "*:*", 1)
    until_found(world, "twins", "_yz_vtag:*", 0)


def copies(members, name):
    """How many documents the members have of an index together."""
    return sum(index_status(member, name)["documents"] for member in members)


def yz_handoff():
    """A quiet bucket has the same number of documents while a node leaves, while another one is
    dead, and afterwards. A node keeps no documents of what it has given to others."""
    with World(5, SETTINGS) as world:
        world.join_all()
        indexed_bucket(world, "quiet")
        load(world[1], "quiet")
        until_found(world, "quiet", "*:*", DOCUMENTS)
        stayers = [world[number] for number in (1, 3, 4, 5)]
        with Watch(stayers, finds("quiet", DOCUMENTS)):
            world[2].admin("cluster", "leave")
            commit(world[1])
            wait_until_changed(world, 1, [1, 3, 4, 5])
            wait_until_ended(world, 2)
        world.outside = {2}
        wait_for("one document for each copy", lambda: copies(stayers, "quiet") == 3 * DOCUMENTS, SECONDS_MAX)
        world.kill(5)
        world.wait_all_up()
        with Watch([world[number] for number in (1, 3, 4)], finds("quiet", DOCUMENTS)) as watch:
            wait_for("queries without the dead node", lambda: watch.asked >= 30, SECONDS_MAX)
            world.start(5)
            world.wait_all_up()
        until_found(world, "quiet", "*:*", DOCUMENTS)


def buckets_join_under_writes():
    """What is written and deleted in a bucket of an index just before other buckets come into the
    index shows on every node."""
    with World(3, SETTINGS) as world:
        world.join_all()
        indexed_bucket(world, "joined")
        load(world[1], "joined", range(100))
        until_found(world, "joined", "*:*", 100)
        for number in range(10):
            load(world[1], "joined", range(100 + 5 * number, 105 + 5 * number))
            for key in range(5 * number, 5 * number + 5):
                equal(ask(world[2], "DELETE", key_path("joined", f"k{key}") + "?rw=3")[0], 204, "a delete")
            equal(set_props(world[3], f"joins{number}", {"search_index": "joined"}), (204, ""), "another bucket of the index")
        wait_until_settled(world, "joined")
        wanted = sorted(f"k{key}" for key in range(50, 150))
        for member in world.all():
            until = time.monotonic() + GRACE_SECONDS
            while (found := keys(member, "joined")) != wanted and time.monotonic() < until:
                pass
            equal((sorted(set(wanted) - set(found)), sorted(set(found) - set(wanted))), ([], []),
                  f"what is missing at node {member.number}, and what is there in vain")


def yz_core_properties_create_unload():
    """Files of an index that are removed or damaged while a node is stopped are made anew from the
    stores, and clients of the other nodes find everything meanwhile."""
    with World(3, SETTINGS) as world:
        world.join_all()
        for bucket in ("lost", "damaged", "emptied"):
            indexed_bucket(world, bucket)
            load(world[1], bucket, range(40))
            until_found(world, bucket, "*:*", 40)
        wait_for("complete indexes", lambda: all(is_complete(index_status(world[3], name)) for name in ("lost", "damaged", "emptied")),
                 SECONDS_MAX)
        world.stop(3)
        builds = sorted((world[3].data / "search").iterdir())
        equal(len(builds), 3, f"the builds {builds}")
        shutil.rmtree(builds[0])
        files = [path for path in builds[1].rglob("*") if path.is_file()]
        equal(len(files) > 3, True, f"the files {files}")
        for path in files:
            damage(path)
        for path in list(builds[2].rglob("*")):
            if path.is_file() and "meta" in path.name:
                path.unlink()
        with Watch([world[1], world[2]], lambda member: [finds(name, 40)(member) for name in ("lost", "damaged", "emptied")]):
            world.start(3)
            world.wait_all_up()
            for name in ("lost", "damaged", "emptied"):
                wait_for(f"the index {name} at node 3", lambda: is_complete(status := index_status(world[3], name))
                         and status["documents"] == 40, SECONDS_MAX)
        for name in ("lost", "damaged", "emptied"):
            until_found(world, name, "*:*", 40)
            equal(keys(world[3], name, "name_s:n3"), [f"k{number}" for number in sorted(range(3, 40, 7), key=str)], f"the keys of {name}")


def indexes_outlive_restarts():
    """A member opens its stores before it knows the records of its cluster. Its indexes are the same
    files after it has started, and go on where they were."""
    with World(3, SETTINGS) as world:
        world.join_all()
        indexed_bucket(world, "kept")
        load(world[1], "kept", range(40))
        until_found(world, "kept", "*:*", 40)
        wait_for("a complete index", lambda: is_complete(index_status(world[3], "kept")), SECONDS_MAX)
        [build] = (world[3].data / "search").iterdir()
        made_at = (build / "index.json").stat().st_ino, build.stat().st_ino
        world.stop(3)
        load(world[1], "kept", range(40, 50))
        world.start(3)
        world.wait_all_up()
        until_found(world, "kept", "*:*", 50)
        equal(((build / "index.json").stat().st_ino, build.stat().st_ino), made_at, "the files of the index")


def damage(path):
    """Changes bytes in the middle of a file."""
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle:middle + 8] = random.Random(7).randbytes(len(content[middle:middle + 8]))
    path.write_bytes(content)


def mapred_search_switch():
    """The inputs of a job come from the search of the node, whichever of Riak's two searches they
    name. A node whose search is off, or whose queries or jobs are switched off, refuses such jobs and
    says why, and a bucket that is no index is an error."""
    off = {"search": "off"}
    no_queries = {"search": "on", "cluster.job.yokozuna.query": "disabled"}
    no_jobs = {"search": "on", "cluster.job.riak_kv.map_reduce": "disabled"}
    inputs = [{"module": module, "function": "mapred_search", "arg": ["yz_index", "text:common"]} for module in ("yokozuna", "riak_search")]
    inputs.append({"bucket": "yz_index", "query": "text:common"})
    with World(0) as world:
        for number, settings in enumerate([{"search": "on"}, no_queries, no_jobs, off], 1):
            world.add(number, **settings)
            load_common(world[number], settings["search"] == "on")
        wait_for("the documents", lambda: search(world[1], "yz_index", "text:common")["response"]["numFound"] == 3, SECONDS_MAX)
        for form_of in inputs:
            equal(sorted(results(world[1], form_of, [])), [["rs", f"k{key}", {}] for key in range(3)], f"the keys of {form_of}")
            equal(sorted(results(world[1], form_of, [mapping()])), [f"common unique{key}" for key in range(3)], f"the values of {form_of}")
            for number, status, text in [(2, 403, "Operation '{yokozuna,query}' is not enabled"),
                                         (3, 403, "Operation '{riak_kv,map_reduce}' is not enabled"),
                                         (4, 404, "Error sending inputs: this node has no search; ")]:
                is_refused(world[number], form_of, status, text)
        is_refused(world[1], {"bucket": "rs", "query": "text:common"}, 404, 'Error sending inputs: No index <<"rs">> found.')
        equal(refused(world[2], "yz_index", "text:common")[0], 403, "a query where queries are switched off")
        equal(len(results(world[2], "rs", [mapping()])), 3, "another job where queries are switched off")
        equal(refused(world[3], "yz_index", "text:common")[0], 200, "a query where jobs are switched off")


def load_common(member, has_search):
    """Three objects with a common word, in an index if the node has search."""
    if has_search:
        equal(put_index(member, "yz_index"), (204, ""), "the index")
        equal(set_props(member, "rs", {"search_index": "yz_index"}), (204, ""), "the index of the bucket")
    for key in range(3):
        store(member, "rs", f"k{key}", f"common unique{key}", query="", Content_Type="text/plain")


def is_refused(member, inputs, status, text):
    """A job is refused over both interfaces."""
    found, _, body = job(member, inputs, [])
    said = body.decode()
    said = json.loads(said)["error"] if said.startswith("{") else said
    equal((found, said.startswith(text)), (status, True), f"the answer to {inputs} at node {member.number}: {said}")
    with Pb(member) as pb:
        said = pb.error(MAP_REDUCE, [(1, json.dumps({"inputs": inputs, "query": []})), (2, "application/json")])
    equal(said.startswith(text), True, f"{inputs} over Protocol Buffers at node {member.number}: {said}")


def yz_security():
    """Search needs `search.query` on the index, and indexes and schemas need `search.admin`, over
    both interfaces."""
    secured = SecuredWorld(2)
    secured.settings["search"] = "on"
    with secured as world:
        world.join_all()
        indexed_bucket(world, "people")
        create_index(world, "other")
        store(world[1], "people", "k", {"name_s": "ryan"}, query="?w=2")
        until_found(world, "people", "name_s:ryan", 1)
        world.user("alice", password="secret")
        world.security("enable")
        user, path = "alice:secret", query_path("people", "name_s:ryan")
        wait_for("security", lambda: request(world, 1, "GET", path)[0] == 401, SECONDS_MAX)
        with SecurePb(world) as pb:
            pb.login("alice", "secret")
            queries_need_a_grant(world, pb, user, path)
            jobs_need_two_grants(world, user)
            administration_needs_a_grant(world, pb, user)


def queries_need_a_grant(world, pb, user, path):
    query = (27, [(1, "name_s:ryan"), (2, "people")])
    equal(request(world, 1, "GET", path, user)[0], 403, "a query without a grant")
    equal(pb.outcome(*query), denied("search.query", "index/people"), "a query without a grant")
    for place, reaches_other in [(["index", "people"], False), (["index"], True), (["any"], True)]:
        world.security("grant", "search.query", "on", *place, "to", "alice")
        equal(request(world, 1, "GET", path, user)[0], 200, f"a query with a grant on {place}")
        equal(pb.outcome(*query), "ok", f"a query with a grant on {place}")
        form_of = urllib.parse.urlencode({"q": "*:*"}).encode()
        equal(request(world, 1, "POST", "/search/query/people", user, form_of,
                      {"Content-Type": "application/x-www-form-urlencoded"})[0], 200, "a form")
        equal(request(world, 1, "GET", query_path("other", "*:*"), user)[0], 200 if reaches_other else 403,
              f"a query of another index with a grant on {place}")
        world.security("revoke", "search.query", "on", *place, "from", "alice")
        equal(pb.outcome(*query), denied("search.query", "index/people"), f"a query after the grant on {place} was revoked")


def jobs_need_two_grants(world, user):
    """A job over a search needs `search.query` on the index, and `riak_kv.mapreduce` on the buckets
    of what it finds, also if it reads no objects."""
    inputs = {"module": "yokozuna", "function": "mapred_search", "arg": ["people", "name_s:ryan"]}
    jobs = [json.dumps({"inputs": inputs, "query": query}) for query in ([], [mapping()])]
    first, second = ("search.query", "index", "people"), ("riak_kv.mapreduce", "default", "people")

    def over_pb(body):
        # A connection of its own, because only the first answer is read.
        with SecurePb(world) as pb:
            pb.login("alice", "secret")
            return pb.outcome(MAP_REDUCE, [(1, body), (2, "application/json")])

    def outcomes():
        return [outcome for body in jobs for outcome in (request(world, 1, "POST", "/mapred", user, body, JSON), over_pb(body))]

    def all_refused(permission, place):
        text = denied(permission, place)
        equal(outcomes(), [(403, text.encode()), text] * 2, f"jobs without {permission}")
    all_refused("search.query", "index/people")
    world.security("grant", second[0], "on", *second[1:], "to", "alice")
    all_refused("search.query", "index/people")
    world.security("grant", first[0], "on", *first[1:], "to", "alice")
    equal([outcome if isinstance(outcome, str) else outcome[0] for outcome in outcomes()], [200, "ok"] * 2, "jobs with both grants")
    world.security("revoke", second[0], "on", *second[1:], "from", "alice")
    all_refused("riak_kv.mapreduce", "default/people")
    world.security("revoke", first[0], "on", *first[1:], "from", "alice")
    all_refused("search.query", "index/people")


def administration_needs_a_grant(world, pb, user):
    def statuses():
        return [request(world, 1, "GET", "/search/index/people", user)[0],
                request(world, 1, "PUT", "/search/index/made", user, b"{}", JSON)[0],
                request(world, 1, "GET", "/search/schema/_yz_default", user)[0]]
    equal(statuses(), [403, 403, 403], "without a grant")
    equal(pb.outcome(GET_INDEX, [(1, "people")]), denied("search.admin", "index"), "an index without a grant")
    world.security("grant", "search.admin", "on", "index", "to", "alice")
    equal(statuses(), [200, 204, 403], "with a grant on indexes")
    equal(pb.outcome(GET_INDEX, [(1, "people")]), "ok", "an index with a grant")
    world.security("grant", "search.admin", "on", "schema", "to", "alice")
    equal(statuses(), [200, 204, 200], "with a grant on schemas")
    equal(request(world, 1, "GET", query_path("people", "*:*"), user)[0], 403, "a query with grants of administration")
