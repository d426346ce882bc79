#!/usr/bin/env python3
"""Five real nodes with a search index, clients, faults, changes of the members, and a checker that
compares the answers of queries with what was acknowledged.

The faults and changes are those of run.py. Meanwhile writers put, overwrite and delete documents,
and askers query them and a bucket that never changes (`searchers.py`). `search_checker.py` has the
rules. When the faults are over and the cluster is settled, the stores of one node are wiped. When
it is full again and all indexes have everything, every node has to find exactly what the stores
have. An answer that is partial is counted and not checked, apart from strangers and twins. A run in
which no complete answer was checked fails.

Usage: searched.py [--seconds N] [--seed N] [--backend NAME] [--loopback] [--keep], as run.py."""
import json
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

import clients  # noqa: E402
import faults  # noqa: E402
import run  # noqa: E402
import search_checker  # noqa: E402
import searchers  # noqa: E402
import test_search_checker  # noqa: E402
from riak_http import NoAnswer, Requests  # noqa: E402
from search_checker import Versions  # noqa: E402
from searchers import DOCUMENTS, EVERYTHING, INDEX, STILL  # noqa: E402
from world import Refused, wait_for  # noqa: E402

SETTINGS = {**run.SETTINGS, "search": "on"}
# Three writers, and two askers between them.
CLIENTS = 5
INDEX_SECONDS_MAX = 120
COMPLETE, IN_FAULT, OF_STILL = "complete answer", "complete answer during a fault", "complete answer of the bucket that never changes"
SHOWN, GONE = "document that an answer had to show", "deleted document that an answer had to leave out"
PARTIAL, BEHIND = "partial answer", "complete answer without something that only a quorum had acknowledged"
MUST_HAPPEN = ("new document", "overwritten document", "deleted document", COMPLETE, IN_FAULT, OF_STILL, SHOWN, GONE, "wiped stores",
               faults.RESTART)


class SearchedRun(run.Run):
    wiped_in_a_round = 1
    clients_in_a_round = CLIENTS

    def __init__(self, world, arguments):
        super().__init__(world, arguments)
        self.answers = []

    def is_in_fault(self):
        return bool(self.nemesis.active)

    def prepare(self):
        searchers.create_index(self.world)
        for member in self.world.members.values():
            wait_for(f"the index at node {member.number}", lambda: has_buckets(member), INDEX_SECONDS_MAX)
        searchers.fill_still_bucket(self.world.first().http, self.history)
        self.settle("after the bucket that never changes was written")
        self.wait_for_indexes()

    def everybody(self, number):
        return searchers.Searching(self, number)

    def client(self, number, everybody):
        return searchers.searcher(number, self.seed, everybody)

    def documents(self, bucket, copies=search_checker.COPIES):
        return {key.name: Versions(key, copies) for key in self.keys_in(bucket)}

    def wait_for_indexes(self):
        """Waits until the index of each node has what its stores had when this began."""
        began = time.monotonic()
        for member in self.world.members.values():
            wait_for(f"the index of node {member.number}", lambda: has_everything(member, began), INDEX_SECONDS_MAX)
        self.say(f"all indexes had everything after {time.monotonic() - began:.1f} s")

    def check_round(self, keys):
        """Checks the answers of the round, and compares what every node finds now with the
        stores."""
        self.check_answers()
        self.wait_for_indexes()
        stores = {bucket: self.read_store(bucket) for bucket in (DOCUMENTS, STILL)}
        for member in self.world.members.values():
            for bucket, store in stores.items():
                self.check_end(member, bucket, store)
        self.say(f"what {len(self.world.members)} nodes find is what the stores have")

    def check_answers(self):
        documents = {bucket: self.documents(bucket) for bucket in (DOCUMENTS, STILL)}
        quorums = self.documents(DOCUMENTS, search_checker.COPIES_SAFE)
        for answer in self.answers:
            of_bucket = documents[answer.bucket]
            if answer.is_partial:
                self.counts.add(PARTIAL)
                self.note(answer, search_checker.check_shape(answer, of_bucket)[0])
                continue
            self.note(answer, search_checker.check_answer(answer, of_bucket))
            self.count(answer, of_bucket)
            if answer.bucket == DOCUMENTS and search_checker.is_behind(answer, quorums):
                self.counts.add(BEHIND)
        self.answers_checked += len(self.answers)
        self.say(f"{len(self.answers)} answers were checked")
        self.answers.clear()

    def note(self, answer, violations):
        when = f"from {answer.began - self.began:.2f} to {answer.ended - self.began:.2f} s"
        for violation in violations:
            violation.detail += f", {when}{', during a fault' if answer.in_fault else ''}"
        self.violations += violations

    def count(self, answer, documents):
        self.counts.add(COMPLETE)
        if answer.in_fault:
            self.counts.add(IN_FAULT)
        if answer.bucket == STILL:
            self.counts.add(OF_STILL)
            return
        for what, count in zip((SHOWN, GONE), search_checker.binding(answer, documents)):
            self.counts.add(what, count)

    def read_store(self, bucket):
        """The number of each document of a bucket, as the first node reads it."""
        node, store = Requests(self.world.first().http, clients.SINGLE), {}
        for versions in self.documents(bucket).values():
            name = versions.key.name
            store[name] = searchers.number_in(clients.answered(lambda: node.get(bucket, name, r=search_checker.COPIES)))
            self.violations += search_checker.check_store(versions, store[name], "after healing")
        node.close()
        return store

    def check_end(self, member, bucket, store):
        """Compares what a node finds with the stores. On a loaded machine an index may need a
        moment, so a partial answer is asked for again."""
        node = Requests(member.http, clients.SINGLE)
        queries = [EVERYTHING, *map(searchers.word_query, searchers.WORDS)]
        for query in queries:
            answer = clients.answered(lambda: complete(node, bucket, query))
            self.note(answer, search_checker.check_end(answer, self.documents(bucket), store))
        node.close()

    def check_everything(self):
        for violation in self.violations[:run.SHOWN_MAX]:
            self.explain(violation)

    def explain(self, violation):
        """Prints what was acknowledged."""
        print(f"VIOLATION {violation}", flush=True)
        key = self.history.keys.get((violation.bucket, violation.name))
        if key is not None:
            self.explain_writes(key)


def complete(node, bucket, query):
    answer = searchers.ask(node, bucket, query)
    if answer.is_partial:
        raise NoAnswer("the answer is partial")
    return answer


def has_buckets(member):
    node = Requests(member.http, clients.SINGLE)
    try:
        answers = [node.ask("GET", f"/buckets/{bucket}/props") for bucket in (DOCUMENTS, STILL)]
    except NoAnswer:
        return False
    finally:
        node.close()
    return all(status == 200 and json.loads(body)["props"].get("search_index") == INDEX for status, _, body in answers)


def has_everything(member, began):
    """Whether the index of a node has what its stores had at a moment."""
    passed_ms = (time.monotonic() - began) * 1000
    try:
        status = json.loads(member.admin("search", "index", "status", INDEX, "--json"))
    except Refused:
        return False
    lags = [partition["lag_ms"] for partition in status["partitions"]]
    return bool(lags) and all(lag is not None and lag < passed_ms for lag in lags)


def cluster_run(directory, arguments):
    """Runs a cluster with clients and faults. Returns (passed, failed, skipped)."""
    return run.cluster_run(directory, arguments, SearchedRun, SETTINGS, MUST_HAPPEN)


if __name__ == "__main__":
    sys.exit(run.main(Path(__file__), cluster_run, test_search_checker))
