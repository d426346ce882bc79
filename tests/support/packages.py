"""Installs the clients' packages at pinned versions into a local cache, and reuses them.

The cache is OMBAK_CACHE, or `.cache` in the clone. The name of an entry contains a digest of the
files that pin its versions. An entry gets its name only when it is complete, so an interrupted
installation is never taken for an entry."""
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TRIES_MAX = 3
PAUSE_SECONDS = 5
INSTALL_SECONDS_MAX = 600


def cache():
    return Path(os.environ.get("OMBAK_CACHE") or ROOT / ".cache").absolute()


def installed(name, pins, install):
    """The directory of the entry `name`, as the files `pins` pin it. `install(directory)` fills it
    if it does not exist."""
    digest = hashlib.sha256(sys.version.encode())
    for pin in pins:
        digest.update(Path(pin).read_bytes())
    entry = cache() / f"{name}-{digest.hexdigest()[:12]}"
    if entry.is_dir():
        return entry
    print(f"installing the packages of {name} into {entry}", flush=True)
    cache().mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f"{name}-partial-", dir=cache()))
    try:
        install(partial)
        partial.rename(entry)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return entry


def run(command, **options):
    """Runs an installer. A registry may be slow to answer, so the installer is tried a few
    times."""
    for attempt in range(1, TRIES_MAX + 1):
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=INSTALL_SECONDS_MAX, **options)
            if done.returncode == 0:
                return
            problem = done.stdout[-4000:]
        except FileNotFoundError:
            raise SystemExit(f"{command[0]} is needed and was not found") from None
        except subprocess.TimeoutExpired:
            problem = f"no end after {INSTALL_SECONDS_MAX} s"
        print(f"try {attempt} of {TRIES_MAX}: `{' '.join(command)}` failed: {problem}", flush=True)
        if attempt < TRIES_MAX:
            time.sleep(PAUSE_SECONDS)
    raise SystemExit(f"could not install: `{' '.join(command)}`")
