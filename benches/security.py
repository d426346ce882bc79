#!/usr/bin/env python3
"""Measures what security costs a node.

Usage: security.py [--rounds N] [--seconds S] [--before PROGRAM]

Two nodes run with TLS for clients: one is open, the other one is secured. All windows of a round
follow one another, so that what the machine does besides meets all of them. Each figure is the
median of the rounds; ratios and differences are computed in each round.

* Processor time of a request of 1 KiB, gets and puts: over Protocol Buffers plain and over TLS, and
  over HTTPS with Basic authentication, with a certificate of the client, and on the open node.
* The 99th percentile of requests on TLS connections that stay, at a fixed rate: alone, while NEW
  connections a second with verified credentials come to the same node, and while as many come to
  the other node. The last one shows what the clients of the new connections take from the machine.
* With --before, the instructions of requests while security is off, with those of another program,
  such as the one before security (it needs valgrind).

The load comes from processes of this program. All keys of certificates are P-256. The program is
OMBAK_PROGRAM, or the result of cargo build."""
import argparse
import base64
import multiprocessing
import os
import ssl
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import measure

from certificates import Authority
from node import Node, free_ports, program

HERE = Path(__file__).resolve().parent
# What the processes of the load work with is made before they begin.
FORKING = multiprocessing.get_context("fork")
TIMEOUT_SECONDS = 60
USER, PASSWORD, CERTIFICATE_USER = "alice", "secret", "bob"
COMMANDS = [
    ("add-user", USER, f"password={PASSWORD}"), ("add-source", USER, "127.0.0.1/32", "password"),
    ("add-user", CERTIFICATE_USER), ("add-source", CERTIFICATE_USER, "127.0.0.1/32", "certificate"),
    ("grant", "riak_kv.get,riak_kv.put", "on", "default", "to", f"{USER},{CERTIFICATE_USER}"), ("enable",),
]
KEYS = 500
VALUE = b"x" * 1024
GET, PUT, START_TLS, AUTH, AUTH_RESP, PING = 9, 11, 255, 253, 254, 1
# How many processes make load, and how many connections each of them has.
PROCESSES, CONNECTIONS = 2, 6
# Requests a second on the connections that stay, and their number.
STEADY_RATE, STEADY_CONNECTIONS = 400, 8
NEW_RATE, NEW_PROCESSES = 200, 4
# What was wanted.
PB_RATIO_MAX, BASIC_US_MAX, P99_RATIO_MAX, INSTRUCTIONS_RATIO_MAX = 1.4, 2.0, 2.0, 1.01


def field(number, text):
    length, varint = len(text), b""
    while length >= 0x80:
        varint, length = varint + bytes([length & 0x7F | 0x80]), length >> 7
    return bytes([number << 3 | 2]) + varint + bytes([length]) + text


def frame(code, body=b""):
    return struct.pack(">IB", len(body) + 1, code) + body


class Pb:
    """A connection over Protocol Buffers."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pending = b""

    @staticmethod
    def request(kind, number):
        place = field(1, b"bucket") + field(2, b"key-%06d" % (number % KEYS))
        if kind == "get":
            return frame(GET, place)
        return frame(PUT, place + field(4, field(1, VALUE) + field(2, b"text/plain")))

    def send(self, request):
        self.socket.sendall(request)

    def receive(self):
        """The code and the length of an answer."""
        while len(self.pending) < 5:
            self.more()
        length, code = struct.unpack_from(">IB", self.pending)
        while len(self.pending) < 4 + length:
            self.more()
        self.pending = self.pending[4 + length:]
        return code, length

    def more(self):
        part = self.socket.recv(65_536)
        if not part:
            raise SystemExit("the node closed the connection")
        self.pending += part

    def ask(self, code, body=b"", wanted=None):
        self.send(frame(code, body))
        found, _ = self.receive()
        if found != (code + 1 if wanted is None else wanted):
            raise SystemExit(f"message {code} was answered with {found}")

    def check(self, kind):
        code, length = self.receive()
        if code != (GET if kind == "get" else PUT) + 1 or kind == "get" and length < len(VALUE):
            raise SystemExit(f"a {kind} failed: message {code} with {length} bytes")

    def close(self):
        self.socket.close()


class TlsPb(Pb):
    """A connection that has gone on with TLS, and whose user is known."""

    def __init__(self, port, context):
        super().__init__(port)
        self.ask(START_TLS, wanted=START_TLS)
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.ask(AUTH, field(1, USER.encode()) + field(2, PASSWORD.encode()), wanted=AUTH_RESP)


class Https(Pb):
    """A connection over HTTPS, with credentials in a header or without."""

    HEADER = base64.b64encode(f"{USER}:{PASSWORD}".encode())

    def __init__(self, port, context, has_header):
        super().__init__(port)
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.lines = b"Host: localhost\r\n" + (b"Authorization: Basic %s\r\n" % self.HEADER if has_header else b"")

    def request(self, kind, number):
        head = b"%s /buckets/bucket/keys/key-%06d HTTP/1.1\r\n%s" % (kind.upper().encode(), number % KEYS, self.lines)
        if kind == "get":
            return head + b"\r\n"
        return head + b"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(VALUE) + VALUE

    def check(self, kind):
        while b"\r\n\r\n" not in self.pending:
            self.more()
        head, _, self.pending = self.pending.partition(b"\r\n\r\n")
        if head[9:12] not in (b"200", b"204"):
            raise SystemExit(f"a {kind} failed: {head[:200]!r}")
        lines = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
        length = int(lines.get(b"content-length", b"0"))
        while len(self.pending) < length:
            self.more()
        self.pending = self.pending[length:]


class Server(Node):
    """A node with TLS for clients, which is secured if asked for."""

    def __init__(self, authority, is_secured):
        certificate, key = authority.directory / "server.pem", authority.directory / "server.key"
        (self.https_port,) = free_ports(1)
        super().__init__({
            "storage_backend": "bitcask", "check_crl": "off", "logger.level": "warning",
            "listener.https.internal": f"127.0.0.1:{self.https_port}",
            "ssl.certfile": str(certificate), "ssl.keyfile": str(key), "ssl.cacertfile": str(authority.certificate)})
        self.is_secured = is_secured

    def __enter__(self):
        super().__enter__()
        try:
            for words in COMMANDS if self.is_secured else ():
                self.admin("security", *words)
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Child:
    """A process that carries out a function for each message: `prepare` makes what it works with,
    in that process."""

    def __init__(self, prepare, work):
        self.pipe, other = FORKING.Pipe()
        self.process = FORKING.Process(target=self.serve, args=(other, prepare, work), daemon=True)
        self.process.start()
        self.result()

    @staticmethod
    def serve(pipe, prepare, work):
        state = prepare()
        pipe.send(None)
        while True:
            pipe.send(work(state, *pipe.recv()))

    def begin(self, *words):
        self.pipe.send(words)

    def result(self):
        if not self.pipe.poll(10 * TIMEOUT_SECONDS):
            raise SystemExit("a process of the load does not answer")
        try:
            return self.pipe.recv()
        except EOFError:
            raise SystemExit("a process of the load has ended") from None


def filled(connect, count):
    """Connections to a server that has all keys."""
    connections = [connect() for _ in range(count)]
    for number in range(KEYS):
        connections[0].send(connections[0].request("put", number))
        connections[0].check("put")
    return connections


def ask_all(connections, kind, seconds):
    """Sends requests on all connections, reads all answers, and so on. Returns their count."""
    until, count = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        for at, connection in enumerate(connections):
            connection.send(connection.request(kind, count + at))
        for connection in connections:
            connection.check(kind)
        count += len(connections)
    return count


class Load:
    """Processes with connections of one kind to a server."""

    def __init__(self, server, connect):
        self.server = server
        self.children = [Child(lambda: filled(connect, CONNECTIONS), ask_all) for _ in range(PROCESSES)]

    def cost_us(self, kind, seconds):
        """The processor time of the server for one request."""
        before = self.server.cpu_seconds()
        for child in self.children:
            child.begin(kind, seconds)
        count = sum(child.result() for child in self.children)
        return (self.server.cpu_seconds() - before) * 1e6 / count


def paced(connections, seconds):
    """The times that requests at a fixed rate take, from when each of them was due."""
    waits, began = [], time.monotonic()
    for number in range(int(STEADY_RATE * seconds)):
        due = began + number / STEADY_RATE
        time.sleep(max(0, due - time.monotonic()))
        connection = connections[number % len(connections)]
        connection.send(connection.request("get", number))
        connection.check("get")
        waits.append(time.monotonic() - due)
    return waits


def come_and_go(connect, seconds):
    """Opens new connections at a fixed rate, each for one ping. Returns their count."""
    rate, began, count = NEW_RATE / NEW_PROCESSES, time.monotonic(), 0
    while time.monotonic() < began + seconds:
        time.sleep(max(0, began + count / rate - time.monotonic()))
        connection = connect()
        connection.ask(PING)
        connection.close()
        count += 1
    return count


class Steady:
    """Connections that stay, and windows in which others come and go."""

    def __init__(self, connect, newcomers):
        self.child = Child(lambda: filled(connect, STEADY_CONNECTIONS), paced)
        self.newcomers = {name: [Child(lambda: come, come_and_go) for _ in range(NEW_PROCESSES)]  # noqa: B023
                          for name, come in newcomers.items()}

    def window(self, name, seconds):
        """The 99th percentile in milliseconds, and the new connections a second."""
        others = self.newcomers.get(name, [])
        for child in [*others, self.child]:
            child.begin(seconds)
        waits = sorted(self.child.result())
        return waits[len(waits) * 99 // 100] * 1000, sum(child.result() for child in others) / seconds


def costs(loads, rounds, seconds):
    """The processor times of all loads: figures[load, kind] has one of each round."""
    figures = {}
    for kind in ("put", "get"):
        for load in loads.values():
            load.cost_us(kind, min(1, seconds))
        for number in range(rounds):
            # Each load is sometimes the first one.
            for name in [*loads][number % len(loads):] + [*loads][:number % len(loads)]:
                figures.setdefault((name, kind), []).append(loads[name].cost_us(kind, seconds))
    return figures


def print_costs(figures):
    def middle(name, kind):
        return statistics.median(figures[name, kind])

    print("\n| request | plain, us | over TLS, us | times | wanted |\n| --- | ---: | ---: | ---: | ---: |")
    for kind in ("get", "put"):
        ratio = statistics.median(b / a for a, b in zip(figures["plain", kind], figures["tls", kind]))
        print(f"| {kind} | {middle('plain', kind):.1f} | {middle('tls', kind):.1f} | {ratio:.2f} | {PB_RATIO_MAX} |")
    print("\n| request | with Basic, us | without it | us | Basic takes longer by, us | wanted |\n| --- | ---: | --- | ---: | ---: | ---: |")
    for kind in ("get", "put"):
        for name in ("a certificate", "an open node"):
            more = statistics.median(b - a for a, b in zip(figures[name, kind], figures["basic", kind]))
            print(f"| {kind} | {middle('basic', kind):.1f} | {name} | {middle(name, kind):.1f} | {more:+.1f} | {BASIC_US_MAX} |")


def print_waits(steady, rounds, seconds):
    names = ["alone", "new connections here", "new connections elsewhere"]
    found = {name: [] for name in names}
    for name in names:
        steady.window(name, min(1, seconds))
    for _ in range(rounds):
        for name in names:
            found[name].append(steady.window(name, seconds))
    print(f"\n| {STEADY_RATE} gets a second over TLS | new connections a second | 99th percentile, ms | times | wanted |\n"
          "| --- | ---: | ---: | ---: | ---: |")
    for name in names:
        p99, rate = (statistics.median(column) for column in zip(*found[name]))
        ratio = statistics.median(one[0] / alone[0] for one, alone in zip(found[name], found["alone"]))
        print(f"| {name} | {rate:.0f} | {p99:.2f} | {ratio:.2f} | {P99_RATIO_MAX if name == names[1] else ''} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=5, help="of each window [5]")
    parser.add_argument("--before", type=Path, metavar="PROGRAM", help="count instructions, and compare with this program's")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        authority = Authority(directory)
        authority.issue("server", hosts=["localhost"])
        files = authority.issue(CERTIFICATE_USER)
        context = ssl.create_default_context(cafile=authority.certificate)
        with_certificate = ssl.create_default_context(cafile=authority.certificate)
        with_certificate.load_cert_chain(*files)
        with Server(authority, False) as open_node, Server(authority, True) as secured, Server(authority, True) as other:
            figures = costs({
                "plain": Load(open_node, lambda: Pb(open_node.pb_port)),
                "tls": Load(secured, lambda: TlsPb(secured.pb_port, context)),
                "basic": Load(secured, lambda: Https(secured.https_port, context, True)),
                "a certificate": Load(secured, lambda: Https(secured.https_port, with_certificate, False)),
                "an open node": Load(open_node, lambda: Https(open_node.https_port, context, False)),
            }, options.rounds, options.seconds)
            print_costs(figures)
            print_waits(Steady(lambda: TlsPb(secured.pb_port, context), {
                "new connections here": lambda: TlsPb(secured.pb_port, context),
                "new connections elsewhere": lambda: TlsPb(other.pb_port, context),
            }), options.rounds, options.seconds)
    if options.before:
        print(f"\nInstructions while security is off; wanted are at most {INSTRUCTIONS_RATIO_MAX} times the first:\n", flush=True)
        subprocess.run([sys.executable, str(HERE / "instructions.py"), str(options.before), str(program())], check=True)


if __name__ == "__main__":
    main()
