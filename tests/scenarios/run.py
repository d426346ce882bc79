#!/usr/bin/env python3
"""Scenarios of Riak's own tests that are about the program, on clusters of real nodes. Each has the
name that it has in Riak, apart from those of `returning`, `registered_functions`,
`mapred_erlang_terms`, `pipe_client_leaves`, `secured_by_the_document`, `renegotiation_is_refused`,
`closed_from_the_first_connection`, `closed_without_a_majority`, `indexes_outlive_restarts` and
`buckets_join_under_writes`, which Riak does not have; docs/compatibility.md lists all scenarios. Two
run at the same time, because most of their time is waiting.

Usage: run.py [SCENARIO...]. The name of a module stands for all of its scenarios."""
import inspect
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import console
import datatypes
import exchanging
import folding
import forming
import hooking
import indexing
import interfaces
import leveled
import locations
import mapreduce
import moving
import pipes
import program
import properties
import repairing
import returning
import scripts
import searches
import searching
import securing
import statistics_scenario
import versions
from parting import PartedWorld
from world import World

# Scenarios of these modules share one cluster, of this kind and of so many nodes.
SHARED = [(datatypes, PartedWorld, 4), (properties, World, 3), (mapreduce, partial(World, settings=mapreduce.SETTINGS), 3),
          (interfaces, World, 5), (searching, partial(PartedWorld, settings=searches.SETTINGS), 3)]
ALONE = [console, forming, moving, locations, versions, repairing, returning, program, leveled, statistics_scenario, hooking, scripts, pipes,
         exchanging, folding, securing, indexing]
SCENARIOS = {
    console: ["riak_admin_console_tests", "vnode_status_test"],
    forming: ["rt_basic_test", "verify_build_cluster", "verify_staged_clustering", "verify_down"],
    moving: ["verify_leave", "verify_handoff", "verify_2i_handoff", "verify_listkeys_growing", "verify_rejoin", "verify_delete_onreplace",
             "verify_staged_clustering_with_objects", "verify_staged_clustering_with_own_objects"],
    locations: ["location", "location_leave"],
    versions: ["verify_basic_upgrade", "loaded_upgrade", "kv_vnode_requests_upgrade_downgrade", "rolling_capabilities", "verify_capabilities",
               "verify_handoff_mixed", "verify_2i_mixed_cluster", "location_upgrade", "verify_crdt_capability"],
    repairing: ["partition_repair"],
    exchanging: ["verify_aae", "verify_tictac_aae", "verify_tictacaae_nodedown", "verify_tictacaae_rebuildcrash",
                 "verify_corruption_filtering", "verify_2i_aae", "index_is_scrubbed", "kv679_dataloss", "kv679_tombstone",
                 "kv679_tombstone2"],
    folding: ["verify_overflowq", "nextgenrepl_reaptombs", "nextgenrepl_deletemodes", "nextgenrepl_deletewithfailure",
              "verify_dollarkeyreap", "verify_aaefold_rangerepair", "verify_aaefold_range", "verify_aaefold_range_api"],
    securing: ["http_security", "pb_security", "pb_cipher_suites", "verify_job_enable_ac", "verify_job_switch_defaults",
               "secured_by_the_document", "closed_from_the_first_connection", "closed_without_a_majority",
               "renegotiation_is_refused"],
    scripts: ["mapred_javascript", "registered_functions"],
    pipes: ["pipe_verify_exceptions", "pipe_verify_handoff", "pipe_verify_handoff_blocking", "pipe_client_leaves"],
    returning: ["returning_copy", "returning_older_copy", "returning_under_its_name",
                "returning_removed_node"],
    program: ["basic_command_line", "gh_riak_core_154", "gh_riak_core_155", "gh_riak_core_176", "verify_riak_logger",
              "verify_job_enable_rc"],
    statistics_scenario: ["verify_riak_stats"],
    hooking: ["verify_commit_hooks", "verify_conditional_postcommit"],
    leveled: ["journalreload_leveled", "hotbackup_leveled"],
    properties: ["bucket_props_roundtrip", "bucket_props_validation", "verify_reset_bucket_props", "bucket_types",
                 "http_bucket_types", "cluster_meta_basic"],
    mapreduce: ["mapred_basic_compat", "mapred_erlang_terms", "mapred_verify_rt", "mapred_buffer_prereduce", "mapred_http_errors",
                "mapred_lenient_json", "mapred_notfound_failover", "verify_mr_prereduce_node_down"],
    interfaces: ["verify_api_timeouts", "verify_asis_put", "verify_conditionalput_api", "verify_2i_returnterms", "pr_pw",
                 "verify_listkeys", "verify_put_opt_node_confirms", "post_generate_key"],
    searching: ["yz_crdt", "yz_errors", "yz_stat_test", "yz_wm_extract_test", "yz_faceted_search", "yz_index_admin", "yz_schema_admin",
                "yz_schema_change_reset", "yz_languages", "yz_pb", "yz_search_http", "yz_siblings", "yz_mapreduce"],
    indexing: ["yokozuna_essential", "yz_handoff", "buckets_join_under_writes", "indexes_outlive_restarts", "yz_core_properties_create_unload", "yz_security", "mapred_search_switch"],
    datatypes: ["test_hll", "verify_counter_converge", "verify_dt_context", "verify_dt_converge", "verify_no_datatype_siblings"],
}
AT_THE_SAME_TIME = 2
passed, failed = [], []


def run(module, name, *arguments):
    began = time.monotonic()
    try:
        getattr(module, name)(*arguments)
        outcome, names = "ok", passed
    except Exception:  # Whatever goes wrong, the other scenarios run too.
        traceback.print_exc()
        outcome, names = "FAILED", failed
    names.append(name)
    print(f"{name}: {outcome}, {time.monotonic() - began:.1f} s", flush=True)


def run_shared(module, kind, nodes, names):
    with kind(nodes) as world:
        world.join_all()
        for name in names:
            run(module, name, world)
            world.restart_missing()


def main(wanted):
    known = {name for module, names in SCENARIOS.items() for name in [module.__name__, *names]}
    if unknown := set(wanted) - known:
        sys.exit(f"unknown scenarios: {' '.join(sorted(unknown))}\n{inspect.getdoc(sys.modules[__name__])}")

    def chosen(module):
        return [name for name in SCENARIOS[module] if not wanted or {name, module.__name__} & set(wanted)]

    with ThreadPoolExecutor(AT_THE_SAME_TIME) as pool:
        # The long ones first.
        tasks = [pool.submit(run_shared, module, kind, nodes, names) for module, kind, nodes in SHARED if (names := chosen(module))]
        tasks += [pool.submit(run, module, name) for module in ALONE for name in chosen(module)]
    for task in tasks:
        if error := task.exception():
            traceback.print_exception(error)
            failed.append("a cluster that scenarios share")
    print(f"{len(passed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
