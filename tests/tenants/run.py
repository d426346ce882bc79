#!/usr/bin/env python3
"""Runs a short form of each attack that has a victim. `--long` is for `make soak-tenants`."""
import sys
import traceback

import tenants
from busy_machine import BusyMachine
from listed_inputs import ListedInputs
from read_ranges import ReadRanges
from stalled_uploads import StalledUploads
from stop_beside import StopBeside
from unread_listings import UnreadListings, UnreadListingsOfACluster
from unread_ranges import UnreadRanges

ATTACKS = [(BusyMachine, "bitcask"), (UnreadRanges, "bitcask"), (ReadRanges, "bitcask"), (UnreadListings, "bitcask"),
           (UnreadListingsOfACluster, "bitcask"), (StalledUploads, "bitcask"), (ListedInputs, "bitcask"),
           (StopBeside, "leveled"), (StopBeside, "leveldb")]


def main():
    scale, seconds = (5, 10) if "--long" in sys.argv[1:] else (1, 1)
    passed = failed = 0
    for attack, backend in ATTACKS:
        try:
            attack(scale, backend).run(seconds)
            passed += 1
        except tenants.Failed as why:
            failed += 1
            print(f"FAILED {attack.name}: {why}", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED {attack.name}: {traceback.format_exc()}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
