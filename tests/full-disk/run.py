#!/usr/bin/env python3
"""Fills the file system of a node, with the real program on a real file system.

The file system is a small tmpfs. It is mounted in a mount namespace of its own, which the script
enters by running itself again under `unshare -rm`. Where the system does not allow that, each test
counts as skipped, and the script says why.

Usage: run.py [BACKEND...]. The last line is `N passed, N failed, N skipped`."""
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))

from cluster import Refused  # noqa: E402
from leaving import a_member_with_a_full_disk_leaves  # noqa: E402
from node import Node, NodeError, program  # noqa: E402

BACKENDS = ["bitcask", "leveled", "leveldb"]
SIZE_BYTES = 64 << 20
# The reserve of a small disk is one part in this many (docs/backends.md).
RESERVE_SHARE = 20
VALUE_BYTES = 16 << 10
# Set in the environment of the script that runs in the mount namespace: where to mount.
MOUNT_AT = "OMBAK_TEST_MOUNT_AT"
# Far longer than anything here takes on a slow machine.
WAIT_SECONDS_MAX = 120
REQUEST_SECONDS_MAX = 60


class Failed(Exception):
    """The node does something else than it should."""


def check(condition, what):
    if not condition:
        raise Failed(what)


def wait_for(what, condition):
    """Waits until `condition` returns something true, and returns that."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise Failed(f"waited {WAIT_SECONDS_MAX} s for: {what}")


def free_bytes(directory):
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize


class Client:
    """Requests over one HTTP connection."""

    def __init__(self, node):
        self.connection = http.client.HTTPConnection(node.http, timeout=REQUEST_SECONDS_MAX)

    def ask(self, method, path, body=None):
        headers = {} if body is None else {"Content-Type": "application/octet-stream"}
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def ready(self):
        status, body = self.ask("GET", "/health/ready")
        return status, json.loads(body)

    def put(self, key, value):
        return self.ask("PUT", f"/buckets/b/keys/{key}", value)

    def get(self, key):
        return self.ask("GET", f"/buckets/b/keys/{key}")

    def delete(self, key):
        return self.ask("DELETE", f"/buckets/b/keys/{key}")


def check_refusal(status, body):
    """A refused put: an error that says why, and no timeout or closed connection."""
    check(status in (500, 503), f"a put on a full disk was answered {status}: {body!r}")
    text = body.decode("utf-8", "replace").lower()
    check("disk" in text and "full" in text, f"the refusal does not say that the disk is full: {body!r}")


def check_values(client, values):
    for key, value in values.items():
        status, body = client.get(key)
        check(status == 200 and body == value, f"key {key}: {status}, {len(body)} bytes")


def put_until_refused(client):
    """Puts values that cannot be compressed until one is refused. Returns what was acknowledged."""
    values = {}
    for number in range(2 * SIZE_BYTES // VALUE_BYTES):
        key, value = f"key{number}", os.urandom(VALUE_BYTES)
        status, body = client.put(key, value)
        if status != 204:
            check_refusal(status, body)
            return values
        values[key] = value
    raise Failed("more was acknowledged than fits on the disk")


def wait_until_ready(client):
    wait_for("the node is ready again", lambda: client.ready()[0] == 200)


def a_disk_that_clients_fill(node, disk):
    """Puts are refused, deletes are taken, merges make room, and the node recovers by itself."""
    client = Client(node)
    values = put_until_refused(client)
    check(len(values) > SIZE_BYTES // VALUE_BYTES // 4, f"only {len(values)} values were taken")
    wait_for("the node says that its disk is full", lambda: client.ready()[0] == 503)
    check(client.ready()[1].get("disk_full") is True, f"not told by /health/ready: {client.ready()[1]}")
    check_values(client, values)
    kept = {key: value for number, (key, value) in enumerate(values.items()) if number % 4 == 0}
    deleted = [key for key in values if key not in kept]
    for key in deleted:
        # Deletes and merges share what is left of the disk. A delete may have to wait for a merge.
        wait_for(f"the delete of {key} is taken", lambda: client.delete(key)[0] in (204, 404))
    wait_until_ready(client)
    # What is dead beyond that is left to the ordinary triggers of merges.
    check(free_bytes(disk) > SIZE_BYTES // RESERVE_SHARE, "the node is ready, and its reserve is not free")
    kept["new"] = os.urandom(VALUE_BYTES)
    status, body = client.put("new", kept["new"])
    check(status == 204, f"a put on a disk with room: {status} {body!r}")
    check_kept(client, kept, deleted)
    node.stop()
    node.start_again()
    check_kept(Client(node), kept, deleted)


def check_kept(client, kept, deleted):
    check_values(client, kept)
    for key in deleted:
        check(client.get(key)[0] == 404, f"{key} was deleted")


def a_disk_that_something_else_fills(node, disk):
    """Without any room writes are refused and reads go on. With room again the node recovers."""
    client = Client(node)
    values = {f"key{number}": os.urandom(VALUE_BYTES) for number in range(100)}
    for key, value in values.items():
        check(client.put(key, value)[0] == 204, f"put of {key}")
    filler = disk / "filler"
    with open(filler, "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass
    check(free_bytes(disk) == 0, "the disk is not full")

    def refused():
        status, body = client.put("late", os.urandom(VALUE_BYTES))
        return None if status == 204 else (status, body)

    check_refusal(*wait_for("a put is refused", refused))
    wait_for("the node says that its disk is full", lambda: client.ready()[0] == 503)
    check_values(client, values)
    # The node starts on a full disk as well.
    node.stop()
    filler.unlink()
    node.start_again()
    client = Client(node)
    check_values(client, values)
    with open(filler, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, free_bytes(disk))
    wait_for("the node says that its disk is full", lambda: client.ready()[0] == 503)
    check_refusal(*wait_for("a put is refused", refused))
    filler.unlink()
    wait_until_ready(client)
    check(client.put("later", b"value")[0] == 204, "a put after there was room again")
    check_values(client, values)


def tests_of(backend):
    """The tests that a backend has to pass. A tree of leveldb needs as much room to write its
    memory as it has in memory. On this small disk that is more than the reserve, so deletes can use
    up the disk (docs/backends.md)."""
    if backend == "leveldb":
        return [a_disk_that_something_else_fills]
    return [a_disk_that_clients_fill, a_disk_that_something_else_fills]


def leaves_of(backend):
    """The tests of clusters that a backend has to pass."""
    return [] if backend == "leveldb" else [a_member_with_a_full_disk_leaves]


def run_one(test, backend, mount_at):
    """Mounts an empty disk, runs a test on it with a node, and unmounts it."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE_BYTES},mode=700", "tmpfs", str(mount_at)], check=True)
    try:
        settings = {"storage_backend": backend, "ring_size": "8", "platform_data_dir": str(mount_at / "data"),
                    "delete_mode": "immediate"}
        with Node(settings) as node:
            test(node, mount_at)
    finally:
        subprocess.run(["umount", "--lazy", str(mount_at)], check=True)


def run_all(backends, mount_at):
    passed = failed = 0
    for backend in backends:
        for test in tests_of(backend) + leaves_of(backend):
            name = f"{test.__name__} ({backend})"
            began = time.monotonic()
            try:
                if test in leaves_of(backend):
                    test(backend, check)
                else:
                    run_one(test, backend, mount_at)
                passed += 1
                print(f"ok {name}: {time.monotonic() - began:.1f} s", flush=True)
            except (Failed, NodeError, Refused, OSError, http.client.HTTPException) as error:
                failed += 1
                print(f"FAILED {name}: {error}", flush=True)
                if not isinstance(error, Failed):
                    traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def why_not(mount_at):
    """Why this user cannot mount a file system here; None if that is possible."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount_at)]
    try:
        tried = subprocess.run(["unshare", "-rm", *mount], capture_output=True, text=True, timeout=REQUEST_SECONDS_MAX)
    except OSError as error:
        return f"unshare cannot be run: {error}"
    return None if tried.returncode == 0 else tried.stderr.strip() or f"exit code {tried.returncode}"


def main():
    backends = sys.argv[1:] or BACKENDS
    if MOUNT_AT in os.environ:
        return run_all(backends, Path(os.environ.pop(MOUNT_AT)))
    program()
    with tempfile.TemporaryDirectory(prefix="ombak-full-disk-") as mount_at:
        reason = why_not(mount_at)
        if reason:
            count = sum(len(tests_of(backend) + leaves_of(backend)) for backend in backends)
            print(f"skipped: this user may not mount a file system: {reason}")
            print(f"0 passed, 0 failed, {count} skipped")
            return 0
        command = ["unshare", "-rm", sys.executable, str(Path(__file__).resolve()), *backends]
        return subprocess.run(command, env={**os.environ, MOUNT_AT: mount_at}).returncode


if __name__ == "__main__":
    sys.exit(main())
