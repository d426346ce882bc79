"""Scenarios of Riak's security on clusters of real nodes."""
import base64
import http.client
import json
import ssl
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from mapreduce import mapping, script
from program import JOB_CLASSES, refusal
from world import NodeError, Pb, Refused, World, clean_environment, equal, free_ports, key_path, message, program, wait_for

from certificates import Authority  # noqa: E402: `world` says where it is.

LOOPBACK = "127.0.0.1/32"
SECONDS_MAX = 60
# A change is in force on every node that can be reached within this time.
CHANGE_SECONDS_MAX = 1
START_TLS, AUTH, AUTH_RESP, PING, PONG = 255, 253, 254, 1, 2
GET, PUT, GET_BUCKET_TYPE, SET_BUCKET_TYPE, LIST_BUCKETS, MAP_REDUCE = 9, 11, 31, 32, 15, 23
TLS_FIRST = "Security is enabled, please STARTTLS first"
LOGIN_FIRST = "Security is enabled, please authenticate first"
# Logins of the tests that fail wait for each other, so each name fails only a few times.
UNICODE = "ユーザ"


class SecuredWorld(World):
    """Nodes with TLS for clients, all with the same certificate. `authority` issues those of
    clients."""

    def __init__(self, count):
        super().__init__(count, {"storage_backend": "leveled", "check_crl": "off"})
        self.authority = Authority(self.directory / "certificates")
        certificate, key = self.authority.issue("server", hosts=["localhost"])
        self.settings |= {"ssl.certfile": certificate, "ssl.keyfile": key, "ssl.cacertfile": self.authority.certificate}

    def add(self, number, **settings):
        super().add(number, listener__https__internal=f"127.0.0.1:{free_ports(1)[0]}", **settings)

    def security(self, *words, number=1):
        return self[number].admin("security", *words)

    def context(self, certificate=None):
        """How clients connect, with the certificate of a name or without one."""
        context = ssl.create_default_context(cafile=self.authority.certificate)
        if certificate:
            context.load_cert_chain(*self.authority.issue(certificate))
        return context

    def user(self, name, source="password", **options):
        self.security("add-user", name, *(f"{key}={value}" for key, value in options.items()))
        self.security("add-source", name, LOOPBACK, source)


def request(world, number, method, path, user=None, body=None, headers=None, context=None, host="localhost"):
    """The status and the body of a request over HTTPS. `user` is a name and a password."""
    port = int(world[number].settings["listener.https.internal"].rpartition(":")[2])
    connection = http.client.HTTPSConnection(host, port, timeout=SECONDS_MAX, context=context or world.context())
    given = {"Content-Type": "text/plain", **(headers or {})}
    if user:
        given["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
    try:
        connection.request(method, path, body=body, headers=given)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def plain(world, number, path):
    host, _, port = world[number].http.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=SECONDS_MAX)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


# What a permission unlocks: the method, the path, the body, headers, and the status that follows.
JSON = {"Content-Type": "application/json"}
KEYS_JOB = json.dumps({"inputs": [["b", "k"]], "query": [{"map": {"language": "erlang", "module": "riak_kv_mapreduce",
                                                                 "function": "map_object_value"}}]})
BUCKET_JOB = json.dumps({"inputs": "b", "query": [{"map": {"language": "erlang", "module": "riak_kv_mapreduce",
                                                           "function": "map_object_value"}}]})
UNLOCKS = [
    ("riak_kv.put", "PUT", key_path("b", "k"), b"value", {"X-Riak-Index-f_bin": "x"}, 204),
    ("riak_kv.get", "GET", key_path("b", "k"), None, None, 200),
    ("riak_kv.get", "HEAD", key_path("b", "k"), None, None, 200),
    ("riak_kv.delete", "DELETE", key_path("b", "missing"), None, None, 404),
    ("riak_kv.list_buckets", "GET", "/buckets?buckets=true", None, None, 200),
    ("riak_kv.list_keys", "GET", "/buckets/b/keys?keys=true", None, None, 200),
    ("riak_core.get_bucket", "GET", "/buckets/b/props", None, None, 200),
    ("riak_core.set_bucket", "PUT", "/buckets/b/props", b'{"props":{"r":2}}', JSON, 204),
    ("riak_core.set_bucket", "DELETE", "/buckets/b/props", None, None, 204),
    ("riak_kv.index", "GET", "/buckets/b/index/f_bin/x", None, None, 200),
    ("riak_kv.mapreduce", "POST", "/mapred", KEYS_JOB, JSON, 200),
]


def http_security():
    """Plain requests are refused, users prove who they are, and each permission unlocks what it
    names, at once and on each node."""
    with SecuredWorld(3) as world:
        world.join_all()
        world.user("alice", password="secret")
        world.user("tru", source="trust")
        equal(plain(world, 2, "/ping"), (200, b"OK"), "a plain ping before security is on")
        world.security("enable")
        for number in (1, 2, 3):
            wait_for(f"security at node {number}", lambda: plain(world, number, "/ping")[0] == 426, CHANGE_SECONDS_MAX)
            equal(world[number].admin("security", "status").strip(), "Enabled", f"the status at node {number}")
        equal(plain(world, 2, "/health/live")[0], 200, "health without TLS")
        for user in (None, "alice:wrong", "nobody:secret", "ALICE:secret"):
            equal(request(world, 2, "GET", "/ping", user)[0], 401, f"a ping as {user}")
        for user in ("alice:secret", "tru:anything"):
            equal(request(world, 2, "GET", "/ping", user)[0], 200, f"a ping as {user}")
        try:
            request(world, 1, "GET", "/ping", "alice:secret", host="127.0.0.1")
            raise AssertionError("a client accepts the certificate of another host")
        except ssl.SSLCertVerificationError:
            pass
        each_permission_unlocks_what_it_names(world)
        full_inputs_and_counters_need_two(world)
        equal(request(world, 1, "GET", "/buckets/b/keys/k/_,_,1", "alice:secret")[0], 403, "a link walk")
        refusals_are_in_the_audit_log(world)
        world.security("disable")
        wait_for("the end of security", lambda: plain(world, 3, "/ping")[0] == 200, CHANGE_SECONDS_MAX)


def refusals_are_in_the_audit_log(world):
    """Each node tells whom it has refused and what it was told to change, and no password."""
    def text(number):
        return "".join((world[number].data / "log" / name).read_text() for name in ("audit.log", "refusals.log"))

    def tells(number, **wanted):
        lines = map(json.loads, text(number).splitlines())
        return any(wanted.items() <= {key: value for key, value in line.items() if key in wanted}.items() for line in lines)

    for number, wanted in [
            (2, {"event": "login_refused", "user": "nobody", "outcome": "refused"}),
            (2, {"event": "login_refused", "user": "alice", "encrypted": True}),
            (3, {"event": "denied", "user": "alice", "proof": "password", "action": "riak_kv.put", "bucket": "b"}),
            (1, {"event": "administration", "outcome": "done", "action": "POST /admin/v1/security/grant"})]:
        wait_for(f"{wanted} in the audit log of node {number}", lambda: tells(number, **wanted), SECONDS_MAX)  # noqa: B023
    for number in (1, 2, 3):
        equal("secret" in text(number), False, f"a password in the audit log of node {number}")


def each_permission_unlocks_what_it_names(world):
    for permission, method, path, body, headers, status in UNLOCKS:
        # Another node than that of the commands is asked.
        found = lambda: request(world, 3, method, path, "alice:secret", body, headers)  # noqa: B023, E731
        refused, text = found()
        equal(refused, 403, f"{method} {path} without {permission}")
        if method != "HEAD":
            resource = "default" if "buckets=true" in path else "default/b"
            if "missing" not in path:
                equal(text.decode(), f"Permission denied: User 'alice' does not have '{permission}' on {resource}",
                      f"{method} {path}")
        world.security("grant", permission, "on", "default", "to", "alice")
        wait_for(f"{permission} at node 3", lambda: found()[0] == status, CHANGE_SECONDS_MAX)
        world.security("revoke", permission, "on", "default", "from", "alice")
        wait_for(f"the end of {permission} at node 3", lambda: found()[0] == 403, CHANGE_SECONDS_MAX)


def full_inputs_and_counters_need_two(world):
    """A job over a bucket lists its keys, and a counter is read and written."""
    ask = lambda *words: request(world, 2, *words)  # noqa: E731
    world.security("grant", "riak_kv.mapreduce", "on", "default", "b", "to", "alice")
    job = ("POST", "/mapred", "alice:secret", BUCKET_JOB, JSON)
    wait_for("the refusal for keys", lambda: b"riak_kv.list_keys" in ask(*job)[1], CHANGE_SECONDS_MAX)
    world.security("grant", "riak_kv.list_keys", "on", "default", "b", "to", "alice")
    wait_for("the job", lambda: ask(*job)[0] == 200, SECONDS_MAX)
    # The first phase gives the key data of a missing key, which the second one takes for a key.
    for query, why in [([mapping(arg="include_keydata"), mapping()], denied("riak_kv.mapreduce", "default/other")),
                       ([{"link": {}}], "Link walking is deprecated in Riak 2.0 and is not compatible with security.")]:
        away = json.dumps({"inputs": [["b", "missing", ["other", "k"]]], "query": query})
        equal(ask("POST", "/mapred", "alice:secret", away, JSON), (403, why.encode()), f"the answer to {query}")
    world[1].admin("bucket-type", "create", "counts", '{"props":{"datatype":"counter"}}')
    world[1].admin("bucket-type", "activate", "counts")
    path = "/types/counts/buckets/b/datatypes/c"
    post = ("POST", path, "alice:secret", "1", JSON)
    equal(ask(*post)[0], 403, "a counter without permission")
    world.security("grant", "riak_kv.get,riak_kv.put", "on", "counts", "to", "alice")
    wait_for("the counter", lambda: ask(*post)[0] in (200, 204), CHANGE_SECONDS_MAX)
    equal(ask("GET", path, "alice:secret")[0], 200, "a counter with permission")


class SecurePb(Pb):
    """A connection that has gone on with TLS."""

    def __init__(self, world, number=1, certificate=None):
        super().__init__(world[number])
        equal(self.ask(START_TLS)[0], START_TLS, "the answer to StartTls")
        self.socket = world.context(certificate).wrap_socket(self.socket, server_hostname="localhost")

    def login(self, user, password=""):
        """The code of the answer, or the text of the error."""
        code, fields = self.ask(AUTH, [(1, user), (2, password)])
        return code if code else dict(fields)[1].decode()

    def get(self, bucket, kind=None):
        return self.outcome(GET, [(1, bucket), (2, "k"), *([(13, kind)] if kind else [])])

    def outcome(self, code, fields):
        code, fields = self.ask(code, fields)
        return dict(fields)[1].decode() if code == 0 else "ok"


def denied(permission, place, user="alice"):
    return f"Permission denied: User '{user}' does not have '{permission}' on {place}"


def pb_security():
    """TLS comes before the login and the login before everything else; users prove who they are in
    three ways; grants of users, groups and all count, on buckets, types and everything."""
    with SecuredWorld(3) as world:
        world.join_all()
        for name in ("alice", UNICODE):
            world.user(name, password="secret")
        world.user("tru", source="trust")
        world.user("bycert", source="certificate")
        world.security("enable")
        with Pb(world[1]) as pb:
            for code in (PING, GET, AUTH, 99):
                equal(pb.error(code), TLS_FIRST, f"message {code} without TLS")
        with SecurePb(world) as pb:
            for code in (PING, GET, START_TLS):
                equal(pb.error(code), LOGIN_FIRST, f"message {code} before the login")
            equal(pb.login("alice", "wrong"), "Authentication failed", "a wrong password")
            equal(pb.login("alice", "secret"), AUTH_RESP, "the right password")
            equal(pb.ask(PING)[0], PONG, "a ping after the login")
            equal(pb.error(AUTH), "Unknown message code: 253", "a second login")
        users_prove_who_they_are(world)
        grants_count(world)


def users_prove_who_they_are(world):
    for user, password, certificate, proved in [
            (UNICODE, "secret", None, True), ("tru", "any", None, True), ("bycert", "", "bycert", True),
            ("bycert", "", None, False), ("bycert", "", "other", False), ("nobody", "secret", None, False),
            ("ALICE", "secret", None, False)]:
        with SecurePb(world, 2, certificate) as pb:
            equal(pb.login(user, password), AUTH_RESP if proved else "Authentication failed", f"{user} with {certificate}")


def grants_count(world):
    """Grants of the user, of its groups, of all; on a bucket, a type and everything. The open
    connection sees each change."""
    security = world.security
    world[1].admin("bucket-type", "create", "t", '{"props":{}}')
    world[1].admin("bucket-type", "activate", "t")
    with SecurePb(world) as pb:
        equal(pb.login("alice", "secret"), AUTH_RESP, "the login")
        equal(pb.get("b"), denied("riak_kv.get", "default/b"), "a get without a grant")
        for place, reaches in [(["default", "b"], [("b", None)]), (["t"], [("b", "t"), ("c", "t")]), (["any"], [("b", None), ("b", "t")])]:
            security("grant", "riak_kv.get", "on", *place, "to", "alice")
            for bucket, kind in reaches:
                equal(pb.get(bucket, kind), "ok", f"a get of {kind}/{bucket} with a grant on {place}")
            security("revoke", "riak_kv.get", "on", *place, "from", "alice")
            for bucket, kind in reaches:
                equal(pb.get(bucket, kind), denied("riak_kv.get", f"{kind or 'default'}/{bucket}"), f"after revoking on {place}")
        security("add-group", "readers")
        security("add-group", "staff", "groups=readers")
        security("grant", "riak_kv.get", "on", "default", "to", "readers")
        equal(pb.get("b"), denied("riak_kv.get", "default/b"), "before alice is in a group")
        security("alter-user", "alice", "groups=staff")
        equal(pb.get("b"), "ok", "a get with the grant of a group of a group")
        security("del-group", "readers")
        equal(pb.get("b"), denied("riak_kv.get", "default/b"), "after the group was deleted")
        security("add-group", "readers")
        security("grant", "riak_kv.get", "on", "default", "to", "readers")
        equal(pb.get("b"), denied("riak_kv.get", "default/b"), "a new group of the same name")
        security("grant", "riak_kv.get", "on", "default", "to", "all")
        equal(pb.get("b"), "ok", "a get with a grant of all")
        types_and_listings(world, pb)
        security("del-user", "alice")
        equal(pb.get("b"), denied("riak_kv.get", "default/b"), "after the user was deleted")


def types_and_listings(world, pb):
    for permission, code, fields, place in [
            ("riak_core.get_bucket_type", GET_BUCKET_TYPE, [(1, "t")], "t"),
            ("riak_core.set_bucket_type", SET_BUCKET_TYPE, [(1, "t"), (2, b"")], "t"),
            ("riak_kv.list_buckets", LIST_BUCKETS, [], "default")]:
        equal(pb.outcome(code, fields), denied(permission, place), f"without {permission}")
        world.security("grant", permission, "on", place, "to", "alice")
        equal(pb.outcome(code, fields), "ok", f"with {permission}")


def pb_cipher_suites():
    """The list of ciphers that an operator chooses is in force at the next handshake, and older
    versions of TLS are refused."""
    with SecuredWorld(1) as world:
        world.user("alice", password="secret")
        world.security("enable")

        def chosen():
            with Pb(world[1]) as pb:
                equal(pb.ask(START_TLS)[0], START_TLS, "the answer to StartTls")
                context = world.context()
                context.maximum_version = ssl.TLSVersion.TLSv1_2
                pb.socket = context.wrap_socket(pb.socket, server_hostname="localhost")
                return pb.socket.cipher()[0]

        for name in ("ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"):
            world.security("ciphers", f"{name}:DHE-RSA-AES128-SHA")
            wait_for(f"the cipher {name}", lambda: chosen() == name, CHANGE_SECONDS_MAX)  # noqa: B023
        try:
            world.security("ciphers", "NONE-OF-THESE")
            raise AssertionError("a list without a known cipher is taken")
        except Exception as refused:  # noqa: BLE001: the text is what counts.
            equal("No known or supported ciphers in list." in str(refused), True, str(refused))
        equal(chosen(), "ECDHE-ECDSA-AES256-GCM-SHA384", "the list before stays")
        with Pb(world[1]) as pb:
            equal(pb.ask(START_TLS)[0], START_TLS, "the answer to StartTls")
            # A hello of TLS 1.1. Most libraries for clients do not send it any more.
            pb.socket.sendall(old_hello())
            equal(pb.socket.recv(7)[:1], b"\x15", "an alert is the answer to TLS 1.1")


def old_hello():
    """A ClientHello of TLS 1.1 with one cipher and no extensions."""
    body = b"\x03\x02" + bytes(32) + b"\0" + b"\0\x02\xc0\x13" + b"\x01\0"
    handshake = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + len(handshake).to_bytes(2, "big") + handshake


# The permissions of what the switches switch off, and the jobs among it.
OF_SWITCHES = "riak_kv.list_buckets,riak_kv.list_keys,riak_kv.index,riak_kv.mapreduce"
JOBS = {"map_reduce": [mapping()], "map_reduce_js": [mapping(), script("reduce", name="Riak.reduceSort")]}


def verify_job_enable_ac():
    """What is switched off is refused over TLS, too, in Riak's words: over Protocol Buffers after
    the permission, so whoever may not send such requests learns nothing of the switches. What is
    switched on again is answered."""
    with SecuredWorld(0) as world:
        switches = [f"cluster.job.riak_kv.{name}" for name in [*JOB_CLASSES, *JOBS]]
        world.add(1, **{name: "disabled" for name in switches})
        two_users(world)
        each_switch(world, off=lambda name: refusal("map_reduce" if name in JOBS else name))
        world.stop(1)
        for name in switches:
            world[1].settings[name] = "enabled"
        world.start(1)
        each_switch(world, off=None)


def verify_job_switch_defaults():
    """All kinds of jobs are on by default while security is on, for those who have the
    permission."""
    with SecuredWorld(1) as world:
        two_users(world)
        each_switch(world, off=None)


def two_users(world):
    """alice, who may send all that has a switch, and bob, who may not. There is one object."""
    world.user("alice", password="secret")
    world.user("bob", password="secret")
    world.security("grant", f"riak_kv.put,{OF_SWITCHES}", "on", "any", "to", "alice")
    world.security("enable")
    stored = request(world, 1, "PUT", key_path("b", "k"), "alice:secret", b"v", {"X-Riak-Index-f_bin": "x"})
    equal(stored[0], 204, f"the status of a put: {stored[1]!r}")


def each_switch(world, off):
    """Requests of each kind over both interfaces. `off` gives the refusal of a kind if all are
    switched off."""
    of_kind = {name: ([("GET", path, None, None) for path in paths], messages) for name, (paths, messages) in JOB_CLASSES.items()}
    for name, query in JOBS.items():
        job = json.dumps({"inputs": "b", "query": query})
        of_kind[name] = ([("POST", "/mapred", job, JSON)], [(MAP_REDUCE, [(1, job), (2, "application/json")])])
    for name, (requests, messages) in of_kind.items():
        for method, path, body, headers in requests:
            status, text = request(world, 1, method, path, "alice:secret", body, headers)
            wanted = (403, off(name)) if off else (200, text.decode())
            equal((status, text.decode()), wanted, f"{name} over HTTPS: {method} {path}")
            equal(request(world, 1, method, path, "bob:secret", body, headers)[0], 403, f"{name} over HTTPS as bob")
        for code, fields in messages:
            with SecurePb(world) as pb:
                equal(pb.login("alice", "secret"), AUTH_RESP, "the login of alice")
                equal(pb.outcome(code, fields), off(name) if off else "ok", f"{name} over Protocol Buffers")
            with SecurePb(world) as pb:
                equal(pb.login("bob", "secret"), AUTH_RESP, "the login of bob")
                said = pb.outcome(code, fields)
                equal(said.split(" does not have ")[0], "Permission denied: User 'bob'", f"{name} over Protocol Buffers as bob")


def secured_by_the_document():
    """The ten commands of docs/security.md close a node: whoever proves nothing is refused, and
    their user stores what was granted."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "security.md").read_text()
    commands = text.split("```sh\n", 1)[1].split("```", 1)[0]
    files, after_start = commands.split("# 5. ", 1)
    http_port, pb_port, https_port = free_ports(3)
    with tempfile.TemporaryDirectory(prefix="ombak-document-") as name:
        directory = Path(name)
        (directory / "bin").mkdir()
        (directory / "bin" / "ombak").symlink_to(program())
        (directory / "ombak.conf").write_text(
            f"storage_backend = memory\nlistener.http.internal = 127.0.0.1:{http_port}\n"
            f"listener.protobuf.internal = 127.0.0.1:{pb_port}\n")
        environment = clean_environment()
        environment["PATH"] = f"{directory / 'bin'}:{environment['PATH']}"

        def shell(text, status=0):
            done = subprocess.run(["bash", "-e", "-c", text.replace("8443", str(https_port))], cwd=directory, env=environment,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=SECONDS_MAX)
            equal(done.returncode, status, f"the status of {text}\n{done.stdout}")
            return done.stdout

        shell(files)
        with open(directory / "output", "wb") as output:
            node = subprocess.Popen(["ombak", "start"], cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                    stderr=subprocess.STDOUT)
        try:
            wait_for("the start of the node", lambda: b" is ready: " in (directory / "output").read_bytes(), SECONDS_MAX)
            shell("# " + after_start)
            get = "curl --silent --cacert ca.pem --output value --write-out '%{http_code}' https://localhost:8443/buckets/"
            equal(shell(f"{get}orders/keys/1 --user alice:secret"), "200", "what was stored")
            equal((directory / "value").read_text(), "paid", "the value")
            equal(shell(f"{get}orders/keys/1"), "401", "without a user")
            equal(shell(f"{get}others/keys/1 --user alice:secret"), "403", "another bucket")
            equal(shell(f"curl --silent --output value --write-out '%{{http_code}}' http://127.0.0.1:{http_port}/ping"), "426",
                  "without TLS")
        finally:
            node.terminate()
            equal(node.wait(SECONDS_MAX), 0, "the status with which the node ends")


# A node that has started is asked for so long after its first answer.
ASKED_SECONDS = 2
# A client of TLS learns within this time that there is no other handshake.
RENEGOTIATION_SECONDS_MAX = 10
# The longest time that a start waits for a cluster without a majority, and for one question more.
BEHIND_SECONDS = 8


class PlainPuts:
    """Clients without proof that put from the first moment at which a node takes connections: one
    over Protocol Buffers, and one over HTTP. `accepted` has what the node has taken, and
    `answered` the time of the first answer of each."""

    def __init__(self, member):
        self.member, self.accepted, self.answered, self.ends = member, [], {}, False
        self.threads = [threading.Thread(target=self._ask, args=(name, put)) for name, put in (("PB", self._pb), ("HTTP", self._http))]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ends = True
        for thread in self.threads:
            thread.join()

    def wait(self):
        wait_for("the first answers", lambda: len(self.answered) == len(self.threads), SECONDS_MAX)
        time.sleep(ASKED_SECONDS)

    def _ask(self, name, put):
        while not self.ends:
            try:
                is_accepted, answer = put()
            except (OSError, NodeError, http.client.HTTPException):
                # Nobody listens yet, or the connection ended.
                time.sleep(0.001)
                continue
            self.answered.setdefault(name, time.monotonic())
            if is_accepted:
                self.accepted.append((name, answer))

    def _pb(self):
        with Pb(self.member) as pb:
            code, fields = pb.ask(PUT, [(1, "b"), (2, "k"), (4, message((1, "v")))])
            return code != 0, (code, fields)

    def _http(self):
        host, _, port = self.member.http.rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=SECONDS_MAX)
        try:
            connection.request("PUT", key_path("b", "k"), body=b"v", headers={"Content-Type": "text/plain"})
            answer = connection.getresponse()
            answer.read()
            return answer.status < 300, answer.status
        finally:
            connection.close()


def is_enabled(world, number):
    """Switches security on. The leader may just have ended."""
    try:
        world.security("enable", number=number)
    except Refused:
        return False
    return True


def closed_from_the_first_connection():
    """A member that was down when security was switched on has heard of it before it takes the
    first client. Of all that wait for the port nobody gets in without proof."""
    with SecuredWorld(3) as world:
        world.join_all()
        for number in (2, 3, 1):
            other = number % 3 + 1
            world.stop(number)
            wait_for("the answer of a leader", lambda: is_enabled(world, other), SECONDS_MAX)
            with PlainPuts(world[number]) as puts:
                world.start(number)
                puts.wait()
            equal(puts.accepted, [], f"what node {number} has taken from clients without proof")
            status = world[number].admin("security", "status").strip()
            equal(status, "Enabled", f"the status at node {number}")
            world.security("disable", number=other)
            world.wait_all_up()


def closed_without_a_majority():
    """A member that starts without a majority goes on with what it knows, and says so. It is closed
    if it reaches a member that knows of security."""
    with SecuredWorld(5) as world:
        world.join_all()
        # All members vote by then.
        world[1].admin("cluster", "settled", "--wait", str(SECONDS_MAX))
        world.stop(4)
        world.stop(5)
        world.security("enable")
        for number in (1, 2, 3):
            world.stop(number)
        world.start(4)
        equal(plain(world, 4, "/ping")[0], 200, "a plain ping where nobody knows of security")
        behind = "has not caught up with its cluster since its start"
        found = lambda: json.loads(world[4].admin("--json", "security", "status"))  # noqa: E731
        status = found()
        equal((status["enabled"], behind in status["behind"]), (False, True), "the status of a node that may lack decisions")
        equal(json.loads(plain(world, 4, "/health/ready")[1])["may_lack_decisions"], True, "what health says")
        world.start(1)
        wait_for("the end of plain requests", lambda: plain(world, 4, "/ping")[0] == 426, BEHIND_SECONDS)
        world.start(5)
        wait_for("the end of what node 4 lacks", lambda: "behind" not in found(), SECONDS_MAX)
        equal(found()["enabled"], True, "the status in the end")
        equal(json.loads(plain(world, 4, "/health/ready")[1])["may_lack_decisions"], False, "what health says")


def renegotiation_is_refused():
    """A client that asks for another handshake in the middle of a connection of TLS 1.2 is told at
    once that there is none, and the node serves others meanwhile and afterwards."""
    with SecuredWorld(1) as world:
        port = world[1].settings["listener.https.internal"].rpartition(":")[2]
        for _ in range(2):
            with subprocess.Popen(["openssl", "s_client", "-connect", f"localhost:{port}", "-servername", "localhost", "-CAfile",
                                   world.authority.certificate, "-tls1_2"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as client:
                said = b""
                while b"Verify return code: 0" not in said:
                    line = client.stdout.readline()
                    equal(line != b"", True, f"the client has a connection\n{said.decode()}")
                    said += line
                client.stdin.write(b"R\n")
                client.stdin.flush()
                try:
                    # The input stays open, so the client ends because of the node alone.
                    client.wait(RENEGOTIATION_SECONDS_MAX)
                except subprocess.TimeoutExpired:
                    client.kill()
                    raise AssertionError("the client waits for another handshake") from None
                said = client.stdout.read().decode()
                equal("no renegotiation" in said, True, f"what the client says\n{said}")
            equal(request(world, 1, "GET", "/ping")[0], 200, "a ping afterwards")
