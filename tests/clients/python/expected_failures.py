"""A pytest plugin that marks the tests named in `expected_failures.txt` as expected to fail,
strictly.

On a cluster (CLUSTER_NODES is set), those named in `expected_on_cluster.txt` are marked too, not
strictly: which node is first in a preference list depends on the ring.

Strictly means that the run fails if such a test passes, so that no entry outlives its reason. If no
collected test has the name of an entry, the run ends before it starts."""
import os
from pathlib import Path

import pytest

LIST = Path(__file__).with_suffix(".txt")
CLUSTER_LIST = LIST.with_name("expected_on_cluster.txt")


def read_list(protocol, file=LIST):
    """The names of the entries for this protocol, with their reasons."""
    entries = {}
    for number, line in enumerate(file.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        fields = line.split(maxsplit=2)
        if len(fields) != 3:
            raise pytest.UsageError(f"{file.name}:{number}: protocols, a name and a reason are wanted")
        protocols, name, reason = fields
        if protocol in protocols.split(","):
            entries[name] = reason
    return entries


def pytest_collection_modifyitems(items):
    entries = read_list(os.environ["RIAK_TEST_PROTOCOL"])
    on_cluster = read_list(os.environ["RIAK_TEST_PROTOCOL"], CLUSTER_LIST) if "CLUSTER_NODES" in os.environ else {}
    for item in items:
        name = item.nodeid.rpartition("/")[2]
        if name in entries:
            item.add_marker(pytest.mark.xfail(reason=entries.pop(name), strict=True))
        elif name in on_cluster:
            item.add_marker(pytest.mark.xfail(reason=on_cluster.pop(name), strict=False))
    entries.update(on_cluster)
    if entries:
        raise pytest.UsageError(f"tests are named that the suite does not have: {', '.join(sorted(entries))}")


def pytest_terminal_summary(terminalreporter):
    """Prints the tests that the switches leave out, grouped by reason."""
    groups = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        file, _, test = report.nodeid.rpartition("/")[2].partition("::")
        groups.setdefault((reason, file), []).append(test.rpartition("::")[2])
    for (reason, file), tests in sorted(groups.items()):
        terminalreporter.write_line(f"left out, {reason}: {file}: {' '.join(sorted(tests))}")
