"""What clients asked a cluster to do, and what they were told.

A history has the writes of each key, the listings of quiet buckets, and the moments that decide
what may be lost: when a directory was wiped, and when the cluster was settled. All times come from
one monotonic clock. Clients record from several threads."""
import threading
from dataclasses import dataclass, field

SET, REGISTER, DOCUMENT = "set", "register", "document"


@dataclass
class Write:
    """One write of a key. `value` is the element that it adds to a set, or the number that it gives
    a register; None for a delete. Without `acknowledged` it may have happened or not."""

    value: object
    nodes: int  # how many nodes an acknowledgement stands for
    began: float
    ended: float = None
    acknowledged: bool = False
    answer: str = ""


@dataclass
class Key:
    """The writes of one key. A register has one writer, which counts upwards. A key that is deleted
    is never written again. A document has one writer, too, which may write after a delete: its
    deletes are among its writes, without a value."""

    bucket: str
    name: str
    kind: str
    writes: list = field(default_factory=list)
    delete: Write = None


@dataclass
class Listing:
    """An answer to a listing of a bucket that nobody writes to."""

    bucket: str
    how: str
    at: float
    found: list


class History:
    def __init__(self):
        self.lock = threading.Lock()
        self.keys = {}
        self.listings = []
        self.wipes = []  # (time, node)
        self.settled = []  # (time when the question began, time when the answer came)

    def key(self, bucket, name, kind):
        with self.lock:
            return self.keys.setdefault((bucket, name), Key(bucket, name, kind))

    def begin(self, key, value, nodes, now):
        """Notes a write before it is sent."""
        write = Write(value, nodes, now)
        with self.lock:
            key.writes.append(write)
        return write

    def begin_delete(self, key, nodes, now):
        write = Write(None, nodes, now)
        with self.lock:
            key.delete = write
        return write

    def end(self, write, acknowledged, answer, now):
        with self.lock:
            write.ended, write.acknowledged, write.answer = now, acknowledged, answer

    def listed(self, bucket, how, found, now):
        with self.lock:
            self.listings.append(Listing(bucket, how, now, found))

    def wiped(self, node, now):
        with self.lock:
            self.wipes.append((now, node))

    def was_settled(self, began, ended):
        with self.lock:
            self.settled.append((began, ended))
