#!/usr/bin/env python3
"""Six clients send a MapReduce job that lists its inputs one by one: up to 6,000,000 in 60 MB each.
Half of them read nothing of the answer. The memory of all of them together has its bound, and it
goes back when they have left."""
import threading

import tenants

INPUTS = 1_200_000
CLIENTS = 6
REQUEST_MEMORY_BYTES = 512 << 20
# Buffers of sockets and of threads that are used for the first time, and pieces that the allocator
# keeps.
MORE_BYTES_MAX = 150 << 20


class ListedInputs(tenants.Attack):
    name = "listed inputs"
    settings = {"object.size.maximum": "64MB", "object.size.warning_threshold": "63MB",
                "request_memory": "512MB"}
    objects = 1_000

    def begin(self, port):
        inputs = b",".join([b'["b","k"]'] * (INPUTS * self.scale))
        job = tenants.map_reduce(b'{"inputs":[' + inputs + b'],"query":[]}')
        tenants.reset_peak(self.pid)
        connections = [tenants.connect(port, tenants.UNREAD_BUFFER_BYTES) for _ in range(CLIENTS)]
        threads = [threading.Thread(target=self._ask, args=(connection, job, number % 2 == 0), daemon=True)
                   for number, connection in enumerate(connections)]
        for thread in threads:
            thread.start()
        return connections

    def _ask(self, connection, job, reads):
        try:
            connection.sendall(job)
            while reads:
                tenants.receive_message(connection)
        except (OSError, EOFError):
            # The node refuses what it has no memory for, and the attack ends.
            pass

    def judge_after(self, node, before_bytes):
        more = tenants.peak_bytes(self.pid) - before_bytes
        print(f"{self.name}: at most {more >> 20} MB more were resident", flush=True)
        tenants.check(more <= REQUEST_MEMORY_BYTES + MORE_BYTES_MAX, f"{more >> 20} MB more were resident")
        self.wait_memory_back(before_bytes, MORE_BYTES_MAX)


if __name__ == "__main__":
    tenants.main(ListedInputs)
