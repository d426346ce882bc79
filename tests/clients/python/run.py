#!/usr/bin/env python3
"""Runs the official Python client's own integration suite over `pbc` and over `http`, against a
node on each backend.

With `--cluster`, the suite runs against node 2 of a fresh cluster of N nodes. With `--secured` too,
the cluster lets only users in, so the suite runs over TLS, with its tests of security and without
those of search: `yz_security` in tests/scenarios has what security means for search.

Usage: run.py [--cluster N [--secured]] [--backend NAME]... [pbc|http]... [-- PYTEST-OPTION...]"""
import argparse
import os
import re
import socket
import struct
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))

import packages  # noqa: E402
from cluster import take_size  # noqa: E402
from secured import CERTIFICATE_USER, PASSWORD, PASSWORD_USER, take_secured, under_test  # noqa: E402

TEST_SECONDS_MAX = 60
SUITE_SECONDS_MAX = 600

# The settings that the suite needs of a server.
SETTINGS = {"nodename": "riak@127.0.0.1", "ring_size": "64", "delete_mode": "immediate",
            "javascript.anonymous_functions": "on", "search": "on"}
BACKENDS = ("bitcask", "leveled", "leveldb", "memory")
BUCKET_TYPES = {
    "plain": {},
    "mr": {},
    "search_type": {},
    "yokozuna": {},
    "no_siblings": {"allow_mult": "false"},
    "maps": {"datatype": "map"},
    "sets": {"datatype": "set"},
    "gsets": {"datatype": "gset"},
    "counters": {"datatype": "counter"},
    "hlls": {"datatype": "hll"},
    "other_counters": {"datatype": "counter", "allow_mult": True},
    "write_once": {"write_once": True},
    "consistent": {"consistent": True, "n_val": 5},
    "gset_bucket": {"datatype": "gset"},
}
SWITCHES_ON = ("RUN_BTYPES", "RUN_CLIENT", "RUN_DATATYPES", "RUN_INDEXES", "RUN_KV", "RUN_MAPREDUCE",
               "RUN_RESOLVE", "RUN_YZ")
# RUN_SEARCH is for the search of Riak 1: its hook and `/solr/INDEX/update`, which Riak 3 does not
# have either.
SWITCHES_OFF = ("RUN_POOL", "RUN_SEARCH", "RUN_SECURITY", "RUN_TIMESERIES")


# The suite expects a listing of this bucket to take longer than a millisecond. It fills the bucket
# with 1,000 keys unless it finds the last of these. Ombak needs more keys for that.
SLOW_BUCKET, SLOW_BUCKET_LAST_KEY, SLOW_BUCKET_KEYS = b"random_key_bucket", b"rkb-init", 20_000
PUT_REQUEST, PUT_REPLY = 11, struct.pack(">IB", 1, 12)


def install(directory):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    packages.run([*pip, "install", "--no-deps", "--target", str(directory / "packages"), "-r",
                  str(HERE / "requirements.txt")])
    packages.run([*pip, "download", "--no-deps", "--no-binary", "riak", "--dest", str(directory), "-r",
                  str(HERE / "client.txt")])
    archive = next(directory.glob("riak-*.tar.gz"))
    with tarfile.open(archive) as tar:
        tar.extractall(directory)
    (directory / archive.name.removesuffix(".tar.gz")).rename(directory / "client")


def fill_slow_bucket(node):
    """Puts the keys over one connection, in batches that do not wait for single answers."""
    def field(number, content):
        return bytes([number << 3 | 2, len(content)]) + content

    value = field(4, field(1, b"{}") + field(2, b"application/json"))
    keys = [b"filler-%d" % i for i in range(SLOW_BUCKET_KEYS)] + [SLOW_BUCKET_LAST_KEY]
    with socket.create_connection(("127.0.0.1", node.pb_port), timeout=30) as connection:
        replies = connection.makefile("rb")
        for start in range(0, len(keys), 500):
            some = keys[start:start + 500]
            bodies = [field(1, SLOW_BUCKET) + field(2, key) + value for key in some]
            connection.sendall(b"".join(struct.pack(">IB", len(body) + 1, PUT_REQUEST) + body for body in bodies))
            answer = replies.read(len(PUT_REPLY) * len(some))
            if answer != PUT_REPLY * len(some):
                raise SystemExit(f"filling {SLOW_BUCKET.decode()}: an answer is not a plain RpbPutResp: {answer[:200]!r}")


def credentials(cluster):
    """The variables with which the suite reaches a secured cluster."""
    files = cluster.authority.directory
    return dict(
        RUN_SECURITY="1",
        RIAK_TEST_HTTP_PORT=str(cluster.https_port),
        RIAK_TEST_SECURITY_USER=PASSWORD_USER,
        RIAK_TEST_SECURITY_PASSWD=PASSWORD,
        RIAK_TEST_SECURITY_CACERT=str(cluster.authority.certificate),
        RIAK_TEST_SECURITY_BAD_CERT=str(cluster.stranger.certificate),
        RIAK_TEST_SECURITY_CERT_USER=CERTIFICATE_USER,
        RIAK_TEST_SECURITY_CERT=str(files / f"{CERTIFICATE_USER}.pem"),
        RIAK_TEST_SECURITY_KEY=str(files / f"{CERTIFICATE_USER}.key"),
    )


def environment(node, protocol, installed, arguments):
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("RIAK_", "RUN_"))}
    variables.update(
        PYTHONPATH=os.pathsep.join(map(str, (HERE, installed / "packages", installed / "client"))),
        PYTHONDONTWRITEBYTECODE="1",
        PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python",
        RIAK_TEST_HOST="127.0.0.1",
        RIAK_TEST_PB_PORT=str(node.pb_port),
        RIAK_TEST_HTTP_PORT=str(node.http_port),
        RIAK_TEST_PROTOCOL=protocol,
        **dict.fromkeys(SWITCHES_ON, "1"),
        **dict.fromkeys(SWITCHES_OFF, "0"),
    )
    if arguments.cluster:
        variables["CLUSTER_NODES"] = str(arguments.cluster)
    if arguments.secured:
        variables.update(credentials(node), RUN_YZ="0")
    return variables


def run_suite(backend, protocol, installed, arguments):
    """Returns the output of the suite, and (passed, failed, skipped)."""
    with under_test({**SETTINGS, "storage_backend": backend}, arguments.cluster, arguments.secured) as node:
        for name, properties in BUCKET_TYPES.items():
            node.create_type(name, properties)
        node.set_bucket_properties("test_multi_bucket", {"allow_mult": True, "last_write_wins": False})
        fill_slow_bucket(node)
        if arguments.secured:
            node.secure()
        command = [sys.executable, "-m", "pytest", "riak/tests", *(["-p", "over_tls"] if arguments.secured else []),
                   "-p", "expected_failures", "-p", "complete_searches", "-p", "no:cacheprovider", "-q",
                   "--timeout", str(TEST_SECONDS_MAX), "--tb=short", "-rxfE", "-W", "ignore", *arguments.options]
        suite = subprocess.run(command, cwd=installed / "client", env=environment(node, protocol, installed, arguments),
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SUITE_SECONDS_MAX)
        if suite.returncode != 0:
            node.print_log_tail()
    return suite.stdout, totals(suite)


def totals(suite):
    last = suite.stdout.strip().rpartition("\n")[2]
    count = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed)", last)}
    failed = count.get("failed", 0) + count.get("error", 0) + count.get("errors", 0)
    if suite.returncode != 0 and failed == 0:
        failed = 1
    return count.get("passed", 0) + count.get("xpassed", 0), failed, count.get("skipped", 0) + count.get("xfailed", 0)


def parsed():
    size, words = take_size(sys.argv[1:])
    options = []
    if "--" in words:
        at = words.index("--")
        words, options = words[:at], words[at + 1:]
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", action="append", choices=BACKENDS)
    parser.add_argument("protocols", nargs="*", metavar="pbc|http")
    is_secured, words = take_secured(words, size)
    return parser.parse_args(words, argparse.Namespace(cluster=size, secured=is_secured, options=options))


def main():
    arguments = parsed()
    protocols, backends = arguments.protocols or ["pbc", "http"], arguments.backend or BACKENDS
    installed = packages.installed("python", [HERE / "requirements.txt", HERE / "client.txt"], install)
    runs = [(backend, protocol) for protocol in protocols for backend in backends]
    with ThreadPoolExecutor(len(backends)) as pool:
        results = list(pool.map(lambda run: run_suite(*run, installed, arguments), runs))
    for (backend, protocol), (output, _) in zip(runs, results):
        over = f"{protocol} and TLS" if arguments.secured else protocol
        print(f"--- the Python client's suite over {over} on {backend}\n{output}", flush=True)
    passed, failed, skipped = (sum(column) for column in zip(*(counts for _, counts in results)))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
