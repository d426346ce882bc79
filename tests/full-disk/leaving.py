"""A member of a cluster whose disk is full leaves, and nothing is lost."""
import http.client
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from cluster import SECRET, Member, form, free_port, make_secret, wait_for  # noqa: E402
from node import free_ports  # noqa: E402

MEMBERS = 4
FULL = 4
KEYS = 300
VALUE_BYTES = 16 << 10
DISK_BYTES = 64 << 20
WAIT_SECONDS_MAX = 120


def ask(member, method, path, body=None):
    connection = http.client.HTTPConnection(member.http, timeout=60)
    try:
        headers = {} if body is None else {"Content-Type": "application/octet-stream"}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def fill(disk):
    """Leaves no room on a file system. The node that uses it may append meanwhile."""
    with open(disk / "filler", "wb", buffering=0) as file:
        while True:
            found = os.statvfs(disk)
            free = found.f_bavail * found.f_frsize
            if free == 0:
                return
            try:
                os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), free)
            except OSError:
                pass


def put_all(member, keys, query):
    """Puts values. Returns those that were acknowledged."""
    values = {key: os.urandom(VALUE_BYTES) for key in keys}
    return {key: value for key, value in values.items()
            if ask(member, "PUT", f"/buckets/b/keys/{key}{query}", value)[0] == 204}


def has_all(member, values):
    """Whether a node answers with each value when all replicas have to."""
    return all(ask(member, "GET", f"/buckets/b/keys/{key}?r=3&pr=3") == (200, value) for key, value in values.items())


def start_members(directory, backend):
    make_secret(directory / SECRET)
    members, processes = {}, {}
    for number in range(1, MEMBERS + 1):
        pb, at = (f"127.0.0.1:{port}" for port in free_ports(2))
        host = f"127.0.1.{number}"
        # The log is not on the disk that gets full.
        settings = {"storage_backend": backend, "ring_size": 16, "platform_log_dir": directory / f"log-{number}"}
        member = Member(directory, number, f"dev{number}@127.0.0.1", pb=pb, http=at, peer=f"{host}:{free_port(host)}",
                        settings=settings)
        member.data.mkdir()
        if number == FULL:
            mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=700", "tmpfs", str(member.data)]
            subprocess.run(mount, check=True)
        members[number], processes[number] = member, member.start()
    for number, member in members.items():
        member.wait_ready(processes[number])
    form(list(members.values()))
    return members, processes


def a_member_with_a_full_disk_leaves(backend, check):
    """`check` fails the test with a text if its first argument is not true."""
    directory = Path(tempfile.mkdtemp(prefix="ombak-leaving-"))
    members, processes = {}, {}
    try:
        members, processes = start_members(directory, backend)
        full = members[FULL]
        values = put_all(members[1], [f"before{number}" for number in range(KEYS)], "?w=3")
        check(len(values) == KEYS, f"only {len(values)} values were taken")
        fill(full.data)
        wait_for("a full disk that is noticed", lambda: ask(full, "GET", "/health/ready")[0] == 503, WAIT_SECONDS_MAX)
        members[1].admin("cluster", "leave", full.name)
        members[1].admin("cluster", "plan")
        members[1].admin("cluster", "commit")
        # Nobody waits for the replica whose disk is full.
        meanwhile = put_all(members[2], [f"meanwhile{number}" for number in range(KEYS // 10)], "?w=2")
        check(len(meanwhile) == KEYS // 10, f"only {len(meanwhile)} values were taken during the change")

        def has_left():
            return processes[FULL].poll() is not None

        try:
            wait_for("the leave of the member with the full disk", has_left, WAIT_SECONDS_MAX)
        except Exception as error:
            raise type(error)(f"{error}; {members[1].admin('transfers')}") from None
        check(processes[FULL].returncode == 0, f"its process ended with status {processes[FULL].returncode}")
        shown = members[1].admin("member-status")
        check(full.name not in shown, f"it is still a member: {shown}")
        members[1].admin("cluster", "settled", "--wait", str(WAIT_SECONDS_MAX), seconds=WAIT_SECONDS_MAX + 30)
        for number in range(1, FULL):
            check(has_all(members[number], {**values, **meanwhile}), f"node {number} has not every value")
    except BaseException:
        for member in members.values():
            print(f"--- the last output of node {member.number}\n{member.said()[-3000:]}---", file=sys.stderr)
        raise
    finally:
        for process in processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()
        if FULL in members:
            subprocess.run(["umount", "--lazy", str(members[FULL].data)], check=False)
        shutil.rmtree(directory, ignore_errors=True)
