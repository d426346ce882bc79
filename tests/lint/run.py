#!/usr/bin/env python3
"""Fails if the compiler, or Clippy in its place, has a warning.

Usage: tests/lint/run.py COMMAND..., a command of Cargo that was run before. Cargo keeps the
messages of what it has built and tells them again, so this compiles nothing anew."""
import json
import subprocess
import sys

FATAL = ("warning", "error")


def main():
    command = [*sys.argv[1:], "--message-format", "json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    found = set()
    for line in process.stdout:
        message = json.loads(line)
        if message["reason"] == "compiler-message" and message["message"]["level"] in FATAL:
            found.add(message["message"]["rendered"])
    status = process.wait()
    for rendered in sorted(found):
        print(rendered)
    if found:
        print(f"{len(found)} warnings or errors, which are listed above", file=sys.stderr)
    return 1 if found or status else 0


if __name__ == "__main__":
    sys.exit(main())
