"""Inputs of many shapes for the comparison with zlib. Every shape takes a random.Random."""

import random
import struct

BYTES_MAX = 16_000
WORDS = (b"the key value bucket riak object vclock actor map list of and with a set counter content type text plain "
         b"application json binary dotted version vector sibling node ring vnode handoff").split()


def size(r, top=BYTES_MAX):
    """A length whose logarithm is about uniform."""
    return min(top, int(2 ** r.uniform(0, top.bit_length())))


def raw_bytes(r, n):
    return r.randbytes(n)


def tiny(r):
    return bytes(r.choice(b"ab\0\xff") for _ in range(r.randint(0, 12)))


def noise(r):
    return r.randbytes(size(r, 3000))


def noise_long(r):
    return r.randbytes(size(r))


def small_alphabet(r):
    letters = r.randbytes(r.randint(1, 20))
    return bytes(r.choices(letters, k=size(r)))


def weighted(r):
    """Letters with geometric weights, which give long words."""
    letters = r.sample(range(256), r.randint(2, 256))
    ratio = r.uniform(1.02, 2.2)
    weights = [ratio ** -i for i in range(len(letters))]
    return bytes(r.choices(letters, weights, k=size(r)))


def permutation(r):
    """No repeated three bytes, so that the frequencies of the literals are as planned."""
    ratio = r.uniform(1.2, 1.8)
    top = r.randint(5, 200)
    letters = []
    for letter in r.sample(range(256), r.randint(2, 40)):
        letters += [letter] * max(1, int(top))
        top /= ratio
    r.shuffle(letters)
    return bytes(letters[:BYTES_MAX])


def fibonacci(r):
    counts, letters = [1, 1], []
    while len(counts) < r.randint(6, 19):
        counts.append(counts[-1] + counts[-2])
    for letter, count in zip(r.sample(range(256), len(counts)), counts):
        letters += [letter] * count
    if r.random() < 0.8:
        r.shuffle(letters)
    return bytes(letters[:BYTES_MAX])


def fibonacci_distances(r):
    """Matches of three bytes whose classes of distance are as frequent as Fibonacci's numbers."""
    kinds = 17 if r.random() < 0.8 else r.randint(8, 18)
    counts = [1, 1]
    while len(counts) < kinds:
        counts.append(counts[-1] + counts[-2])
    leasts = [5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049]
    wanted = []
    for (low, high), count in zip(list(zip(leasts, leasts[1:]))[-kinds:], counts):
        wanted += [(low, high)] * count
    r.shuffle(wanted)
    out = bytearray(r.randbytes(2100))
    last = {bytes(out[i:i + 3]): i for i in range(len(out) - 2)}
    for low, high in wanted:
        if len(out) + 3 > BYTES_MAX:
            break
        for _ in range(200):
            start = len(out) - r.randint(low, high - 1)
            copied = bytes(out[start:start + 3])
            # Neither this match nor the one before is longer or begins earlier.
            if last.get(copied) == start and not {bytes(out[-2:] + copied[:1]), bytes(out[-1:] + copied[:2])} & last.keys():
                break
        out += copied
        for i in range(len(out) - 5, len(out) - 2):
            last[bytes(out[i:i + 3])] = i
    return bytes(out)


def zeros(r):
    return bytes(r.choice([1, 2, 3, 4, 257, 258, 259, 260, 261, 262, 516, 517, 518, 1024, 16000, size(r)]))


def runs(r):
    out = b""
    while len(out) < r.randint(1, 4000):
        out += bytes([r.randint(0, 255)]) * size(r, 600)
    return out[:BYTES_MAX]


def periodic(r):
    n = size(r)
    unit = r.randbytes(size(r, 300))
    out = bytearray((unit * (n // len(unit) + 1))[:n])
    for _ in range(r.choice([0, 0, 1, 5, 50])):
        if out:
            out[r.randrange(len(out))] = r.randint(0, 255)
    return bytes(out)


def leaves(r, count=None):
    """A block of 256 leaves of four bytes, of which some are not zero."""
    block = bytearray(1024)
    for leaf in r.sample(range(256), count or r.randint(1, 256)):
        block[4 * leaf:4 * leaf + 4] = r.randbytes(4)
    return bytes(block)


def sparse(r):
    out = bytearray(size(r))
    for _ in range(r.randint(0, len(out) // r.choice([2, 5, 20, 100]) + 1)):
        if out:
            out[r.randrange(len(out))] = r.randint(1, 255)
    return bytes(out)


def clock(r, entries=None):
    """A vector clock in the external term format."""
    entries = r.randint(1, 60) if entries is None else entries
    out = b"\x83\x6c" + struct.pack(">I", entries)
    actor_bytes = r.choice([8, 12, None])
    now = 63_000_000_000 + r.randint(0, 10 ** 9)
    names = r.random() < 0.3
    for at in range(entries):
        n = actor_bytes or r.randint(8, 12)
        actor = (b"actor%07d" % at)[:n] if names else r.randbytes(n)
        count = r.choice([r.randint(1, 5), r.randint(1, 255), r.randint(256, 100_000)])
        number = b"\x61" + bytes([count]) if count < 256 else b"\x62" + struct.pack(">I", count)
        now += r.choice([0, 1, r.randint(0, 100_000)])
        out += b"\x68\x02\x6d" + struct.pack(">I", n) + actor + b"\x68\x02" + number
        out += b"\x6e\x05\x00" + now.to_bytes(5, "little")
    return out + b"\x6a"


def text(r):
    out, n = b"", size(r)
    while len(out) < n:
        out += r.choice(WORDS) + r.choice([b" ", b" ", b" ", b", ", b".\n"])
    return out[:n]


def json(r):
    out, n = b"[", size(r)
    while len(out) < n:
        out += b'{"id":%d,"name":"%s","on":%s},' % (r.randint(0, 10 ** 6), r.choice(WORDS), r.choice([b"true", b"false"]))
    return out[:n]


def copies(r):
    """Random bytes and copies of earlier bytes of all lengths and distances."""
    out, n = bytearray(r.randbytes(r.randint(1, 60))), size(r)
    top, fresh = r.choice([4, 10, 40, 300]), r.choice([1, 3, 30])
    while len(out) < n:
        if r.random() < 0.6:
            distance = min(len(out), size(r))
            for _ in range(r.randint(3, max(3, top))):
                out.append(out[-distance])
        else:
            out += r.randbytes(r.randint(1, fresh))
    return bytes(out[:n])


def collisions(r):
    """Bytes whose hashes collide, because the hash keeps only five bits of the first of three."""
    letters = [r.randint(0, 7) << 5 | r.randint(0, 2) for _ in range(r.randint(2, 9))]
    return bytes(r.choices(letters, k=size(r)))


def far(r):
    """Matches of three and four bytes at distances about 4096."""
    head = r.randbytes(r.randint(3, 12))
    out = head + r.randbytes(r.randint(4070, 4110))
    return (out + head[:r.randint(3, 4)] + r.randbytes(r.randint(0, 5)) + head)[:BYTES_MAX]


def far_text(r):
    """Compressible bytes with such matches, so that the block is not stored."""
    half = bytes(r.choices(range(64), k=r.randint(4000, 5000)))
    return (half + bytes(r.choices(range(64), k=r.randint(0, 60))) + half[:r.randint(100, 4000)])[:BYTES_MAX]


def mixed(r):
    out = b""
    for _ in range(r.randint(2, 5)):
        out += r.choice(ALL)(r)[:r.randint(1, 4000)]
    return out[:BYTES_MAX]


def start_again(r):
    """The first bytes again, at which zlib never finds a match."""
    head = r.randbytes(r.randint(3, 40))
    return (head + r.randbytes(r.randint(0, 30)) + head[:r.randint(3, 40)] + r.randbytes(r.randint(0, 3))) * r.randint(1, 3)


def near_stored(r):
    """Inputs whose kinds of block are about equally long."""
    n = r.randint(1, 700)
    return bytes(r.choices(range(r.randint(1, 256)), k=n)) + r.randbytes(r.randint(0, 30))


def lengths(r):
    """Matches of few lengths and distances: few or no codes of distances."""
    unit = r.randbytes(r.randint(40, 300))
    return unit + unit[-r.randint(1, 6):] * r.randint(0, 80) + r.randbytes(r.randint(0, 4))


def no_matches(r):
    """Skewed literals without a match: two codes of distances are forced."""
    out, seen = bytearray(), set()
    ratio = r.uniform(1.02, 1.5)
    letters = r.sample(range(256), r.randint(6, 90))
    weights = [ratio ** -i for i in range(len(letters))]
    for letter in r.choices(letters, weights, k=r.randint(20, 1500)):
        three = bytes(out[-2:]) + bytes([letter])
        if three not in seen:
            seen.add(three)
            out.append(letter)
    return bytes(out)


ALL = [tiny, noise, noise_long, small_alphabet, weighted, permutation, fibonacci, zeros, runs, periodic, leaves, sparse,
       clock, text, json, copies, collisions, far, far_text, start_again, near_stored, lengths, no_matches]
EVERY = ALL + [mixed, fibonacci_distances]
