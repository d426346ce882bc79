"""What the scenarios of search ask nodes: queries, indexes and schemas over HTTP and Protocol
Buffers, and how an index stands."""
import json
import time
import urllib.parse

from properties import create_type, everywhere, set_props
from world import Pb, ask, decode, equal, message, put, wait_for

SETTINGS = {"storage_backend": "bitcask", "search": "on"}
SECONDS_MAX = 60
JSON = {"Content-Type": "application/json"}
XML = {"Content-Type": "application/xml"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
DEFAULT_SCHEMA = "_yz_default"
QUERY, FOUND = 27, 28
GET_INDEX, INDEXES, PUT_INDEX, DELETE_INDEX, GET_SCHEMA, SCHEMA, PUT_SCHEMA = 54, 55, 56, 57, 58, 59, 60


def quoted(name):
    return urllib.parse.quote(name, safe="")


def query_path(index, q, **parameters):
    """Names of parameters have `__` in place of a dot. A list gives its parameter several
    times."""
    named = {name.replace("__", "."): value for name, value in parameters.items()}
    return f"/search/query/{quoted(index)}?" + urllib.parse.urlencode({"wt": "json", "q": q, **named}, doseq=True)


def search(member, index, q="*:*", **parameters):
    """The answer to a query. It has to be a success."""
    path = query_path(index, q, **parameters)
    status, _, body = ask(member, "GET", path)
    equal(status, 200, f"the status of {path} at node {member.number}: {body[:300]}")
    return json.loads(body)


def refused(member, index, q, **parameters):
    """The status and the text of a query that is not carried out."""
    status, _, body = ask(member, "GET", query_path(index, q, **parameters))
    return status, body.decode()


def is_partial(answer):
    return bool(answer.get("responseHeader", {}).get("partialResults"))


def docs(member, index, q="*:*", **parameters):
    return search(member, index, q, **{"rows": 1000, **parameters})["response"]["docs"]


def keys(member, index, q="*:*", **parameters):
    """The keys that a query finds. They are in order unless the query has a `sort`."""
    found = [doc["_yz_rk"] for doc in docs(member, index, q, **parameters)]
    return found if "sort" in parameters else sorted(found)


def wait_until_settled(world, index):
    """Waits until every index has what its node had stored when this began. Before that, two queries
    that ask different replicas may differ."""
    began = time.monotonic()

    def is_settled(member):
        passed_ms = (time.monotonic() - began) * 1000
        lags = [partition["lag_ms"] for partition in index_status(member, index)["partitions"]]
        return bool(lags) and all(lag is not None and lag < passed_ms for lag in lags)
    for number in members(world):
        wait_for(f"the index {index} at node {number}", lambda: is_settled(world[number]), SECONDS_MAX)


def members(world):
    """The numbers of the nodes that run and have joined."""
    return sorted(set(world.processes) - world.outside)


def until_found(world, index, q, wanted):
    """Waits until every node that runs finds so many documents."""
    wait_until_settled(world, index)
    for number in members(world):
        seen = []

        def holds(member=world[number]):
            status, text = refused(member, index, q, rows=0)
            answer = json.loads(text) if status == 200 else {}
            seen[:] = [status, text[:300]]
            return answer and not is_partial(answer) and answer["response"]["numFound"] == wanted
        try:
            wait_for(f"{wanted} documents for {q} at node {number}", holds, SECONDS_MAX)
        except Exception as error:
            raise AssertionError(f"{error}; the last answer: {seen}") from error


def put_index(member, index, body=None):
    """The status and the text of an answer."""
    given = JSON if body is not None else {}
    status, _, text = ask(member, "PUT", f"/search/index/{quoted(index)}", json.dumps(body).encode() if body is not None else None, given)
    return status, text.decode()


def create_index(world, index, **body):
    equal(put_index(world[1], index, body or None), (204, ""), f"the creation of {index}")
    for number in members(world):
        wait_for(f"the index {index} at node {number}",
                 lambda: ask(world[number], "GET", f"/search/index/{quoted(index)}")[0] == 200, SECONDS_MAX)


def create_indexed_type(world, name, index=None, **props):
    """A bucket type whose buckets are in an index, which has its name unless it has another one."""
    index = index or name
    create_index(world, index)
    create_type(world, name, {"search_index": index, **props})
    everywhere(world, f"the type {name}", lambda member: ask(member, "GET", f"/types/{name}/props")[0] == 200)


def indexed_bucket(world, bucket, index=None):
    """A bucket that is in an index of its own name unless it has another one."""
    create_index(world, index or bucket)
    equal(set_props(world[1], bucket, {"search_index": index or bucket}), (204, ""), f"the index of {bucket}")


def store(member, bucket, key, value, kind=None, query="?w=3", **headers):
    """Stores a value as JSON, unless it is a text."""
    if not isinstance(value, str):
        value, headers = json.dumps(value), {"Content-Type": "application/json", **headers}
    equal(put(member, bucket, key, value, kind, query, **headers), (204, ""), f"the put of {key}")


def put_schema(member, name, xml, headers=None):
    xml = xml.encode() if isinstance(xml, str) else xml
    status, _, text = ask(member, "PUT", f"/search/schema/{quoted(name)}", xml, headers or XML)
    return status, text.decode()


def get_schema(member, name):
    status, _, text = ask(member, "GET", f"/search/schema/{quoted(name)}")
    return status, text.decode()


def default_schema(member):
    status, text = get_schema(member, DEFAULT_SCHEMA)
    equal(status, 200, "the status of the default schema")
    return text


def index_status(member, index):
    return json.loads(member.admin("search", "index", "status", index, "--json"))


def is_complete(status):
    """Whether a node has everything of its partitions, in one build."""
    partitions = status["partitions"]
    return bool(partitions) and status["next_build"] is None and not any(
        partition["lag_ms"] is None or partition["is_being_read"] for partition in partitions)


def pb_search(member, index, q, *fields):
    """What a query finds over Protocol Buffers: how many documents, the best score, and the pairs
    of each document. `fields` are further fields of the request."""
    with Pb(member) as pb:
        code, found = pb.ask(QUERY, [(1, q), (2, index), *fields])
    equal(code, FOUND, f"the code of the answer to {q}: {found}")
    documents = []
    for tag, document in found:
        if tag == 1:
            pairs = [dict(decode(pair)) for pair_tag, pair in decode(document) if pair_tag == 1]
            documents.append([(pair[1].decode(), pair.get(2, b"").decode()) for pair in pairs])
    return dict(found).get(3), dict(found).get(2), documents


def pb_put_index(pb, name, schema=None, n_val=None):
    """The code of the answer, or the text of the error."""
    index = message((1, name), *([(2, schema)] if schema else []), *([(3, n_val)] if n_val is not None else []))
    return outcome(pb, PUT_INDEX, [(1, index)])


def outcome(pb, code, fields):
    answer, found = pb.ask(code, fields)
    return answer if answer else dict(found)[1].decode()
