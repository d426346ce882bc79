"""Reads and damages the data files of stores, without the program and behind its back.

A store is the directory of one partition. Its data files hold records with checksums
(docs/architecture/storage.md draws them). What a node holds of its keys can be read here while it
runs and while it is stopped, and no read repairs anything. It is compared by digests, which cover
clocks and contents.

What is damaged here has to belong to a stopped node, apart from `flip_bits`. Stores of bitcask and
of leveled can be read, because their journals have every key. Those of leveldb cannot."""
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

MAGIC = b"OMBAKJNL"
FILE_HEADER_BYTES = 40
SALT = struct.Struct("<Q")
SALT_AT = 24
# crc_meta, crc_body, kind, flags, mark, lengths of key, head and body, tstamp, synced_to, seq,
# digest
FIXED = struct.Struct("<IIBBHIIIIIQQ")
MARK_AT = 10
EXPIRES = 1
EXPIRES_BYTES = 4
PUT, REMOVAL = 1, 2
DEFAULT_TYPE, OTHER_TYPE = b"\x02", b"\x03"
# A merge or a store that is made anew removes files while they are read.
TRIES_MAX = 50


class Record(NamedTuple):
    """A record: its place in its file, and what the store's index has of it. `is_whole` says
    whether the body has its checksum."""
    file: Path
    offset: int
    length: int
    kind: int
    key: bytes
    body_at: int
    seq: int
    digest: int
    is_whole: bool


def storage_key(bucket, key, kind=None):
    """The bytes under which a store has a key."""
    def sized(text):
        return struct.pack(">H", len(text.encode())) + text.encode()
    return (OTHER_TYPE + sized(kind) if kind else DEFAULT_TYPE) + sized(bucket) + key.encode()


def stores(data, backend="bitcask"):
    """The directories of the stores of a node, by the number of their partition."""
    root = Path(data) / backend
    return {int(path.name): path for path in root.iterdir() if path.is_dir() and path.name.isdigit()} if root.exists() else {}


def data_files(store):
    return sorted([*store.glob("*.data"), *store.glob("*.fresh")])


def records(file):
    """The records of a data file, in their order. What is no record is skipped, as by the
    program."""
    content = file.read_bytes()
    if len(content) < FILE_HEADER_BYTES or content[:len(MAGIC)] != MAGIC:
        return
    salt = content[SALT_AT:SALT_AT + SALT.size]
    at = FILE_HEADER_BYTES
    while at + FIXED.size <= len(content):
        record = record_at(file, content, salt, at)
        if record is None:
            # The next place that has the mark of this file's records.
            found = content.find(salt[:2], at + MARK_AT + 1)
            if found < 0:
                return
            at = found - MARK_AT
            continue
        yield record
        at += record.length


def record_at(file, content, salt, at):
    """The record at an offset; none if its checksum says that there is none."""
    if content[at + MARK_AT:at + MARK_AT + 2] != salt[:2]:
        return None
    crc, body_crc, kind, flags, _, key_len, head_len, body_len, _, _, seq, digest = FIXED.unpack_from(content, at)
    key_at = at + FIXED.size + (EXPIRES_BYTES if flags & EXPIRES else 0)
    body_at = key_at + key_len + head_len
    if body_at + body_len > len(content) or crc != crc_of(content[at:body_at], salt, at):
        return None
    is_whole = zlib.crc32(content[body_at:body_at + body_len]) == body_crc
    length = body_at + body_len - at
    return Record(file, at, length, kind, content[key_at:key_at + key_len], body_at, seq, digest, is_whole)


def crc_of(meta, salt, offset):
    """The checksum of a record's fixed part, key and head, at an offset of a file with this
    salt."""
    return zlib.crc32(meta[4:], zlib.crc32(salt + struct.pack("<Q", offset)))


def newest(store):
    """The newest record of each key of a store, also where that is a removal."""
    for _ in range(TRIES_MAX):
        found = {}
        try:
            for file in data_files(store):
                for record in records(file):
                    other = found.get(record.key)
                    if other is None or other.seq <= record.seq:
                        found[record.key] = record
            return found
        except FileNotFoundError:
            continue
    raise AssertionError(f"the files of {store} change all the time")


def held(data, backend="bitcask"):
    """What a node holds: the digest of each key, or none if its body is damaged."""
    found = {}
    for store in stores(data, backend).values():
        for key, record in newest(store).items():
            if record.kind == PUT:
                found[key] = record.digest if record.is_whole else None
    return found


def placed(data, key, backend="bitcask"):
    """The record of a key that a node holds; none if there is none."""
    for store in stores(data, backend).values():
        record = newest(store).get(key)
        if record is not None and record.kind == PUT:
            return record
    return None


def flip_bits(data, keys, backend="bitcask", is_in_body=lambda number: True):
    """Flips a bit of each key's newest record, in its body or in its key. Returns the keys that the
    node held. Appends of a running node go to other places of the files."""
    wanted, done = set(keys), []
    for store in stores(data, backend).values():
        for key, record in newest(store).items():
            if key not in wanted or record.kind != PUT:
                continue
            place = record.body_at if is_in_body(len(done)) else record.body_at - 1
            with open(record.file, "r+b") as file:
                file.seek(place)
                byte = file.read(1)[0]
                file.seek(place)
                file.write(bytes([byte ^ 0x10]))
            done.append(key)
    return done


def remove_records(data, keys, backend="bitcask", only_newest=False):
    """Takes the records of some keys out of the stores of a stopped node: all versions of each, or
    only the newest one, so that an older one shows again. Returns the keys that the node held.

    In the place of each record comes the removal of a key that never was, which is as long and has
    the same seq, with checksums that are right. So the length of the file stays, which the
    inventory knows, and its highest seq. Hint files and indexes on the disk go: the next start
    reads the data files in their place."""
    wanted, done = set(keys), set()
    for store in stores(data, backend).values():
        seqs = {key: record.seq for key, record in newest(store).items() if key in wanted}
        if not seqs:
            continue
        is_wanted = lambda record: record.key in seqs and (not only_newest or record.seq == seqs[record.key])  # noqa: E731
        for file in data_files(store):
            done |= replace_records(file, is_wanted)
        for hint in store.glob("*.hint"):
            hint.unlink()
        remove_tree(store.with_name(f"{store.name}.ledger"))
        remove_tree(store.with_name(f"{store.name}.order"))
    return sorted(done)


def replace_records(file, is_wanted):
    content = bytearray(file.read_bytes())
    salt, all_records = bytes(content[SALT_AT:SALT_AT + SALT.size]), list(records(file))
    done = set()
    for record in all_records:
        if not is_wanted(record):
            continue
        content[record.offset:record.offset + record.length] = removal_of_nothing(bytes(content), salt, record)
        done.add(record.key)
    if done:
        file.write_bytes(content)
    return done


def removal_of_nothing(content, salt, record):
    """The bytes of a removal that takes the place of a record."""
    _, _, _, _, mark, _, _, _, tstamp, synced_to, seq, _ = FIXED.unpack_from(content, record.offset)
    key = storage_key("never", "")
    key += b"x" * (record.length - FIXED.size - len(key))
    meta = FIXED.pack(0, zlib.crc32(b""), REMOVAL, 0, mark, len(key), 0, 0, tstamp, synced_to, seq, 0) + key
    return struct.pack("<I", crc_of(meta, salt, record.offset)) + meta[4:]


def remove_tree(directory):
    if not directory.exists():
        return
    for path in sorted(directory.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    directory.rmdir()
