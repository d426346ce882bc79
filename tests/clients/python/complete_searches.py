"""A pytest plugin that lets the suite wait until a search finds everything.

The suite stores some documents, waits until a search finds the last one, and expects the others
from the next search. Neither Riak nor Ombak promises that: documents of two partitions may come to
the index one after the other. So what the suite waits for is followed by half a second, after which
Ombak finds everything, and by a search whose answer is not partial. An answer is partial while an
index that is new is told of what its bucket has."""
import json
import os
import time
import urllib.request

FRESHNESS_SECONDS = 0.5
# As over_tls.py says, the suite has a host of its own only if security is on.
BASE = f"http://{os.environ['RIAK_TEST_HOST']}:{os.environ['RIAK_TEST_HTTP_PORT']}"
WAIT = "wait_for_yz_index"


def is_complete(index):
    with urllib.request.urlopen(f"{BASE}/search/query/{index}?q=*:*&rows=0&wt=json", timeout=30) as answer:
        return "partialResults" not in json.load(answer)["responseHeader"]


def waiting_longer(wait):
    def wait_longer(bucket, key, index=None):
        wait(bucket, key, index)
        time.sleep(FRESHNESS_SECONDS)
        # The time that the suite has for a test bounds this.
        while not is_complete(index or bucket.name):
            pass
    return wait_longer


def pytest_collection_modifyitems(items):
    for module in {item.module for item in items}:
        if hasattr(module, WAIT):
            setattr(module, WAIT, waiting_longer(getattr(module, WAIT)))
