#!/usr/bin/env python3
"""Counts the instructions of gets and puts with callgrind, for one program or for several to
compare.

Usage: instructions.py [--operations N] [--nodes N] PROGRAM...

Each program runs as a cluster of --nodes (3) nodes with n_val 3 and bitcask, or as one node. The
first node runs under callgrind, coordinates the requests of one client, and answers as a replica of
them. The client sends N (4,000) gets or puts of 1 KiB, one after the other. What the node does
besides, such as the messages by which nodes find failures, is counted while no client asks, for as
long as the requests took, and taken off. Counts of instructions hardly depend on what else the
machine does.

For each kind of request the program prints the instructions of one request in user space, and how
many times those of the first program they are. It needs valgrind."""
import argparse
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import measure

sys.path.insert(0, str(measure.ROOT / "tests" / "operations"))

import cluster as support  # noqa: E402
import members  # noqa: E402

NETWORK = "127.0.11"
VALUE = b"x" * 1024
KEYS = 500
GET, PUT = 9, 11
# A node under callgrind takes about fifty times as long.
START_SECONDS_MAX = 300
# Nodes must not take the slow one for down.
SETTINGS = {"ring_size": 16, "storage_backend": "bitcask", "logger.level": "warning"}


def field(number, text):
    length, varint = len(text), b""
    while length >= 0x80:
        varint, length = varint + bytes([length & 0x7F | 0x80]), length >> 7
    return bytes([number << 3 | 2]) + varint + bytes([length]) + text


class Client:
    """A client over Protocol Buffers that knows two requests."""

    def __init__(self, address):
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, code, number):
        place = field(1, b"bucket") + field(2, b"key-%06d" % (number % KEYS))
        body = place if code == GET else place + field(4, field(1, VALUE) + field(2, b"text/plain"))
        self.socket.sendall(struct.pack(">IB", len(body) + 1, code) + body)
        length, answer = struct.unpack(">IB", self.receive(5))
        self.receive(length - 1)
        if answer != code + 1:
            raise SystemExit(f"a request was answered with code {answer}")

    def receive(self, length):
        parts = b""
        while len(parts) < length:
            part = self.socket.recv(length - len(parts))
            if not part:
                raise SystemExit("the node closed the connection")
            parts += part
        return parts


class CountedMember(members.Member):
    """A node under callgrind that counts between `counting(True)` and `counting(False)`."""

    def start(self, *options, **_):
        self.counts = Path(tempfile.mkdtemp(prefix="ombak-callgrind-"))
        self.prefix = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no",
                       f"--callgrind-out-file={self.counts}/counts"]
        try:
            self.process = super().start(*options)
        finally:
            self.prefix = []
        return self.process

    def control(self, *words):
        subprocess.run(["callgrind_control", *words, str(self.process.pid)], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    def count(self, work):
        """The instructions of the node while something is done."""
        self.control("--instr=on")
        self.control("--zero")
        work()
        before = set(self.counts.iterdir())
        self.control("--dump")
        dumped = members.wait_for("the counts", lambda: [p for p in self.counts.iterdir() if p not in before], 60)
        self.control("--instr=off")
        return members.wait_for("the sum of the counts", lambda: total_of(dumped[0]), 60)


def total_of(path):
    lines = path.read_text().splitlines()
    found = [line for line in lines if line.startswith(("totals:", "summary:"))]
    return int(found[-1].split()[1]) if found else None


def measured(program, nodes, operations):
    """The instructions of a get and of a put."""
    shape = members.Cluster(nodes, NETWORK, {"platform_log_dir": "log", **SETTINGS})
    first = shape.nodes[0]
    first.__class__ = CountedMember
    first.counts = None
    for node in shape.nodes:
        node.program = program
    support.START_SECONDS_MAX = START_SECONDS_MAX
    with shape:
        client = Client(first.pb)
        results = []
        for code in (PUT, GET):
            for number in range(KEYS):
                client.ask(code, number)
            started = time.monotonic()
            busy = first.count(lambda: [client.ask(code, number) for number in range(operations)])
            took = time.monotonic() - started
            idle = first.count(lambda: time.sleep(took))
            results.append((busy - idle) / operations)
    shutil.rmtree(first.counts, ignore_errors=True)
    put, get = results
    return {"get": get, "put": put}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=4_000)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("programs", nargs="+", metavar="PROGRAM", type=Path)
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        sys.exit("this needs valgrind")
    first = None
    print(f"| program | request | instructions | times the first |\n| --- | --- | ---: | ---: |")
    for program in arguments.programs:
        found = measured(program.resolve(), arguments.nodes, arguments.operations)
        first = first or found
        for request, count in found.items():
            print(f"| {program} | {request} | {count:,.0f} | {count / first[request]:.4f} |", flush=True)


if __name__ == "__main__":
    main()
