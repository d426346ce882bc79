#!/usr/bin/env python3
"""Values that keep a hook busy, and what they cost the hooks of other buckets.

A hook in JavaScript takes a step that the engine cannot interrupt. Clients put to its bucket. In
the meantime another client puts to a bucket with a harmless hook, and a third one reads and writes
a bucket without hooks. None of their requests may fail or wait longer than WAIT_SECONDS_MAX. Each
attack has a bucket of its own.

Usage: hostile_functions.py [--call-time TIME] [ATTACK...]. The last line is
`N passed, N failed, N skipped`."""
import argparse
import http.client
import json
import sys
import threading
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from node import Node, NodeError  # noqa: E402
from tenants import Failed, check  # noqa: E402

# The promise: no value makes the hook of another bucket fail for longer.
WAIT_SECONDS_MAX = 5
REQUEST_SECONDS_MAX = 60
HOSTILE_CLIENTS = 6
PUTS_OF_EACH = 2
LENGTH = "{ length: Math.pow(2, 53) - 1 }"
MARKS = "e" + "\u0301\u0316" * 60_000

# The body of the hook, and the value that is put.
ATTACKS = {
    "normalize": ("o.values[0].data.normalize('NFC');", MARKS),
    "localeCompare": ("o.values[0].data.localeCompare('a' + o.values[0].data);", MARKS),
    "reverse": (f"Array.prototype.reverse.call({LENGTH});", "v"),
    "copyWithin": (f"Array.prototype.copyWithin.call({LENGTH}, 1, 0);", "v"),
    "unshift": ("Array.prototype.unshift.call({ length: Math.pow(2, 53) - 3 }, 1);", "v"),
    "slice": (f"Array.prototype.slice.call({LENGTH}, 0, Math.pow(2, 32) - 1);", "v"),
    "concat": (f"var a = {LENGTH}; a[Symbol.isConcatSpreadable] = true; [].concat(a);", "v"),
    "join": (f"Array.prototype.join.call({LENGTH}, '');", "v"),
    "sort": (f"Array.prototype.sort.call({LENGTH});", "v"),
    "flat": (f"Array.prototype.flat.call({LENGTH});", "v"),
    "raw": (f"String.raw({{ raw: {LENGTH} }});", "v"),
    "setOperations": (r"var s = '[\\p{L}' + '--[\\p{Lu}a-f]'.repeat(50000) + ']'; for (;;) new RegExp(s, 'v').test('a');", "v"),
    "bigint": ("var n = 1n << 900000n; for (;;) n.toString();", "v"),
    "declarations": ("eval(o.values[0].data);", "".join(f"var a{n};" for n in range(60_000))),
    "lastIndexOf": ("var s = o.values[0].data; for (;;) s.lastIndexOf(s.slice(0, 50) + 'b');", "a" * 100_000),
    "endsWith": ("var s = o.values[0].data; for (;;) s.endsWith(s);", "a" * 100_000),
    "rope": ("var s = 'a'; for (;;) { s = s + s + 'b'; if (s.length > 1000000) s = s.slice(1, 9); s[0]; }", "v"),
    "loop": ("for (;;);", "v"),
}


class Asking:
    """A connection that measures how long its requests take."""

    def __init__(self, node):
        self.connection = http.client.HTTPConnection("127.0.0.1", node.http_port, timeout=REQUEST_SECONDS_MAX)
        self.seconds, self.failed = [], []

    def ask(self, method, path, body=None):
        began = time.monotonic()
        self.connection.request(method, path, body=body, headers={"Content-Type": "text/plain"} if body else {})
        reply = self.connection.getresponse()
        text = reply.read()
        self.seconds.append(time.monotonic() - began)
        if reply.status >= 400:
            self.failed.append((reply.status, text[:200]))
        return reply.status

    def close(self):
        self.connection.close()


class Beside:
    """Clients of other buckets, until the end of the block."""

    def __init__(self, node):
        self.node, self.is_over = node, threading.Event()
        self.hooked, self.plain, self.errors = Asking(node), Asking(node), []

    def __enter__(self):
        self.threads = [threading.Thread(target=self._run, args=(work,)) for work in (self._hooked, self._plain)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join()
        self.hooked.close()
        self.plain.close()

    def _run(self, work):
        try:
            # An attack that is refused at once may end first. Each of these clients asks at least
            # once.
            while True:
                work()
                if self.is_over.wait(0.01):
                    return
        except Exception as error:  # The attack fails with this error.
            self.errors.append(repr(error))

    def _hooked(self):
        self.hooked.ask("PUT", "/buckets/harmless/keys/k", b"v")

    def _plain(self):
        self.plain.ask("PUT", "/buckets/plain/keys/k", b"v")
        self.plain.ask("GET", "/buckets/plain/keys/k")


def percentile(seconds, share):
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 if ordered else 0.0


def described(asking):
    return (f"{len(asking.seconds)} requests, p50 {percentile(asking.seconds, 0.5):.1f} ms, "
            f"p99 {percentile(asking.seconds, 0.99):.1f} ms, longest {percentile(asking.seconds, 1.0):.0f} ms")


def attack(node, name):
    """Puts the hostile value from several clients at once."""
    value = ATTACKS[name][1].encode()
    clients = [Asking(node) for _ in range(HOSTILE_CLIENTS)]

    def put(client):
        for number in range(PUTS_OF_EACH):
            client.ask("PUT", f"/buckets/hostile-{name}/keys/{number}", value)

    threads = [threading.Thread(target=put, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients:
        client.close()
    return clients


def judge(node, name, quiet):
    began = time.monotonic()
    with Beside(node) as beside:
        clients = attack(node, name)
    took = time.monotonic() - began
    answers = {}
    for status, text in (failed for client in clients for failed in client.failed):
        answers[(status, text)] = answers.get((status, text), 0) + 1
    ok = sum(len(client.seconds) - len(client.failed) for client in clients)
    longest = max((seconds for client in clients for seconds in client.seconds), default=0)
    print(f"{name}: {took:.1f} s; hostile puts: {ok} stored, longest {longest * 1000:.0f} ms, refused {answers}")
    print(f"  beside it: hooks {described(beside.hooked)}; without hooks {described(beside.plain)}")
    print(f"  before:    hooks {described(quiet.hooked)}; without hooks {described(quiet.plain)}", flush=True)
    asked = sum(len(client.seconds) for client in clients)
    check(asked == HOSTILE_CLIENTS * PUTS_OF_EACH, f"only {asked} hostile puts were answered")
    failed = beside.errors + beside.hooked.failed + beside.plain.failed
    check(not failed, f"others failed: {failed[:3]}")
    longest = max(beside.hooked.seconds + beside.plain.seconds)
    check(longest <= WAIT_SECONDS_MAX, f"others waited {longest:.1f} s")


def sources(directory):
    """Writes the hooks into a directory."""
    directory.mkdir()
    hooks = [f"function hostile_{name}(o) {{ {body} return o; }}" for name, (body, _) in ATTACKS.items()]
    hooks.append("function harmless(o) { o.values[0].data = o.values[0].data.toUpperCase(); return o; }")
    (directory / "hooks.js").write_text("\n".join(hooks))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--call-time", default="5s")
    parser.add_argument("attacks", nargs="*", default=list(ATTACKS))
    options = parser.parse_args()
    passed = failed = 0
    node = Node()
    sources(node.directory / "functions")
    node.settings = {"javascript.source_dir": node.directory / "functions", "javascript.call_time": options.call_time,
                     "ring_size": 8}
    with node:
        node.set_bucket_properties("harmless", {"precommit": [{"name": "harmless"}]})
        for name in options.attacks:
            node.set_bucket_properties(f"hostile-{name}", {"precommit": [{"name": f"hostile_{name}"}]})
        with Beside(node) as quiet:
            time.sleep(2)
        for name in options.attacks:
            try:
                judge(node, name, quiet)
                passed += 1
            except (Failed, OSError, NodeError):
                traceback.print_exc()
                failed += 1
        stats = Asking(node)
        stats.connection.request("GET", "/stats", headers={"Accept": "application/json"})
        figures = json.loads(stats.connection.getresponse().read())
        print({name: value for name, value in figures.items() if "hook" in name or "functions_precommit" in name})
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
