#!/usr/bin/env python3
"""50 clients ask for the objects of a range of keys (request 40) and read nothing of the
answers."""
import tenants


class UnreadRanges(tenants.Attack):
    name = "unread ranges"
    objects, value_bytes = 20_000, 1_000

    def begin(self, port):
        return tenants.unread(port, [tenants.objects_of_range(tenants.BUCKET)] * 50)


if __name__ == "__main__":
    tenants.main(UnreadRanges)
