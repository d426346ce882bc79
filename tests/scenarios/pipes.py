"""What a client can see of Riak's scenarios of pipes: jobs whose functions fail, nodes that die in
the middle of a job, rings that change meanwhile, and what becomes of a job when its client
leaves."""
import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from forming import commit
from hooking import stat
from mapreduce import JSON, SETTINGS, fill, job, mapping, reducing, results, script
from moving import Watch, wait_until_changed, wait_until_ended
from world import TIMEOUT_SECONDS, Pb, World, equal, form, wait_for

COUNT = 240
JOBS_AT_ONCE = 24
VALUE = "function(object) { return [Number(object.values[0].data)]; }"
# So slow that a job over all keys takes some seconds, and gives its first results long before its
# end.
SLOW_VALUE = """function(object) {
  var end = Date.now() + 30;
  while (Date.now() < end) {}
  return [Number(object.values[0].data)];
}"""
# The same, but so quick that many jobs are not long.
LESS_SLOW_VALUE = SLOW_VALUE.replace("+ 30", "+ 1")
# So slow that a job over all keys takes longer than anything waits here.
SLOWEST_VALUE = SLOW_VALUE.replace("+ 30", "+ 1000")
# Fails for one of the keys.
POISONED = "function(object) { if (object.key === 'k7') { throw new Error('poisoned'); } return ['a' + object.key]; }"


def begin(member, path, inputs, query, **rest):
    """Sends a job over HTTP. Returns the connection."""
    host, _, port = member.http.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=TIMEOUT_SECONDS)
    connection.request("POST", path, json.dumps({"inputs": inputs, "query": query, **rest}), {"Content-Type": JSON})
    return connection


def begin_over_pb(member, inputs, query, **rest):
    pb = Pb(member)
    pb.send(23, [(1, json.dumps({"inputs": inputs, "query": query, **rest})), (2, JSON)])
    return pb


class Stream:
    """A job whose results are read while it runs."""

    def __init__(self, member, inputs, query, **rest):
        self.connection = begin(member, "/mapred?chunked=true", inputs, query, **rest)
        self.answer = self.connection.getresponse()
        equal(self.answer.status, 200, "the status of a job")
        self.boundary = b"--" + self.answer.getheader("content-type").split("boundary=")[1].encode()
        self.read = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def parts(self):
        """The documents of the parts that were read whole."""
        parts = self.read.split(self.boundary)[1:-1]
        return [json.loads(part.split(b"\r\n\r\n", 1)[1]) for part in parts]

    def wait_first(self):
        while not self.parts():
            data = self.answer.read1(1 << 16)
            equal(bool(data), True, f"results before the end of {self.read!r}")
            self.read += data

    def rest(self):
        """The values of the whole job."""
        self.read += self.answer.read()
        parts = self.parts()
        errors = [part for part in parts if "error" in part]
        equal(errors, [], "the errors of a job")
        return [value for part in parts for value in part["data"]]


def failure(member, query, status=500):
    found, _, body = job(member, "pipes", query)
    equal(found, status, f"the status of a job that fails: {body[:300]!r}")
    return json.loads(body)


def pipe_verify_exceptions():
    """A function that fails in any phase fails its job, with the phase, and no other job. A
    function that does not compile fails before anything runs. Many jobs at once are all answered. A
    node may die in the middle of a job."""
    with World(3, SETTINGS) as world:
        world.join_all()
        fill(world[1], "pipes", count=COUNT)
        check_failures(world)
        check_many(world)
        check_death(world)


def check_failures(world):
    total = reducing("reduce_count_inputs")
    bad_map = script("map", source=POISONED)
    bad_reduce = script("reduce", source="function(values) { throw new Error('poisoned'); }")
    for member in world.all():
        for phase, query in [(0, [bad_map, total, total]), (1, [mapping(), bad_reduce, total]), (2, [mapping(), total, bad_reduce])]:
            error = failure(member, query)
            equal((error["phase"], "poisoned" in json.dumps(error)), (phase, True), f"the failure of phase {phase}: {error}")
        for query in ([script("map", source="function(object) {"), total], [mapping(), script("reduce", source="3")]):
            failure(member, query)
        error = failure(member, [mapping(), reducing("nonesuch")], 400)
        equal("nonesuch" in json.dumps(error), True, f"a function that does not exist: {error}")
        equal(results(member, "pipes", [mapping(), total]), [COUNT], "a job after jobs that failed")


def check_many(world):
    """More jobs than a node works on at the same time, some of which fail."""
    good, bad = [script("map", source=VALUE), script("reduce", name="Riak.reduceSum")], [script("map", source=POISONED)]

    def run(number):
        member = world[number % 3 + 1]
        if number % 4 == 0:
            return "poisoned" in json.dumps(failure(member, bad))
        return results(member, "pipes", good) == [sum(range(COUNT))]

    with ThreadPoolExecutor(JOBS_AT_ONCE) as pool:
        equal(list(pool.map(run, range(JOBS_AT_ONCE))), [True] * JOBS_AT_ONCE, "jobs at the same time")


def check_death(world):
    """A node that is killed after the first results of a job: the others do its part, and each
    result comes once."""
    with Stream(world[1], "pipes", [script("map", source=SLOW_VALUE)]) as stream:
        stream.wait_first()
        before = len(stream.parts())
        world.kill(3)
        found = stream.rest()
        equal(sorted(found), list(range(COUNT)), "the results of a job while a node died")
        equal(len(stream.parts()) > before, True, "results after the death of the node")
    world.start(3)
    world.wait_all_up()


def pipe_verify_handoff():
    """A node joins, and another one leaves, while jobs run: nothing is lost, and nothing comes
    twice."""
    with World(3, SETTINGS) as world:
        form([world[1], world[2]])
        fill(world[1], "pipes", count=COUNT)
        world[3].admin("cluster", "join", world[1].peer)
        change_beside_jobs(world, [1, 2], [1, 2, 3])
        world[2].admin("cluster", "leave")
        change_beside_jobs(world, [1, 3], [1, 3])
        wait_until_ended(world, 2)


def change_beside_jobs(world, asked, members):
    """Commits a change of the ring in the middle of a slow job, and beside quick ones."""
    values, total = script("map", source=VALUE), script("reduce", name="Riak.reduceSum")

    def ask_all(member):
        equal(sorted(results(member, "pipes", [values])), list(range(COUNT)), "all values")
        equal(results(member, "pipes", [mapping(), reducing("reduce_count_inputs")]), [COUNT], "the count")
        equal(results(member, "pipes", [values, total]), [sum(range(COUNT))], "the sum")

    with Stream(world[asked[1]], "pipes", [script("map", source=SLOW_VALUE)]) as stream:
        stream.wait_first()
        with Watch([world[number] for number in asked], ask_all):
            commit(world[1])
            equal(sorted(stream.rest()), list(range(COUNT)), "the results of a job beside a change")
            wait_until_changed(world, 1, members)
    for number in members:
        ask_all(world[number])


def pipe_verify_handoff_blocking():
    """A node joins while more jobs run than the nodes work on at the same time, so that parts of
    jobs wait for their turn."""
    with World(3, SETTINGS) as world:
        form([world[1], world[2]])
        fill(world[1], "pipes", count=COUNT)
        world[3].admin("cluster", "join", world[1].peer)
        query = [script("map", source=LESS_SLOW_VALUE), reducing("reduce_sum")]
        with ThreadPoolExecutor(JOBS_AT_ONCE) as pool:
            jobs = [pool.submit(results, world[number % 2 + 1], "pipes", query) for number in range(JOBS_AT_ONCE)]
            wait_for("the end of a job", lambda: any(found.done() for found in jobs), TIMEOUT_SECONDS)
            commit(world[1])
            equal([found.result() for found in jobs], [[sum(range(COUNT))]] * JOBS_AT_ONCE, "jobs beside a change")
        wait_until_changed(world, 1, [1, 2, 3])


def pipe_client_leaves():
    """A job ends when its client leaves, over both interfaces, before its first results and after
    them. Riak has no such scenario."""
    # A job takes a minute and more: each node works on one key at a time.
    with World(3, {**SETTINGS, "javascript.map_pool_size": 1}) as world:
        world.join_all()
        fill(world[1], "pipes", count=COUNT)
        values, member, rest = [script("map", source=SLOWEST_VALUE)], world[2], {"timeout": 600_000}
        begun = {
            "HTTP": lambda: closing(begin(member, "/mapred", "pipes", values, **rest)),
            "HTTP, in parts": lambda: Stream(member, "pipes", values, **rest),
            "Protocol Buffers": lambda: begin_over_pb(member, "pipes", [*values, reducing("reduce_sum")], **rest),
            "Protocol Buffers, in parts": lambda: begin_over_pb(member, "pipes", values, **rest),
        }
        for left, (way, begin_job) in enumerate(begun.items(), 1):
            with begin_job() as client:
                if way == "HTTP, in parts":
                    client.wait_first()
                elif way == "Protocol Buffers, in parts":
                    equal(client.receive()[0], 24, "the code of the first results")
                wait_for(f"work for a job over {way}", lambda: stat(member, "executing_mappers") > 0, TIMEOUT_SECONDS)
            ends = ("ombak_jobs_abandoned", "pipeline_active", "ombak_jobs_failed")
            wait_for(f"the end of a job over {way}", lambda: [stat(member, name) for name in ends] == [left, 0, 0], TIMEOUT_SECONDS)
            work = [(worker, name) for worker in world.all() for name in ("ombak_job_pieces_active", "ombak_job_pieces_waiting")]
            wait_for("the end of work on it", lambda: not any(stat(worker, name) for worker, name in work), TIMEOUT_SECONDS)
        equal(results(member, "pipes", [mapping(), reducing("reduce_count_inputs")]), [COUNT], "a job after those")
