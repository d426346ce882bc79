"""What the replays of `recordings-2` have in common: running the tool, and explained differences."""
import json
import os
import subprocess
import sys
from pathlib import Path

from node import program  # The caller says where it is.

HERE = Path(__file__).resolve().parent
RECORDINGS = HERE / "recordings-2"
REPLAY_SECONDS_MAX = 300


def run_tool(words, results):
    """Runs the tool `replay`, which leaves what it found in the file `results`. Returns the
    exchanges, and what it printed."""
    done = subprocess.run(
        [sys.executable, str(HERE / "replay"), "--dir", str(RECORDINGS), *words, "--show", "--json", str(results)],
        timeout=REPLAY_SECONDS_MAX, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        env={**os.environ, "OMBAK_PROGRAM": str(program())})
    if not results.exists():
        raise SystemExit(f"{results.stem}: the replay ended with status {done.returncode} and left no results:\n{done.stdout}")
    return json.loads(results.read_text())["exchanges"], done.stdout


def read_explained(name):
    """The exchanges that differ, with their reasons, from a file beside this one."""
    lines = [line for line in (HERE / name).read_text().splitlines() if line and not line.startswith("#")]
    return {exchange: reason.strip() for exchange, _, reason in (line.partition(" ") for line in lines)}
