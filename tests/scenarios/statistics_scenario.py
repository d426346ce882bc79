"""The scenario of statistics, on a cluster of its own: what other scenarios do would be counted."""
import json

from world import Pb, World, ask, equal, put, values, wait_for

NODES = 5


def stats(member):
    return json.loads(ask(member, "GET", "/stats")[2])


def verify_riak_stats():
    """What clients ask is counted where it comes in, and what replicas do where they do it."""
    with World(NODES) as world:
        world.join_all()
        first = world[1]
        names = {line.split(" : ")[0] for line in first.admin("status").splitlines() if " : " in line}
        equal(names ^ set(stats(first)), set(), "the names that only one of status and /stats has")
        connects = stats(first)["pbc_connects_total"]

        def total(name):
            return sum(stats(member)[name] for member in world.all())

        equal([total(name) for name in ("vnode_puts_total", "vnode_gets_total", "vnode_heads_total")], [0, 0, 0], "a new cluster")
        for number in range(5):
            equal(put(first, "stats", f"k{number}", "v", query="?w=3"), (204, ""), "a put")
        for number in range(5):
            equal(values(first, "stats", f"k{number}", query="?r=3"), ["v"], "a get")
        # Statistics are up to a second old, so connections of before may come in, too.
        with Pb(first) as pb:
            pb.list_keys("stats")
            wait_for("the connection", lambda: stats(first)["pbc_connects_total"] > connects, 30)
        requests = ("node_puts_total", "node_gets_total")
        wait_for("the requests", lambda: [stats(first)[name] for name in requests] == [5, 5], 30)
        wait_for("the puts of replicas", lambda: total("vnode_puts_total") == 15, 30)
        # One replica gives the value, and the others say what they have.
        wait_for("the gets of replicas", lambda: total("vnode_gets_total") == 5, 30)
        heads = total("vnode_heads_total")
        equal(10 <= heads <= 15, True, f"the heads that were read are {heads}")
        times = [name for name in ("node_get_fsm_time_mean", "node_put_fsm_time_mean") if not stats(first)[name]]
        equal(times, [], "the times that are zero")
