"""What tests ask of exchanges between replicas: settings, rounds and statistics."""
import json
import time

# Exchanges so often that a test need not wait for them.
EXCHANGES = {"exchange.interval": "2s"}
ROUND_SECONDS_MAX = 120
REPAIRED = "anti_entropy_repaired"
EXCHANGED = "anti_entropy_exchanges"
DROPPED = "anti_entropy_dropped"
BYTES = "anti_entropy_bytes"


def total(stats, name):
    """A statistic of the exchanges of all nodes together. `stats` are the nodes' `/stats`."""
    return sum(found.get(name, 0) for found in stats)


def round_of(member):
    """When the last round ended in which every member took part, in Unix seconds, and how many keys
    it repaired; none if there was none since the start of a member."""
    found = json.loads(member.admin("cluster", "settled", "--json", statuses=(0, 1))).get("exchange_round")
    return (found["ended_secs"], found["repaired"]) if found else None


def wait_for_a_round(member, wait_for):
    """Waits until a round has ended that began after this call. Returns how many keys it repaired.
    A round that is under way ends at first, so the second one from now on counts."""
    for _ in range(2):
        # Times are whole seconds.
        began = int(time.time()) + 1
        wait_for("a round of exchanges", lambda: (found := round_of(member)) and found[0] > began, ROUND_SECONDS_MAX)
    return round_of(member)[1]
