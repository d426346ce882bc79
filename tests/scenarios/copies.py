"""Compares the copies that nodes hold, by their files (support/stores.py), so that no read repairs
them."""
import time

from world import Refused, wait_for

import stores  # noqa: E402: `world` says where it is.

COPIES = 3
EQUAL_SECONDS_MAX = 90
# The names of the keys of a range of numbers, as `moving.write` makes them.
NAMES = "k{}"


def stored(bucket, keys):
    return [stores.storage_key(bucket, NAMES.format(key)) for key in keys]


def differences(world, wanted, backend="bitcask", copies=COPIES):
    """How the files of the nodes differ from `copies` equal copies of each key that is wanted."""
    held = {number: stores.held(member.data, backend) for number, member in world.members.items() if number in world.processes}
    found = []
    for key in set(wanted).union(*held.values()):
        digests = [of_node[key] for of_node in held.values() if key in of_node]
        count = copies if key in wanted else 0
        if len(digests) != count or None in digests or len(set(digests)) > 1:
            found.append(f"{key[3:].decode('utf-8', 'replace')} has {len(digests)} copies: {digests}")
    return sorted(found)


def wait_until_equal(world, wanted, backend="bitcask", copies=COPIES):
    """Waits until each wanted key has equal copies at so many nodes, and no other key is
    anywhere."""
    found = []

    def is_equal():
        found[:] = differences(world, wanted, backend, copies)
        if found:
            time.sleep(0.2)
        return not found

    try:
        wait_for("that all copies are equal", is_equal, EQUAL_SECONDS_MAX)
    except Refused as late:
        raise AssertionError(f"{late}: {len(found)} keys differ: {found[:5]}") from late
