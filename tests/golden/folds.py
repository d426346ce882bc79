#!/usr/bin/env python3
"""Replays the recorded anti-entropy folds of a real Riak (`recordings-2`) against fresh nodes.

Three replays run at once: over HTTP, over Protocol Buffers, and both of a node whose trees are
switched off. Each begins with the recorded data set, whose clocks are fixed, so that trees and
clocks are equal to the recorded ones byte for byte. `folds.txt` explains what differs. With one
node, an entry that is no longer needed is a failure.

Usage: folds.py [--cluster N] [--backend NAME]"""
import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))

from cluster import take_size, under_test  # noqa: E402
from second_recordings import read_explained, run_tool  # noqa: E402

# The settings of the recorded nodes. Puts wait for all replicas in a cluster, because a fold asks
# one of them.
SETTINGS = {"ring_size": "64", "delete_mode": "3s", "tictacaae_active": "active"}
OFF = {"ring_size": "16", "tictacaae_active": "passive"}
TYPES = {"sibs": "{}", "n1": '{"n_val":1,"allow_mult":false}'}
# The data set, without what later exchanges write.
DATA = ["--alone", "--pb", "--only", ",".join(f"pb/{number}" for number in range(300, 330))]
# A cluster removes a tombstone that nobody has read, so what is repaired may be one key less. The
# recorded node was alone and kept it.
OF_CLUSTERS = {"http/798_repair_typed"}
# What is replayed: the settings, and the options for the tool in their order.
REPLAYS = {
    "http": (SETTINGS, [DATA, ["--http", "--group", "aaefold"]]),
    "pb": (SETTINGS, [["--pb", "--group", "aaedata,aaefold"]]),
    "off": (OFF, [DATA, ["--http", "--pb", "--group", "aae_off"]]),
}


def replay(name, backend, directory, size):
    """The results of all steps of one replay, and what the tool printed."""
    settings, steps = REPLAYS[name]
    exchanges, printed = [], ""
    with under_test({**settings, "storage_backend": backend}, size, size > 0) as node:
        for bucket_type, props in TYPES.items():
            node.create_type(bucket_type, json.loads(props))
        for number, words in enumerate(steps):
            file = Path(directory) / f"{name}-{number}.json"
            where = {"--http": [node.http], "--pb": [node.pb]}
            addresses = [part for word in words for part in [word, *where.get(word, [])]]
            found, said = run_tool(addresses, file)
            exchanges += found
            printed += said
    return exchanges, printed


def main():
    size, words = take_size(sys.argv[1:])
    backend = words[1] if words[:1] == ["--backend"] else "leveled"
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(len(REPLAYS)) as pool:
        done = list(pool.map(lambda name: replay(name, backend, directory, size), REPLAYS))
    allow, results = read_explained("folds.txt"), {}
    for exchanges, printed in done:
        print(printed, end="")
        results.update((x["id"], x["result"]) for x in exchanges if results.get(x["id"]) != "fail")
    failed = {name for name, result in results.items() if result == "fail"}
    unexplained = failed - allow.keys() - (OF_CLUSTERS if size else set())
    problems = [f"{name} differs and folds.txt does not say why" for name in sorted(unexplained)]
    # A cluster removes tombstones that nobody reads, and one node alone does not.
    problems += [f"folds.txt: {name} agrees now, remove the entry" for name in sorted(allow)
                 if not size and results.get(name, "pass") == "pass"]
    for problem in problems:
        print(f"problem: {problem}")
    skipped = sum(result == "skip" for result in results.values())
    agreed, compared = len(results) - skipped - len(failed), len(results) - skipped
    print(f"{agreed} of {compared} compared exchanges agree without allowances: {100 * agreed / compared:.2f} %")
    print(f"{compared - len(problems)} passed, {len(problems)} failed, {skipped} skipped")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
