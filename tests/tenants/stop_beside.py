#!/usr/bin/env python3
"""A node is told to stop while clients put objects and others read nothing of their listings."""
import threading
import time

import tenants
from node import Node

STOP_SECONDS_MAX = 12
WRITERS = 8
BATCH = 20


class StopBeside(tenants.Attack):
    name = "stop"

    def run(self, seconds=3):
        with Node({"storage_backend": self.backend}) as node:
            tenants.load(node.pb_port, self.objects * self.scale, self.value_bytes)
            listings = [tenants.list_keys(tenants.BUCKET), tenants.objects_of_range(tenants.BUCKET)] * 10
            connections = tenants.unread(node.pb_port, listings)
            writers = [threading.Thread(target=self._write, args=(node.pb_port, number), daemon=True) for number in range(WRITERS)]
            for writer in writers:
                writer.start()
            time.sleep(seconds)
            began = time.monotonic()
            node.stop()
            took = time.monotonic() - began
            node.process = None
            self.end(connections)
            print(f"{self.name}: with {self.backend} under load it took {took:.1f} s", flush=True)
            tenants.check(took <= STOP_SECONDS_MAX, f"with {self.backend} it took {took:.1f} s")

    def _write(self, port, number):
        try:
            with tenants.connect(port) as connection:
                for start in range(0, 1 << 30, BATCH):
                    batch = range(start, start + BATCH)
                    requests = (tenants.put(b"written-%d" % number, b"%d" % n, b"v" * 1_000) for n in batch)
                    connection.sendall(b"".join(requests))
                    for _ in batch:
                        tenants.expect(connection, tenants.PUT_ANSWER)
        except (OSError, EOFError, ValueError):
            # The node has stopped.
            pass


if __name__ == "__main__":
    tenants.main(StopBeside)
