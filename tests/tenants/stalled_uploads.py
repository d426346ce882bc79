#!/usr/bin/env python3
"""Clients send 60 MB of a value each, stop before its end, and then close their connections. The
node gives the memory back to the system, although nobody asks it for anything afterwards."""
import threading

import tenants

UPLOAD_BYTES = 60 << 20
LEFT_OUT_BYTES = 1 << 20
# What a node may have more than before the attack.
MORE_BYTES_MAX = 150 << 20


class StalledUploads(tenants.Attack):
    name = "stalled uploads"
    settings = {"object.size.maximum": "64MB", "object.size.warning_threshold": "63MB"}
    objects = 1_000

    def begin(self, port):
        connections = [tenants.connect(port) for _ in range(10 * self.scale)]
        part = memoryview(tenants.put(b"big", b"k", b"v" * UPLOAD_BYTES))[:UPLOAD_BYTES - LEFT_OUT_BYTES]
        senders = [threading.Thread(target=connection.sendall, args=(part,)) for connection in connections]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        return connections

    def judge_after(self, node, before_bytes):
        self.wait_memory_back(before_bytes, MORE_BYTES_MAX)


if __name__ == "__main__":
    tenants.main(StalledUploads)
