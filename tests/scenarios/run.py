#!/usr/bin/env python3
"""Scenarios of Riak's own tests that are about the program, on clusters of real nodes. Each has the
name that it has in Riak; docs/compatibility.md lists all scenarios.

Usage: run.py [SCENARIO...]"""
import inspect
import sys
import time
import traceback

import forming
import interfaces
import leveled
import moving
import program
import properties
import statistics_scenario
from world import World

# Scenarios of these modules share one cluster of so many nodes.
SHARED = [(properties, 3), (interfaces, 5)]
ALONE = [forming, moving, program, leveled, statistics_scenario]
SCENARIOS = {
    forming: ["rt_basic_test", "verify_build_cluster", "verify_staged_clustering", "verify_down"],
    moving: ["verify_leave", "verify_handoff", "verify_2i_handoff", "verify_listkeys_growing", "verify_rejoin", "verify_delete_onreplace",
             "verify_staged_clustering_with_objects"],
    program: ["basic_command_line", "gh_riak_core_154", "gh_riak_core_155", "gh_riak_core_176", "verify_riak_logger"],
    statistics_scenario: ["verify_riak_stats"],
    leveled: ["journalreload_leveled", "hotbackup_leveled"],
    properties: ["bucket_props_roundtrip", "bucket_props_validation", "verify_reset_bucket_props", "bucket_types",
                 "http_bucket_types", "cluster_meta_basic"],
    interfaces: ["verify_api_timeouts", "verify_asis_put", "verify_conditionalput_api", "verify_2i_returnterms", "pr_pw",
                 "verify_listkeys", "verify_put_opt_node_confirms"],
}
passed, failed = [], []


def run(module, name, *arguments):
    began = time.monotonic()
    try:
        getattr(module, name)(*arguments)
    except Exception:  # Whatever goes wrong, the other scenarios run too.
        traceback.print_exc()
        failed.append(name)
    else:
        passed.append(name)
    print(f"{name}: {'FAILED' if failed[-1:] == [name] else 'ok'}, {time.monotonic() - began:.1f} s", flush=True)


def main(wanted):
    known = {name for names in SCENARIOS.values() for name in names}
    if unknown := set(wanted) - known:
        sys.exit(f"unknown scenarios: {' '.join(sorted(unknown))}\n{inspect.getdoc(sys.modules[__name__])}")

    def chosen(module):
        return [name for name in SCENARIOS[module] if not wanted or name in wanted]

    for module in ALONE:
        for name in chosen(module):
            run(module, name)
    for module, nodes in SHARED:
        if names := chosen(module):
            with World(nodes) as world:
                world.join_all()
                for name in names:
                    run(module, name, world)
                    world.restart_missing()
    print(f"{len(passed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
