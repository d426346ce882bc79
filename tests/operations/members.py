"""A cluster of nodes for a test of what operators do: each node runs on an address of its own of
the loopback interface, and all of them stop at the end."""
import json
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import cluster  # noqa: E402
from node import LOG_TAIL_BYTES, NodeError, clean_environment, free_ports, program  # noqa: E402

WAIT_SECONDS_MAX = 60
COMMAND_SECONDS_MAX = 120
RING_SIZE = 16


def wait_for(what, holds, seconds=WAIT_SECONDS_MAX):
    """Waits until something holds, and returns the value that it then has."""
    return cluster.wait_for(what, holds, seconds)


class Member(cluster.Member):
    """One node with its process, if it runs, and what an operator asks of it."""

    def __init__(self, directory, number, address, ports, settings):
        pb, http, peer = (f"{address}:{port}" for port in ports)
        super().__init__(directory, number, f"node{number}@{address}", pb=pb, http=http, peer=peer,
                         settings={"ring_size": RING_SIZE, **settings})
        self.process = None
        self.config.write_text(self.configuration())

    def run_again(self, *options):
        """Starts the process and waits until it serves clients."""
        self.process = self.start(*options)
        self.wait_ready(self.process)

    def send(self, signal_number):
        self.process.send_signal(signal_number)

    def kill(self):
        self.process.kill()
        self.process.wait(WAIT_SECONDS_MAX)

    def run(self, *words):
        """Runs a command of the program for this node. Returns its exit code, standard output and
        standard error."""
        done = subprocess.run(
            [str(program()), *map(str, words), "--config", str(self.config)], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=COMMAND_SECONDS_MAX,
            env=clean_environment(), cwd=self.config.parent)
        return done.returncode, done.stdout.strip(), done.stderr.strip()

    def ok(self, *words):
        """The standard output of a command that must succeed."""
        code, out, error = self.run(*words)
        if code != 0:
            raise NodeError(f"{' '.join(map(str, words))} at node {self.number}: {code} {out} {error}")
        return out

    def json(self, *words):
        """The JSON document of a command."""
        return json.loads(self.run(*words, "--json")[1])

    def stats(self):
        return json.loads(self.request("GET", "/stats")[1])

    def metrics(self):
        return self.request("GET", "/metrics")[1].decode()

    def request(self, method, path, body=None, headers=None):
        """Sends an HTTP request. Returns the status and the body."""
        request = urllib.request.Request(f"http://{self.http}{path}", data=body, method=method, headers=headers or {})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()


class Cluster:
    """Nodes that are one cluster: a context manager. `settings` are added to every configuration.
    Nodes are numbered from 1, unless other numbers are given."""

    def __init__(self, count, network, settings=None, numbers=None):
        self.files = tempfile.TemporaryDirectory(prefix="ombak-cluster-")
        self.directory = Path(self.files.name)
        cluster.make_secret(self.directory / cluster.SECRET)
        ports = free_ports(3)
        self.nodes = [Member(self.directory, number, f"{network}.{number}", ports, settings or {})
                      for number in numbers or range(1, count + 1)]

    def __enter__(self):
        try:
            for node in self.nodes:
                node.process = node.start()
            for node in self.nodes:
                node.wait_ready(node.process)
            cluster.form(self.nodes)
        except BaseException:
            self.print_logs()
            self.stop()
            raise
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self.print_logs()
        self.stop()

    def wait_agreed(self):
        for node in self.nodes:
            wait_for(f"the agreement of node {node.number}", node.agrees)

    def print_logs(self):
        for node in self.nodes:
            print(f"--- node {node.number}\n{node.said()[-LOG_TAIL_BYTES:]}", file=sys.stderr)

    def stop(self):
        running = [node for node in self.nodes if node.process and node.process.poll() is None]
        for node in running:
            node.send(signal.SIGCONT)
            node.send(signal.SIGTERM)
        for node in running:
            try:
                node.process.wait(WAIT_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                node.kill()
        self.files.cleanup()
