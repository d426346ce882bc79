"""Three nodes, and requests of clients that go on while a benchmark does something else to them."""
import statistics
import sys
import threading

import measure

sys.path.insert(0, str(measure.ROOT / "tests" / "operations"))

from members import Cluster, wait_for  # noqa: E402

CONNECTIONS = "12"
WINDOW_SECONDS = 2
RING_SIZE = 64


class ThreeNodes:
    """A cluster of three nodes on bitcask, as a server of `measure.load`: a context manager."""

    words = []

    def __init__(self, network, settings):
        self.settings = {"ring_size": RING_SIZE, "storage_backend": "bitcask", "logger.level": "warning", **settings}
        self.cluster = Cluster(3, network, self.settings)
        self.first = self.cluster.nodes[0]

    def __enter__(self):
        self.cluster.__enter__()
        self.addresses = [node.pb for node in self.cluster.nodes]
        self.pids = [node.process.pid for node in self.cluster.nodes]
        return self

    def __exit__(self, *error):
        self.cluster.__exit__(*error)


class Requests(threading.Thread):
    """Requests in windows, each of which has the name of what was going on."""

    def __init__(self, server, words):
        super().__init__(daemon=True)
        self.server, self.words = server, words
        self.doing, self.over, self.broken = "before", threading.Event(), None
        self.windows = {}

    def run(self):
        try:
            while not self.over.is_set():
                doing = self.doing
                figures = measure.load(self.server, *self.words, "--connections", CONNECTIONS, "--seconds", str(WINDOW_SECONDS),
                                       "--count-errors")
                # A window in which something began belongs to neither, unless it counts errors.
                name = doing if doing == self.doing else f"until {self.doing}"
                self.windows.setdefault(name, []).append(figures)
        except BaseException as error:  # noqa: BLE001: requests that end must not go unnoticed.
            self.broken = error

    def wait_windows(self, count):
        """Waits until so many windows have passed in what is going on."""
        wait_for("windows of requests", lambda: len(self.windows.get(self.doing, [])) >= count or self.broken,
                 10 * (count + 1) * WINDOW_SECONDS)

    def end(self):
        self.over.set()
        self.join()
        if self.broken is not None:
            raise SystemExit(f"the requests ended: {self.broken}")

    def summary(self, name):
        windows = self.windows.get(name)
        if not windows:
            return None
        middle = {key: statistics.median(one[key] for one in windows) for key in ("rate", "p50_us", "p99_us", "p999_us")}
        return middle | {"worst_p99_us": max(one["p99_us"] for one in windows), "windows": len(windows),
                         "max_us": max(one["max_us"] for one in windows)}

    def errors(self):
        return sum(one["errors"] for windows in self.windows.values() for one in windows)

    def count(self):
        return sum(one["requests"] for windows in self.windows.values() for one in windows)
