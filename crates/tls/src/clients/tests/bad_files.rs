//! Files that cannot be used, and files that can although something is odd about them.

use super::*;
use crate::test_authority::self_signed;

const RSA_2048: (&str, &str) = (include_str!("pem/rsa2048.crt"), include_str!("pem/rsa2048.key"));
const RSA_1024: (&str, &str) = (include_str!("pem/rsa1024.crt"), include_str!("pem/rsa1024.key"));
const DSA: (&str, &str) = (include_str!("pem/dsa.crt"), include_str!("pem/dsa8.key"));
const OLD_DSA_KEY: &str = include_str!("pem/dsa.key");
const CA: &str = include_str!("pem/ca.crt");
const SHA1: &str = include_str!("pem/sha1.crt");
const SELF_SIGNED_SHA1: &str = include_str!("pem/sha1_self.crt");
const VERSION_1: &str = include_str!("pem/version1.crt");
const VERSION_1_LIST: &str = include_str!("pem/version1_crl.pem");
const LEAF_KEY: &str = include_str!("pem/leaf.key");
const ENCRYPTED: [&str; 2] = [include_str!("pem/encrypted8.key"), include_str!("pem/encrypted1.key")];

fn issued((chain, key): (&str, &str)) -> Issued {
    Issued { chain: chain.to_owned(), key: key.to_owned() }
}

#[track_caller]
fn assert_problem(node: &Node, file: &str, words: &str) {
    let problem = node.problem();
    let begin = format!("{}: ", node.dir.path().join(file).display());
    assert!(problem.starts_with(&begin) && problem.contains(words), "{problem}");
}

#[test]
fn an_unusable_certificate_or_key_is_named_with_its_fault() {
    let ca = TestAuthority::new("ca");
    let good = ca.issue("a");
    let wrong = |chain: &str, key: &str, file: &str, words: &str| {
        assert_problem(&Node::new(&issued((chain, key))), file, words);
    };
    wrong("", &good.key, "cert.pem", "has no certificate");
    wrong("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n", &good.key, "cert.pem", "is damaged");
    wrong(VERSION_1, LEAF_KEY, "cert.pem", "is of version 1 of X.509");
    wrong(SHA1, LEAF_KEY, "cert.pem", "is signed with SHA-1, which clients refuse");
    wrong(&format!("{}{SHA1}", good.chain), &good.key, "cert.pem", "is signed with SHA-1, which clients refuse");
    for (chain, key) in [RSA_1024, DSA, (DSA.0, OLD_DSA_KEY)] {
        wrong(
            chain,
            key,
            "key.pem",
            "is of a kind that cannot be used: it may be ECDSA (P-256, P-384), Ed25519, or RSA",
        );
    }
    wrong(&good.chain, &ca.issue("b").key, "key.pem", "does not belong to the certificate in");
    wrong(&good.chain, &good.chain, "key.pem", "has no private key");
    for key in ENCRYPTED {
        wrong(&good.chain, key, "key.pem", "is encrypted with a passphrase");
    }
    let open = Node::new(&good);
    fs::set_permissions(&open.settings.files.key, Permissions::from_mode(0o604)).unwrap();
    assert_problem(&open, "key.pem", "has the permissions 604, and others must not read it");
    let mut missing = Node::new(&good);
    missing.settings.files.certificate = missing.dir.path().join("nowhere");
    assert_problem(&missing, "nowhere", "cannot be read: No such file");
}

#[test]
fn unusable_authorities_and_lists_are_named_with_their_fault() {
    let ca = TestAuthority::new("ca");
    let node = || Node::of(&ca);
    assert_problem(&node().trusting(""), "ca.pem", "has no certificate");
    let damaged = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    assert_problem(&node().trusting(&format!("{}{damaged}", ca.pem)), "ca.pem", "its certificate number 2 is damaged");
    assert_problem(&node().trusting(RSA_1024.0), "ca.pem", "its certificate number 1 has an RSA key of 1024 bits");
    assert_problem(&node().trusting(DSA.0), "ca.pem", "has a key of a kind that cannot be used");
    let trusting = || node().trusting(&ca.pem);
    assert_problem(&trusting().revoking(&ca.pem), "crl.pem", "has no list of revoked certificates");
    let damaged = "-----BEGIN X509 CRL-----\nMAA=\n-----END X509 CRL-----\n";
    let lists = format!("{}{damaged}", ca.revoking(&[], 2900));
    assert_problem(&trusting().revoking(&lists), "crl.pem", "its list number 2 is damaged");
    assert_problem(
        &trusting().revoking(VERSION_1_LIST),
        "crl.pem",
        "its list number 1 is of version 1: it has to have a",
    );
    let mut missing = trusting();
    missing.settings.files.revocations = Some(missing.dir.path().join("nowhere"));
    assert_problem(&missing, "nowhere", "cannot be read: No such file");
}

/// What clients check is theirs to check.
#[tokio::test]
async fn odd_certificates_that_clients_may_trust_are_served() {
    let own = self_signed("localhost");
    assert!(Node::new(&own).warnings().is_empty());
    assert!(Node::new(&issued((SELF_SIGNED_SHA1, RSA_2048.1))).warnings().is_empty());
    let rsa = Node::new(&issued(RSA_2048));
    for version in [&TLS12, &TLS13] {
        connect(&rsa, Client::trusting(RSA_2048.0).speaking(&[version])).await.unwrap();
    }
    let ca = TestAuthority::new("ca");
    let expired = Node::new(&ca.issue_for_years("localhost", 2001, 2002));
    assert_refused(
        connect(&expired, Client::trusting(&ca.pem)).await,
        "the client refused the certificate of this node",
    );
    let warnings = expired.warnings();
    assert!(warnings[0].contains("cert.pem: the certificate in force has expired"), "{warnings:?}");
    let early = Node::new(&ca.issue_for_years("localhost", 2900, 2901)).warnings();
    assert!(early[0].contains("is the clock of this machine right?"), "{early:?}");
    // How an authority signed itself, and in which version, says nothing about it.
    for authority in [CA, VERSION_1, SELF_SIGNED_SHA1] {
        assert!(Node::of(&ca).trusting(authority).without_revocation().warnings().is_empty());
    }
}

#[test]
fn an_operator_learns_in_time_that_something_ends() {
    let ca = TestAuthority::new("ca");
    let mut lasting = ca.issue_for_years("localhost", 2001, 2900);
    lasting.chain.push_str(&ca.issue_for_years("between", 2001, 2002).chain);
    let node = Node::new(&lasting).trusting(&ca.pem).revoking(&ca.revoking(&[], 2900)).read();
    let warnings = |certificates: u32, lists: u32| -> Vec<String> {
        node.warnings(certificates * DAY, lists * DAY).iter().map(ToString::to_string).collect()
    };
    let usual = warnings(30, 2);
    assert!(usual.len() == 1 && usual[0].contains("an intermediate certificate in force has expired"), "{usual:?}");
    let all = warnings(400_000, 400_000);
    assert!(all[0].contains("cert.pem: the certificate in force expires in"), "{all:?}");
    assert!(all[2].contains("crl.pem: the list of the authority CN=ca is out of date in"), "{all:?}");
}
