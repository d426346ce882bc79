#!/usr/bin/env python3
"""Four clients read the objects of a range of keys (request 40) again and again."""
import tenants


def is_last(body):
    return body.endswith(b"\x18\x01") and (3, 1) in tenants.fields(body)


class ReadRanges(tenants.Attack):
    name = "read ranges"
    objects, value_bytes = 20_000, 1_000

    def begin(self, port):
        return [tenants.Readers(port, 4, tenants.objects_of_range(tenants.BUCKET), is_last)]


if __name__ == "__main__":
    tenants.main(ReadRanges)
