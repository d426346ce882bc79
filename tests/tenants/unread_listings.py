#!/usr/bin/env python3
"""Listings and queries of all kinds, whose clients read nothing of the answers.

Half of them are queries, which have a snapshot of each store until others need it. A store of
bitcask has 64 at most."""
import itertools

import tenants


CLIENTS = 256


class UnreadListings(tenants.Attack):
    name = "unread listings"
    objects, value_bytes = 20_000, 10

    def begin(self, port):
        kinds = [tenants.list_keys(tenants.BUCKET), tenants.index_range(tenants.BUCKET), tenants.list_buckets(),
                 tenants.objects_of_range(tenants.BUCKET)]
        return tenants.unread(port, list(itertools.islice(itertools.cycle(kinds), CLIENTS)))


class UnreadListingsOfACluster(UnreadListings):
    """The same through one node of three, which asks the others."""
    name = "unread listings of a cluster"
    size = 3


if __name__ == "__main__":
    tenants.main(UnreadListings)
