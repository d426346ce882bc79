"""Compares the answers of searches with what clients were told, also while faults last.

A document is a key with one writer, which puts versions with growing numbers, overwrites them and
deletes them. A version is *everywhere* if all primaries of the key acknowledged it. The rules:

* An answer that is not partial shows of each document its last version that was everywhere half a
  second before the query began, or one that was written after that one. A deleted document is
  absent.
* It shows no document twice, none that nobody wrote, and counts those that it shows.
* When the cluster has healed and its indexes have everything, each answer shows exactly what the
  store has, and the store has the last version that was acknowledged, or a later one.

Why the first rule needs all primaries: a query asks one replica of each partition, as a listing
does. Two of three replicas acknowledge most writes. While a network is parted, or a node was down
and has not received what it missed, the third one has a full store and a fresh index without the
write. `behind` counts such answers, and no rule forbids them.

A write without acknowledgement may have happened or not. So may one that not all primaries have
acknowledged, as far as one replica is concerned. Both stay possible until a later version is
everywhere: the bucket keeps one version of a key, the one that was written last.

All functions are pure: they know nothing of nodes and requests."""
from bisect import bisect_right
from dataclasses import dataclass

from checker import Violation

# What docs/search.md promises.
FRESHNESS_SECONDS = 0.5
# Nodes compare whole milliseconds of the clock of the machine, which need not run as fast as the
# monotonic one that the clients read.
MARGIN_SECONDS = 0.05
# So many primaries has a key, and so many nodes confirm a write that has to survive.
COPIES, COPIES_SAFE = 3, 2
# What a query finds of a document that is not there.
ABSENT = None


@dataclass
class Query:
    """`matches(name, number)` says whether it finds this version of a document."""

    text: str
    matches: object


@dataclass
class Answer:
    """An answer to a query over one bucket. `found` has the pairs of a key and a number."""

    query: Query
    bucket: str
    began: float
    ended: float
    found: list
    num_found: int
    is_partial: bool
    in_fault: bool
    where: str


class Versions:
    """The writes of one document, in the order in which its writer made them. Of those that at
    least `copies` nodes acknowledged, none makes way for an earlier one."""

    def __init__(self, key, copies=COPIES):
        self.key, self.writes = key, list(key.writes)
        self.began = [write.began for write in self.writes]
        self.kept = [at for at, write in enumerate(self.writes) if write.acknowledged and write.nodes >= copies]
        self.kept_at = [self.writes[at].ended for at in self.kept]

    def possible(self, before=float("inf"), until=float("inf")):
        """What may be seen by who began so that everything from `before` counts, and ended at
        `until`: numbers, or ABSENT."""
        counts = bisect_right(self.kept_at, before)
        first = self.kept[counts - 1] if counts else 0
        earlier = {ABSENT} if not counts else set()
        return earlier | {write.value for write in self.writes[first:max(bisect_right(self.began, until), first)]}


def check_answer(answer, documents):
    """What is wrong with a complete answer. `documents` are the Versions of its bucket, by name."""
    violations, found = check_shape(answer, documents)
    for versions in documents.values():
        seen, wanted = found.get(versions.key.name, ABSENT), wanted_of(answer, versions)
        if seen not in wanted:
            rule = "missing" if seen is ABSENT else "returned" if wanted == {ABSENT} else "outdated"
            violations.append(violation(rule, answer, versions.key.name, f"it shows {seen}, and may show {sorted(wanted, key=str)}"))
    return violations


def wanted_of(answer, versions):
    """What a complete answer may show of a document."""
    before = answer.began - FRESHNESS_SECONDS - MARGIN_SECONDS
    name, matches = versions.key.name, answer.query.matches
    possible = versions.possible(before, answer.ended)
    return {number if number is not ABSENT and matches(name, number) else ABSENT for number in possible}


def check_shape(answer, documents):
    """What is wrong with an answer whatever was written when, and what it shows of each
    document."""
    violations, found = [], {}
    for name, number in answer.found:
        if name not in documents:
            violations.append(violation("invented", answer, name, "nobody wrote it"))
        elif name in found:
            violations.append(violation("twice", answer, name, f"it shows {found[name]} and {number}"))
        found[name] = number
    if answer.num_found != len(answer.found):
        violations.append(violation("count", answer, "*", f"numFound is {answer.num_found}, and {len(answer.found)} documents came"))
    return violations, found


def check_end(answer, documents, store):
    """What is wrong with an answer of a healed cluster. `store` says which number each document has
    there, if it has one."""
    violations, found = check_shape(answer, documents)
    for name, versions in documents.items():
        stored = store.get(name, ABSENT)
        wanted = stored if stored is not ABSENT and answer.query.matches(name, stored) else ABSENT
        if found.get(name, ABSENT) != wanted:
            violations.append(violation("differs", answer, name, f"it shows {found.get(name, ABSENT)}, and the store has {stored}"))
    return violations


def check_store(versions, stored, where):
    """What is wrong with a document in the stores of a healed cluster. What two nodes acknowledged
    has to be there, or something later."""
    possible = Versions(versions.key, COPIES_SAFE).possible()
    if stored in possible:
        return []
    return [Violation("lost" if stored is ABSENT else "stored", versions.key.bucket, versions.key.name,
                      f"the store has {stored}, and may have {sorted(possible, key=str)}, {where}")]


def binding(answer, documents):
    """How many documents the answer had to show, in one version, and how many that once were there
    it had to leave out."""
    shown = gone = 0
    for versions in documents.values():
        possible = versions.possible(answer.began - FRESHNESS_SECONDS - MARGIN_SECONDS, answer.ended)
        if len(possible) == 1 and versions.writes:
            is_gone = possible == {ABSENT}
            gone += is_gone
            shown += not is_gone and wanted_of(answer, versions) != {ABSENT}
    return shown, gone


def is_behind(answer, quorums):
    """Whether the answer lacks something that was acknowledged in time, but not by all primaries.
    `quorums` are Versions of which what two nodes acknowledged is kept."""
    _, found = check_shape(answer, quorums)
    return any(found.get(name, ABSENT) not in wanted_of(answer, versions) for name, versions in quorums.items())


def violation(rule, answer, name, detail):
    what = f"{answer.query.text} {answer.where}"
    return Violation(rule, answer.bucket, name, f"{what}: {detail}")
