"""One `ombak` node for a test: fresh data, free ports, the configuration that the test wants,
stopped at the end.

The replay of the recordings and the suites of the official clients use it to talk to the real
program. Ports are found free and released before the node binds them. So a start is tried again if
another process took one of them."""
import errno
import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

START_SECONDS_MAX = 30
STOP_SECONDS_MAX = 30
START_TRIES_MAX = 3
LOG_TAIL_BYTES = 8_000


class NodeError(Exception):
    """The node did not start, did not stop, or refused an administration command."""


def program():
    """The binary under test: OMBAK_PROGRAM, or the result of `cargo build`."""
    given = os.environ.get("OMBAK_PROGRAM")
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    path = Path(given) if given else target / "debug" / "ombak"
    if not path.is_file():
        raise NodeError(f"no program at {path}: build it (cargo build) or name it in OMBAK_PROGRAM")
    return path


def clean_environment():
    """The environment without settings that the caller's shell may hold for another node."""
    return {name: value for name, value in os.environ.items() if not name.startswith("OMBAK_")}


def numbers_to_try():
    """Port numbers in the order in which a test tries them. `make test` names a range for each test
    that runs beside others (OMBAK_TEST_PORTS=FIRST-LAST), which the system gives to no outgoing
    connection, so that nobody takes the port of a node that is stopped for a while. Without it, the
    system chooses."""
    given = os.environ.get("OMBAK_TEST_PORTS")
    if not given:
        return itertools.repeat(0)
    first, last = (int(number) for number in given.split("-"))
    numbers = list(range(first, last + 1))
    # Two processes of one test do not begin at the same number.
    random.shuffle(numbers)
    return iter(numbers)


_numbers_to_try = numbers_to_try()
_ports_given = set()
_ports_lock = threading.Lock()


def free_ports(count, address="127.0.0.1"):
    """Free ports of this machine. Each is given once, so two tests that run at the same time in
    this process do not take a port of a node that the other one has stopped for a while."""
    sockets, ports = [], []
    try:
        with _ports_lock:
            for number in _numbers_to_try:
                s = socket.socket()
                sockets.append(s)
                try:
                    s.bind((address, number))
                except OSError as error:
                    # Any other error would come again with each number.
                    if error.errno != errno.EADDRINUSE:
                        raise
                    continue
                port = s.getsockname()[1]
                if port not in _ports_given:
                    _ports_given.add(port)
                    ports.append(port)
                if len(ports) == count:
                    return ports
        raise NodeError(f"{count} ports are not free in OMBAK_TEST_PORTS={os.environ.get('OMBAK_TEST_PORTS')}")
    finally:
        for s in sockets:
            s.close()


class Client:
    """What tests ask of a node or of a cluster that has `http` and `admin`."""

    def create_type(self, name, properties):
        """Creates and activates a bucket type."""
        self.admin("bucket-type", "create", name, json.dumps({"props": properties}))
        self.admin("bucket-type", "activate", name)

    def set_bucket_properties(self, bucket, properties):
        request = urllib.request.Request(
            f"http://{self.http}/buckets/{bucket}/props", method="PUT",
            data=json.dumps({"props": properties}).encode(), headers={"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=10).close()


class Node(Client):
    """A running node: a context manager. `settings` are lines of its configuration file, besides
    the ports and paths."""

    def __init__(self, settings=None):
        self.settings = settings or {}
        self.directory = Path(tempfile.mkdtemp(prefix="ombak-test-"))
        self.output = self.directory / "output.log"
        self.process = None
        self.http_port = self.pb_port = 0

    def __enter__(self):
        try:
            self.start_again()
        except BaseException:
            self._discard()
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
    def http(self):
        return f"127.0.0.1:{self.http_port}"

    @property
    def data(self):
        return self.directory / "data"

    @property
    def pb(self):
        return f"127.0.0.1:{self.pb_port}"

    def admin(self, *words):
        """Runs `ombak admin WORDS…` against this node and returns what it printed. The program
        finds the node and its administrator's token through the data directory."""
        command = [str(program()), "admin", "--data", str(self.data), *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                              cwd=self.directory, env=clean_environment())
        if done.returncode != 0:
            raise NodeError(f"`ombak admin {' '.join(words)}` exited with {done.returncode}: {done.stdout.strip()}")
        return done.stdout

    def stop(self):
        """Sends SIGTERM. The node must then end by itself with status 0."""
        if self.process is None:
            return
        if self.process.poll() is not None:
            raise NodeError(f"the node ended by itself during the test, with status {self.process.returncode}")
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise NodeError(f"the node did not stop within {STOP_SECONDS_MAX} s of SIGTERM") from None
        if status != 0:
            raise NodeError(f"the node stopped with status {status}")

    def start_again(self):
        """Starts the node, with its earlier data if it ran before."""
        for attempt in range(START_TRIES_MAX):
            if self._start(last_try=attempt == START_TRIES_MAX - 1):
                return
        raise AssertionError("the last try returns or raises")

    def print_log_tail(self):
        if self.output.exists():
            tail = self.output.read_bytes()[-LOG_TAIL_BYTES:].decode("utf-8", "replace")
            print(f"--- the node's last output\n{tail}---", file=sys.stderr)

    def _configuration(self):
        lines = {
            "listener.http.internal": self.http,
            "listener.protobuf.internal": self.pb,
            "platform_data_dir": str(self.data),
            "platform_log_dir": str(self.directory / "log"),
            **self.settings,
        }
        return "".join(f"{key} = {value}\n" for key, value in lines.items())

    def _start(self, last_try):
        """True if the node is ready, False if it must be tried again with other ports."""
        self.http_port, self.pb_port = free_ports(2)
        file = self.directory / "ombak.conf"
        file.write_text(self._configuration())
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen([str(program()), "start", "--config", str(file)], stdin=subprocess.DEVNULL,
                                            stdout=output, stderr=subprocess.STDOUT, cwd=self.directory,
                                            env=clean_environment())
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                if not last_try and "in use" in self.output.read_text(errors="replace"):
                    return False
                self.print_log_tail()
                raise NodeError(f"the node did not start: it exited with {self.process.returncode}")
            if self._is_ready():
                return True
            time.sleep(0.02)
        self.print_log_tail()
        raise NodeError(f"the node was not ready after {START_SECONDS_MAX} s")

    def _is_ready(self):
        try:
            with urllib.request.urlopen(f"http://{self.http}/health/ready", timeout=5) as reply:
                return reply.status == 200
        except (OSError, urllib.error.URLError):
            return False

    def _discard(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)
