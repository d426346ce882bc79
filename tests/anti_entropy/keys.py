"""What clients have written to a cluster and deleted from it, and whether all replicas hold exactly
that.

Replicas are compared by their files (support/stores.py), so that nothing is repaired by a read.
Deletes and overwrites send the clock of the write before, so they read nothing either."""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
sys.path.insert(0, str(HERE.parent / "nemesis"))

import stores  # noqa: E402
from riak_http import Requests  # noqa: E402

BUCKET = "cold"
COPIES = 3
SHOWN_MAX = 8


class Keys:
    """The keys of a test. `alive` has the value and the clock of each key that was acknowledged and
    not deleted, and `deleted` those whose delete was acknowledged."""

    def __init__(self, backend):
        self.backend = backend
        self.alive, self.deleted = {}, set()

    def write(self, node, keys, version, **quorums):
        """Writes a value of each key through a node, over the one that is there."""
        requests = Requests(node.http, "default")
        for key in keys:
            value = value_of(key, version)
            clock = self.alive[key][1] if key in self.alive else None
            self.alive[key] = (value, requests.put(BUCKET, key, value, clock, **quorums))
            self.deleted.discard(key)
        requests.close()

    def delete(self, node, keys):
        requests = Requests(node.http, "default")
        for key in keys:
            requests.delete(BUCKET, key, self.alive.pop(key)[1])
            self.deleted.add(key)
        requests.close()

    def differences(self, nodes, set_aside=None):
        """How the replicas differ from what was written, and from each other, in lines. Each key
        that was not deleted has COPIES equal copies, and nothing else is left of any other key,
        apart from what a node has set aside (the storage keys by the number of the node)."""
        held = {node.number: stores.held(node.data, self.backend) for node in nodes}
        wanted = {stores.storage_key(BUCKET, key): key for key in self.alive}
        lines = []
        for storage_key in sorted(set(wanted).union(*held.values())):
            copies = {number: found[storage_key] for number, found in held.items() if storage_key in found}
            name = storage_key[len(stores.storage_key(BUCKET, "")):].decode("utf-8", "replace")
            if storage_key not in wanted:
                copies = [number for number in copies if storage_key not in (set_aside or {}).get(number, ())]
            if storage_key not in wanted and copies:
                lines.append(f"{name} was deleted, and is at {sorted(copies)}")
            elif storage_key in wanted and (len(copies) != COPIES or None in copies.values() or len(set(copies.values())) != 1):
                shown = {number: f"{digest:x}" if digest is not None else "damaged" for number, digest in copies.items()}
                lines.append(f"{name} has the copies {shown}")
        return lines

    def wrong_values(self, node, keys=None):
        """What a node answers otherwise than it should, in lines. These reads come last."""
        requests, lines = Requests(node.http, "default"), []
        for key in keys or [*self.alive, *sorted(self.deleted)]:
            wanted = [self.alive[key][0]] if key in self.alive else []
            found = requests.get(BUCKET, key, r="all", pr="all")
            values = found.values if found else []
            if values != wanted:
                lines.append(f"{key} at node {node.number}: {values} in place of {wanted}")
        requests.close()
        return lines


def value_of(key, version):
    return f"{key} {version} " + "v" * 60


def shown(lines):
    more = len(lines) - SHOWN_MAX
    return "\n  ".join(lines[:SHOWN_MAX]) + (f"\n  and {more} more" if more > 0 else "")
