"""What the attacks on a node share: requests in Protocol Buffers, victims whose requests are timed,
and the judgement of what they saw.

A victim runs in a process of its own, so that the work of the attackers in Python does not show in
its times."""
import argparse
import multiprocessing
import resource
import socket
import struct
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from cluster import under_test  # noqa: E402

ERROR, GET, GET_ANSWER, PUT, PUT_ANSWER = 0, 9, 10, 11, 12
LIST_BUCKETS, LIST_KEYS, LIST_KEYS_ANSWER, MAP_REDUCE, INDEX, RANGE, RANGE_ANSWER = 15, 17, 18, 23, 25, 40, 41

TIMEOUT_SECONDS = 60
PIPELINE = 200
# A client that does not read has a small receive buffer, so that its answer stays in the node.
UNREAD_BUFFER_BYTES = 4_096
BUCKET = b"many"


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    """A field of a message: bytes, or a number that is not negative."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def frame(code, body=b""):
    return struct.pack(">IB", len(body) + 1, code) + body


def put(bucket, key, value, index=None):
    content = field(1, value)
    if index is not None:
        content += field(10, field(1, b"n_int") + field(2, b"%d" % index))
    return frame(PUT, field(1, bucket) + field(2, key) + field(4, content))


def get(bucket, key):
    return frame(GET, field(1, bucket) + field(2, key))


def list_keys(bucket):
    return frame(LIST_KEYS, field(1, bucket))


def list_buckets():
    return frame(LIST_BUCKETS, field(2, 1))


def index_range(bucket):
    body = field(1, bucket) + field(2, b"n_int") + field(3, 1) + field(5, b"0") + field(6, b"999999999")
    return frame(INDEX, body + field(8, 1))


def map_reduce(job):
    return frame(MAP_REDUCE, field(1, job) + field(2, b"application/json"))


def objects_of_range(bucket, results_max=None, continuation=None):
    """Request 40: the objects of a range of keys."""
    body = field(1, bucket) + field(2, b"")
    if continuation is not None:
        body += field(6, continuation)
    if results_max is not None:
        body += field(7, results_max)
    return frame(RANGE, body)


def connect(port, receive_buffer_bytes=None, address="127.0.0.1"):
    """A connection to a node from one of the addresses of this machine."""
    connection = socket.socket()
    if receive_buffer_bytes:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.settimeout(TIMEOUT_SECONDS)
    connection.bind((address, 0))
    connection.connect(("127.0.0.1", port))
    return connection


def receive(connection, count):
    out = bytearray()
    while len(out) < count:
        part = connection.recv(min(count - len(out), 1 << 20))
        if not part:
            raise EOFError("the node closed the connection")
        out += part
    return bytes(out)


def receive_message(connection):
    """The code and the body of the next message."""
    length, code = struct.unpack(">IB", receive(connection, 5))
    return code, receive(connection, length - 1)


def expect(connection, code):
    found, body = receive_message(connection)
    if found != code:
        raise ValueError(f"message {found} in place of {code}: {body[:200]}")
    return body


def fields(body):
    """The fields of a message: (number, bytes or number)."""
    at = 0

    def number():
        nonlocal at
        shift = out = 0
        while True:
            byte = body[at]
            at += 1
            out |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return out

    while at < len(body):
        tag = number()
        if tag & 7 == 0:
            yield tag >> 3, number()
        else:
            length = number()
            yield tag >> 3, body[at:at + length]
            at += length


def keys_listed(connection, bucket):
    """The number of keys in a listing."""
    connection.sendall(list_keys(bucket))
    count = 0
    while True:
        found = list(fields(expect(connection, LIST_KEYS_ANSWER)))
        count += sum(number == 1 for number, _ in found)
        if (2, 1) in found:
            return count


def load(port, count, value_bytes, bucket=BUCKET):
    """Puts objects whose keys have 16 bytes and that have an index entry each."""
    value = b"v" * value_bytes
    with connect(port) as connection:
        for start in range(0, count, PIPELINE):
            batch = range(start, min(start + PIPELINE, count))
            connection.sendall(b"".join(put(bucket, b"key-%012d" % n, value, index=n) for n in batch))
            for _ in batch:
                expect(connection, PUT_ANSWER)


class Times:
    """How long the requests of a victim took, in milliseconds."""

    def __init__(self, kind, took_ms, seconds):
        self.kind, self.seconds, self.took_ms = kind, seconds, sorted(took_ms)

    def share(self, share):
        return self.took_ms[min(len(self.took_ms) - 1, int(len(self.took_ms) * share))] if self.took_ms else float("inf")

    @property
    def p99_ms(self):
        return self.share(0.99)

    @property
    def rate(self):
        return len(self.took_ms) / self.seconds

    def __str__(self):
        return (f"{self.kind}: {self.rate:.0f}/s, p50 {self.share(0.5):.2f} ms, p99 {self.p99_ms:.2f} ms, "
                f"most {self.share(1):.1f} ms")


class Victim:
    """Another tenant: it gets and puts small objects on one connection each, and its requests are
    timed."""

    def __init__(self, port, pause_seconds=0.001):
        self.here, there = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=_serve_victim, args=(there, port, pause_seconds), daemon=True)
        self.process.start()

    def watch(self, seconds):
        """Sends requests for some time. Returns the times of the gets and of the puts."""
        self.begin(seconds)
        return self.end()

    def begin(self, seconds):
        self.here.send(seconds)

    def end(self):
        return self.here.recv()

    def close(self):
        self.here.send(None)
        self.process.join()


def _serve_victim(pipe, port, pause_seconds):
    connection = connect(port)
    number = 0
    while (seconds := pipe.recv()) is not None:
        gets, puts = [], []
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            number += 1
            key = b"victim-%d" % (number % 100)
            for took_ms, request, answer in ((puts, put(b"own", key, b"value"), PUT_ANSWER), (gets, get(b"own", key), GET_ANSWER)):
                sent = time.perf_counter()
                connection.sendall(request)
                expect(connection, answer)
                took_ms.append(1_000 * (time.perf_counter() - sent))
            time.sleep(pause_seconds)
        took = time.monotonic() - began
        pipe.send((Times("gets", gets, took), Times("puts", puts, took)))


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def reset_peak(pid):
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def peak_bytes(pid):
    """The most bytes that were resident since `reset_peak`."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM:"))


class Failed(Exception):
    """The node did not do what it must."""


def check(holds, what):
    if not holds:
        raise Failed(what)


# The usual limits, within which others are served again some seconds after an attack. They are
# wide, because machines that run the tests do other work beside them.
SETTLE_SECONDS = 5
SETTLED_MS_MAX = 50
ONE_KEY_SECONDS_MAX = 5
# A request takes a tenth of a millisecond. Processes that want the processor take turns of some
# milliseconds, and an attack in the same machine is such a process.
BESIDE_MS_MAX = 500
# The node gives memory back to the system within this time, without any request.
MEMORY_BACK_SECONDS_MAX = 30


class Attack:
    """An attack on a node, with a victim beside it. A subclass says what the attackers do."""

    name = ""
    # What the node has before the attack.
    objects, value_bytes = 20_000, 100
    settings = {}
    # The number of nodes if the attack is on one of a cluster, or 0.
    size = 0

    def __init__(self, scale=1, backend="bitcask"):
        self.scale, self.backend, self.pid = scale, backend, None

    def begin(self, port):
        """Begins the attack. Returns what `end` ends."""
        raise NotImplementedError

    def end(self, attackers):
        for attacker in attackers:
            attacker.close()

    def judge_after(self, node, before_bytes):
        """Checks what this attack alone can harm, after its end."""

    def wait_memory_back(self, before_bytes, more_bytes_max):
        """Waits until the node has given back what the attack made it take, but for some bytes."""
        ended = time.monotonic()
        while (more := resident_bytes(self.pid) - before_bytes) > more_bytes_max:
            waited = time.monotonic() - ended
            check(waited <= MEMORY_BACK_SECONDS_MAX, f"{more >> 20} MB are still resident after {waited:.0f} s")
            time.sleep(0.1)
        print(f"{self.name}: the memory was back after {time.monotonic() - ended:.1f} s", flush=True)

    def run(self, seconds=3):
        with under_test({"storage_backend": self.backend, **self.settings}, self.size) as node:
            self.pid = node.process.pid
            load(node.pb_port, self.objects * self.scale, self.value_bytes)
            load(node.pb_port, 1, 1, bucket=b"one")
            victim = Victim(node.pb_port)
            try:
                self._run(node, victim, seconds)
            finally:
                victim.close()

    def _run(self, node, victim, seconds):
        victim.watch(0.5)
        before, before_bytes = victim.watch(seconds), resident_bytes(self.pid)
        victim.begin(seconds)
        attackers = self.begin(node.pb_port)
        beside = victim.end()
        with connect(node.pb_port) as connection:
            began = time.monotonic()
            check(keys_listed(connection, b"one") == 1, "a listing of one key has one key")
            listing_seconds = time.monotonic() - began
        self.end(attackers)
        ended = time.monotonic()
        self._wait_served(victim, before)
        settled_seconds = time.monotonic() - ended
        for was, then in zip(before, beside):
            print(f"{self.name}: {was.kind} before: {was}; beside the attack: {then}; p99 {then.p99_ms / was.p99_ms:.1f} times")
        print(f"{self.name}: a listing of one key beside it took {listing_seconds * 1000:.0f} ms; "
              f"others were served as before after {settled_seconds:.1f} s", flush=True)
        check(listing_seconds <= ONE_KEY_SECONDS_MAX, f"a listing of one key took {listing_seconds:.1f} s")
        for then in beside:
            check(then.p99_ms <= BESIDE_MS_MAX, f"beside the attack: {then}")
        self.judge_after(node, before_bytes)

    def _wait_served(self, victim, before):
        """Waits until the victim is served within its usual limits; fails after some seconds."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            now = victim.watch(0.5)
            if all(then.share(0.9) <= max(3 * was.p99_ms, SETTLED_MS_MAX) for was, then in zip(before, now)):
                return
            check(time.monotonic() < deadline, f"{SETTLE_SECONDS} s after the attack: {now[0]}; {now[1]}; before: {before[0]}")


def unread(port, requests):
    """Connections that send a request each and never read the answers."""
    connections = [connect(port, UNREAD_BUFFER_BYTES) for _ in requests]
    for connection, request in zip(connections, requests):
        connection.sendall(request)
    return connections


class Readers:
    """Processes that send a request again and again, and read the answers."""

    def __init__(self, port, count, request, ends):
        self.processes = [multiprocessing.Process(target=_read, args=(port, request, ends), daemon=True) for _ in range(count)]
        for process in self.processes:
            process.start()

    def close(self):
        for process in self.processes:
            process.kill()
            process.join()


def _read(port, request, ends):
    connection = connect(port)
    while True:
        connection.sendall(request)
        while not ends(receive_message(connection)[1]):
            pass


def main(attack):
    """Runs an attack of this module: `--scale N` for more of it, `--backend NAME`."""
    words = argparse.ArgumentParser()
    words.add_argument("--scale", type=int, default=5)
    words.add_argument("--backend", default="bitcask")
    words.add_argument("--seconds", type=float, default=10)
    asked = words.parse_args()
    try:
        attack(asked.scale, asked.backend).run(asked.seconds)
    except Failed as why:
        sys.exit(f"{attack.name}: {why}")
