"""Requests to one node over HTTP, with siblings and clocks."""
import email.parser
import http.client
import json
from urllib.parse import quote, urlencode

CLOCK = "X-Riak-Vclock"
# A request that the cluster has not answered after this time is given up by the node.
REQUEST_TIMEOUT_MS = 4000
# Far longer, so that a loaded machine answers before it.
SOCKET_SECONDS_MAX = 20


class NoAnswer(Exception):
    """The request may have been carried out or not."""


class Object:
    """The siblings of a key, as the texts of their values, and their clock."""

    def __init__(self, values, clock):
        self.values, self.clock = values, clock


class Requests:
    """One connection to a node, at HOST:PORT, which is opened again after an error."""

    def __init__(self, address, bucket_type):
        self.address, self.bucket_type = address, bucket_type
        self.connection = None

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def ask(self, method, path, body=None, headers=None):
        """Returns (status, headers, body)."""
        try:
            if self.connection is None:
                self.connection = http.client.HTTPConnection(self.address, timeout=SOCKET_SECONDS_MAX)
            self.connection.request(method, path, body, headers or {})
            answer = self.connection.getresponse()
            content = answer.read()
            if answer.will_close:
                self.close()
            return answer.status, answer.headers, content
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise NoAnswer(f"{type(error).__name__}: {error}") from error

    def path(self, bucket, rest, **options):
        query = f"?{urlencode(options)}" if options else ""
        return f"/types/{quote(self.bucket_type)}/buckets/{quote(bucket)}/{rest}{query}"

    def get(self, bucket, key, **quorums):
        """The object, or None if it is not found."""
        path = self.path(bucket, f"keys/{quote(key)}", timeout=REQUEST_TIMEOUT_MS, **quorums)
        status, headers, body = self.ask("GET", path, headers={"Accept": "multipart/mixed, */*;q=0.5"})
        if status == 404:
            return None
        if status not in (200, 300):
            raise NoAnswer(f"{status} {text_of(body)}")
        return Object(values_of(headers, body), headers.get(CLOCK))

    def put(self, bucket, key, value, clock=None, content_type="text/plain", **quorums):
        """Returns the clock after the put. Raises NoAnswer unless it was acknowledged."""
        headers = {"Content-Type": content_type, "Accept": "multipart/mixed, */*;q=0.5"}
        if clock:
            headers[CLOCK] = clock
        path = self.path(bucket, f"keys/{quote(key)}", timeout=REQUEST_TIMEOUT_MS, returnbody="true", **quorums)
        status, headers, body = self.ask("PUT", path, value.encode(), headers)
        if status not in (200, 201, 204, 300):
            raise NoAnswer(f"{status} {text_of(body)}")
        return headers.get(CLOCK)

    def delete(self, bucket, key, clock, **quorums):
        path = self.path(bucket, f"keys/{quote(key)}", timeout=REQUEST_TIMEOUT_MS, **quorums)
        status, _, body = self.ask("DELETE", path, headers={CLOCK: clock})
        if status != 204:
            raise NoAnswer(f"{status} {text_of(body)}")

    def list_keys(self, bucket, how):
        """All keys of a bucket, by one of the ways in HOW_TO_LIST."""
        status, _, body = self.ask("GET", self.path(bucket, HOW_TO_LIST[how]))
        if status != 200:
            raise NoAnswer(f"{status} {text_of(body)}")
        try:
            return keys_in(body.decode())
        except ValueError as error:
            raise NoAnswer(f"a listing that is not JSON: {body[-200:]!r}") from error


# `index/$bucket` is an index query, which takes another way through the nodes than a listing.
HOW_TO_LIST = {
    "keys": "keys?keys=true",
    "stream": "keys?keys=stream",
    "index": "index/$bucket/_",
}


def keys_in(text):
    """The keys of one JSON document, or of several after each other."""
    decoder, at, keys = json.JSONDecoder(), 0, []
    while at < len(text):
        part, at = decoder.raw_decode(text, at)
        if "error" in part:
            raise NoAnswer(str(part["error"]))
        keys += part["keys"]
        while at < len(text) and text[at].isspace():
            at += 1
    return keys


def values_of(headers, body):
    """The values of the siblings in an answer with one or several."""
    if not headers.get("Content-Type", "").startswith("multipart/mixed"):
        return [body.decode()]
    head = f"Content-Type: {headers['Content-Type']}\r\n\r\n".encode()
    message = email.parser.BytesParser().parsebytes(head + body)
    parts = message.get_payload() if message.is_multipart() else []
    # A sibling that is a tombstone has no value.
    return [part.get_payload(decode=True).decode() for part in parts if part["X-Riak-Deleted"] is None]


def text_of(body):
    return " ".join(body.decode("utf-8", "replace").split())[:200]
