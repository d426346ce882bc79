"""Scenarios of nodes that start, join and are taken out."""
import json

from world import Refused, World, equal, form, put, values, wait_for

START_SECONDS = 60
LEAVE_SECONDS = 120


def shares(member):
    """The partitions and the status of each member, by name, as a node shows them."""
    status = json.loads(member.admin("member-status", "--json"))
    return {found["name"]: (found["status"], found["partitions"]) for found in status["members"]}


def refusal(member, *words):
    try:
        said = member.admin(*words)
    except Refused as error:
        return str(error)
    raise AssertionError(f"{' '.join(words)} at node {member.number} was not refused: {said}")


def commit(member):
    member.admin("cluster", "plan")
    member.admin("cluster", "commit")


def rt_basic_test():
    """Two nodes start and stop."""
    with World(2) as world:
        for number in (1, 2):
            equal(put(world[number], "b", "k", f"of {number}"), (204, ""), "a put")
        for number in (1, 2):
            equal(values(world[number], "b", "k"), [f"of {number}"], "nodes that are alone share nothing")
            world.stop(number)


def verify_build_cluster():
    """Single nodes own everything; they join one by one; nodes stop and start, and leave one by
    one; data stay."""
    with World(4) as world:
        for member in world.all():
            equal(shares(member), {member.name: ("valid", 16)}, "a node that is alone")
        for size in (2, 3, 4):
            form([world[number] for number in range(1, size + 1)])
            parts = shares(world[size])
            equal({status for status, _ in parts.values()}, {"valid"}, "the status of each member")
            equal(sum(count for _, count in parts.values()), 16, "the partitions together")
            if any(abs(count - 16 / size) >= 1 for _, count in parts.values()):
                raise AssertionError(f"the shares are not balanced: {parts}")
        world.wait_all_up()
        for number in range(40):
            equal(put(world[1], "b", f"k{number}", "v", query="?w=3"), (204, ""), "a put")
        for stopped in (1, 3):
            world.stop(stopped)
            world.wait_all_up()
            for number in range(40):
                equal(values(world[2], "b", f"k{number}"), ["v"], f"a get while node {stopped} is stopped")
            world.start(stopped)
            world.wait_all_up()
        for member in world.all():
            for number in range(40):
                equal(values(member, "b", f"k{number}"), ["v"], f"a get through node {member.number}")
            wait_for("the agreement about the ring", member.agrees, START_SECONDS)
        for leaver in (2, 3, 4):
            left = [number for number in (1, *range(leaver + 1, 5))]
            world[leaver].admin("cluster", "leave")
            commit(world[1])
            names = {world[number].name for number in left}
            wait_for(f"the leave of node {leaver}", lambda: set(shares(world[1])) == names, LEAVE_SECONDS)
            equal(world.processes.pop(leaver).wait(LEAVE_SECONDS), 0, f"the status with which node {leaver} ends")
            for number in range(40):
                equal(values(world[1], "b", f"k{number}"), ["v"], f"a get after the leave of node {leaver}")
        equal(shares(world[1]), {world[1].name: ("valid", 16)}, "the node that is left")


def verify_staged_clustering():
    """Nothing changes before a plan was shown and committed, and cleared changes are gone."""
    with World(3) as world:
        first = world[1]
        for number in (2, 3):
            said = world[number].admin("cluster", "join", first.peer)
            equal(said.strip(), f"Success: staged join request for '{world[number].name}' to '{first.name}'", "a join")
        for member in world.all():
            owned = {name: count for name, (_, count) in shares(member).items()}
            equal(owned, {first.name: 16, world[2].name: 0, world[3].name: 0}, "the shares before the commit")
        if "You must verify the plan" not in refusal(first, "cluster", "commit"):
            raise AssertionError("a commit without a plan is refused for another reason")
        equal(first.admin("cluster", "clear").strip(), "Cleared staged cluster changes", "clear")
        refusal(first, "cluster", "commit")
        for member in world.all():
            wait_for("the end of the joins", lambda: shares(member) == {member.name: ("valid", 16)}, START_SECONDS)
        for number in (2, 3):
            world[number].admin("cluster", "join", first.peer)
        plan = first.admin("cluster", "plan")
        for number in (2, 3):
            if f"join           '{world[number].name}'" not in plan:
                raise AssertionError(f"the plan does not name node {number}: {plan}")
        equal(first.admin("cluster", "commit").splitlines()[0], "Cluster changes committed", "the commit")
        for member in world.all():
            wait_for("the agreement about the ring", member.agrees, START_SECONDS)
            parts = shares(member)
            equal(sorted(count for _, count in parts.values()), [5, 5, 6], "the shares after the commit")
            equal({status for status, _ in parts.values()}, {"valid"}, "the status of each member")


def verify_down():
    """A member that is stopped holds up a node that joins, until the operator marks it as down.
    When it returns it is a member again."""
    with World(4) as world:
        first, stopped, joiner = world[1], world[3], world[4]
        form([world[number] for number in (1, 2, 3)])
        world.stop(3)
        wait_for("the stop is noticed", lambda: world.ups(1) == {first.name, world[2].name}, START_SECONDS)
        joiner.admin("cluster", "join", first.peer)
        refusal(first, "cluster", "plan")
        equal(shares(first)[joiner.name][0], "joining", "the status of the node that joins")
        if "is up" not in refusal(first, "down", world[2].name):
            raise AssertionError("a node that is up was marked as down")
        equal(first.admin("down", stopped.name).strip(), f'Success: "{stopped.name}" marked as down', "down")
        wait_for("the member is down", lambda: shares(world[2])[stopped.name][0] == "down", START_SECONDS)
        commit(first)
        wait_for("the node has joined", lambda: shares(first)[joiner.name][0] == "valid", START_SECONDS)
        world.start(3)
        wait_for("the member is valid again", lambda: shares(first)[stopped.name][0] == "valid", START_SECONDS)
        for number in (1, 2, 3, 4):
            wait_for("the agreement about the ring", world[number].agrees, START_SECONDS)
            equal(shares(world[number])[joiner.name], ("valid", 4), "the share of the node that joined")
