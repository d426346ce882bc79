"""A pytest plugin that lets the suite reach a secured node (RUN_SECURITY=1).

* The suite wants the name riak-test, which this process takes for 127.0.0.1.
* The client makes its sockets of TLS as Python 3.6 allowed it. They are made as Python 3.7 and
  later want it, from the context that the client itself configures: TLS 1.2, with a check of the
  name of the host.
* The suite's list of ciphers was made for Riak on Erlang R16: it has no cipher with forward secrecy
  that rustls knows. Two of those that a node with a key of ECDSA has take its place. The cipher of
  `test_security_bad_ciphers` needs a key of RSA, so such a node does not have it."""
import socket

HOST, ADDRESS = "riak-test", "127.0.0.1"
CIPHERS = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384"

_getaddrinfo, _gethostbyname = socket.getaddrinfo, socket.gethostbyname
socket.getaddrinfo = lambda host, *others, **named: _getaddrinfo(ADDRESS if host == HOST else host, *others, **named)
socket.gethostbyname = lambda host: ADDRESS if host == HOST else _gethostbyname(host)

# The suite asks for the address of the host when it is imported.
import riak.tests  # noqa: E402
from riak.security import SecurityError  # noqa: E402
from riak.transports.http import RiakHTTPSConnection  # noqa: E402
from riak.transports.security import configure_ssl_context  # noqa: E402
from riak.transports.tcp.connection import TcpConnection  # noqa: E402


def over_tls(connection, credentials, host):
    return configure_ssl_context(credentials).wrap_socket(connection, server_hostname=host)


def shake_hands(self):
    """Goes on with TLS over Protocol Buffers."""
    try:
        self._socket = over_tls(self._socket, self._client._credentials, self._address[0])
    except Exception as error:
        raise SecurityError(error) from error
    return True


def connect(self):
    """Connects over HTTPS."""
    self.sock = over_tls(socket.create_connection((self.host, self.port), self.timeout), self.credentials, self.host)


TcpConnection._ssl_handshake = shake_hands
RiakHTTPSConnection.connect = connect
riak.tests.SECURITY_CIPHERS = riak.tests.SECURITY_CREDS._ciphers = CIPHERS
