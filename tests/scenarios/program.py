"""Scenarios of the program itself: its commands, its files, and its restarts."""
import json
import signal
import subprocess
import threading

import mapreduce
from world import Pb, World, ask, clean_environment, equal, form, key_path, program, put, values, wait_for


def ombak(member, *words):
    done = subprocess.run([str(program()), *words, "--data", str(member.data)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, cwd=member.directory, env=clean_environment())
    return done.returncode, done.stdout.strip()


def basic_command_line():
    """Commands of a node that runs and of one that does not: start, ping, status, getpid, stop."""
    with World(1) as world:
        node = world[1]
        equal(ombak(node, "ping"), (0, "pong"), "ping")
        equal(ombak(node, "getpid"), (0, str(world.processes[1].pid)), "getpid")
        equal(ombak(node, "admin", "status")[0], 0, "status")
        second = subprocess.run([str(program()), "start", "--config", str(node.config), "--data", str(node.data)],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, env=clean_environment())
        equal(second.returncode != 0, True, "a second start is refused")
        equal(ombak(node, "ping"), (0, "pong"), "ping after the second start")
        equal(ombak(node, "stop")[0], 0, "stop")
        equal(world.processes.pop(1).wait(60), 0, "the status of the node that was stopped")
        for words in (("ping",), ("admin", "status"), ("stop",), ("getpid",)):
            equal(ombak(node, *words)[0], 1, f"{' '.join(words)} without a node")
        world.start(1)
        equal(ombak(node, "ping"), (0, "pong"), "ping after the start")


def gh_riak_core_154():
    """What a node missed while it was down is handed back after it has started again, also when the
    nodes that have it start again meanwhile."""
    with World(4) as world:
        world.join_all()
        with Pb(world[1]) as pb:
            lists = {f"k{key}": pb.preference_list("b", f"k{key}") for key in range(60)}
        owned = [key for key, found in lists.items() if (world[4].name, True) in found]
        world.kill(4)
        world.wait_all_up()
        for number in range(60):
            equal(put(world[1], "b", f"k{number}", "v", query="?w=3"), (204, ""), "a put")
        for number in (1, 2, 3):
            world.stop(number)
        for number in (1, 2, 3, 4):
            world.start(number)
        world.wait_all_up()
        world[1].admin("cluster", "settled", "--reaped", "--wait", "60")
        # The others are gone, so node 4 shows what it has itself.
        for number in (1, 2, 3):
            world.kill(number)
        world.wait_all_up()
        lived = [key for key in owned if values(world[4], "b", key, query="?r=1") == ["v"]]
        equal(lived, owned, "the keys that node 4 has")


def gh_riak_core_155():
    """Requests that come while a node starts do not end it. They are answered or refused."""
    with World(3) as world:
        world.join_all()
        for number in range(30):
            equal(put(world[1], "b", f"k{number}", "v", query="?w=3"), (204, ""), "a put")
        for _ in range(3):
            world.kill(2)
            stop, statuses = threading.Event(), set()

            def hammer():
                while not stop.is_set():
                    try:
                        statuses.add(ask(world[2], "GET", key_path("b", "k1"))[0])
                    except OSError:
                        statuses.add(None)
                    try:
                        statuses.add(ask(world[1], "GET", key_path("b", "k2"))[0])
                    except OSError:
                        statuses.add("node 1 is gone")

            threads = [threading.Thread(target=hammer) for _ in range(3)]
            for thread in threads:
                thread.start()
            try:
                world.start(2)
            finally:
                stop.set()
                for thread in threads:
                    thread.join()
            equal(statuses - {None, 200, 503}, set(), "the statuses")
            equal(world.processes[2].poll(), None, "the end of the node")
            world.wait_all_up()
            equal(values(world[2], "b", "k1"), ["v"], "a get")


def gh_riak_core_176():
    """Nodes reach each other at other addresses than those of clients, and at all addresses of a
    machine."""
    with World(2) as world:
        world.add(3, **{"listener__peer__internal": "0.0.0.0:{port}", "cluster__advertised_address": "127.0.0.1:{port}"})
        form([world[1], world[2]])
        world[3].admin("cluster", "join", world[1].peer)
        world[1].admin("cluster", "plan")
        world[1].admin("cluster", "commit")
        world.wait_all_up()
        equal(put(world[3], "b", "k", "v", query="?w=3&node_confirms=3"), (204, ""), "a put on all nodes")
        for member in world.all():
            equal(values(member, "b", "k"), ["v"], f"a get through node {member.number}")


def verify_riak_logger():
    """A node writes its log file, and opens it again when it is told to."""
    with World(1) as world:
        log = world[1].data / "log" / "console.log"
        wait_for("the log", lambda: log.exists() and log.stat().st_size > 0, 30)
        log.rename(log.with_suffix(".old"))
        world.processes[1].send_signal(signal.SIGHUP)
        wait_for("the new log", log.exists, 30)


# The kinds of jobs that an operator can switch off, with the requests that are such jobs: paths of
# gets over HTTP, and codes and fields over Protocol Buffers.
JOB_CLASSES = {
    "list_buckets": (["/buckets?buckets=true", "/types/default/buckets?buckets=true"], [(15, [])]),
    "stream_list_buckets": (["/buckets?buckets=stream"], [(15, [(2, 1)])]),
    "list_keys": (["/buckets/b/keys?keys=true", "/riak/b?keys=true"], []),
    "stream_list_keys": (["/buckets/b/keys?keys=stream", "/riak/b?keys=stream"], [(17, [(1, "b")])]),
    "secondary_index": (["/buckets/b/index/f_bin/x"], [(25, [(1, "b"), (2, "f_bin"), (3, 0), (4, "x")])]),
    "stream_secondary_index": (["/buckets/b/index/f_bin/x?stream=true"], [(25, [(1, "b"), (2, "f_bin"), (3, 0), (4, "x"), (8, 1)])]),
}


def verify_job_enable_rc():
    """What the configuration switches off is refused over both interfaces, and nothing else is."""
    erlang, javascript = [mapreduce.mapping()], [mapreduce.mapping(), mapreduce.script("reduce", name="Riak.reduceSort")]
    with World(0) as world:
        world.add(1, **{f"cluster.job.riak_kv.{name}": "disabled" for name in [*JOB_CLASSES, "map_reduce"]})
        world.add(2, **{"cluster.job.riak_kv.map_reduce_js": "off"})
        world.add(3)
        for member in world.all():
            equal(put(member, "b", "k", "v"), (204, ""), "a put")
            for name in JOB_CLASSES:
                check_job_class(member, name, is_off=member.number == 1)
        for number, query, name in ((1, erlang, "map_reduce"), (1, javascript, "map_reduce"), (2, javascript, "map_reduce_js")):
            equal(refusal_of(mapreduce.job(world[number], "b", query)), refusal(name), f"{name} over HTTP")
            with Pb(world[number]) as pb:
                said = pb.error(23, [(1, json.dumps({"inputs": "b", "query": query})), (2, "application/json")])
            equal(said, refusal(name), f"{name} over Protocol Buffers")
        for number, query in ((2, erlang), (3, erlang), (3, javascript)):
            equal(mapreduce.results(world[number], "b", query), ["v"], f"a job at node {number}")


def check_job_class(member, name, is_off):
    paths, requests = JOB_CLASSES[name]
    for path in paths:
        answer = ask(member, "GET", path)
        if is_off:
            equal(refusal_of(answer), refusal(name), f"{path} at node {member.number}")
        else:
            equal(answer[0], 200, f"the status of {path} at node {member.number}")
    for code, fields in requests:
        with Pb(member) as pb:
            if is_off:
                equal(pb.error(code, fields), refusal(name), f"{name} over Protocol Buffers")
            else:
                equal(pb.ask(code, fields)[0], code + 1, f"the code of the answer to {code}")


def refusal(name):
    return f"Operation '{{riak_kv,{name}}}' is not enabled"


def refusal_of(answer):
    status, headers, body = answer
    equal((status, headers["content-type"]), (403, "text/plain"), f"the status of a refusal: {body!r}")
    return body.decode()
