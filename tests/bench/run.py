#!/usr/bin/env python3
"""Runs every configuration of `benches/seeds` for a few seconds, each against a fresh single node,
and checks the results that were written.

Also checks that the load generator holds a given rate, and that it reports how late operations
began if the node does not answer for a second."""
import csv
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "support"))

from node import Node, NodeError, clean_environment, program  # noqa: E402

SECONDS = 2
RUN_SECONDS_MAX = 120
# A thousandth of the key space, so that the writes of two seconds hit keys more than once.
SCALE = "0.001"
# Where a thousandth is too much: here, a worker reads its records only once it has 700,000 of them,
# scaled.
SCALES = {"nhs-general": "0.00001"}
LEFT_OUT = "left out, weights renormalised: "
SUMMARY_HEADER = "elapsed, window, total, successful, failed"

PAUSE_RATE_PER_WORKER = 200
PAUSE_WORKERS = 10
PAUSE_SECONDS = 8
PAUSE_CONFIG = f"""
{{mode, {{rate, {PAUSE_RATE_PER_WORKER}}}}}.
{{concurrent, {PAUSE_WORKERS}}}.
{{report_interval, 1}}.
{{driver, basho_bench_driver_riakc_pb}}.
{{operations, [{{get, 1}}, {{put, 1}}]}}.
{{key_generator, {{to_binstr, "~w", {{uniform_int, 1000}}}}}}.
{{value_generator, {{fixed_bin, 100}}}}.
"""


class Failure(Exception):
    """The results of a run are not as they should be."""


def bench():
    """The path of the load generator, in the directory of the server."""
    path = program().with_name("ombak-bench")
    if not path.is_file():
        raise NodeError(f"no program at {path}: build it with `cargo build --workspace`")
    return path


def run(config, node, results, *words):
    """Runs a configuration. Returns the directory of its results, and its output."""
    name = config.stem
    command = [str(bench()), str(config), "--pb", node.pb, "--http", node.http, "-d", str(results), "-n", name, *words]
    # Engines inside the load generator keep their data in its working directory.
    done = subprocess.run(command, cwd=results, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          timeout=RUN_SECONDS_MAX, env=clean_environment())
    if done.returncode != 0:
        raise Failure(f"exited with {done.returncode}:\n{done.stdout}")
    return results / name, done.stdout


def summary(directory):
    """(elapsed, window, total, successful, failed) of every window."""
    with open(directory / "summary.csv", newline="") as file:
        header, *rows = list(csv.reader(file, skipinitialspace=True)) or [[]]
    # The file exists a moment before its first line does.
    if header and ", ".join(header) != SUMMARY_HEADER:
        raise Failure(f"summary.csv begins with {header}")
    return [[float(cell) for cell in row] for row in rows]


def check_results(directory):
    rows = summary(directory)
    successful, failed = sum(row[3] for row in rows), sum(row[4] for row in rows)
    if successful < 1:
        raise Failure("nothing was done")
    if failed:
        errors = (directory / "errors.csv").read_text()
        raise Failure(f"{failed:.0f} operations failed:\n{errors}")
    for name in ["report.html", "summary.png", "run.json", "errors.csv"]:
        if not (directory / name).stat().st_size:
            raise Failure(f"{name} is empty")
    origin = json.loads((directory / "run.json").read_text())["origin"]
    report = (directory / "report.html").read_text()
    for fact in [*origin["config_files"], origin["host"], origin["program"]]:
        if not fact or fact not in report:
            raise Failure(f"report.html does not name {fact!r}")
    if not list(directory.glob("*_latencies.csv")):
        raise Failure("no latencies were written")
    return f"{successful / rows[-1][0]:.0f} operations a second"


def check_operations(directory):
    """Checks that every operation was done that the server supports."""
    run = json.loads((directory / "run.json").read_text())
    idle = [label for label, totals in zip(run["operations"], run["totals"]["operations"], strict=True)
            if not totals["units"] and not any(note.startswith(f"{LEFT_OUT}{label}: ") for note in run["notes"])]
    if idle:
        raise Failure(f"never done: {', '.join(idle)}")


def seed(config, results):
    with Node() as node:
        words = ["--scale", SCALES.get(config.stem, SCALE), "--skip-unsupported", "--duration", f"{SECONDS}s"]
        directory, _ = run(config, node, results, *words)
    said = check_results(directory)
    check_operations(directory)
    return said


def rate_and_pause(results):
    """Stops the node's process for a second. Every operation that was due then is late, and none is
    lost."""
    config = results / "pause.config"
    config.write_text(PAUSE_CONFIG)
    with Node() as node:
        def pause():
            node.process.send_signal(signal.SIGSTOP)
            resume = threading.Timer(1.0, lambda: node.process.send_signal(signal.SIGCONT))
            resume.start()
        timer = threading.Timer(PAUSE_SECONDS / 2, pause)
        timer.start()
        try:
            directory, _ = run(config, node, results, "--duration", f"{PAUSE_SECONDS}s")
        finally:
            timer.cancel()
    check_results(directory)
    totals = json.loads((directory / "run.json").read_text())["totals"]
    done = sum(operation["units"] for operation in totals["operations"])
    due = PAUSE_RATE_PER_WORKER * PAUSE_WORKERS * PAUSE_SECONDS
    if abs(done - due) > due / 100:
        raise Failure(f"{done} operations in {PAUSE_SECONDS} s, {due} were due")
    windows = len(summary(directory))
    if not PAUSE_SECONDS <= windows <= PAUSE_SECONDS + 1:
        raise Failure(f"{windows} windows of a second in {PAUSE_SECONDS} s")
    late_us = max(operation["queue"]["max_us"] for operation in totals["operations"])
    slowest_us = max(operation["max_us"] for operation in totals["operations"])
    if not 800_000 <= late_us <= 3_000_000 or slowest_us < late_us:
        raise Failure(f"operations began up to {late_us} µs late, the slowest took {slowest_us} µs; the node was stopped for a second")
    return f"{done} of {due} operations, up to {late_us / 1e6:.2f} s late"


def interrupted(results):
    """Ctrl-C ends a run early, and the run leaves all its results behind."""
    config = results / "interrupted.config"
    config.write_text(PAUSE_CONFIG)
    with Node() as node:
        command = [str(bench()), str(config), "--pb", node.pb, "-d", str(results), "-n", "interrupted", "--duration", "10m"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=clean_environment())
        try:
            wait_for_window(results / "interrupted", process)
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=RUN_SECONDS_MAX)
        finally:
            process.kill()
            process.wait()
    if process.returncode != 0:
        raise Failure(f"exited with {process.returncode}:\n{said}")
    if "results in" not in said:
        raise Failure(f"does not say where the results are:\n{said}")
    return check_results(results / "interrupted")


def wait_for_window(directory, process):
    deadline = time.monotonic() + RUN_SECONDS_MAX
    while not (directory / "summary.csv").is_file() or len(summary(directory)) < 2:
        if process.poll() is not None:
            raise Failure(f"ended with {process.returncode} before it was interrupted:\n{process.stdout.read()}")
        if time.monotonic() > deadline:
            raise Failure("no window was written")
        time.sleep(0.05)


def main():
    seeds = sorted((ROOT / "benches" / "seeds").glob("*.config"))
    checks = [(path.stem, seed, path) for path in seeds]
    checks += [("a given rate, and a pause of a second", rate_and_pause, None), ("an interruption", interrupted, None)]
    wanted = sys.argv[1:]
    failed = 0 if seeds else 1
    passed = 0
    with tempfile.TemporaryDirectory(prefix="ombak-bench-") as base:
        for name, check, path in checks:
            if wanted and not any(word in name for word in wanted):
                continue
            results = Path(base) / name.replace(" ", "-")
            results.mkdir()
            try:
                said = check(path, results) if path else check(results)
            except (Failure, NodeError, subprocess.TimeoutExpired, OSError, LookupError, TypeError, ValueError) as error:
                failed += 1
                print(f"FAILED  {name}: {error}", flush=True)
            else:
                passed += 1
                print(f"ok      {name}: {said}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
