#!/usr/bin/env python3
"""Replays the exchanges with a secured Riak (`recordings-2`) against a fresh node that is secured in
the same way. `security.txt` explains what differs. An entry that is no longer needed is a failure.

Usage: security.py"""
import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))

from certificates import Authority  # noqa: E402
from node import Node, free_ports  # noqa: E402
from second_recordings import read_explained, run_tool  # noqa: E402

# The settings of the recorded node.
SETTINGS = {"storage_backend": "leveled", "ring_size": "64", "check_crl": "off"}
TYPES = {"sibs": "{}", "n1": '{"n_val":1,"allow_mult":false}'}
LOOPBACK = "127.0.0.1/32"
# The commands after which the exchanges were recorded.
COMMANDS = [
    *(["add-user", name, "password=secret"] for name in ("alice", "nosrc", "boss")),
    *(["add-user", name] for name in ("tru", "cert_user", "nopw")),
    *(["add-source", name, LOOPBACK, "password"] for name in ("alice", "boss", "nopw")),
    ["add-source", "tru", LOOPBACK, "trust"],
    ["add-source", "cert_user", LOOPBACK, "certificate"],
    ["grant", "riak_kv.get,riak_kv.put", "on", "default", "sec1", "to", "alice"],
    ["grant", "riak_kv.get", "on", "sibs", "to", "tru"],
    ["grant", "riak_kv.get", "on", "default", "to", "cert_user"],
]
PERMISSIONS = [*(f"riak_kv.{word}" for word in ("get", "put", "delete", "index", "list_keys", "list_buckets", "mapreduce")),
               *(f"riak_core.{word}" for word in ("get_bucket", "set_bucket", "get_bucket_type", "set_bucket_type"))]
# HTTP was recorded after Protocol Buffers, on the same node.
STEPS = ["--pb", "--http"]


def secured(node):
    """Secures a node as the recorded one was."""
    for command in [*COMMANDS, ["grant", ",".join(PERMISSIONS), "on", "any", "to", "boss"], ["enable"]]:
        node.admin("security", *command)


def replay(directory):
    """The results of the replay, and what the tool printed."""
    own = Path(directory)
    authority = Authority(own)
    certificate, key = authority.issue("server", hosts=["localhost", "127.0.0.1"])
    authority.issue("cert_user"), authority.issue("other")
    https = f"127.0.0.1:{free_ports(1)[0]}"
    settings = {**SETTINGS, "listener.https.internal": https, "ssl.certfile": certificate, "ssl.keyfile": key,
                "ssl.cacertfile": authority.certificate}
    exchanges, printed = [], ""
    with Node({key: str(value) for key, value in settings.items()}) as node:
        for bucket_type, props in TYPES.items():
            node.create_type(bucket_type, json.loads(props))
        secured(node)
        addresses = {"--http": [node.http, "--https", https], "--pb": [node.pb]}
        for step in STEPS:
            file = own / f"{step.strip('-')}.json"
            found, said = run_tool(["--tls", str(own), step, *addresses[step], "--group", "security_plain,security_tls"], file)
            exchanges += found
            printed += said
    return exchanges, printed


def main():
    with tempfile.TemporaryDirectory() as directory:
        exchanges, printed = replay(directory)
    print(printed, end="")
    allow, results = read_explained("security.txt"), {x["id"]: x["result"] for x in exchanges}
    failed = {name for name, result in results.items() if result == "fail"}
    problems = [f"{name} differs and security.txt does not say why" for name in sorted(failed - allow.keys())]
    problems += [f"security.txt: {name} agrees now, remove the entry" for name in sorted(allow)
                 if results.get(name, "pass") == "pass"]
    for problem in problems:
        print(f"problem: {problem}")
    skipped = sum(result == "skip" for result in results.values())
    compared = len(results) - skipped
    print(f"{compared - len(failed)} of {compared} compared exchanges agree without allowances")
    print(f"{compared - len(problems)} passed, {len(problems)} failed, {skipped} skipped")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
