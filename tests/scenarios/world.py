"""Nodes for the scenarios, and what talks to them."""
import http.client
import shutil
import socket
import struct
import sys
import tempfile
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from cluster import SECRET, START_TRIES_MAX, STOP_SECONDS_MAX, Member, Refused, form, free_port, make_secret, wait_for  # noqa: E402,F401
from node import NodeError, clean_environment, free_ports, program  # noqa: E402,F401

TIMEOUT_SECONDS = 60
RING_SIZE = 16
# The preference lists of so many keys have every node that is up.
PROBES = 60


def equal(found, wanted, what):
    if found != wanted:
        raise AssertionError(f"{what}: {found!r} in place of {wanted!r}")


class World:
    """Nodes that are alone at first: a context manager. Numbers of nodes begin with 1."""

    def __init__(self, count, settings=None):
        self.count, self.settings = count, {"ring_size": RING_SIZE, **(settings or {})}
        self.directory = Path(tempfile.mkdtemp(prefix="ombak-scenario-"))
        self.members, self.processes = {}, {}
        # Nodes that have not joined the others.
        self.outside = set()

    def __enter__(self):
        try:
            make_secret(self.directory / SECRET)
            for number in range(1, self.count + 1):
                self.add(number)
        except BaseException:
            self._discard()
            raise
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            for member in self.members.values():
                print(f"--- the last output of node {member.number}\n{member.said()[-3000:]}---", file=sys.stderr)
        self._discard()

    def __getitem__(self, number):
        return self.members[number]

    def all(self):
        return list(self.members.values())

    def add(self, number, **settings):
        """Starts a new node on free ports. Other ports are tried if a process took one
        meanwhile."""
        for attempt in range(START_TRIES_MAX):
            http_port, pb_port = free_ports(2)
            address = f"127.0.1.{number}"
            port = free_port(address)
            member = Member(self.directory, number, f"dev{number}@127.0.0.1", pb=f"127.0.0.1:{pb_port}",
                            http=f"127.0.0.1:{http_port}", peer=f"{address}:{port}", settings=dict(self.settings))
            for name, value in settings.items():
                member.settings[name.replace("__", ".")] = value.format(port=port) if isinstance(value, str) else value
            self.members[number] = member
            try:
                self.start(number)
                return
            except Refused:
                self.kill(number)
                if attempt == START_TRIES_MAX - 1 or "in use" not in member.said():
                    raise

    def start(self, number):
        self.processes[number] = self[number].start()
        self[number].wait_ready(self.processes[number])

    def stop(self, number):
        """Stops a node in order; it has to end with status 0."""
        process = self.processes.pop(number)
        process.terminate()
        status = process.wait(STOP_SECONDS_MAX)
        equal(status, 0, f"the status with which node {number} ends")

    def kill(self, number):
        process = self.processes.pop(number)
        process.kill()
        process.wait()

    def join_all(self):
        form(self.all())
        self.wait_all_up()

    def wait_all_up(self):
        """Waits until every node that runs takes exactly the nodes that run for up, apart from
        those that have not joined."""
        def agree():
            asked = set(self.processes) - self.outside
            return all(self.ups(number) == {self[n].name for n in asked} for number in asked)
        wait_for("the agreement about who is up", agree, TIMEOUT_SECONDS)

    def ups(self, number):
        """The names of the nodes that a node takes for up. Only those are in preference lists."""
        with Pb(self[number]) as pb:
            lists = [pb.preference_list("probe", f"k{key}") for key in range(PROBES)]
        return {name for found in lists for name, _ in found}

    def restart_missing(self):
        for number in set(self.members) - set(self.processes):
            self.start(number)
        self.wait_all_up()

    def _discard(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def ask(member, method, path, body=None, headers=None):
    """One HTTP request. Returns the status, the headers with names in lower case, and the body."""
    host, _, port = member.http.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=TIMEOUT_SECONDS)
    try:
        given = {"Content-Type": "application/json" if path.split("?")[0].endswith("/props") else "text/plain"}
        given.update(headers or {})
        connection.request(method, path, body=body, headers=given if body is not None or headers else {})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def key_path(bucket, key, kind=None):
    quote = lambda name: urllib.parse.quote(name, safe="")  # noqa: E731
    place = f"/buckets/{quote(bucket)}/keys/{quote(key)}"
    return f"/types/{quote(kind)}{place}" if kind else place


def values(member, bucket, key, kind=None, query=""):
    """The values that a read finds, in order."""
    status, headers, body = ask(member, "GET", key_path(bucket, key, kind) + query, headers={"Accept": "multipart/mixed, */*;q=0.5"})
    if status == 404:
        return []
    if status == 200:
        return [body.decode()]
    equal(status, 300, f"the status of reading {bucket}/{key}")
    boundary = headers["content-type"].split("boundary=")[1].strip('"').encode()
    parts = body.split(b"--" + boundary)[1:-1]
    return sorted(part.split(b"\r\n\r\n", 1)[1].rsplit(b"\r\n", 1)[0].decode() for part in parts)


def clock(member, bucket, key, kind=None):
    return ask(member, "GET", key_path(bucket, key, kind), headers={"Accept": "multipart/mixed, */*;q=0.5"})[1]["x-riak-vclock"]


def put(member, bucket, key, value, kind=None, query="", **headers):
    """The status and body of a put over HTTP. Names of headers have `_` in place of `-`, unless
    they have a `-`."""
    headers = {name if "-" in name else name.replace("_", "-"): text for name, text in headers.items()}
    status, _, body = ask(member, "PUT", key_path(bucket, key, kind) + query, value.encode(), headers)
    return status, body.decode()


class Pb:
    """One connection over Protocol Buffers. Messages are lists of (tag, value): numbers are
    varints, and bytes and texts are delimited by their length."""

    def __init__(self, member):
        host, _, port = member.pb.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=TIMEOUT_SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def ask(self, code, fields=()):
        """Returns the code of the answer and its fields, a list of (tag, value)."""
        self.send(code, fields)
        return self.receive()

    def send(self, code, fields=()):
        body = b"".join(encode(tag, value) for tag, value in fields)
        self.socket.sendall(struct.pack(">IB", len(body) + 1, code) + body)

    def receive(self):
        length, code = struct.unpack(">IB", self._read(5))
        return code, list(decode(self._read(length - 1)))

    def error(self, code, fields=()):
        """The text of the error with which a request ends."""
        answer, fields = self.ask(code, fields)
        equal(answer, 0, f"the code of the answer to {code}")
        return dict(fields)[1].decode()

    def list_keys(self, bucket, kind=None):
        """All keys of a bucket, in order."""
        keys = []
        code, fields = self.ask(17, [(1, bucket), *([(3, kind)] if kind else [])])
        while True:
            equal(code, 18, "the code of a listing")
            keys += [value.decode() for tag, value in fields if tag == 1]
            if (2, 1) in fields:
                return sorted(keys)
            code, fields = self.receive()

    def preference_list(self, bucket, key):
        """The names of the nodes of a preference list, each with whether it is a primary."""
        code, fields = self.ask(33, [(1, bucket), (2, key)])
        equal(code, 34, "the code of a preference list")
        rows = [dict(decode(value)) for tag, value in fields if tag == 1]
        return [(row[2].decode(), bool(row[3])) for row in rows]

    def _read(self, length):
        found = b""
        while len(found) < length:
            part = self.socket.recv(length - len(found))
            if not part:
                raise NodeError("the node closed the connection")
            found += part
        return found


def varint(number):
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def encode(tag, value):
    if isinstance(value, int):
        return varint(tag << 3) + varint(int(value))
    value = value.encode() if isinstance(value, str) else value
    return varint(tag << 3 | 2) + varint(len(value)) + value


def message(*fields):
    return b"".join(encode(tag, value) for tag, value in fields)


def decode(text):
    at = 0

    def number():
        nonlocal at
        found = shift = 0
        while True:
            byte = text[at]
            at += 1
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return found

    while at < len(text):
        head = number()
        if head & 7 == 0:
            yield head >> 3, number()
        elif head & 7 == 5:
            yield head >> 3, struct.unpack_from("<f", text, at)[0]
            at += 4
        else:
            length = number()
            yield head >> 3, text[at:at + length]
            at += length
