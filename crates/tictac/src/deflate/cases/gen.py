"""Writes ../cases.txt: lines of kind, input and zlib's output in hexadecimal digits.

The oracle is the zlib of Python, which must be the stock one. riak.txt has what a Riak node gave,
as lines of kind, output and input.

Usage: gen.py"""

import itertools
import pathlib
import random
import zlib

import shapes

HERE = pathlib.Path(__file__).resolve().parent
SHORT_CASES = 220


def compressed(kind, data):
    c = zlib.compressobj(6, zlib.DEFLATED, -15 if kind == "raw" else 15)
    return c.compress(data) + c.flush()


def inputs(r):
    yield b""
    yield from (b"a", b"\0", b"\xff", b"ab", b"aa", b"abc", b"aaa", b"aaaa", b"abcabcabc", b"0123abc4567abc")
    yield from (bytes(n) for n in (10, 257, 258, 259, 260, 261, 262, 520, 1024))
    yield from (shapes.leaves(r, n) for n in (1, 2, 4, 16, 64, 256))
    yield from (shapes.clock(r, n) for n in (0, 1, 2, 3, 4, 5, 8, 16, 60))
    yield from (r.randbytes(n) for n in (1, 5, 10, 50, 255, 256, 500))
    weights = [1.45 ** -i for i in range(60)]
    for n in (300, 700, 1100):
        yield bytes(r.choices(range(60), weights, k=n))
    # Matches of three bytes. One is as distant as zlib takes them, the other more distant.
    yield b"-abc" + bytes(4093) + b"abc"
    yield b"-abc" + bytes(4094) + b"abc"


def inputs_at_limits(r):
    """Inputs whose result depends on the limits of zlib's search, and on other choices of it."""
    # A match of n bytes, and a longer one at the next position.
    for n in (14, 15, 16, 17):
        one, more = r.randbytes(n), r.randbytes(12)
        yield b"-" + one + b"#" + one[1:] + more + b"+" + one + more
    # The longer one is behind 20 or 40 others, which match or only have the same hash.
    for n, others, flip in ((7, 40, 0), (8, 40, 0), (8, 20, 0), (8, 40, 0x20), (8, 28, 0x20)):
        one, more = r.randbytes(n), r.randbytes(12)
        other = bytes([one[1] ^ flip]) + one[2:4]
        yield b"-" + one[1:] + more + b"".join(other + r.randbytes(1) for _ in range(others)) + one + b"+" + one + more
    # One code of distances.
    for distance in (1, 2, 3, 4, 5):
        literals = shapes.no_matches(random.Random(80))
        yield literals + literals[-distance:] * 8
    # One bit more or less of a header decides the kind of the block.
    yield bytes.fromhex("01a1010122a1a1a1a1822282a122828282a101228201a1")
    yield bytes.fromhex("02020202e002a1a1a1e0a1e0020202a1e0e0e0e0a1e0a1a1020202a102")


def short_inputs(r, cases):
    """The shapes in turn, without inputs that are long."""
    shapes_in_turn = itertools.cycle(shapes.ALL)
    while cases > 0:
        data = next(shapes_in_turn)(r)
        if 0 < len(data) <= 150:
            yield data
            cases -= 1


def main():
    r = random.Random(20261128)
    lines = []
    for line in HERE.joinpath("riak.txt").read_text().splitlines():
        kind, output, data = line.split()
        assert compressed(kind, bytes.fromhex(data)).hex() == output, line
        lines.append(f"{kind} {data} {output}")
    for at, data in enumerate([*inputs(r), *inputs_at_limits(r), *short_inputs(r, SHORT_CASES)]):
        kind = ("raw", "zlib")[at % 2]
        lines.append(f"{kind} {data.hex()} {compressed(kind, data).hex()}")
    text = "\n".join(lines) + "\n"
    HERE.with_name("cases.txt").write_text(text)
    print(len(lines), "cases,", len(text), "bytes, zlib", zlib.ZLIB_RUNTIME_VERSION)


if __name__ == "__main__":
    main()
