#!/usr/bin/env python3
"""Measures the resident memory of a node with many connections.

The first part opens CONNECTIONS connections, one half over Protocol Buffers and one half over HTTP.
Each of them puts one value of 60,000 bytes, reads it, and is idle afterwards. The second part
starts LISTINGS listings of keys, and as many index queries, over a bucket of KEYS keys, for clients
that do not read the answers. The table has the resident memory of the process before, at the most,
and after the connections have been closed. `--program` names the program to measure; without it,
the result of `cargo build` is measured."""
import argparse
import os
import re
import resource
import socket
import struct
import sys
import threading
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from node import Node  # noqa: E402

VALUE = b"v" * 60_000
PUT, PUT_ANSWER, GET, GET_ANSWER, LIST_KEYS, INDEX = 11, 12, 9, 10, 17, 25
TIMEOUT_SECONDS = 60
# A client that does not read has a small receive buffer, so that its answer stays in the node.
RECEIVE_BUFFER_BYTES = 4_096
SETTLE_SECONDS = 5
PIPELINE = 200


def field(number, value):
    """A field of a protobuf message: bytes, or a small number."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def frame(code, body):
    return struct.pack(">IB", len(body) + 1, code) + body


def put(key, value, index=None):
    content = field(1, value)
    if index is not None:
        content += field(10, field(1, b"n_int") + field(2, b"%d" % index))
    return frame(PUT, field(1, b"b") + field(2, key) + field(4, content))


def receive(connection, count):
    out = bytearray()
    while len(out) < count:
        part = connection.recv(count - len(out))
        if not part:
            raise EOFError("the node closed the connection")
        out += part
    return bytes(out)


def expect(connection, code):
    length, found = struct.unpack(">IB", receive(connection, 5))
    body = receive(connection, length - 1)
    if found != code:
        raise ValueError(f"message {found} in place of {code}: {body[:100]}")


def ask_pb(connection, key):
    connection.sendall(put(key, VALUE))
    expect(connection, PUT_ANSWER)
    connection.sendall(frame(GET, field(1, b"b") + field(2, key)))
    expect(connection, GET_ANSWER)


def ask_http(connection, key):
    path = b"/buckets/b/keys/" + key
    head = b"PUT %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: a/b\r\nContent-Length: %d\r\n\r\n"
    connection.sendall(head % (path, len(VALUE)) + VALUE)
    read_http(connection)
    connection.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path)
    read_http(connection)


def read_http(connection):
    head = b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(65_536)
    head, _, body = head.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    receive(connection, int(length[1]) - len(body) if length else 0)


def connect(port, receive_buffer=None):
    connection = socket.socket()
    if receive_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.settimeout(TIMEOUT_SECONDS)
    connection.connect(("127.0.0.1", port))
    return connection


class Memory:
    """Watches the resident memory of a process."""

    def __init__(self, process):
        self.path = Path(f"/proc/{process.pid}/statm")
        self.most = self.now()
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def now(self):
        return int(self.path.read_text().split()[1]) * resource.getpagesize()

    def _watch(self):
        while not self.stopped.wait(0.02):
            self.most = max(self.most, self.now())

    def stop(self):
        self.stopped.set()
        self.thread.join()


def budget(node):
    text = urllib.request.urlopen(f"http://{node.http}/metrics", timeout=TIMEOUT_SECONDS).read().decode()
    return int(re.search(r"^ombak_request_memory_used_bytes (\d+)", text, re.M)[1])


def settled(memory):
    """The resident memory once it does not fall any more."""
    least, until = memory.now(), time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < until:
        time.sleep(0.2)
        if memory.now() < least - 1_000_000:
            least, until = memory.now(), time.monotonic() + SETTLE_SECONDS
    return memory.now()


def row(name, count, before, most, then, after, used):
    each = (then - before) / count
    print(f"| {name} | {count:,} | {before / 1e6:.0f} | {most / 1e6:.0f} | {then / 1e6:.0f} | {each / 1000:.1f} "
          f"| {used / 1e6:.1f} | {after / 1e6:.0f} |", flush=True)


def idle(node, count):
    memory = Memory(node.process)
    # The same values are there before, so that what is measured is the connections' share.
    with connect(node.pb_port) as connection:
        for key in range(100):
            ask_pb(connection, b"%d" % key)
    before = settled(memory)
    connections = []
    for n in range(count // 2):
        for port, ask in ((node.pb_port, ask_pb), (node.http_port, ask_http)):
            connections.append(connect(port))
            ask(connections[-1], b"%d" % (n % 100))
    then, used = settled(memory), budget(node)
    for connection in connections:
        connection.close()
    after = settled(memory)
    memory.stop()
    row("idle, after a put and a get of 60 KB", count, before, memory.most, then, after, used)


def load(node, keys):
    with connect(node.pb_port) as connection:
        for start in range(0, keys, PIPELINE):
            batch = range(start, min(start + PIPELINE, keys))
            connection.sendall(b"".join(put(b"key-%012d" % n, b"v", index=n) for n in batch))
            for _ in batch:
                expect(connection, PUT_ANSWER)


def unread(node, name, port, request, count):
    memory = Memory(node.process)
    before = settled(memory)
    connections = [connect(port, RECEIVE_BUFFER_BYTES) for _ in range(count)]
    for connection in connections:
        connection.sendall(request)
    time.sleep(SETTLE_SECONDS)
    then, used = settled(memory), budget(node)
    for connection in connections:
        connection.close()
    after = settled(memory)
    memory.stop()
    row(name, count, before, memory.most, then, after, used)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", help="the program to measure [the result of cargo build]")
    parser.add_argument("--connections", type=int, default=10_000, help="idle connections [10000]")
    parser.add_argument("--listings", type=int, default=50, help="listings at once, and queries at once [50]")
    parser.add_argument("--keys", type=int, default=300_000, help="keys of the bucket that is listed [300000]")
    options = parser.parse_args()
    if options.program:
        os.environ["OMBAK_PROGRAM"] = str(Path(options.program).resolve())
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    print("| clients | count | before, MB | at most, MB | then, MB | KB each | counted in the budget, MB | closed, MB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    # Connections must not be closed for being idle while others are still opened.
    with Node({"storage_backend": "bitcask", "http.header_timeout": "10m"}) as node:
        idle(node, options.connections)
    with Node({"storage_backend": "leveled"}) as node:
        load(node, options.keys)
        index = field(1, b"b") + field(2, b"n_int") + field(3, 1) + field(5, b"0") + field(6, b"%d" % options.keys)
        http = "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for name, port, request in [
            ("keys, Protocol Buffers", node.pb_port, frame(LIST_KEYS, field(1, b"b"))),
            ("index query, Protocol Buffers", node.pb_port, frame(INDEX, index)),
            ("index query with terms, Protocol Buffers", node.pb_port, frame(INDEX, index + field(7, 1))),
            ("streamed index query, Protocol Buffers", node.pb_port, frame(INDEX, index + field(8, 1))),
            ("keys, HTTP", node.http_port, (http % "/buckets/b/keys?keys=true").encode()),
            ("streamed keys, HTTP", node.http_port, (http % "/buckets/b/keys?keys=stream").encode()),
            ("index query, HTTP", node.http_port, (http % f"/buckets/b/index/n_int/0/{options.keys}").encode()),
        ]:
            unread(node, name, port, request, options.listings)


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
