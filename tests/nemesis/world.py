"""Nodes and what can be done to them: five at first, and others that join or take their places.

In `Namespaces` each node has a network namespace of its own. A bridge connects them, and a node
drops packets by policy routing (`ip rule`), as a packet filter would: silently, and those of open
connections too. Each node's data lie on a small file system of its own (tmpfs). This script then
runs in namespaces that it has entered by `unshare`, where it is root, and all processes end with
it.

Where the machine does not allow that, the nodes are on loopback (`Loopback`). Proxies between them
hold bytes back in place of a filter that drops packets (`links.py`), and there are no full
disks."""
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from links import Links  # noqa: E402
from cluster import SECRET, Member, Refused, form, free_port, make_secret, wait_for  # noqa: E402
from node import free_ports  # noqa: E402

NODES = 5
DISK_MB = 128
NETWORK = "10.77.0."
# A debug build on a loaded machine.
START_SECONDS_MAX = 120
STOP_SECONDS_MAX = 60
COMMAND_SECONDS_MAX = 30

ENTER = ["unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
PROBE = ("ip link set lo up && ip link add probe type bridge && ip link del probe && ip rule add pref 9 from 10.77.0.9 blackhole"
         " && mount -t tmpfs -o size=1m tmpfs /tmp && nsenter --net=/proc/self/ns/net true")


def why_no_namespaces():
    """Why this user cannot have namespaces here; None if that is possible."""
    try:
        tried = subprocess.run([*ENTER, "sh", "-c", PROBE], capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if tried.returncode == 0 else tried.stderr.strip() or f"exit code {tried.returncode}"


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX)
    if done.returncode != 0:
        raise Refused(f"`{' '.join(map(str, words))}`: {done.stderr.strip() or done.stdout.strip()}")


class World:
    """The nodes, numbered from 1. `settings` are those of all nodes. `members` are those that are
    there: a node that joins gets the next number, and the number of one that has left is not used
    again. Another thread may add and remove nodes, so `members` is replaced and never changed."""

    can_cut = can_fill_disks = False
    # How many there are at first.
    nodes = NODES

    def __init__(self, directory, backend, settings):
        self.directory, self.backend = directory, backend
        self.settings = {"storage_backend": backend, "ring_size": 8, **settings}
        self.members, self.processes = {}, {}
        self.paused = set()
        # Nodes that have not joined yet. Clients may not ask them: what they hold is not in the
        # cluster.
        self.alone = set()
        # Nodes whose process is to end by itself, because they leave.
        self.leaving = set()
        # Held by who removes a node, and by who does something to one.
        self.changing = threading.Lock()

    def start_all(self):
        make_secret(self.directory / SECRET)
        for number in range(1, self.nodes + 1):
            self.members = {**self.members, number: self.place(number)}
            self.processes[number] = self.members[number].start()
        for number in self.members:
            self.members[number].wait_ready(self.processes[number], START_SECONDS_MAX)
        form(list(self.members.values()), START_SECONDS_MAX)

    def add(self):
        """Starts a new node, which is alone. Returns its number."""
        number = max(list(self.processes)) + 1
        member = self.place(number)
        process = member.start()
        member.wait_ready(process, START_SECONDS_MAX)
        self.processes[number] = process
        self.alone.add(number)
        self.members = {**self.members, number: member}
        return number

    def remove(self, number):
        """Forgets a node that has left, when its process has ended."""
        self.members = {of: member for of, member in self.members.items() if of != number}

    def first(self):
        """The member that is asked about the cluster."""
        return self.members[min(self.members)]

    def place(self, number):
        raise NotImplementedError

    def cut(self, sender, receiver):
        """From now on the receiver gets nothing from the sender, if `can_cut`."""
        raise NotImplementedError

    def mend(self, sender, receiver):
        raise NotImplementedError

    def fill_disk(self, number):
        """Leaves no room on the file system of a node, if `can_fill_disks`."""
        raise NotImplementedError

    def empty_disk(self, number):
        raise NotImplementedError

    def member(self, number, name, addresses, prefix=()):
        pb, http, peer = addresses
        # The log is not on the disk that may get full.
        settings = {**self.settings, "platform_log_dir": self.directory / f"log-{number}"}
        return Member(self.directory, number, name, pb=pb, http=http, peer=peer, settings=settings, prefix=prefix)

    def addresses(self):
        """Where clients ask the nodes over HTTP."""
        return [member.http for number, member in self.members.items() if number not in self.alone]

    def kill(self, number):
        self.processes[number].kill()
        self.processes[number].wait()

    def start(self, number, *options):
        """Starts a node that was stopped. One that was removed meanwhile may end at once."""
        if number not in self.members:
            return
        self.processes[number] = self.members[number].start(*options)
        try:
            self.members[number].wait_ready(self.processes[number], START_SECONDS_MAX)
        except Refused:
            if number not in self.leaving or self.processes[number].poll() is None:
                raise

    def stop(self, number):
        """Stops a node as an operator does."""
        self.processes[number].terminate()
        try:
            status = self.processes[number].wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise Refused(f"node {number} did not stop within {STOP_SECONDS_MAX} s of SIGTERM") from None
        if status != 0 and number not in self.leaving:
            raise Refused(f"node {number} stopped with status {status}")

    def pause(self, number):
        self.processes[number].send_signal(signal.SIGSTOP)
        self.paused.add(number)

    def resume(self, number):
        self.processes[number].send_signal(signal.SIGCONT)
        self.paused.discard(number)

    def wipe_stores(self, number):
        """Removes the stores of a node that was killed, and starts it. The rest of its directory
        stays: what it is in the cluster, the metadata, and what it knew of its stores."""
        stores = self.members[number].data / self.backend
        count = sum(1 for _ in stores.iterdir())
        shutil.rmtree(stores)
        # Without the option a start refuses, because the stores had promised data.
        self.start(number, "--accept-loss")
        return count

    def ended(self):
        """The nodes whose process ended by itself, with their status."""
        return {number: self.processes[number].returncode for number in self.members
                if self.processes[number].poll() is not None and number not in self.leaving}

    def stop_all(self):
        """Stops all nodes. Returns those that did not end by themselves with status 0."""
        for number in list(self.paused):
            self.resume(number)
        bad = {}
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        for number, process in self.processes.items():
            if number not in self.members and process.poll() is not None:
                continue
            try:
                status = process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                status = f"no end within {STOP_SECONDS_MAX} s of SIGTERM"
            if status != 0:
                bad[number] = status
        return bad


class Loopback(World):
    can_cut = True

    def __init__(self, directory, backend, settings):
        super().__init__(directory, backend, settings)
        self.links = Links()

    def place(self, number):
        pb, http = (f"127.0.0.1:{port}" for port in free_ports(2))
        host, proxy = f"127.0.1.{number}", f"127.0.2.{number}"
        to, at = (host, free_port(host)), (proxy, free_port(proxy))
        self.links.add(number, at, to, lambda source: int(source.rpartition(".")[2]))
        member = self.member(number, f"n{number}@127.0.0.1", (pb, http, "{}:{}".format(*to)))
        member.settings["cluster.advertised_address"] = "{}:{}".format(*at)
        return member

    def cut(self, sender, receiver):
        self.links.cut(sender, receiver)

    def mend(self, sender, receiver):
        self.links.mend(sender, receiver)


class Namespaces(World):
    can_cut = can_fill_disks = True

    def __init__(self, directory, backend, settings):
        super().__init__(directory, backend, settings)
        self.holders = {}
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "br0", "type", "bridge")
        run("ip", "address", "add", f"{NETWORK}254/24", "dev", "br0")
        run("ip", "link", "set", "br0", "up")

    def place(self, number):
        # A process that does nothing keeps the network namespace.
        holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"], stdout=subprocess.PIPE)
        if not holder.stdout.read(1):
            raise Refused(f"there is no network namespace for node {number}")
        self.holders[number] = holder
        host, inside = f"{NETWORK}{number}", self.inside(number)
        run("ip", "link", "add", f"v{number}", "type", "veth", "peer", "name", "eth0", "netns", holder.pid)
        run("ip", "link", "set", f"v{number}", "master", "br0", "up")
        run(*inside, "ip", "link", "set", "lo", "up")
        run(*inside, "ip", "link", "set", "eth0", "up")
        run(*inside, "ip", "address", "add", f"{host}/24", "dev", "eth0")
        # Rules that drop packets have to come before the table of local addresses.
        run(*inside, "ip", "rule", "add", "pref", "100", "lookup", "local")
        run(*inside, "ip", "rule", "del", "pref", "0")
        member = self.member(number, f"n{number}@{host}", (f"{host}:8087", f"{host}:8098", f"{host}:8099"), inside)
        member.data.mkdir()
        run("mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=700", "tmpfs", member.data)
        return member

    def inside(self, number):
        return ["nsenter", f"--net=/proc/{self.holders[number].pid}/ns/net"]

    def cut(self, sender, receiver):
        run(*self.inside(receiver), "ip", "rule", "add", "pref", 10 + sender, "from", f"{NETWORK}{sender}", "blackhole")

    def mend(self, sender, receiver):
        run(*self.inside(receiver), "ip", "rule", "del", "pref", 10 + sender)

    def remove(self, number):
        data = self.members[number].data
        super().remove(number)
        # What still has a file there keeps the file system until it ends.
        run("umount", "--lazy", data)

    def filler(self, number):
        return self.directory / f"node-{number}" / "filler"

    def fill_disk(self, number):
        with open(self.filler(number), "wb", buffering=0) as file:
            while True:
                found = os.statvfs(self.filler(number).parent)
                free = found.f_bavail * found.f_frsize
                if free == 0:
                    return
                try:
                    os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), free)
                except OSError:
                    # The node appended meanwhile.
                    if file.write(bytes(found.f_frsize)) == 0:
                        return

    def empty_disk(self, number):
        self.filler(number).unlink(missing_ok=True)


def wait_until_settled(member, seconds, clients_write):
    """Waits until everything lies where it belongs, and unless clients write, until nothing waits
    to be reaped: clients that delete keys leave tombstones all the time. Returns when the last
    question began and when its answer came."""
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        answer = json.loads(member.admin("cluster", "settled", "--json", statuses=(0, 1)))
        if answer["settled"] and (clients_write or answer["reaped"]):
            return began, time.monotonic()
        if time.monotonic() > deadline:
            raise Refused(f"after {seconds} s: {answer}")
        time.sleep(0.2)


__all__ = ["NODES", "Loopback", "Namespaces", "Refused", "wait_for", "wait_until_settled", "why_no_namespaces", "ENTER"]
