#!/usr/bin/env python3
"""Replays recorded exchanges of a real Riak 3.2.3 node against a fresh node and compares the
answers.

`recordings/` has the exchanges, and the tool `replay` replays them. Each replay is judged twice.
First, the share of agreeing exchanges, without any allowance, must reach `floor`, a percentage that
only rises. Second, every exchange that differs must be explained in `allow.txt` (one `exchange
reason` on each line; `docs/compatibility.md` repeats the reasons). An entry that is no longer
needed is a failure. An entry whose answer is withheld is not judged.

All backends are tested, and their answers must not differ.

With `--cluster`, the exchanges are replayed against node 2 of a fresh cluster of N nodes. What a
cluster answers otherwise is in `cluster.txt`, with the expected answers.

Usage: run.py [--cluster N] [--backend NAME]... [GOLDEN-OPTION...]. Options such as `--show` or
`--only http/017` are passed to the tool, and then nothing is judged."""
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))

from cluster import take_size, under_test  # noqa: E402
from node import program  # noqa: E402

TOOL = HERE / "replay"
REPLAY_SECONDS_MAX = 300

GROUPS = ("root ping stats routing types props object links linkwalk quorum conditional vclock negotiation delete siblings list "
          "malformed security coverage index counter datatype mapred").split()

# The settings of the recorded node.
SETTINGS = {"ring_size": "64", "delete_mode": "3s"}
BACKENDS = ("bitcask", "leveled", "leveldb", "memory")


# A listing of a cluster may lack for a moment what was just written (support/cluster.py).
PATIENCE_SECONDS = 5


def replay(node, results, options, is_cluster):
    environment = {**os.environ, "OMBAK_PROGRAM": str(program()), "OMBAK_DATA": str(node.data)}
    command = [sys.executable, str(TOOL), "--http", node.http, "--pb", node.pb, "--setup",
               f"{HERE / 'bucket-type.sh'} {{name}} {{props}}", "--json", str(results), "--show", *options]
    if is_cluster:
        members = ",".join(member.http for member in node.members)
        command += ["--patience", str(PATIENCE_SECONDS), "--members", members]
    if "--group" not in options and "--only" not in options:
        command += ["--group", ",".join(GROUPS)]
    return subprocess.run(command, env=environment, timeout=REPLAY_SECONDS_MAX, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")


def read_allow():
    entries = {}
    for line in (HERE / "allow.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            exchange, _, reason = line.partition(" ")
            entries[exchange] = reason.strip()
    return entries


def read_cluster():
    """What a cluster answers otherwise: for each exchange its reason and the lines that differ."""
    entries = {}
    for line in (HERE / "cluster.txt").read_text().splitlines():
        if line.startswith("    "):
            entries[exchange][1].append(line[4:])
        elif line and not line.startswith("#"):
            exchange, _, reason = line.partition(" ")
            entries[exchange] = (reason.strip(), [])
    return entries


def changed_lines(diff):
    """The lines of a unified diff that are only in one of the answers."""
    return [line for line in diff if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def judge_cluster(results):
    """Accepts the answers that only a cluster gives, in the results. Returns problems."""
    found, problems = {x["id"]: x for x in results["exchanges"]}, []
    for exchange, (reason, lines) in read_cluster().items():
        x = found.get(exchange, {"result": "missing", "diff": []})
        if x["result"] == "skip":
            continue
        if not reason or changed_lines(x["diff"]) != lines:
            problems.append(f"cluster.txt: {exchange} is {x['result']}, and these lines differ: {changed_lines(x['diff'])}")
        elif x["result"] == "fail":
            print(f"explained: {exchange}: {reason}")
            x["result"] = "pass"
            results["passed"] += 1
            results["failed"] -= 1
    return problems


def judge(results, is_cluster):
    """Prints the verdict and returns (passed, failed, skipped)."""
    problems = judge_cluster(results) if is_cluster else []
    allow = read_allow()
    floor = float((HERE / "floor").read_text())
    differing = {x["id"] for x in results["exchanges"] if x["result"] == "fail"}
    withheld = {x["id"] for x in results["exchanges"] if x["result"] == "skip"}
    agreed, compared = results["passed"], results["passed"] + results["failed"]
    share = 100 * agreed / compared
    if share < floor:
        problems.append(f"{share:.2f} % agree, below the floor of {floor} %")
    problems += [f"{x} differs and allow.txt does not say why" for x in sorted(differing - allow.keys())]
    problems += [f"allow.txt: no reason for {x}" for x in sorted(allow) if not allow[x]]
    problems += [f"allow.txt: {x} agrees now, remove the entry" for x in sorted(allow.keys() - differing - withheld)]
    for x in sorted(differing & allow.keys()):
        print(f"explained: {x}: {allow[x]}")
    for problem in problems:
        print(f"problem: {problem}")
    print(f"{agreed} of {compared} compared exchanges agree without allowances: {share:.2f} % (floor {floor} %)")
    return agreed + len(differing & allow.keys()), len(problems), results["skipped"]


def replay_on(backend, directory, options, size):
    """The finished replay and its results. No results if there are options, because then nothing is
    judged."""
    file = Path(directory) / f"{backend}.json"
    with under_test({**SETTINGS, "storage_backend": backend}, size) as node:
        done = replay(node, file, options, size > 0)
        if options:
            return done, None
        if not file.exists():
            print(done.stdout)
            raise SystemExit(f"{backend}: the replay ended with status {done.returncode} and left no results")
    return done, json.loads(file.read_text())


def parsed(words):
    """The requested backends, and the options for the tool."""
    backends = []
    while words[:1] == ["--backend"] and len(words) > 1:
        backends.append(words[1])
        words = words[2:]
    return backends or list(BACKENDS), words


def main():
    size, words = take_size(sys.argv[1:])
    backends, options = parsed(words)
    # A replay is mostly pauses until tombstones are reaped, so all backends run at once.
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(len(backends)) as pool:
        replays = list(pool.map(lambda backend: replay_on(backend, directory, options, size), backends))
    counts = []
    for backend, (done, results) in zip(backends, replays):
        print(f"--- {backend}\n{done.stdout}", end="")
        if results is not None:
            counts.append(judge(results, size > 0))
    if options:
        return max(done.returncode for done, _ in replays)
    passed, failed, skipped = (sum(column) for column in zip(*counts))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
