"""Clusters whose clients prove who they are, for the suites of the official clients.

A test prepares the cluster while it is open, then calls `secure`. From then on the users of `USERS`
are let in, over TLS only. The administration commands go on, because they use the admin token."""
import cluster
from certificates import Authority
from node import free_ports

# The name by which the Python client's suite reaches a secured node.
HOST = "riak-test"
LOOPBACK = "127.0.0.1/32"
# The names and the password are those of the Python client's suite. `riaknothing` has no grants.
PASSWORD = "Test1234"
PASSWORD_USER, CERTIFICATE_USER, TRUSTED_USER, POOR_USER = "riakpass", "riakuser", "riaktrust", "riaknothing"
USERS = {PASSWORD_USER: "password", CERTIFICATE_USER: "certificate", TRUSTED_USER: "trust", POOR_USER: "password"}
PERMISSIONS = [
    *(f"riak_kv.{word}" for word in ("get", "put", "delete", "index", "list_keys", "list_buckets", "mapreduce", "get_preflist")),
    *(f"riak_core.{word}" for word in ("get_bucket", "set_bucket", "get_bucket_type", "set_bucket_type")),
    "search.query", "search.admin",
]


class SecuredCluster(cluster.Cluster):
    """A running cluster with TLS for clients: a context manager. `authority` has issued the
    certificates of the nodes and of the user that proves itself by one; `stranger` is an authority
    of the same name with another key, and has issued a certificate for the same user. Clients send
    only certificates of authorities whose names the node asks for."""

    def __init__(self, settings=None, size=3, waits_for_all=False):
        super().__init__({"check_crl": "off", "http.allowed_hosts": HOST, **(settings or {})}, size, waits_for_all)
        self.authority = Authority(self.directory / "certificates")
        self.stranger = Authority(self.directory / "stranger")
        certificate, key = self.authority.issue("server", hosts=[HOST, "localhost", "127.0.0.1"])
        for authority in (self.authority, self.stranger):
            authority.issue(CERTIFICATE_USER)
        self.settings |= {"ssl.certfile": certificate, "ssl.keyfile": key, "ssl.cacertfile": self.authority.certificate}

    def member_settings(self):
        return {**self.settings, "listener.https.internal": f"127.0.0.1:{free_ports(1)[0]}"}

    @property
    def https_port(self):
        return int(self.node.settings["listener.https.internal"].rpartition(":")[2])

    def secure(self):
        """Makes the users and their grants, and closes the cluster to everybody else."""
        for name, source in USERS.items():
            self.admin("security", "add-user", name, f"password={PASSWORD}")
            self.admin("security", "add-source", name, LOOPBACK, source)
        with_grants = ",".join(name for name in USERS if name != POOR_USER)
        self.admin("security", "grant", ",".join(PERMISSIONS), "on", "any", "to", with_grants)
        self.admin("security", "enable")


def take_secured(words, size):
    """Splits `--secured` off the words of a command line. Returns whether it was there, and the
    other words."""
    if "--secured" in words and not size:
        raise SystemExit("--secured needs --cluster N")
    return "--secured" in words, [word for word in words if word != "--secured"]


def under_test(settings, size, is_secured):
    """What a suite runs against: a node, a cluster of so many nodes, or one that can be secured.
    Its puts wait for all replicas."""
    server = SecuredCluster if is_secured else cluster.under_test
    return server(settings, size=size, waits_for_all=True)
