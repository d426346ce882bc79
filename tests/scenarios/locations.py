"""Scenarios of nodes that have locations."""
import json

from forming import commit, refusal, shares
from moving import check, wait_until_changed, wait_until_ended, write
from world import Pb, World, equal

N = 3
# The preference lists of so many keys have every window of the ring.
KEYS_LOOKED_AT = 200


def set_locations(world, through, locations):
    """Stages the location of each node, by its number."""
    for number, location in locations.items():
        said = world[through].admin("cluster", "location", location, "-n", world[number].name).strip()
        equal(said, f"Success: staged changing location of node '{world[number].name}' to {location}", "a location")


def owners(member):
    """The owners of the primaries of each key that is looked at."""
    with Pb(member) as pb:
        return [[name for name, _ in pb.preference_list("b", f"k{key}")] for key in range(KEYS_LOOKED_AT)]


def check_spread(member, wanted=N):
    """Checks that the replicas of every key are at so many locations."""
    found = json.loads(member.admin("member-status", "--json"))["members"]
    of = {one["name"]: one["location"] for one in found}
    for names in owners(member):
        if len({of[name] for name in names}) < wanted or len(set(names)) < N:
            raise AssertionError(f"replicas at {[(name, of[name]) for name in names]}")


def location():
    """Four nodes, and then eight, at four locations: replicas lie at distinct ones, with objects.
    New names of the locations move nothing."""
    with World(4) as world:
        write(world[1], "b")
        for number in (2, 3, 4):
            world[number].admin("cluster", "join", world[1].peer)
        set_locations(world, 2, {number: f"rack{number}" for number in (1, 2, 3, 4)})
        plan = world[2].admin("cluster", "plan")
        equal("WARNING" in plan, False, f"a plan with as many locations as nodes warns: {plan}")
        world[2].admin("cluster", "commit")
        wait_until_changed(world, 1, [1, 2, 3, 4])
        world.wait_all_up()
        check_spread(world[3])
        for number in (5, 6, 7, 8):
            world.add(number)
            world[number].admin("cluster", "join", world[number - 4].peer)
        set_locations(world, 5, {number: f"rack{number - 4}" for number in (5, 6, 7, 8)})
        commit(world[5])
        wait_until_changed(world, 1, list(range(1, 9)))
        world.wait_all_up()
        equal({count for _, count in shares(world[1]).values()}, {2}, "the shares")
        for member in world.all():
            check_spread(member)
        check(world[8], "b")
        before = owners(world[6])
        set_locations(world, 6, {number: f"cellar{(number - 1) % 4}" for number in range(1, 9)})
        plan = world[6].admin("cluster", "plan")
        equal("transfers from" in plan, False, f"other names move something: {plan}")
        world[6].admin("cluster", "commit")
        wait_until_changed(world, 1, list(range(1, 9)))
        for member in world.all():
            equal(owners(member), before, "the owners of keys after locations were renamed")
            check_spread(member)


def location_leave():
    """Nodes at locations are replaced and leave while others join, and replicas lie at distinct
    locations. The location of a node that is to replace another is set when it is a member."""
    with World(4) as world:
        for number in (2, 3, 4):
            world[number].admin("cluster", "join", world[1].peer)
        set_locations(world, 1, {number: f"rack{number}" for number in (1, 2, 3, 4)})
        commit(world[1])
        wait_until_changed(world, 1, [1, 2, 3, 4])
        world.wait_all_up()
        write(world[1], "b")
        world.add(5)
        world[5].admin("cluster", "join", world[2].peer)
        world[1].admin("cluster", "replace", world[4].name, world[5].name)
        said = refusal(world[1], "cluster", "location", "rack4", "-n", world[5].name)
        equal(f"'{world[5].name}' is staged to replace another node" in said, True, f"the location of a replacement: {said}")
        commit(world[1])
        wait_until_changed(world, 1, [1, 2, 3, 5])
        wait_until_ended(world, 4)
        set_locations(world, 5, {5: "rack4"})
        commit(world[1])
        wait_until_changed(world, 1, [1, 2, 3, 5])
        world.wait_all_up()
        check_spread(world[1])
        # Three locations do not divide a ring, so the plan warns until a node joins at the location
        # of the one that leaves.
        warning = "WARNING: Not all replicas will be on distinct locations"
        world[2].admin("cluster", "leave")
        plan = world[1].admin("cluster", "plan")
        equal(warning in plan, True, f"the plan does not warn: {plan}")
        world.add(6)
        world[6].admin("cluster", "join", world[3].peer)
        set_locations(world, 3, {6: "rack2"})
        plan = world[1].admin("cluster", "plan")
        equal(warning in plan, False, f"the plan warns: {plan}")
        world[1].admin("cluster", "commit")
        wait_until_changed(world, 1, [1, 3, 5, 6])
        wait_until_ended(world, 2)
        world.wait_all_up()
        for number in (1, 3, 5, 6):
            check_spread(world[number])
            check(world[number], "b")
