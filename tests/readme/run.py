#!/usr/bin/env python3
"""Runs the fenced blocks of README.md, and then those of other documents, in order, in a scratch
directory with a fresh node that has search. The other documents use what README.md has installed.

A `console` block is a session: each line that begins with `$ ` is a command, and the lines below it
are its output. A command goes on in the next lines until its quotation marks are closed. `...`
stands for any text within a line, or for any lines if it is a line of its own. A command without
output only has to succeed. What a command exports, later commands have. A block in another language
is a file, whose first line is a comment with its name.

The documents name the default ports, and the node here has others: they are replaced in commands,
files and outputs. Commands that install packages run in the package cache, and only if it does not
have their result. Commands that build the programs are left out: the programs under test are the
debug builds, which are linked to where a release build would put them.

Usage: run.py"""
import itertools
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))

import packages  # noqa: E402
from node import ROOT, Node, clean_environment, program  # noqa: E402

DOCUMENTS = ("README.md", "docs/health.md", "docs/datatypes.md", "docs/hooks.md", "docs/mapreduce.md",
             "docs/search.md")
COMMAND_SECONDS_MAX = 300
TRIES_MAX = 3

# For each language of a file block, the comment that names the file.
FILE_NAME = {
    "python": re.compile(r"# (\S+)"),
    "js": re.compile(r"// (\S+)"),
    "java": re.compile(r"// (\S+)"),
    "xml": re.compile(r"<!-- (\S+) -->"),
}
BUILDS = ("cargo build ", "make ")
# What these commands do after they have built the program.
BUILT = {
    "make devcluster": "tests/devcluster/devcluster start 5 devcluster",
    "make devcluster-stop": "tests/devcluster/devcluster stop devcluster",
}
INSTALLS = ("python3 -m venv ", "venv/bin/pip install ", "npm install ")
# These commands may have to download something first.
DOWNLOADS = ("mvn ",)

# Escape sequences for colours are not compared.
COLOURS = re.compile("\x1b\\[[0-9;]*m")

# The parts of the clone that commands name, besides the seeds, which name ports.
LINKED = ("tests",)
SEEDS = "benches/seeds"


class Mismatch(Exception):
    """A snippet does not do what its document shows."""


class Place(NamedTuple):
    """A line of a document."""

    document: str
    number: int

    def __str__(self):
        return f"{self.document}:{self.number}"


def blocks(document):
    """Yields (place, language, lines) of each fenced block."""
    language = None
    for number, line in enumerate((ROOT / document).read_text().splitlines(), 1):
        if not line.startswith("```"):
            if language is not None:
                content.append(line)
        elif language is None:
            language, start, content = line[3:].strip(), Place(document, number), []
        else:
            yield start, language, content
            language = None
    if language is not None:
        raise Mismatch(f"{start}: the block has no end")


def is_open(command):
    """Whether a quotation in a command is not closed."""
    try:
        shlex.split(command)
    except ValueError:
        return True
    return False


def commands(start, lines):
    """Returns (place, command, expected lines) of each command of a session."""
    found = []
    for number, line in enumerate(lines, start.number + 1):
        place = start._replace(number=number)
        if found and is_open(found[-1][1]):
            place, command, expected = found[-1]
            found[-1] = place, f"{command}\n{line}", expected
        elif line.startswith("$ "):
            found.append((place, line[2:], []))
        elif found:
            found[-1][2].append(line)
        else:
            raise Mismatch(f"{place}: the session does not begin with a command")
    return found


def pattern(expected):
    """The regular expression that the whole output must match."""
    parts = []
    for line in expected:
        if line == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(r"[^\n]*".join(map(re.escape, line.split("..."))) + r"\n")
    return re.compile("".join(parts))


class Session:
    """The scratch directory, and the node that the snippets talk to."""

    def __init__(self, directory, node):
        self.directory, self.node = directory, node
        built = program().parent
        release = directory / "target" / "release"
        release.mkdir(parents=True)
        for name, path in (("ombak", program()), ("ombak-bench", built / "ombak-bench")):
            (release / name).symlink_to(path)
        for name in LINKED:
            (directory / name).symlink_to(ROOT / name)
        (directory / SEEDS).mkdir(parents=True)
        for seed in (ROOT / SEEDS).glob("*.config"):
            (directory / SEEDS / seed.name).write_text(self.with_ports(seed.read_text()))
        self.environment = {**clean_environment(), "MAVEN_OPTS": f"-Dmaven.repo.local={packages.cache() / 'maven'}"}

    def with_ports(self, text):
        return re.sub(r"\b8098\b", str(self.node.http_port), re.sub(r"\b8087\b", str(self.node.pb_port), text))

    def write(self, start, language, lines):
        named = FILE_NAME[language].fullmatch(lines[0]) if lines else None
        if not named:
            raise Mismatch(f"{start}: the first line does not name the file")
        path = self.directory / named[1]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.with_ports("\n".join(lines) + "\n"))

    def install(self, wanted):
        """Links the results of the installing commands `wanted` into the scratch directory."""
        pin = self.directory / "pin"
        pin.write_text("\n".join(wanted))

        def run_in(directory):
            for command in wanted:
                packages.run(["bash", "-c", command], cwd=directory, stdin=subprocess.DEVNULL)

        entry = packages.installed("readme", [pin], run_in)
        pin.unlink()
        for path in entry.iterdir():
            (self.directory / path.name).symlink_to(path)

    def export(self, command):
        done = subprocess.run(["bash", "-c", f"{command}; env -0"], cwd=self.directory, env=self.environment, check=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.environment.update(entry.split("=", 1) for entry in done.stdout.split("\0") if entry)

    def run(self, place, command, expected):
        tries = TRIES_MAX if command.startswith(DOWNLOADS) else 1
        for _ in range(tries):
            done = subprocess.run(["bash", "-c", self.with_ports(command)], cwd=self.directory, env=self.environment,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  errors="replace", timeout=COMMAND_SECONDS_MAX)
            if done.returncode == 0:
                break
        if command.startswith("export "):
            self.export(command)
        printed = "".join(line.rstrip() + "\n" for line in COLOURS.sub("", done.stdout).splitlines())
        shown = self.with_ports("\n".join(expected)).splitlines()
        if done.returncode != 0:
            raise Mismatch(f"{place}: `{command}` exited with {done.returncode}:\n{printed}{done.stderr}")
        if shown and not pattern(shown).fullmatch(printed):
            raise Mismatch(f"{place}: `{command}` printed\n{printed}{done.stderr}and the document shows\n" + "\n".join(shown))


def run_block(session, start, language, lines):
    """Runs one block and returns how many things were checked."""
    if language in FILE_NAME:
        session.write(start, language, lines)
        return 0
    if language != "console":
        raise Mismatch(f"{start}: nobody knows how to run a block of '{language}'")
    found = [(place, BUILT.get(command, command), expected) for place, command, expected in commands(start, lines)]
    session_commands = [c for c in found if not c[1].startswith(BUILDS)]
    wanted = [command for _, command, _ in session_commands if command.startswith(INSTALLS)]
    if wanted:
        session.install(wanted)
    for place, command, expected in session_commands:
        if command not in wanted:
            started = time.monotonic()
            session.run(place, command, expected)
            print(f"{place}: {time.monotonic() - started:5.1f} s  {command}", flush=True)
    return len(session_commands)


def check_make_run(scratch):
    """`make run` gives the node no variables of the Makefile: the node warns of unknown ones.

    A program that does nothing stands in for cargo, and one that prints its environment for the
    node."""
    for name, script in (("bin/cargo", ""), ("release/ombak", "env")):
        path = scratch / name
        path.parent.mkdir()
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    environment = clean_environment()
    environment["PATH"] = f"{scratch / 'bin'}:{environment['PATH']}"
    environment["CARGO_TARGET_DIR"] = str(scratch)
    ran = subprocess.run(
        ["make", "--silent", "--directory", str(ROOT), "run"],
        env=environment, capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX,
    )
    given = [line for line in ran.stdout.splitlines() if line.startswith("OMBAK_")]
    if ran.returncode != 0 or given:
        raise Mismatch(f"make run: exit code {ran.returncode}, variables {given}: {ran.stderr}")


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="ombak-make-run-") as scratch:
        try:
            check_make_run(Path(scratch))
            passed += 1
        except Mismatch as mismatch:
            print(mismatch, flush=True)
            failed += 1
    with tempfile.TemporaryDirectory(prefix="ombak-readme-") as scratch:
        directory = Path(scratch)
        with Node({"platform_data_dir": str(directory / "data"), "search": "on"}) as node:
            session = Session(directory, node)
            try:
                for start, language, lines in itertools.chain.from_iterable(map(blocks, DOCUMENTS)):
                    try:
                        passed += run_block(session, start, language, lines)
                    except Mismatch as mismatch:
                        print(mismatch, flush=True)
                        failed += 1
            finally:
                # A session that failed may have left nodes running.
                subprocess.run(["bash", "-c", BUILT["make devcluster-stop"]], cwd=directory, env=session.environment,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=COMMAND_SECONDS_MAX)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
