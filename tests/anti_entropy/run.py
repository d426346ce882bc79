#!/usr/bin/env python3
"""Damages one replica of real nodes in ways that nobody is told of, and checks that exchanges
between the replicas and scrubbing make them equal again, without a read.

Each case has keys of its own. Some are deleted and removed everywhere before the damage, and others
are deleted, written over and written anew after it. In the end the files of all nodes have exactly
what was acknowledged: nothing is lost, nothing that was deleted is back, and all copies are equal.
Every backend has a cluster of its own, and the clusters run at the same time.

Usage: run.py [--backend bitcask|leveled]... [--setback SECONDS] [CASE...]. The last line is
`N passed, N failed`."""
import argparse
import concurrent.futures
import shutil
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "operations"))
sys.path.insert(0, str(HERE.parent / "support"))

import stores  # noqa: E402
from exchanges import EXCHANGES  # noqa: E402
from keys import Keys, shown  # noqa: E402
from members import Cluster, wait_for  # noqa: E402

NETWORKS = {"bitcask": "127.0.8", "leveled": "127.0.9"}
NODES = 3
KEYS = 60
# How long the replicas may take to become equal. An exchange comes every second or two and looks
# twice.
EQUAL_SECONDS_MAX = 60
SETTLE_SECONDS_MAX = 60
SETBACK_SECONDS = 30
SETBACK_TRIES_MAX = 3
# The metadata are quiet when nothing has been written to them for so long.
QUIET_SECONDS = 2
SETTINGS = {**EXCHANGES, "delete_mode": "500ms", "scrub.bytes_per_second_max": "0", "logger.level": "warning"}


class Failed(Exception):
    """The replicas are not what they should be."""


class Case:
    """A cluster, and the keys of one case in it. `reaped` were deleted and removed everywhere
    before the damage. `cold` are on the disks of all replicas."""

    def __init__(self, cluster, keys, name):
        self.cluster, self.keys, self.name = cluster, keys, name
        names = [f"{name}-{number:04}" for number in range(KEYS)]
        self.cold, self.reaped = names[:-8], names[-8:]
        self.new = [f"{name}-new-{number:04}" for number in range(8)]

    def node(self, number):
        return self.cluster.nodes[number - 1]

    def write_cold(self):
        self.keys.write(self.node(1), [*self.cold, *self.reaped], "first", w="all", dw="all")
        self.keys.delete(self.node(1), self.reaped)

    def change(self, through, damaged):
        """Deletes some keys, writes over some, and writes new ones: of those that were damaged and
        of those that were not."""
        whole = [key for key in self.cold if key not in damaged and key in self.keys.alive]
        node = self.node(through)
        self.keys.delete(node, [*damaged[:3], *whole[:3]])
        self.keys.write(node, [*damaged[3:6], *whole[3:6], *self.new], "second")

    def damaged_keys(self, count=14):
        return self.cold[::len(self.cold) // count][:count]

    def storage_keys(self, keys):
        return [stores.storage_key("cold", key) for key in keys]

    def stop(self, number):
        self.node(number).send(signal.SIGTERM)
        self.node(number).process.wait(SETTLE_SECONDS_MAX)

    def start_all(self):
        for node in self.cluster.nodes:
            node.process = node.start()
        for node in self.cluster.nodes:
            node.wait_ready(node.process)
        self.cluster.wait_agreed()

    def scrub(self, number):
        self.node(number).ok("admin", "scrub", "start")


# The cases. Each damages one replica, and changes keys after that.


def bits_of_a_stopped_node(case):
    """Bits of values and of keys flip in the files of a node that is stopped."""
    damaged = case.damaged_keys()
    case.stop(1)
    flipped = stores.flip_bits(case.node(1).data, case.storage_keys(damaged), case.keys.backend, lambda number: number % 2 == 0)
    check_all(flipped, damaged, "flipped")
    case.change(2, damaged)
    case.node(1).run_again()
    case.scrub(1)


def bits_of_a_running_node(case):
    """Bits of values and of keys flip in the files of a node that runs."""
    damaged = case.damaged_keys()
    # What lies there is cold, and known to be synced.
    case.stop(2)
    case.node(2).run_again()
    flipped = stores.flip_bits(case.node(2).data, case.storage_keys(damaged), case.keys.backend, lambda number: number % 2 == 0)
    check_all(flipped, damaged, "flipped")
    case.scrub(2)
    case.change(1, damaged)


def records_removed(case):
    """Single records vanish from the files of a stopped node, and no checksum shows it."""
    damaged = case.damaged_keys()
    case.stop(3)
    removed = stores.remove_records(case.node(3).data, case.storage_keys(damaged), case.keys.backend)
    check_all(removed, damaged, "removed")
    case.change(1, damaged)
    case.node(3).run_again()


def store_wiped_while_another_is_down(case):
    """A node loses the store of a partition while another node is down."""
    node, number = case.node(1), None
    found = {number: len(stores.newest(store)) for number, store in stores.stores(node.data, case.keys.backend).items()}
    number = max(found, key=found.get)
    case.node(2).kill()
    case.keys.delete(case.node(3), case.cold[:4])
    node.kill()
    for path in (node.data / case.keys.backend).glob(f"{number}*"):
        if path.name.partition(".")[0] == str(number):
            shutil.rmtree(path)
    node.run_again("--accept-loss")
    case.keys.write(node, [*case.cold[4:8], *case.new], "second")
    case.node(2).run_again()
    case.keys.delete(case.node(2), case.cold[8:12])


def store_set_back(case):
    """A node's directory is put back as it was half a minute ago. Meanwhile keys were deleted and
    removed everywhere, written over, and written anew."""
    node, image = case.node(2), case.node(2).data.with_name("image")
    # Each node draws a milestone when it starts and each minute after that, and the metadata have
    # it. If one came between, the cluster would know that the directory is an older one. A slow
    # machine may need a minute, so another image is taken then.
    for _ in range(SETBACK_TRIES_MAX):
        copy_and_change(case, image)
        if (node.data / "node.json").read_bytes() == (image / "node.json").read_bytes():
            break
        shutil.rmtree(image)
    else:
        raise Failed(f"{SETBACK_TRIES_MAX} times a milestone came while keys were changed")
    node.kill()
    put_back(image, node.data)
    node.run_again()


def copy_and_change(case, image):
    """Copies the directory of node 2, and changes keys for half a minute after that."""
    for node in case.cluster.nodes:
        node.send(signal.SIGTERM)
    for node in case.cluster.nodes:
        node.process.wait(SETTLE_SECONDS_MAX)
    case.start_all()
    node = case.node(2)
    wait_until_quiet(node.data / "metadata")
    node.send(signal.SIGSTOP)
    shutil.copytree(node.data, image)
    node.send(signal.SIGCONT)
    copied = time.monotonic()
    case.change(2, [key for key in case.damaged_keys() if key in case.keys.alive])
    # Some of it has gone from all nodes before the node is set back.
    settle(case.cluster)
    time.sleep(max(0.0, case.cluster.setback_seconds - (time.monotonic() - copied)))


def wait_until_quiet(directory):
    """Waits until nothing has been written to the files of a directory for a while."""
    def newest_write():
        return max(path.stat().st_mtime for path in [directory, *directory.rglob("*")])

    wait_for("the end of writes to the metadata", lambda: time.time() - newest_write() > QUIET_SECONDS, SETTLE_SECONDS_MAX)


def put_back(image, directory):
    """Gives a directory the content that it had. A file that is there is written over and stays the
    same file: a store whose identity is another file knows that it was copied."""
    for path in sorted(directory.rglob("*"), reverse=True):
        if not (image / path.relative_to(directory)).exists():
            path.rmdir() if path.is_dir() else path.unlink()
    for path in sorted(image.rglob("*")):
        place = directory / path.relative_to(image)
        if path.is_dir():
            place.mkdir(exist_ok=True)
        elif not place.exists() or place.read_bytes() != path.read_bytes():
            place.write_bytes(path.read_bytes())
    shutil.rmtree(image)


def coordinator_killed_after_its_acknowledgement(case):
    """A coordinator acknowledges with w=1 while the other replicas hang, and dies at once. What it
    had sent dies with the others."""
    others = [case.node(1), case.node(2)]
    for node in others:
        node.send(signal.SIGSTOP)
    case.keys.write(case.node(3), [*case.cold[:4], *case.new], "second", w=1, dw=1, pw=0)
    case.node(3).kill()
    for node in others:
        node.kill()
    case.start_all()
    case.keys.delete(case.node(1), case.cold[8:12])


CASES = {
    "bitcask": [bits_of_a_stopped_node, bits_of_a_running_node, records_removed, store_wiped_while_another_is_down, store_set_back,
                coordinator_killed_after_its_acknowledgement],
    # What differs there is the index: it is a ledger on the disk.
    "leveled": [bits_of_a_stopped_node, records_removed, store_wiped_while_another_is_down],
}


def check_all(found, wanted, what):
    if len(found) != len(wanted):
        raise Failed(f"only {len(found)} of {len(wanted)} keys were {what}")


def settle(cluster):
    cluster.nodes[0].ok("admin", "cluster", "settled", "--reaped", "--wait", SETTLE_SECONDS_MAX)


def set_aside(node):
    """The keys that only a store of a node has that was set back. Nobody sees them or gets them
    before an operator has decided about them."""
    return {stores.storage_key(found["bucket"], found["key"]) for found in node.json("admin", "cluster", "restored-keys")["keys"]}


def wait_until_equal(cluster, keys, may_be_set_aside):
    differences = []

    def is_equal():
        differences[:] = keys.differences(cluster.nodes)
        if differences and may_be_set_aside:
            differences[:] = keys.differences(cluster.nodes, {node.number: set_aside(node) for node in cluster.nodes})
        if differences:
            # A comparison reads all files, and the nodes need the processors.
            time.sleep(0.2)
        return not differences

    try:
        wait_for("that all replicas are equal", is_equal, EQUAL_SECONDS_MAX)
    except Exception as late:
        said = [f"node {node.number}: {node.run('admin', 'aae-status')[1]}" for node in cluster.nodes]
        raise Failed(f"{late}:\n  {shown(differences)}\n" + "\n".join(said)) from late


def carry_out(cluster, keys, case, damage):
    """Damages something, waits until all replicas are equal, and reads everything."""
    damage(case)
    cluster.wait_agreed()
    wait_until_equal(cluster, keys, may_be_set_aside=True)
    for node in cluster.nodes:
        if set_aside(node):
            node.ok("admin", "cluster", "restored-keys", "--drop", "--all")
    wait_until_equal(cluster, keys, may_be_set_aside=False)
    # An owner that may still lack something proves no absence, and a read of a deleted key that asks
    # for all owners is refused until it knows better.
    settle(cluster)
    wrong = keys.wrong_values(cluster.nodes[0], [*case.cold, *case.reaped])
    if wrong:
        raise Failed(f"wrong values:\n  {shown(wrong)}")


def run_backend(backend, wanted, setback_seconds, say):
    """Runs the cases of a backend. Returns the names of those that have failed, and how many there
    were."""
    damages = [damage for damage in CASES[backend] if not wanted or damage.__name__ in wanted]
    failed = []
    with Cluster(NODES, NETWORKS[backend], {"storage_backend": backend, **SETTINGS}) as cluster:
        cluster.setback_seconds = setback_seconds
        keys = Keys(backend)
        cases = [Case(cluster, keys, damage.__name__) for damage in damages]
        for case in cases:
            case.write_cold()
        settle(cluster)
        for case, damage in zip(cases, damages):
            began = time.monotonic()
            try:
                carry_out(cluster, keys, case, damage)
                outcome = "ok"
            except Exception as error:  # noqa: BLE001: whatever goes wrong, it is a failure of this case.
                failed.append(damage.__name__)
                outcome = "FAILED"
                say("".join(traceback.format_exception(error)))
                # `make test` repeats lines that begin so at its end.
                say(f"FAIL: {backend}, {damage.__name__}: {' '.join(str(error).split())}")
            say(f"{backend}, {damage.__name__}: {outcome}, {time.monotonic() - began:.1f} s")
            if failed:
                # What is damaged now is no state from which another case may begin.
                cluster.print_logs()
                failed += [damage.__name__ for damage in damages[damages.index(damage) + 1:]]
                break
        else:
            wrong = [line for node in cluster.nodes for line in keys.wrong_values(node)]
            if wrong:
                failed.append("what the nodes answer in the end")
                say(f"wrong values in the end:\n  {shown(wrong)}")
    return failed, len(damages)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", action="append", choices=list(CASES), help="the backends [all]")
    parser.add_argument("--setback", type=float, default=SETBACK_SECONDS, help="by how many seconds a node is set back [30]")
    parser.add_argument("cases", nargs="*", help="which cases [all]")
    options = parser.parse_args()
    known = {damage.__name__ for damages in CASES.values() for damage in damages}
    if unknown := set(options.cases) - known:
        parser.error(f"unknown cases: {', '.join(sorted(unknown))}; there are: {', '.join(sorted(known))}")
    printing = threading.Lock()

    def say(text):
        with printing:
            print(text, flush=True)

    backends = options.backend or list(CASES)
    with concurrent.futures.ThreadPoolExecutor(len(backends)) as pool:
        results = list(pool.map(lambda backend: run_backend(backend, options.cases, options.setback, say), backends))
    failed = [name for names, _ in results for name in names]
    count = sum(count for _, count in results)
    print(f"{max(0, count - len(failed))} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
