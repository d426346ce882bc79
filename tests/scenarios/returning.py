"""Scenarios of nodes that return as they must not: as a copy, as an older copy, or after their
removal. Riak's tests have none of them. Such a node serves nobody, says why, and disturbs no other
one."""
import shutil

from forming import START_SECONDS, commit, refusal
from moving import check, has_joined, wait_until_changed, write
from world import Member, Pb, World, ask, equal, free_port, free_ports, key_path, put, wait_for

END_SECONDS = 60


def serves_nobody(member, why):
    """Whether clients hear over both interfaces why the node serves nobody."""
    status, _, body = ask(member, "GET", key_path("b", "k0"))
    with Pb(member) as pb:
        code, fields = pb.ask(9, [(1, "b"), (2, "k0")])
    over_http = [put(member, "b", "k0", "v"), (status, body.decode())]
    return all(status == 503 and why in text for status, text in over_http) and code == 0 and why in dict(fields)[1].decode()


def shows(member, text):
    return text in member.admin("member-status")


def returning_copy():
    """A copy of a member's directory is started beside the member: its process ends and says why,
    and the member goes on."""
    with World(3) as world:
        world.join_all()
        write(world[1], "b")
        world.stop(3)
        shutil.copytree(world[3].data, world.directory / "node-30")
        world.start(3)
        world.wait_all_up()
        http, pb = free_ports(2)
        copy = Member(world.directory, 30, world[3].name, pb=f"127.0.0.1:{pb}", http=f"127.0.0.1:{http}",
                      peer=f"127.0.1.30:{free_port('127.0.1.30')}", settings=dict(world.settings))
        process = copy.start()
        try:
            wait_for("the end of the copy", lambda: process.poll() is not None, END_SECONDS)
        finally:
            process.kill()
            process.wait()
        equal(process.returncode != 0, True, "a copy ends as a start that failed")
        equal("two copies of one data directory must not run at the same time" in copy.said(), True, "what the copy says")
        for number in (1, 2, 3):
            check(world[number], "b")


def returning_older_copy():
    """A member's directory is put back as it was before. The node takes no part, the others say so,
    and it has everything again when it gets its newest directory back."""
    with World(3) as world:
        world.join_all()
        write(world[1], "b")
        world.stop(3)
        data, older, newest = world[3].data, world.directory / "older", world.directory / "newest"
        shutil.copytree(data, older)
        world.start(3)
        world.wait_all_up()
        write(world[3], "later", query="?w=3")
        world.stop(3)
        data.rename(newest)
        older.rename(data)
        world.start(3)
        wait_for("that it serves nobody", lambda: serves_nobody(world[3], "is older than its cluster knows it"), START_SECONDS)
        equal(pings(world[3]), False, "an older copy answers a ping")
        for number in (1, 2):
            wait_for("that the others know", lambda: shows(world[number], f"'{world[3].name}' takes no part"), START_SECONDS)
            check(world[number], "later", query="")
        world.stop(3)
        shutil.rmtree(data)
        newest.rename(data)
        world.start(3)
        world.wait_all_up()
        for number in (1, 2, 3):
            wait_for("that nobody speaks of an older copy", lambda: not shows(world[number], "takes no part"), START_SECONDS)
            check(world[number], "b")
            check(world[number], "later")


def returning_under_its_name():
    """A member comes back under its name and its address with an empty directory, because its own
    is older than the cluster knows, and then because it is lost. The second time its configuration
    names its peers. It serves nobody before it is told that it takes its place again."""
    with World(4) as world:
        world.join_all()
        write(world[1], "b")
        world.stop(4)
        older = world.directory / "older"
        shutil.copytree(world[4].data, older)
        world.start(4)
        world.wait_all_up()
        write(world[4], "later", query="?w=3")
        world.stop(4)
        shutil.rmtree(world[4].data)
        older.rename(world[4].data)
        world.start(4)
        wait_for("that it serves nobody", lambda: serves_nobody(world[4], "is older than its cluster knows it"), START_SECONDS)
        world.stop(4)
        shutil.rmtree(world[4].data)
        world.start(4)
        rejoin(world, world[1].peer)
        # The same with peers, after another loss.
        world.stop(4)
        shutil.rmtree(world[4].data)
        world[4].settings["cluster.peers"] = " ".join(world[number].peer for number in (1, 2, 3, 4))
        world.processes[4] = world[4].start()
        wait_for("that it waits for its peers", lambda: "waits for its peers" in world[4].said(), START_SECONDS)
        wait_for("that it serves nobody", lambda: serves_nobody(world[4], "waits for its peers"), START_SECONDS)
        equal((pings(world[4]), " is ready: " in world[4].said()), (False, False), "whether it serves")
        rejoin(world)
        world[4].wait_ready(world.processes[4])
        equal(pings(world[4]), True, "whether it answers a ping")
        # It is no new node any more.
        world.stop(4)
        world.start(4)
        world.wait_all_up()
        check(world[4], "b")


def rejoin(world, *address):
    """Lets node 4 take its place again, with everything that it lacks."""
    said = world[4].admin("cluster", "rejoin", *address)
    equal(f"staged forced replacement of '{world[4].name}'" in said, True, f"the answer to a rejoin: {said}")
    commit(world[1])
    wait_until_changed(world, 1, [1, 2, 3, 4])
    shown = lambda: world[1].admin("member-status")
    wait_for("that it has its name again", lambda: shown().count(world[4].name) == 1 and f"{world[4].name} (" not in shown(), START_SECONDS)
    world[1].admin("cluster", "settled", "--wait", str(END_SECONDS), seconds=END_SECONDS + 30)
    for number in (1, 2, 3, 4):
        check(world[number], "b")
        check(world[number], "later")


def pings(member):
    return ask(member, "GET", "/ping")[0] == 200


def returning_removed_node():
    """A node that was removed by force while it was down returns. It serves nobody, also after
    another start, and joins again only with an empty directory."""
    with World(4) as world:
        world.join_all()
        write(world[1], "b")
        world.kill(4)
        world.wait_all_up()
        world[1].admin("down", world[4].name)
        world[1].admin("cluster", "force-remove", world[4].name)
        commit(world[1])
        wait_until_changed(world, 1, [1, 2, 3])
        world.outside.add(4)
        for _ in range(2):
            world.start(4)
            wait_for("that it serves nobody", lambda: serves_nobody(world[4], "this node was removed from its cluster"), START_SECONDS)
            said = refusal(world[4], "cluster", "join", world[1].peer)
            equal("empty data directory" in said, True, f"the refusal of a join: {said}")
            world.stop(4)
        world[4].data.rename(world.directory / "removed")
        world.start(4)
        wait_for("the join with an empty directory", lambda: has_joined(world[4], world[2]), START_SECONDS)
        for number in (1, 2, 3):
            check(world[number], "b")
