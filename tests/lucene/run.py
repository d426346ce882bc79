#!/usr/bin/env python3
"""Compares Ombak's search with Lucene.

Lucene answers the queries over the documents of `recorded`, and its answers must be the recorded ones,
which `make test` compares with Ombak's. Then both answer fresh random queries over fresh documents. The
seed of a comparison that fails is printed.

Usage: run.py [--queries N] [--seed N]
       run.py --record    writes `recorded` anew, with Lucene's answers"""
import argparse
import contextlib
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "support"))

import cases  # noqa: E402
import packages  # noqa: E402

POM = HERE / "pom.xml"
RECORDED = HERE / "recorded"
RECORDED_SEED = 1
RECORDED_DOCUMENTS = 240
RECORDED_QUERIES = 500
FRESH_DOCUMENTS = 400
COMPILER_SECONDS_MAX = 120
PROGRAM_SECONDS_MAX = 600
# A first build of the tests in release mode takes minutes.
TEST_SECONDS_MAX = 3600
# Sets with more documents are written as a bit for each document.
NUMBERS_MAX = 16
BITS = 4
COLUMNS = 5


def install(directory):
    packages.run(["mvn", "--batch-mode", "--quiet", "--file", str(POM), f"-Dmaven.repo.local={packages.cache() / 'maven'}",
                  f"-DoutputDirectory={directory / 'jars'}", "dependency:copy-dependencies"])


class Lucene:
    """The program that answers, compiled into a directory."""

    def __init__(self, directory):
        libraries = f"{packages.installed('lucene', [POM], install) / 'jars'}/*"
        sources = map(str, sorted(HERE.glob("*.java")))
        subprocess.run(["javac", "-encoding", "UTF-8", "-d", directory, "--class-path", libraries, *sources], check=True,
                       timeout=COMPILER_SECONDS_MAX)
        self.class_path = f"{directory}:{libraries}"

    def answers(self, documents, queries):
        """The answers over lines of documents to lines of cases."""
        with tempfile.TemporaryDirectory() as directory:
            paths = [Path(directory) / name for name in ("documents", "cases")]
            for path, lines in zip(paths, (documents, queries)):
                write(path, lines)
            done = subprocess.run(["java", "--class-path", self.class_path, "Answers", *map(str, paths)], stdout=subprocess.PIPE,
                                  encoding="utf-8", check=True, timeout=PROGRAM_SECONDS_MAX)
        found = done.stdout.split("\n")[:-1]
        assert len(found) == len(queries), f"{len(found)} answers to {len(queries)} queries"
        return [answer if has_order(query) else short(answer, len(documents)) for query, answer in zip(queries, found)]


def write(path, lines):
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())


def read(path):
    return path.read_bytes().decode().split("\n")[:-1]


def has_order(query):
    return bool(query.split("\t")[2])


def short(answer, count):
    """A set as a bit for each document, if it has many of them."""
    numbers = answer.split()
    if answer == "error" or len(numbers) <= NUMBERS_MAX:
        return answer
    digits = [0] * (count // BITS + 1)
    for number in map(int, numbers):
        digits[number // BITS] |= 1 << number % BITS
    return "x" + "".join(f"{digit:x}" for digit in digits)


def with_answers(queries, answers):
    return [f"{query}\t{answer}" for query, answer in zip(queries, answers)]


def record(lucene):
    documents = cases.documents(RECORDED_SEED, RECORDED_DOCUMENTS)
    # A query that is there twice would only take time.
    queries = list(dict.fromkeys(cases.by_hand() + cases.cases(RECORDED_SEED, RECORDED_QUERIES)))
    RECORDED.mkdir(exist_ok=True)
    write(RECORDED / "documents.txt", documents)
    write(RECORDED / "cases.txt", with_answers(queries, lucene.answers(documents, queries)))
    print(f"recorded {len(queries)} answers over {len(documents)} documents")


def compare_recorded(lucene):
    """How many recorded answers are not Lucene's."""
    recorded = read(RECORDED / "cases.txt")
    queries = ["\t".join(line.split("\t")[:COLUMNS]) for line in recorded]
    answered = with_answers(queries, lucene.answers(read(RECORDED / "documents.txt"), queries))
    wrong = [line for line, other in zip(recorded, answered) if line != other]
    for line in wrong:
        print(f"FAIL this is not what Lucene answers: {line}")
    print(f"{len(recorded) - len(wrong)} of {len(recorded)} recorded answers are Lucene's", flush=True)
    return len(wrong)


def compare_fresh(lucene, seed, count):
    """Whether Ombak and Lucene answer fresh queries alike."""
    documents, queries = cases.documents(seed, FRESH_DOCUMENTS), cases.cases(seed, count)
    with tempfile.TemporaryDirectory() as directory:
        write(Path(directory) / "documents.txt", documents)
        write(Path(directory) / "cases.txt", with_answers(queries, lucene.answers(documents, queries)))
        command = ["cargo", "test", "--release", "--locked", "--package", "ombak-search-index", "--lib", "sets_and_orders_are_those_of_lucene"]
        done = subprocess.run(command, cwd=ROOT, env=os.environ | {"OMBAK_LUCENE_CASES": directory}, timeout=TEST_SECONDS_MAX)
    is_alike = done.returncode == 0
    print(f"{'' if is_alike else 'FAIL '}{len(queries)} fresh queries, --seed {seed}", flush=True)
    return is_alike


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        lucene = Lucene(stack.enter_context(tempfile.TemporaryDirectory()))
        if arguments.record:
            record(lucene)
            return 0
        wrong = compare_recorded(lucene)
        is_alike = compare_fresh(lucene, arguments.seed, arguments.queries)
    return 0 if wrong == 0 and is_alike else 1


if __name__ == "__main__":
    sys.exit(main())
