"""Scenarios of Riak's search that its clients see, on a cluster of three nodes whose network can be
parted."""
import json
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

from datatypes import place, update
from erlang_terms import Atom
from mapreduce import erlang_phase, in_terms, job, mapping, over_pb, reducing, results
from properties import set_props
from searches import (
    DELETE_INDEX, DEFAULT_SCHEMA, FORM, GET_INDEX, GET_SCHEMA, INDEXES, JSON, PUT_SCHEMA, QUERY, SCHEMA, SECONDS_MAX, create_index,
    create_indexed_type, default_schema, docs, get_schema, indexed_bucket, keys, members, outcome, pb_put_index, pb_search,
    put_index, put_schema, query_path, refused, search, store, until_found,
    wait_until_settled,
)
from world import Pb, ask, clock, decode, equal, key_path, message, put, wait_for

SIDE = (1,)
SHIFT_JIS, HEBREW, ARABIC = "shift_jis", "iso-8859-8", "iso-8859-6"
# More than a job takes of a search at once.
JOB_KEYS = 2_300
CLIENTS = 8


def yz_crdt(world):
    """Data types are found by what they show now, each key once, also after both sides of a parted
    network have updated it."""
    for kind in ("counter", "set", "gset", "hll", "map"):
        create_indexed_type(world, f"yz_{kind}", "types", datatype=kind)
    wait_until_settled(world, "types")
    one, other = world[1], world[2]
    update(one, "yz_counter", "c", 10, "?w=3")
    update(one, "yz_set", "s", {"add_all": ["apple", "pear tree"]}, "?w=3")
    update(one, "yz_gset", "g", {"add": "plum"}, "?w=3")
    update(one, "yz_hll", "h", {"add_all": ["a", "b", "c"]}, "?w=3")
    fields = {"name_register": "Chris", "visits_counter": 3, "on_flag": "enable", "tags_set": {"add": "blue"},
              "in_map": {"update": {"deep_register": "below"}}}
    update(one, "yz_map", "m", {"update": fields}, "?w=3")
    found = {"counter:10": "c", "counter:[9 TO 11]": "c", "set:apple": "s", 'set:"pear tree"': "s", "gset:plum": "g", "hll:3": "h",
             "name_register:Chris": "m", "name_register:Chr*": "m", "visits_counter:3": "m", "on_flag:true": "m",
             "tags_set:blue": "m", "in_map.deep_register:below": "m"}
    for query, key in found.items():
        until_found(world, "types", query, 1)
        equal(keys(other, "types", query), [key], f"the keys of {query}")
    for number in range(5):
        update(one, "yz_map", "m", {"update": {"name_register": f"name {number}"}}, "?w=3")
    until_found(world, "types", 'name_register:"name 4"', 1)
    until_found(world, "types", "name_register:*", 1)
    world.part(SIDE)
    update(one, "yz_counter", "c", 5)
    update(other, "yz_counter", "c", 2)
    update(one, "yz_set", "s", {"add": "cherry"})
    update(other, "yz_set", "s", {"add": "quince"})
    world.heal(SIDE)
    until_found(world, "types", "counter:17", 1)
    until_found(world, "types", "set:cherry AND set:quince", 1)
    equal(docs(one, "types", "_yz_vtag:*"), [], "documents of siblings")
    for kind, key in [("yz_map", "m"), ("yz_set", "s"), ("yz_counter", "c")]:
        equal(ask(one, "DELETE", key_path("b", key, kind) + "?rw=3")[0], 204, f"the delete of {place(kind, key)}")
    until_found(world, "types", "*:*", 2)


def yz_errors(world):
    """What cannot be read is stored and found by its error. A query that cannot be read is
    answered with 400."""
    indexed_bucket(world, "errors")
    for key, value, kind in [("json", "{", "application/json"), ("xml", "<a><b></a>", "application/xml"),
                             ("field", '{"age_i": "many"}', "application/json"), ("good", '{"age_i": 7}', "application/json")]:
        store(world[1], "errors", key, value, Content_Type=kind)
        equal(ask(world[2], "GET", key_path("errors", key))[2].decode(), value, f"the value of {key}")
    until_found(world, "errors", "_yz_err:1", 3)
    equal(keys(world[3], "errors", "_yz_err:1"), ["field", "json", "xml"], "what could not be read")
    equal(keys(world[3], "errors", "age_i:7"), ["good"], "what could be read")
    for query in ("age_i:(", "*:* AND", "age_i:[1 TO", 'name_s:"open', "word"):
        equal(refused(world[2], "errors", query)[0], 400, f"the status of {query}")
    equal(refused(world[2], "none", "*:*")[0], 404, "the status of an index that does not exist")
    store(world[1], "errors", "json", {"age_i": 8})
    until_found(world, "errors", "_yz_err:1", 2)


COUNTED = ("search_index_throughput_count", "search_index_extract_fail_count", "search_query_throughput_count",
           "search_query_fail_count")


def yz_stat_test(world):
    """What a node has indexed and answered, and what failed, is in its statistics under Riak's
    names."""
    indexed_bucket(world, "counted")
    before = {number: stats_of(world[number]) for number in members(world)}
    for number in range(20):
        store(world[1], "counted", f"k{number}", {"n_i": number})
    store(world[1], "counted", "bad", "{", Content_Type="application/json")
    until_found(world, "counted", "n_i:[0 TO 19]", 20)
    until_found(world, "counted", "_yz_err:1", 1)
    equal(refused(world[2], "counted", "n_i:[")[0], 400, "the status of a query that cannot be read")
    for number, known in before.items():
        # Each node has each object, and was asked twice at least.
        def grown(member=world[number], known=known):
            stats = stats_of(member)
            return [stats[name] - known[name] for name in COUNTED]
        least = [21, 1, 2, 1 if number == 2 else 0]
        wait_for(f"{least} of {COUNTED} at node {number}", lambda: all(seen >= wanted for seen, wanted in zip(grown(), least)), SECONDS_MAX)
        # A key can be told again, and not without end.
        equal(grown()[0] < 3 * 21, True, f"the changes that node {number} has indexed: {grown()}")
        stats = stats_of(world[number])
        for what in ("search_index_latency", "search_query_latency"):
            parts = [stats[f"{what}_{part}"] for part in ("min", "median", "95", "99", "999", "max")]
            equal(parts, sorted(parts), f"the order of the parts of {what}")
            equal(stats[f"{what}_mean"] <= parts[-1], True, f"the mean of {what} is at most its largest part: {stats}")


def stats_of(member):
    status, _, body = ask(member, "GET", "/stats")
    equal(status, 200, "the status of /stats")
    return json.loads(body)


def yz_wm_extract_test(world):
    """`/search/extract` shows the fields of a value, by its content type or by the extractor that a
    header names."""
    person = b'{"name": "ryan", "info": {"city": "Baltimore", "visits": 1}, "ok": true}'
    fields = {"name": "ryan", "info.city": "Baltimore", "info.visits": "1", "ok": True}
    xml = b'<person age="29"><name>ryan</name></person>'
    for headers, value, wanted in [
            (JSON, person, fields),
            ({"Content-Type": "text/plain", "yz-extractor": "yz_json_extractor"}, person, fields),
            ({"Content-Type": "application/xml"}, xml, {"person@age": "29", "person.name": "ryan"}),
            ({"Content-Type": "text/plain"}, b"some words", {"text": "some words"}),
            ({"Content-Type": "application/octet-stream"}, b"\xff", {})]:
        status, _, body = ask(world[1], "PUT", "/search/extract", value, headers)
        equal((status, json.loads(body or b"null")), (200, wanted), f"the fields of {value!r}")
    equal(ask(world[1], "PUT", "/search/extract", b"{", JSON)[0], 400, "a value that cannot be read")


def yz_faceted_search(world):
    """Facets count the values of fields and the documents of queries, all nodes together. Pivots
    are refused."""
    indexed_bucket(world, "users")
    people = [("ryan", 29, "MD"), ("eric", 33, "MD"), ("brett", 34, "OH"), ("bryan", 31, "MA"), ("john", 30, "MA"),
              ("dan", 41, "MD")]
    for name, age, state in people:
        store(world[1], "users", name, {"name_s": name, "age_i": age, "state_s": state})
    until_found(world, "users", "*:*", len(people))
    for member in world.all():
        answer = search(member, "users", rows=0, facet="true", facet__field=["state_s", "age_i"], facet__mincount=1,
                        facet__query=["age_i:[* TO 30]", "age_i:[31 TO *]"])
        counts = answer["facet_counts"]
        equal(counts["facet_fields"]["state_s"], ["MD", 3, "MA", 2, "OH", 1], f"the states at node {member.number}")
        equal(sum(counts["facet_fields"]["age_i"][1::2]), len(people), "the ages")
        equal(counts["facet_queries"], {"age_i:[* TO 30]": 2, "age_i:[31 TO *]": 4}, "the queries")
    filtered = search(world[2], "users", "state_s:M*", rows=0, facet="true", facet__field="state_s", facet__mincount=1)
    equal(filtered["facet_counts"]["facet_fields"]["state_s"], ["MD", 3, "MA", 2], "the states of some")
    ranges = search(world[3], "users", rows=0, facet="true", facet__range="age_i", facet__range__start=20, facet__range__end=50,
                    facet__range__gap=10)
    equal(ranges["facet_counts"]["facet_ranges"]["age_i"]["counts"], ["20", 1, "30", 4, "40", 1], "the ranges")
    status, text = refused(world[1], "users", "*:*", facet="true", facet__pivot="state_s,name_s")
    equal((status, "facet.pivot" in text), (400, True), f"a pivot: {text}")


def yz_index_admin(world):
    """Indexes are created, shown and deleted at any node, and buckets can name those that exist."""
    one, other = world[1], world[2]

    def shown(member, name):
        status, _, body = ask(member, "GET", f"/search/index/{name}")
        return json.loads(body) if status == 200 else status

    def delete(member, name):
        status, _, body = ask(member, "DELETE", f"/search/index/{name}")
        return status, body.decode()

    equal(shown(one, "admin"), 404, "an index that does not exist")
    equal(delete(one, "admin")[0], 404, "the delete of an index that does not exist")
    create_index(world, "admin")
    equal(shown(other, "admin"), {"name": "admin", "n_val": 3, "schema": DEFAULT_SCHEMA}, "an index")
    create_index(world, "admin_two", schema=DEFAULT_SCHEMA, n_val=2)
    equal(shown(other, "admin_two"), {"name": "admin_two", "n_val": 2, "schema": DEFAULT_SCHEMA}, "an index with an n_val")
    equal(put_index(other, "admin"), (204, ""), "the same index again")
    equal(put_index(other, "admin", {"n_val": 5}), (204, ""), "the same index with another n_val")
    equal(shown(one, "admin")["n_val"], 3, "what the second creation changed")
    listed = json.loads(ask(one, "GET", "/search/index")[2])
    equal({"admin", "admin_two"} <= {index["name"] for index in listed}, True, f"the list {listed}")
    for name, body in [("bad", {"n_val": 0}), ("bad", {"n_val": -1}), ("bad", {"n_val": "three"}), ("bad", {"schema": "none"}),
                       ("a/b", None), ("größe", None)]:
        equal(put_index(one, name, body)[0], 400, f"the creation of {name} with {body}")
    equal(shown(one, "bad"), 404, "an index that was refused")
    equal(set_props(one, "bound", {"search_index": "none"})[0], 400, "a bucket with an index that does not exist")
    equal(set_props(one, "bound", {"search_index": "admin_two"})[0], 400, "a bucket with an index of another n_val")
    equal(set_props(one, "bound", {"search_index": "admin"}), (204, ""), "a bucket with an index")
    wait_for("the refusal to delete", lambda: delete(other, "admin")[0] == 409, 30)
    text = delete(other, "admin")[1]
    equal(text.startswith("Can't delete index with associate buckets ["), True, f"the refusal {text}")
    equal(set_props(one, "bound", {"search_index": "_dont_index_"}), (204, ""), "the bucket without the index")
    wait_for("the delete", lambda: delete(other, "admin")[0] == 204, 30)
    for member in world.all():
        wait_for(f"the end of the index at node {member.number}", lambda: shown(member, "admin") == 404, 30)
    equal(refused(one, "admin", "*:*")[0], 404, "a query of an index that was deleted")


def yz_schema_admin(world):
    """A schema comes back as it was sent, on every node. What is no schema of Riak is refused and
    changes nothing."""
    default = default_schema(world[1])
    own = default.replace('<field name="text"', '<field name="own" type="string" indexed="true" stored="true"/>\n    <field name="text"')
    equal(put_schema(world[1], "own", own), (204, ""), "a schema")
    for member in world.all():
        wait_for(f"the schema at node {member.number}", lambda: get_schema(member, "own") == (200, own), 30)
    equal(get_schema(world[2], "none")[0], 404, "a schema that does not exist")
    equal(put_schema(world[2], DEFAULT_SCHEMA, default), (204, ""), "the default schema again")
    equal(put_schema(world[2], "own", own, JSON)[0], 415, "another content type")
    for what, xml in [("truncated", own[:len(own) // 2]),
                      ("without _yz_rk", own.replace('<field name="_yz_rk"', '<field name="_yz_xx"')),
                      ("with another unique key", own.replace("<uniqueKey>_yz_id<", "<uniqueKey>own<")),
                      ("with another version", own.replace('version="1.5"', 'version="zero"')),
                      ("of another encoding", own.encode() + b"<!-- \xff -->"),
                      ("with an unknown type", own.replace('name="own" type="string"', 'name="own" type="none"'))]:
        status, text = put_schema(world[3], "own", xml)
        equal((status, text.startswith("Error storing schema")), (400, True), f"a schema {what}: {text[:200]}")
    equal(put_schema(world[3], "größe", own)[0], 400, "a bad name")
    equal(get_schema(world[3], "own"), (200, own), "the schema after bad ones")
    create_index(world, "of_own", schema="own")


def yz_schema_change_reset(world):
    """An index has the schema with which it was built, until it is rebuilt. Until the new build is
    complete, the one of before answers."""
    before = default_schema(world[1]).replace('"default"', '"changing"', 1)
    added = '<field name="hello" type="string" indexed="true" stored="true"/>\n    <field name="text"'
    equal(put_schema(world[1], "changing", before), (204, ""), "the first schema")
    create_index(world, "reset", schema="changing")
    indexed_bucket(world, "reset")
    for key in range(30):
        store(world[1], "reset", f"k{key}", {"hello": f"w{key % 3}", "other_s": "x"})
    until_found(world, "reset", "other_s:x", 30)
    until_found(world, "reset", "hello:w1", 0)
    equal(put_schema(world[2], "changing", before.replace('<field name="text"', added)), (204, ""), "the second schema")
    until_found(world, "reset", "hello:w1", 0)
    world[2].admin("search", "index", "rebuild", "reset")

    def is_rebuilt(member):
        equal(search(member, "reset", "other_s:x", rows=0)["response"]["numFound"], 30, "while it is rebuilt")
        return search(member, "reset", "hello:w1", rows=0)["response"]["numFound"] == 10
    for member in world.all():
        wait_for(f"the new build at node {member.number}", lambda: is_rebuilt(member), 60)


def yz_languages(world):
    """Texts of other scripts and their tags are found, fields in a language find other forms of a
    word, and reserved words are words between quotation marks. A text in another encoding than
    UTF-8 is stored, and counts as an error."""
    indexed_bucket(world, "languages")
    texts = {"he": {"text_s": "א בְּרֵאשִׁית", "body_t": "בראשית ברא"}, "ar": {"body_ar": "الكتاب على الطاولة"},
             "ja": {"text_ja": "私はハイビスカスが大好き"}, "en": {"body_en": "Houses are running"},
             "de": {"body_de": "Die Häuser"}, "fr": {"body_fr": "l'avion"}, "reserved": {"word_s": "AND", "op_t": "this or that not"}}
    for key, fields in texts.items():
        store(world[1], "languages", key, fields)
    tags = {"X-Riak-Meta-yz-tags": "x-riak-meta-mark_s, x-riak-meta-body_en"}
    store(world[1], "languages", "tagged", "plain", **tags, **{"X-Riak-Meta-mark_s": "blue", "X-Riak-Meta-body_en": "swimming"})
    until_found(world, "languages", "*:*", len(texts) + 1)
    for query, key in {"body_t:בראשית": "he", 'text_s:"א בְּרֵאשִׁית"': "he", "body_ar:كتاب": "ar", "text_ja:大好き": "ja",
                       "body_en:house": "en", "body_en:run": "en", "body_de:haus": "de", "body_fr:avion": "fr",
                       'word_s:"AND"': "reserved", "op_t:that": "reserved", "mark_s:blue": "tagged",
                       "body_en:swim": "tagged", "text_ja:大好き AND _yz_rk:ja": "ja"}.items():
        equal(keys(world[2], "languages", query), [key], f"the keys of {query}")
    for number, (encoding, text) in enumerate([(HEBREW, "שלום"), (ARABIC, "كتاب"), (SHIFT_JIS, "大好き")]):
        status, _, _ = ask(world[1], "PUT", key_path("languages", f"other{number}"), text.encode(encoding), {"Content-Type": "text/plain"})
        equal(status, 204, f"the status of a text in {encoding}")
    until_found(world, "languages", "_yz_err:1", 3)


def yz_pb(world):
    """Indexes, schemas and queries over Protocol Buffers."""
    with Pb(world[1]) as pb:
        admin_over_pb(world, pb)
    equal(set_props(world[1], "by_pb", {"search_index": "by_pb"}), (204, ""), "the index of the bucket")
    for number in range(5):
        store(world[1], "by_pb", f"k{number}", {"name_s": f"n{number}", "age_i": number, "ok_b": True, "tags_ss": ["a", f"t{number}"],
                                                "pi_f": 3.5})
    until_found(world, "by_pb", "*:*", 5)
    found, best, [pairs] = pb_search(world[2], "by_pb", "name_s:n3")
    equal((found, best is not None), (1, True), "how many")
    equal(pairs[0][0], "score", "the first pair")
    for pair in [("name_s", "n3"), ("age_i", "3"), ("ok_b", "true"), ("_yz_rk", "k3"), ("_yz_rb", "by_pb"), ("_yz_rt", "default"),
                 ("pi_f", "3.50000000000000000000e+00")]:
        equal(pair in pairs, True, f"{pair} in {pairs}")
    equal([value for name, value in pairs if name == "tags_ss"], ["a", "t3"], "the values of a field with several")
    ROWS, START, SORT, FILTER, DF, OP, FL = range(3, 10)
    found, _, documents = pb_search(world[3], "by_pb", "*:*", (ROWS, 2), (START, 1), (SORT, "age_i desc"), (FL, "age_i"))
    equal((found, [dict(pairs)["age_i"] for pairs in documents]), (5, ["3", "2"]), "a page of a sorted list")
    found, _, documents = pb_search(world[3], "by_pb", "n1", (DF, "name_s"), (FILTER, "age_i:[0 TO 2]"), (FL, "_yz_rk"))
    equal((found, documents), (1, [[("_yz_rk", "k1")]]), "fl without the score")
    equal(pb_search(world[3], "by_pb", "n1 n2", (DF, "name_s"), (OP, "and"))[0], 0, "both words")
    found, best, documents = pb_search(world[3], "by_pb", "name_s:none")
    equal((found, documents), (0, []), "nothing")
    with Pb(world[2]) as pb:
        for fields, error in [([(1, ""), (2, "by_pb")], "Missing query"), ([(1, "*:*"), (2, "none")], 'No index <<"none">> found.')]:
            equal(outcome(pb, QUERY, fields), error, f"the error of {fields}")
        equal(isinstance(outcome(pb, QUERY, [(1, "name_s:("), (2, "by_pb")]), str), True, "a bad query is an error")


def admin_over_pb(world, pb):
    default = default_schema(world[1])
    equal(outcome(pb, GET_INDEX, [(1, "by_pb")]), "notfound", "an index that does not exist")
    equal(outcome(pb, DELETE_INDEX, [(1, "by_pb")]), "notfound", "the delete of an index that does not exist")
    equal(pb_put_index(pb, "by_pb"), 12, "the creation of an index")
    equal(pb_put_index(pb, "by_pb", DEFAULT_SCHEMA, 3), 12, "the same again")
    code, fields = pb.ask(GET_INDEX, [(1, "by_pb")])
    equal((code, dict(decode(dict(fields)[1]))), (INDEXES, {1: b"by_pb", 2: DEFAULT_SCHEMA.encode(), 3: 3}), "the index")
    equal(pb_put_index(pb, "by_pb_high", n_val=8), 12, "a high n_val")
    equal(pb_put_index(pb, "bad", "none"), "Schema not found", "an index of a schema that does not exist")
    error = pb_put_index(pb, "a/b")
    equal(error.startswith("Invalid character in index name"), True, f"a bad name: {error}")
    error = pb_put_index(pb, "bad", n_val=0)
    equal(isinstance(error, str) and "n_val" in error, True, f"a bad n_val: {error}")
    code, fields = pb.ask(GET_INDEX)
    names = {dict(decode(index))[1] for tag, index in fields if tag == 1}
    equal({b"by_pb", b"by_pb_high"} <= names, True, f"all indexes: {names}")
    equal(outcome(pb, GET_SCHEMA, [(1, "pb_schema")]), "notfound", "a schema that does not exist")
    equal(outcome(pb, PUT_SCHEMA, [(1, message((1, "pb_schema"), (2, default)))]), 12, "a schema")
    code, fields = pb.ask(GET_SCHEMA, [(1, "pb_schema")])
    equal((code, dict(decode(dict(fields)[1]))), (SCHEMA, {1: b"pb_schema", 2: default.encode()}), "the schema")
    error = outcome(pb, PUT_SCHEMA, [(1, message((1, "pb_bad"), (2, default[:500])))])
    equal(error.startswith("Error storing schema"), True, f"half a schema: {error}")
    equal(pb_put_index(pb, "pb_bound", "pb_schema"), 12, "an index of the schema")
    equal(set_props(world[1], "pb_bound", {"search_index": "pb_bound"}), (204, ""), "a bucket with the index")
    error = outcome(pb, DELETE_INDEX, [(1, "pb_bound")])
    equal(error.startswith("Can't delete index with associate buckets ["), True, f"the delete of a bound index: {error}")
    equal(outcome(pb, DELETE_INDEX, [(1, "by_pb_high")]), 14, "the delete of an index")


def yz_search_http(world):
    """GET and POST of a form find the same; another content type is refused. The path of the older
    search leads to the same."""
    indexed_bucket(world, "http")
    for number in range(4):
        store(world[1], "http", f"k{number}", {"name_s": f"n{number}", "age_i": number})
    until_found(world, "http", "*:*", 4)
    for member in world.all():
        form = {"q": "age_i:[1 TO 3]", "wt": "json", "sort": "age_i desc", "rows": 2}
        by_get = search(member, "http", "age_i:[1 TO 3]", sort="age_i desc", rows=2)["response"]
        equal((by_get["numFound"], [doc["_yz_rk"] for doc in by_get["docs"]]), (3, ["k3", "k2"]), "what GET finds")
        for path in ("/search/query/http", "/solr/http/select"):
            status, _, body = ask(member, "POST", path, urllib.parse.urlencode(form).encode(), FORM)
            equal((status, json.loads(body)["response"]), (200, by_get), f"what POST of {path} finds")
        status, _, body = ask(member, "GET", f"/solr/http/select?{urllib.parse.urlencode(form)}")
        equal((status, json.loads(body)["response"]), (200, by_get), "what the older path finds")
        equal(ask(member, "POST", "/search/query/http", b'{"q": "*:*"}', JSON)[0], 415, "a post of JSON")
        equal(ask(member, "GET", "/search/query/http")[0], 200, "no parameters")
        equal(ask(member, "POST", "/search/query/http", b"", FORM)[0], 200, "an empty form")
    cursor, seen = "*", []
    while True:
        page = search(world[2], "http", sort="age_i asc,_yz_id asc", rows=3, cursorMark=cursor)
        seen += [doc["age_i"] for doc in page["response"]["docs"]]
        if page["nextCursorMark"] == cursor:
            break
        cursor = page["nextCursorMark"]
    equal(seen, [0, 1, 2, 3], "the pages of a cursor")
    equal(b"<response>" in ask(world[1], "GET", query_path("http", "*:*", wt="xml"))[2], True, "an answer in XML")


def yz_siblings(world):
    """Each sibling has a document. A put that resolves them leaves one, and a delete none; also if
    both sides of a parted network have written."""
    create_indexed_type(world, "siblings", allow_mult=True)
    one, other = world[1], world[2]
    for color in ("red", "green", "blue"):
        store(one, "b", "k", {"color_s": color}, "siblings")
    until_found(world, "siblings", "_yz_rk:k", 3)
    until_found(world, "siblings", "_yz_vtag:*", 3)
    for color in ("red", "green", "blue"):
        equal(keys(other, "siblings", f"color_s:{color}"), ["k"], f"the sibling {color}")
    ids = [doc["_yz_id"] for doc in docs(other, "siblings")]
    equal((len(set(ids)), all(text.startswith("1*siblings*b*k*") and text.count("*") == 5 for text in ids)), (3, True), f"the ids {ids}")
    store(other, "b", "k", {"color_s": "black"}, "siblings", **{"X-Riak-Vclock": clock(other, "b", "k", "siblings")})
    until_found(world, "siblings", "_yz_vtag:*", 0)
    until_found(world, "siblings", "color_s:black", 1)
    until_found(world, "siblings", "_yz_rk:k", 1)
    seen = clock(other, "b", "k", "siblings")
    world.part(SIDE)
    for member, color in ((one, "here"), (other, "there")):
        equal(put(member, "b", "k", json.dumps({"color_s": color}), "siblings", Content_Type="application/json",
                  **{"X-Riak-Vclock": seen})[0], 204, f"a put of {color}")
    world.heal(SIDE)
    # A read repairs what the sides do not share yet.
    wait_for("both siblings", lambda: ask(one, "GET", key_path("b", "k", "siblings") + "?r=3")[0] == 300, 60)
    until_found(world, "siblings", "_yz_vtag:*", 2)
    equal(ask(one, "DELETE", key_path("b", "k", "siblings"), headers={"X-Riak-Vclock": clock(one, "b", "k", "siblings")})[0], 204,
          "the delete")
    until_found(world, "siblings", "*:*", 0)


def mapred_search(module, *arguments):
    return {"module": module, "function": "mapred_search", "arg": list(arguments)}


def yz_mapreduce(world):
    """A search as the inputs of a job gives each key that it finds once: on every node, over both
    interfaces, in both encodings, while other keys are written, and when a node has died. What
    cannot be searched fails the job."""
    create_indexed_type(world, "mr_index")
    count, value = reducing("reduce_count_inputs"), mapping()
    names = [f"k{number:04}" for number in range(JOB_KEYS)]

    def load(number):
        store(world[1 + number % 3], "b1", names[number], {"name_s": "yokozuna", "num_i": number}, "mr_index")
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(load, range(JOB_KEYS)))
    store(world[1], "b1", "other", {"name_s": "other", "num_i": 1}, "mr_index")
    until_found(world, "mr_index", "name_s:yokozuna", JOB_KEYS)
    every = [["b1", name, {}, "mr_index"] for name in names]
    found = mapred_search("yokozuna", "mr_index", "name_s:yokozuna")
    few = mapred_search("yokozuna", "mr_index", "name_s:yokozuna", "num_i:[10 TO 19]")
    for member in world.all():
        equal(sorted(results(member, found, [])), every, f"the keys at node {member.number}")
        equal(sorted(over_pb(member, found, [])[0]), every, f"the keys over Protocol Buffers at node {member.number}")
        equal(results(member, found, [value, count]), [JOB_KEYS], f"the values at node {member.number}")
        equal(results(member, few, [count]), [10], f"a search with a filter at node {member.number}")
    check_forms_of_searches(world[2])
    check_searches_that_fail(world[3])
    counts_stay_while_others_are_written(world, found, [value, count])
    status, headers, body = job(world[2], found, [], chunked=True)
    equal((status, body.count(b'"mr_index"]')), (200, JOB_KEYS), "a job whose results are streamed")
    world.kill(3)
    for member in (world[1], world[2]):
        # Until the others know that the node is down, a job may fail. It never leaves keys out.
        wait_for(f"a job at node {member.number}", lambda: whole_or_failed(member, found, [value, count]), 60)  # noqa: B023


def whole_or_failed(member, inputs, query):
    status, _, body = job(member, inputs, query, timeout=20_000)
    if status == 200:
        equal(json.loads(body), [JOB_KEYS], "the values that a job counts")
    return status == 200


def counts_stay_while_others_are_written(world, inputs, query):
    """Keys that are there all the time are on one page each, whatever comes between them."""
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(lambda: [store(world[1], "b1", f"k{number}-new", {"name_s": "new"}, "mr_index") for number in range(0, 2000, 10)])
        while not writing.done():
            equal(results(world[2], inputs, query), [JOB_KEYS], "the values while others are written")
        writing.result()


def check_forms_of_searches(member):
    """The names of both searches of Riak, and its older form, are the same search."""
    count, q = [reducing("reduce_count_inputs")], "num_i:[0 TO 4] AND name_s:yokozuna"
    for inputs in (mapred_search("riak_search", "mr_index", q), {"index": "mr_index", "query": q}, {"bucket": "mr_index", "query": q},
                   {"index": "mr_index", "query": "num_i:[0 TO 9]", "filter": "num_i:[* TO 4] AND name_s:yokozuna"}):
        equal(results(member, inputs, count), [5], f"what {inputs} counts")
    key = lambda number: (((b"mr_index", b"b1"), f"k{number:04}".encode()), (Atom("struct"), []))  # noqa: E731
    for inputs in ((Atom("modfun"), Atom("yokozuna"), Atom("mapred_search"), [b"mr_index", b"num_i:[7 TO 8]"]),
                   (Atom("modfun"), Atom("riak_search"), Atom("mapred_search"), [b"mr_index", b"num_i:[7 TO *]", b"num_i:[* TO 8]"]),
                   (Atom("search"), b"mr_index", b"num_i:[7 TO 8]"),
                   (Atom("search"), b"mr_index", b"num_i:[7 TO *]", b"num_i:[* TO 8]")):
        equal(in_terms(member, inputs, []), {0: [key(7), key(8)]}, f"the keys of {inputs}")
        equal(in_terms(member, inputs, [erlang_phase("reduce", "reduce_count_inputs")]), {0: [2]}, f"what {inputs} counts")


def check_searches_that_fail(member):
    """A job whose search is not carried out has the status of the search, streamed or not."""
    for inputs, status, why in [(mapred_search("yokozuna", "none", "*:*"), 404, 'No index <<"none">> found.'),
                                (mapred_search("yokozuna", "mr_index", "name_s:("), 400, ""),
                                (mapred_search("yokozuna", "mr_index", "word"), 400, ""),
                                (mapred_search("yokozuna", "mr_index", "*:*", "num_i:["), 400, ""),
                                (mapred_search("yokozuna", "mr_index"), 400, "of yokozuna and riak_search, only mapred_search")]:
        for chunked in (False, True):
            found, _, body = job(member, inputs, [], chunked=chunked)
            error = json.loads(body)["error"] if found != 200 else body
            equal((found, error.startswith(f"Error sending inputs: {why}")), (status, True), f"the answer to {inputs}: {error}")
        with Pb(member) as pb:
            error = pb.error(23, [(1, json.dumps({"inputs": inputs, "query": []})), (2, "application/json")])
            equal(error.startswith(f"Error sending inputs: {why}"), True, f"{inputs} over Protocol Buffers: {error}")
