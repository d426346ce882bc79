#!/usr/bin/env python3
"""Measures how long a node with many keys takes to start again, and its memory then.

`make bench-start` builds the needed programs with the profile `dist`. KEYS (10,000,000) keys of 16
bytes with values of 100 bytes are put over Protocol Buffers. The node is stopped, the page cache is
dropped if that is allowed, and the node is started again. The results are the seconds until it
answers, and its resident memory then, which may still include memory that only the start needed."""
import argparse
import os
import re
import sys
import tempfile
import time
from pathlib import Path

from measure import ROOT, beside, execute

sys.path.insert(0, str(ROOT / "tests" / "support"))

from node import Node  # noqa: E402

CONFIGURATION = """
{{mode, max}}.
{{duration, infinity}}.
{{concurrent, 8}}.
{{driver, basho_bench_driver_riakc_pb}}.
{{riakc_pb_pipeline, 32}}.
{{key_generator, {{to_binstr, "~16..0B", {{partitioned_sequential_int, {keys}}}}}}}.
{{value_generator, {{fixed_bin, 100}}}}.
{{operations, [{{put, 1}}]}}.
"""


def resident_bytes(process):
    """The resident memory now, and its maximum so far."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return tuple(int(re.search(rf"{field}:\s+(\d+) kB", status)[1]) * 1024 for field in ("VmRSS", "VmHWM"))


def drop_page_cache():
    try:
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("1")
        return True
    except OSError:
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=10_000_000, help="how many keys [10000000]")
    parser.add_argument("backends", nargs="*", default=["bitcask", "leveled"], help="which ones [bitcask leveled]")
    options = parser.parse_args()
    for backend in options.backends:
        with Node({"storage_backend": backend}) as node, tempfile.TemporaryDirectory() as results:
            configuration = Path(results) / "load.config"
            configuration.write_text(CONFIGURATION.format(keys=options.keys))
            begun = time.monotonic()
            execute([str(beside("ombak-bench")), str(configuration), "-d", results, "--pb", node.pb])
            loaded_s, (loaded_bytes, _) = time.monotonic() - begun, resident_bytes(node.process)
            node.stop()
            cold = drop_page_cache()
            begun = time.monotonic()
            node.start_again()
            start_s = time.monotonic() - begun
            rss_bytes, most_bytes = resident_bytes(node.process)
            print(f"{backend}: {options.keys:,} keys put in {loaded_s:.0f} s, {loaded_bytes / 1e6:.0f} MB resident then; "
                  f"started again in {start_s:.2f} s ({'from the disk' if cold else 'with a warm page cache'}), "
                  f"{rss_bytes / 1e6:.0f} MB resident, {rss_bytes / options.keys:.1f} bytes a key, at most {most_bytes / 1e6:.0f} MB",
                  flush=True)


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
