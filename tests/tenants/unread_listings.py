#!/usr/bin/env python3
"""256 listings and queries of all kinds, whose clients read nothing of the answers."""
import itertools

import tenants


class UnreadListings(tenants.Attack):
    name = "unread listings"
    objects, value_bytes = 20_000, 10

    def begin(self, port):
        kinds = [tenants.list_keys(tenants.BUCKET), tenants.index_range(tenants.BUCKET), tenants.list_buckets(),
                 tenants.objects_of_range(tenants.BUCKET)]
        return tenants.unread(port, list(itertools.islice(itertools.cycle(kinds), 256)))


if __name__ == "__main__":
    tenants.main(UnreadListings)
