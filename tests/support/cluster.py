"""Clusters of `ombak` nodes on this machine.

`Member` is one node of a cluster, whether it runs or not. `Cluster` is a whole cluster with fresh
data and free ports; to a test it looks like one node (`support/node.py`), namely its node 2. So a
test of one node runs on a cluster without changes."""
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from node import LOG_TAIL_BYTES, START_TRIES_MAX, Client, Node, NodeError, clean_environment, free_ports, program

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 60
ADMIN_SECONDS_MAX = 90
SECRET = "cluster.secret"


class Refused(Exception):
    """What cannot be done, in one line for the user."""


def wait_for(what, holds, seconds):
    """Waits until `holds` returns something true, and returns that."""
    deadline = time.monotonic() + seconds
    while True:
        found = holds()
        if found:
            return found
        if time.monotonic() > deadline:
            raise Refused(f"{what} takes longer than {seconds} s")
        time.sleep(0.02)


def make_secret(path):
    """Writes a secret for a new cluster, unless there is one."""
    if path.exists():
        return
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(secrets.token_hex(32) + "\n")


class Member:
    """One node of a cluster. Its data are in DIRECTORY/node-NUMBER, and its configuration and
    output are beside them. Addresses are texts, HOST:PORT. `prefix` are words before each command
    that runs the program, such as those that enter a network namespace. `program` is another
    program than the one under test."""

    def __init__(self, directory, number, name, *, pb, http, peer, settings=None, prefix=()):
        self.number, self.name = number, name
        self.pb, self.http, self.peer = pb, http, peer
        self.settings = settings or {}
        self.prefix = list(prefix)
        self.directory = directory
        self.data = directory / f"node-{number}"
        self.config = directory / f"node-{number}.conf"
        self.output = directory / f"node-{number}.out"
        self.secret = directory / SECRET
        self.program = None

    def configuration(self):
        lines = {
            "nodename": self.name,
            "platform_data_dir": self.data,
            "listener.protobuf.internal": self.pb,
            "listener.http.internal": self.http,
            "listener.peer.internal": self.peer,
            "cluster.secret_file": self.secret,
            **self.settings,
        }
        return "".join(f"{key} = {value}\n" for key, value in lines.items())

    def start(self, *options, is_detached=False):
        """Starts the process. A detached one outlives this program and its session."""
        self.config.write_text(self.configuration())
        with open(self.output, "wb") as output:
            return subprocess.Popen(
                [*self.prefix, str(self.program or program()), "start", "--config", str(self.config), "--data", str(self.data),
                 *options], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=is_detached,
                env=clean_environment(), cwd=self.config.parent)

    def said(self):
        return self.output.read_text(errors="replace") if self.output.exists() else ""

    def is_ready(self, process):
        """Whether the process that was started serves clients."""
        if process.poll() is not None:
            lines = self.said().strip().splitlines()
            raise Refused(f"node {self.number} did not start: {lines[-1] if lines else 'it said nothing'}")
        return " is ready: " in self.said()

    def wait_ready(self, process, seconds=START_SECONDS_MAX):
        wait_for(f"the start of node {self.number}", lambda: self.is_ready(process), seconds)

    def admin(self, *words, seconds=ADMIN_SECONDS_MAX, statuses=(0,)):
        """Runs `ombak admin WORDS…` against this node and returns what it printed, if it ended with
        one of the statuses."""
        done = subprocess.run(
            [*self.prefix, str(self.program or program()), "admin", "--data", str(self.data), *words], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, timeout=seconds, env=clean_environment(), cwd=self.config.parent)
        if done.returncode not in statuses or done.returncode != 0 and not done.stdout:
            said = done.stderr.strip() or done.stdout.strip()
            raise Refused(f"`ombak admin {' '.join(words)}` at node {self.number}: {said}")
        return done.stdout

    def agrees(self):
        """Whether the node reaches all others, and all of them have the same ring."""
        try:
            self.admin("ringready")
        except Refused:
            return False
        return True


def form(members, seconds=START_SECONDS_MAX):
    """Joins the members that are alone to the first one."""
    first = members[0]
    known = {member["name"] for member in json.loads(first.admin("member-status", "--json"))["members"]}
    late = [member for member in members[1:] if member.name not in known]
    for member in late:
        member.admin("cluster", "join", first.settings.get("cluster.advertised_address", first.peer))
    if late or "joining" in first.admin("member-status"):
        first.admin("cluster", "plan")
        first.admin("cluster", "commit")
    for member in members:
        wait_for(f"the agreement of node {member.number} with the others", member.agrees, seconds)


def free_port(address):
    return free_ports(1, address)[0]


# A loaded machine may leave a process without a processor for seconds. No node is down in the tests
# that run against such a cluster, so none should be taken for down.
PATIENT = {"cluster.suspicion_time": "30s", "cluster.request_stall_time": "30s"}


class Cluster(Client):
    """A running cluster of `size` nodes: a context manager. Its attributes are those of node 2.

    A put is acknowledged by two of three replicas, and a listing or an index query asks one
    replica. So what was just written may be missing from it for a moment, as in Riak. Tests that
    list at once what they have written need puts that wait for all replicas (`waits_for_all`)."""

    def __init__(self, settings=None, size=3, waits_for_all=False):
        # Bucket types do not take the defaults of the configuration.
        self.of_types = {"w": "all"} if waits_for_all else {}
        defaults = {"buckets.default.w": "all"} if waits_for_all else {}
        self.settings = {**PATIENT, **defaults, **(settings or {})}
        # Names of nodes are unique in a cluster.
        self.name = self.settings.pop("nodename", "riak@127.0.0.1")
        self.size = size
        self.directory = Path(tempfile.mkdtemp(prefix="ombak-cluster-"))
        self.members, self.processes = [], []

    def __enter__(self):
        try:
            make_secret(self.directory / SECRET)
            for number in range(1, self.size + 1):
                self._start(number)
            form(self.members)
        except BaseException as error:
            self.print_log_tail()
            self._discard()
            if isinstance(error, Refused):
                raise NodeError(f"the cluster did not start: {error}") from error
            raise
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self.print_log_tail()
        try:
            self.stop()
        finally:
            self._discard()

    @property
    def node(self):
        return self.members[1]

    @property
    def process(self):
        return self.processes[1]

    @property
    def http(self):
        return self.node.http

    @property
    def pb(self):
        return self.node.pb

    @property
    def http_port(self):
        return int(self.http.rpartition(":")[2])

    @property
    def pb_port(self):
        return int(self.pb.rpartition(":")[2])

    @property
    def data(self):
        return self.node.data

    def admin(self, *words):
        try:
            return self.node.admin(*words)
        except Refused as error:
            raise NodeError(str(error)) from error

    def create_type(self, name, properties):
        super().create_type(name, {**self.of_types, **properties})

    def member_settings(self):
        """The settings of the next node that starts."""
        return self.settings

    def stop(self):
        """Sends SIGTERM. Each node must then end by itself with status 0."""
        for member, process in zip(self.members, self.processes):
            if process.poll() is not None:
                raise NodeError(f"node {member.number} ended by itself during the test, with status {process.returncode}")
        # The nodes stop at the same time, as they do when a machine stops.
        for process in self.processes:
            process.terminate()
        for member, process in zip(self.members, self.processes):
            try:
                status = process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                raise NodeError(f"node {member.number} did not stop within {STOP_SECONDS_MAX} s of SIGTERM") from None
            if status != 0:
                raise NodeError(f"node {member.number} stopped with status {status}")

    def print_log_tail(self):
        for member in self.members:
            print(f"--- the last output of node {member.number}\n{member.said()[-LOG_TAIL_BYTES:]}---", file=sys.stderr)

    def _start(self, number):
        """Starts a node on free ports. Ports are tried again with others if another process took
        one."""
        for attempt in range(START_TRIES_MAX):
            http, pb = free_ports(2)
            peer = f"127.0.1.{number}"
            # Node 2 has the name that the test wants: it is the one that is asked.
            name = self.name if number == 2 else f"{self.name.partition('@')[0]}{number}@127.0.0.1"
            member = Member(self.directory, number, name, pb=f"127.0.0.1:{pb}", http=f"127.0.0.1:{http}",
                            peer=f"{peer}:{free_port(peer)}", settings=self.member_settings())
            process = member.start()
            try:
                member.wait_ready(process)
            except Refused:
                process.kill()
                process.wait()
                if attempt == START_TRIES_MAX - 1 or "in use" not in member.said():
                    raise
                continue
            self.members.append(member)
            self.processes.append(process)
            return

    def _discard(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def under_test(settings=None, size=0, waits_for_all=False):
    """What a test of one node runs against: a node, or with a `size` a cluster of so many nodes,
    whose puts wait for all replicas if the test asks for that."""
    return Cluster(settings, size, waits_for_all) if size else Node(settings)


def take_size(words):
    """Splits `--cluster N` off the words of a command line. Returns N, or 0, and the other
    words."""
    if "--cluster" not in words:
        return 0, list(words)
    at = words.index("--cluster")
    size = words[at + 1] if at + 1 < len(words) else ""
    if not size.isdigit() or int(size) < 2:
        raise SystemExit("--cluster needs a number of nodes, at least 2")
    return int(size), [*words[:at], *words[at + 2:]]
