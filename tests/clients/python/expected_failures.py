"""A pytest plugin that marks the tests named in `expected_failures.txt` as expected to fail,
strictly.

Strictly means that the run fails if such a test passes, so that no entry outlives its reason. If no
collected test has the name of an entry, the run ends before it starts."""
import os
from pathlib import Path

import pytest

LIST = Path(__file__).with_suffix(".txt")


def read_list(protocol):
    """The names of the entries for this protocol, with their reasons."""
    entries = {}
    for number, line in enumerate(LIST.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        fields = line.split(maxsplit=2)
        if len(fields) != 3:
            raise pytest.UsageError(f"{LIST.name}:{number}: protocols, a name and a reason are wanted")
        protocols, name, reason = fields
        if protocol in protocols.split(","):
            entries[name] = reason
    return entries


def pytest_collection_modifyitems(items):
    entries = read_list(os.environ["RIAK_TEST_PROTOCOL"])
    for item in items:
        name = item.nodeid.rpartition("/")[2]
        if name in entries:
            item.add_marker(pytest.mark.xfail(reason=entries.pop(name), strict=True))
    if entries:
        raise pytest.UsageError(f"{LIST.name} names tests that the suite does not have: {', '.join(sorted(entries))}")


def pytest_terminal_summary(terminalreporter):
    """Prints the tests that the switches leave out, grouped by reason."""
    groups = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        file, _, test = report.nodeid.rpartition("/")[2].partition("::")
        groups.setdefault((reason, file), []).append(test.rpartition("::")[2])
    for (reason, file), tests in sorted(groups.items()):
        terminalreporter.write_line(f"left out, {reason}: {file}: {' '.join(sorted(tests))}")
