#!/usr/bin/env python3
"""Not an attack: processes that only use the processors, and know nothing of the node.

An attack takes processor time in two ways: the node works for it, and so do the attackers, which
run on the same machine here. This shows what the second alone does to the times of others."""
import multiprocessing
import os

import tenants


class BusyMachine(tenants.Attack):
    name = "busy machine"

    def begin(self, port):
        processes = [multiprocessing.Process(target=_burn, daemon=True) for _ in range(os.cpu_count() or 1)]
        for process in processes:
            process.start()
        return processes

    def end(self, attackers):
        for process in attackers:
            process.kill()
            process.join()


def _burn():
    while True:
        pass


if __name__ == "__main__":
    tenants.main(BusyMachine)
