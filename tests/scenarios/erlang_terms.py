"""Erlang's external term format, as far as jobs and their results need it. Integers are `int`,
binaries
`bytes`, tuples `tuple` and lists `list`. As in Erlang, a string is the list of its bytes, and
`true` and
`false` are atoms."""
from dataclasses import dataclass

VERSION = b"\x83"
SMALL_INTEGER, INTEGER, SMALL_BIG = 97, 98, 110
# Releases of Erlang before 26 write ATOM, and later ones SMALL_ATOM_UTF8.
ATOM, ATOM_UTF8, SMALL_ATOM_UTF8 = 100, 118, 119
BINARY, SMALL_TUPLE, NIL, STRING, LIST, EXPORT = 109, 104, 106, 107, 108, 113
STRING_BYTES_MAX = 0xFFFF


class Atom(str):
    pass


@dataclass
class Function:
    """`fun Module:Name/Arity`. It is only written."""
    module: str
    name: str
    arity: int


def encode(term):
    return VERSION + _encode(term)


def decode(data):
    if not data.startswith(VERSION):
        raise ValueError(f"no term: {data!r}")
    term, rest = _decode(data[1:])
    if rest:
        raise ValueError(f"more than a term: {data!r}")
    return term


def _encode(term):
    if isinstance(term, bool):
        return _encode(Atom("true" if term else "false"))
    if isinstance(term, int):
        return _encode_integer(term)
    if isinstance(term, Atom):
        return _tagged(ATOM, len(term), 2) + term.encode("latin-1")
    if isinstance(term, bytes):
        return _tagged(BINARY, len(term), 4) + term
    if isinstance(term, tuple):
        return _tagged(SMALL_TUPLE, len(term), 1) + b"".join(map(_encode, term))
    if isinstance(term, Function):
        return bytes([EXPORT]) + b"".join(map(_encode, (Atom(term.module), Atom(term.name), term.arity)))
    if not isinstance(term, list):
        raise TypeError(f"no term: {term!r}")
    if not term:
        return bytes([NIL])
    if len(term) <= STRING_BYTES_MAX and all(type(item) is int and 0 <= item <= 0xFF for item in term):
        return _tagged(STRING, len(term), 2) + bytes(term)
    return _tagged(LIST, len(term), 4) + b"".join(map(_encode, term)) + bytes([NIL])


def _encode_integer(number):
    if 0 <= number <= 0xFF:
        return bytes([SMALL_INTEGER, number])
    if -(1 << 31) <= number < 1 << 31:
        return bytes([INTEGER]) + number.to_bytes(4, "big", signed=True)
    magnitude = abs(number).to_bytes((abs(number).bit_length() + 7) // 8, "little")
    return bytes([SMALL_BIG, len(magnitude), number < 0]) + magnitude


def _tagged(tag, length, width):
    return bytes([tag]) + length.to_bytes(width, "big")


def _decode(data):
    """The term at the beginning, and what follows it."""
    tag, data = data[0], data[1:]
    if tag == NIL:
        return [], data
    if tag == SMALL_INTEGER:
        return data[0], data[1:]
    if tag == INTEGER:
        return int.from_bytes(data[:4], "big", signed=True), data[4:]
    if tag == SMALL_BIG:
        end = 2 + data[0]
        magnitude = int.from_bytes(data[2:end], "little")
        return -magnitude if data[1] else magnitude, data[end:]
    width = {ATOM: 2, ATOM_UTF8: 2, SMALL_ATOM_UTF8: 1, BINARY: 4, STRING: 2, SMALL_TUPLE: 1, LIST: 4}.get(tag)
    if width is None:
        raise ValueError(f"the tag {tag} of a term")
    length, data = int.from_bytes(data[:width], "big"), data[width:]
    if tag in (SMALL_TUPLE, LIST):
        items = []
        for _ in range(length):
            item, data = _decode(data)
            items.append(item)
        if tag == SMALL_TUPLE:
            return tuple(items), data
        tail, data = _decode(data)
        return items + tail, data
    text, data = data[:length], data[length:]
    if tag == BINARY:
        return text, data
    if tag == STRING:
        return list(text), data
    return Atom(text.decode("latin-1" if tag == ATOM else "utf-8")), data
