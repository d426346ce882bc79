import com.basho.riak.client.api.RiakClient;
import com.basho.riak.client.api.commands.kv.FetchValue;
import com.basho.riak.client.core.RiakCluster;
import com.basho.riak.client.core.RiakNode;
import com.basho.riak.client.core.operations.PingOperation;
import com.basho.riak.client.core.query.Location;
import com.basho.riak.client.core.query.Namespace;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/**
 * A secured cluster seen through the official Java client, which wants exactly TLS 1.2: whom its
 * nodes let in, whom they refuse, and what they say then. The first scenarios are those of the
 * client's own tests of security ({@code ITestPemSecuredConnection}), which its package does not
 * have. The client does not compare the name of the node with its certificate.
 */
final class Security {
    // The users of tests/support/secured.py.
    private static final String PASSWORD = "Test1234";
    private static final String PASSWORD_USER = "riakpass";
    private static final String CERTIFICATE_USER = "riakuser";
    private static final String TRUSTED_USER = "riaktrust";
    /** It may log in and do nothing. */
    private static final String POOR_USER = "riaknothing";

    /** Of a key in the memory of this program. */
    private static final String KEY_PASSWORD = "memory";
    private static final long REQUEST_SECONDS_MAX = 20;

    private final Path authority;
    private final Path stranger;
    private final List<Integer> ports;

    /** @param files the directory of tests/support/secured.py with the certificates of both authorities */
    Security(Path files, List<Integer> ports) {
        this.authority = files.resolve("certificates");
        this.stranger = files.resolve("stranger");
        this.ports = ports;
    }

    Map<String, Smoke.Scenario> scenarios() {
        Map<String, Smoke.Scenario> all = new LinkedHashMap<>();
        all.put("each node lets in a user with a certificate", () -> eachLetsIn(withCertificate(authority)));
        all.put("each node lets in a user that it trusts", () -> eachLetsIn(withPassword(TRUSTED_USER, "any")));
        all.put("each node lets in a user with a password", () -> eachLetsIn(withPassword(PASSWORD_USER, PASSWORD)));
        all.put("nobody is let in without proof", this::withoutProof);
        all.put("a certificate of another authority is refused", this::strangersCertificate);
        all.put("a node of another authority is refused by the client", this::strangersNode);
        all.put("a request without TLS is refused", this::withoutTls);
        all.put("a permission that is missing is named", this::missingPermission);
        return all;
    }

    /** A client with all permissions, of the node at a port. */
    RiakClient client(int port) throws Exception {
        return new RiakClient(started(withPassword(PASSWORD_USER, PASSWORD), port));
    }

    private void eachLetsIn(RiakNode.Builder node) throws Exception {
        for (int port : ports) {
            RiakCluster cluster = started(node, port);
            PingOperation ping = new PingOperation();
            cluster.execute(ping);
            ping.get(REQUEST_SECONDS_MAX, TimeUnit.SECONDS);
            Smoke.same(true, ping.isSuccess());
            stop(cluster);
        }
    }

    private void withoutProof() throws Exception {
        connectionEnds("Authentication failed", withPassword(PASSWORD_USER, "wrong"));
        connectionEnds("Authentication failed", withPassword("nobody", PASSWORD));
        connectionEnds("Authentication failed", withPassword(CERTIFICATE_USER, PASSWORD));
        // A certificate proves no other name than its own.
        connectionEnds("Authentication failed",
            builder().withAuth(PASSWORD_USER, "wrong", trusting(authority), keysIn(authority), KEY_PASSWORD));
    }

    private void strangersCertificate() throws Exception {
        connectionEnds("SSLHandshakeException: Received fatal alert", withCertificate(stranger));
    }

    private void strangersNode() throws Exception {
        connectionEnds("PKIX path", builder().withAuth(PASSWORD_USER, PASSWORD, trusting(stranger)));
    }

    private void withoutTls() throws Exception {
        fetchFails("Security is enabled, please STARTTLS first", builder());
    }

    private void missingPermission() throws Exception {
        fetchFails("Permission denied: User 'riaknothing' does not have 'riak_kv.get' on default/java-denied",
            withPassword(POOR_USER, PASSWORD));
    }

    private void fetchFails(String text, RiakNode.Builder node) throws Exception {
        RiakCluster cluster = started(node, ports.get(0));
        FetchValue fetch = new FetchValue.Builder(new Location(new Namespace("java-denied"), "k")).build();
        try {
            new RiakClient(cluster).execute(fetch, REQUEST_SECONDS_MAX, TimeUnit.SECONDS);
        } catch (ExecutionException refusal) {
            Smoke.same(true, refusal.getMessage().contains(text));
            return;
        } finally {
            stop(cluster);
        }
        throw new AssertionError("expected an error with " + text);
    }

    /** Connects as the client does, which only logs why a connection fails. */
    private void connectionEnds(String text, RiakNode.Builder builder) throws Exception {
        RiakCluster cluster = started(builder, ports.get(0));
        Method connect = RiakNode.class.getDeclaredMethod("doGetConnection", boolean.class);
        connect.setAccessible(true);
        try {
            connect.invoke(cluster.getNodes().get(0), false);
        } catch (InvocationTargetException refusal) {
            String said = String.valueOf(refusal.getCause());
            if (!said.contains("ConnectionFailedException") || !said.contains(text)) {
                throw new AssertionError("expected a refusal with " + text + ", got " + said, refusal.getCause());
            }
            return;
        } finally {
            stop(cluster);
        }
        throw new AssertionError("expected a refusal with " + text);
    }

    private static RiakCluster started(RiakNode.Builder node, int port) throws Exception {
        RiakCluster cluster = new RiakCluster.Builder(node.withRemotePort(port).build()).build();
        cluster.start();
        return cluster;
    }

    private static void stop(RiakCluster cluster) throws Exception {
        cluster.shutdown().get(REQUEST_SECONDS_MAX, TimeUnit.SECONDS);
    }

    /** Of nodes without a connection before the first request. */
    private static RiakNode.Builder builder() {
        return new RiakNode.Builder().withRemoteAddress("127.0.0.1").withMinConnections(0);
    }

    private RiakNode.Builder withPassword(String user, String password) throws Exception {
        return builder().withAuth(user, password, trusting(authority));
    }

    private RiakNode.Builder withCertificate(Path issuer) throws Exception {
        return builder().withAuth(CERTIFICATE_USER, "", trusting(authority), keysIn(issuer), KEY_PASSWORD);
    }

    private static KeyStore trusting(Path issuer) throws Exception {
        KeyStore store = empty();
        store.setCertificateEntry("authority", certificate(issuer.resolve("ca.pem")));
        return store;
    }

    private static KeyStore keysIn(Path issuer) throws Exception {
        String text = Files.readString(issuer.resolve(CERTIFICATE_USER + ".key")).replaceAll("-----[A-Z ]+-----|\\s", "");
        PrivateKey key = KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(text)));
        KeyStore store = empty();
        Certificate[] chain = {certificate(issuer.resolve(CERTIFICATE_USER + ".pem"))};
        store.setKeyEntry("client", key, KEY_PASSWORD.toCharArray(), chain);
        return store;
    }

    private static KeyStore empty() throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        return store;
    }

    private static Certificate certificate(Path file) throws Exception {
        try (InputStream in = Files.newInputStream(file)) {
            return CertificateFactory.getInstance("X.509").generateCertificate(in);
        }
    }
}
