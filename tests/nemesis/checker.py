"""Compares what a cluster holds, when it has healed, with what its clients were told.

The rules (docs/design/replication.md):
* an acknowledged write is there, or something that its writer wrote over it;
* a key whose delete was acknowledged is absent;
* nothing is there that nobody wrote;
* a listing of a quiet bucket has each key exactly once, whatever goes on meanwhile.

One thing is excused: a directory was wiped while an acknowledged write was known to lie on one node
only. A write that at least two nodes acknowledged, and any write from before a moment when the
cluster was settled, has to survive the wipe.

All functions are pure: they know nothing of nodes and requests."""
from dataclasses import dataclass

from history import SET

COPIES_SAFE = 2


@dataclass
class Violation:
    rule: str
    bucket: str
    name: str
    detail: str

    def __str__(self):
        return f"{self.rule}: {self.bucket}/{self.name}: {self.detail}"


def is_excused(write, history):
    """Whether a wiped directory may have taken the only copy of a write."""
    if write.nodes >= COPIES_SAFE:
        return False

    def is_safe_from(wiped_at):
        # The cluster was settled after the write and before the wipe.
        return any(write.ended <= began and ended <= wiped_at for began, ended in history.settled)

    return any(wiped_at >= write.began and not is_safe_from(wiped_at) for wiped_at, _ in history.wipes)


def must_survive(write, history):
    return write.acknowledged and not is_excused(write, history)


def check_answer(key, seen, history, where):
    """Checks what an answer to a read of a healed cluster has. `seen` holds the elements of a set
    or the numbers of a register; it is empty if the key is not found. `where` says who answered."""
    strangers = set(seen) - {write.value for write in key.writes}
    if strangers:
        return [Violation("invented", key.bucket, key.name, f"nobody wrote {sorted(strangers)}, {where}")]
    if key.delete is not None and key.delete.acknowledged:
        if seen and not is_excused(key.delete, history):
            return [Violation("returned", key.bucket, key.name, f"it was deleted, and {sorted(seen)} is there, {where}")]
        return []
    if key.delete is not None and not seen:
        return []  # The delete was not acknowledged, and happened.
    kept = {write.value for write in key.writes if must_survive(write, history)}
    if key.kind == SET:
        lost = kept - set(seen)
    else:
        # A later number was written over an earlier one.
        lost = {value for value in kept if value == max(kept) and value > max(seen, default=-1)}
    if lost:
        return [Violation("lost", key.bucket, key.name, f"{sorted(lost)} was acknowledged and is missing, {where}")]
    return []


def check_listing(bucket, expected, found, where):
    """Checks a complete answer to a listing of a quiet bucket."""
    violations = []
    missing, strangers = set(expected) - set(found), set(found) - set(expected)
    if missing:
        violations.append(Violation("short", bucket, "*", f"{len(missing)} of {len(expected)} keys are missing, such as "
                                    f"{sorted(missing)[0]}, {where}"))
    if strangers:
        violations.append(Violation("invented", bucket, "*", f"nobody wrote {sorted(strangers)[:3]}, {where}"))
    if len(set(found)) != len(found):
        twice = sorted({name for name in found if found.count(name) > 1})
        violations.append(Violation("twice", bucket, "*", f"{len(twice)} keys came twice, such as {twice[0]}, {where}"))
    return violations


def check_final_listing(bucket, keys, found, history, where):
    """Checks a listing of a bucket that was written to, on a healed cluster. `keys` are its
    keys."""
    violations, names = [], set(found)
    for key in keys:
        is_there = key.name in names
        if key.delete is not None:
            if is_there and key.delete.acknowledged and not is_excused(key.delete, history):
                violations.append(Violation("returned", bucket, key.name, f"it was deleted and is listed, {where}"))
        elif not is_there and any(must_survive(write, history) for write in key.writes):
            violations.append(Violation("short", bucket, key.name, f"it was acknowledged and is not listed, {where}"))
    strangers = names - {key.name for key in keys}
    if strangers:
        violations.append(Violation("invented", bucket, "*", f"nobody wrote {sorted(strangers)[:3]}, {where}"))
    return violations
