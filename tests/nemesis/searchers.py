"""The clients of a cluster with search. A writer puts, overwrites and deletes documents of its own,
and an asker sends queries. Each does so through nodes at random.

The buckets keep one version of a key, the one that was written last. So a writer overwrites also a
version whose clock it does not know, because no answer came. A delete covers what its clock covers
only: another version that a stand-in keeps may come back when the tombstone is reaped. So a writer
deletes a document only if all its writes were acknowledged."""
import json
import time
from urllib.parse import urlencode

import clients
from clients import SINGLE, answered
from history import DOCUMENT
from riak_http import NoAnswer, Requests, text_of
from search_checker import COPIES, COPIES_SAFE, Answer, Query

INDEX = "words"
# The buckets of the index. Documents of the second one never change.
DOCUMENTS, STILL = "documents", "still"
STILL_DOCUMENTS = 100
DOCUMENTS_OF_WRITER = 40
# The most that a query may ask for, and more than there are documents.
ROWS = 10_000
WORDS = ("one", "two", "three", "four", "five", "six", "seven")
# Of the clients of a round, every other one is an asker.
PAUSE_SECONDS = 0.03
BAD_REQUEST = 400
EVERYWHERE = {"w": COPIES, "pw": COPIES, "dw": 1}
BY_A_QUORUM = {"w": COPIES_SAFE, "node_confirms": COPIES_SAFE, "dw": 1}


def word_of(number):
    return WORDS[number % len(WORDS)]


def value_of(name, number):
    return json.dumps({"key_s": name, "n_i": number, "about_tsd": f"the {word_of(number)} of {name}"})


def number_in(found):
    """The number of a document, as a get of it shows it; None if it is not there."""
    return None if found is None else json.loads(found.values[0])["n_i"]


EVERYTHING = Query("*:*", lambda _name, _number: True)


def word_query(word):
    return Query(f"about_tsd:{word}", lambda _name, number: word_of(number) == word)


def range_query(first, last):
    return Query(f"n_i:[{first} TO {last}]", lambda _name, number: first <= number <= last)


def key_query(key):
    return Query(f'key_s:"{key}"', lambda name, _number: name == key)


def some_query(chance, names):
    """A query of a kind at random."""
    first = chance.randrange(20)
    return chance.choice((EVERYTHING, word_query(chance.choice(WORDS)), range_query(first, first + 10), key_query(chance.choice(names))))


def ask(node, bucket, query, in_fault=False):
    """Sends a query to a node. Raises NoAnswer if it is not answered."""
    parameters = {"wt": "json", "q": query.text, "fq": f"_yz_rb:{bucket}", "fl": "_yz_rk,n_i", "rows": ROWS}
    began = time.monotonic()
    status, _, body = node.ask("GET", f"/search/query/{INDEX}?{urlencode(parameters)}")
    ended = time.monotonic()
    if status == BAD_REQUEST:
        raise AssertionError(f"{query.text} is refused: {text_of(body)}")
    if status != 200:
        raise NoAnswer(f"{status} {text_of(body)}")
    try:
        answer = json.loads(body)
    except ValueError as error:
        raise NoAnswer(f"an answer that is not JSON: {body[-200:]!r}") from error
    found = [(document["_yz_rk"], document["n_i"]) for document in answer["response"]["docs"]]
    return Answer(query, bucket, began, ended, found, answer["response"]["numFound"],
                  bool(answer["responseHeader"].get("partialResults")), in_fault, f"at {node.address}")


class Searching(clients.Everybody):
    """What the clients of a round share. `is_in_fault` says whether a fault lasts, and `answers`
    takes what the queries of all rounds find."""

    def __init__(self, run, number):
        super().__init__(number, run.world.addresses, run.history, run.counts)
        self.is_in_fault, self.answers = run.is_in_fault, run.answers


class Searcher(clients.Client):
    def requests(self, bucket):
        """A node at random. Both buckets are of the default type."""
        address = self.chance.choice(self.everybody.addresses())
        if address not in self.connections:
            self.connections[address] = Requests(address, SINGLE)
        return self.connections[address]


class Writer(Searcher):
    def __init__(self, number, seed, everybody):
        super().__init__(number, seed, everybody)
        # The documents that it writes at the moment, and the clocks of their last writes.
        self.slots, self.clocks = {}, {}

    def step(self):
        key = self.some_document()
        is_there = bool(key.writes) and key.writes[-1].value is not None
        if is_there and key.name in self.clocks and is_acknowledged(key) and self.chance.random() < 0.25:
            self.delete(key)
        else:
            self.put(key)
        self.everybody.stopped.wait(PAUSE_SECONDS)

    def some_document(self):
        """Another document takes the place of one that cannot be deleted any more, after a
        while."""
        slot = self.chance.randrange(DOCUMENTS_OF_WRITER)
        key = self.slots.get(slot)
        if key is None or not is_acknowledged(key) and self.chance.random() < 0.3:
            key = self.slots[slot] = self.history.key(DOCUMENTS, f"{self.everybody.number}-{self.number}-{self.made}", DOCUMENT)
            self.made += 1
        return key

    def chosen_quorums(self):
        """Most writes have to be everywhere, so that the checker has much to find."""
        return self.chance.choice(((EVERYWHERE, COPIES), (EVERYWHERE, COPIES), (BY_A_QUORUM, COPIES_SAFE)))

    def put(self, key):
        quorums, nodes = self.chosen_quorums()
        node, number, clock = self.requests(DOCUMENTS), len(key.writes), self.clocks.get(key.name)
        value = value_of(key.name, number)
        write = self.history.begin(key, number, nodes, time.monotonic())
        found = self.carry_out("overwritten document" if number else "new document", write, lambda: node.put(
            DOCUMENTS, key.name, value, clock, content_type="application/json", **quorums))
        if found:
            self.clocks[key.name] = found

    def delete(self, key):
        quorums, nodes = self.chosen_quorums()
        node, clock = self.requests(DOCUMENTS), self.clocks.pop(key.name)
        write = self.history.begin(key, None, nodes, time.monotonic())
        self.carry_out("deleted document", write, lambda: node.delete(DOCUMENTS, key.name, clock, **quorums) or "")


def is_acknowledged(key):
    return all(write.acknowledged for write in key.writes)


class Asker(Searcher):
    def step(self):
        bucket = self.chance.choice((DOCUMENTS, DOCUMENTS, STILL))
        names = [name for place, name in list(self.history.keys) if place == bucket]
        query = some_query(self.chance, names) if names else EVERYTHING
        try:
            answer = ask(self.requests(bucket), bucket, query, self.everybody.is_in_fault())
        except NoAnswer as error:
            self.counts.add(f"query answered with {str(error).partition(' ')[0]}")
            return
        self.everybody.answers.append(answer)
        self.everybody.stopped.wait(PAUSE_SECONDS)


def searcher(number, seed, everybody):
    """A writer or an asker, by the number of the client."""
    return (Asker if number % 2 else Writer)(number, seed, everybody)


def create_index(world):
    """Creates the index, and names it in the properties of both buckets."""
    node = Requests(world.first().http, SINGLE)
    world.first().admin("search", "index", "create", INDEX)
    for bucket in (DOCUMENTS, STILL):
        props = json.dumps({"props": {"search_index": INDEX}})
        answered(lambda: set_props(node, bucket, props))
    node.close()


def set_props(node, bucket, props):
    status, _, body = node.ask("PUT", f"/buckets/{bucket}/props", props, {"Content-Type": "application/json"})
    if status != 204:
        raise NoAnswer(f"{status} {text_of(body)}")


def fill_still_bucket(address, history):
    """Writes the documents that never change, each to all its primaries."""
    node = Requests(address, SINGLE)
    for number in range(STILL_DOCUMENTS):
        key = history.key(STILL, f"s{number}", DOCUMENT)
        write = history.begin(key, number, COPIES, time.monotonic())
        answered(lambda: node.put(STILL, key.name, value_of(key.name, number), content_type="application/json", **EVERYWHERE))
        history.end(write, True, "", time.monotonic())
    node.close()
