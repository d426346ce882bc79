//! Certificates that clients present.

use super::*;
use rcgen::ExtendedKeyUsagePurpose;

const CA: &str = include_str!("pem/ca.crt");
const SHA1: &str = include_str!("pem/sha1.crt");
const VERSION_1: &str = include_str!("pem/version1.crt");
const LEAF_KEY: &str = include_str!("pem/leaf.key");

/// Connects with a certificate, over each version of TLS.
async fn present(node: &Node, ca: &TestAuthority, issued: &Issued) -> Result<Option<String>, String> {
    let mut last = None;
    for version in [&TLS12, &TLS13] {
        let client = Client::trusting(&ca.pem).speaking(&[version]).showing(issued);
        let (ours, _) = connect(node, client).await?;
        last = ours.get_ref().1.peer_certificates().and_then(|chain| crate::clients::common_name(&chain[0]));
    }
    Ok(last)
}

#[tokio::test]
async fn a_certificate_of_a_trusted_authority_proves_its_name() {
    let ca = TestAuthority::new("ca");
    let node = Node::of(&ca).trusting(&ca.pem).without_revocation();
    assert_eq!(present(&node, &ca, &ca.issue("alice")).await, Ok(Some("alice".into())));
    let department = ca.intermediate("department");
    let mut below = department.issue("bob");
    below.chain.push_str(&department.pem);
    assert_eq!(present(&node, &ca, &below).await, Ok(Some("bob".into())));
    // A certificate is asked for, and not required.
    let (ours, _) = connect(&node, Client::trusting(&ca.pem)).await.unwrap();
    assert!(ours.get_ref().1.peer_certificates().is_none());
}

#[tokio::test]
async fn a_certificate_that_does_not_verify_ends_the_handshake() {
    let (ca, other) = (TestAuthority::new("ca"), TestAuthority::new("ca"));
    let node = Node::of(&ca).trusting(&ca.pem).without_revocation();
    let refused = async |issued: Issued, words: &str| assert_refused(present(&node, &ca, &issued).await, words);
    let unknown = "does not come from an authority in ssl.cacertfile";
    refused(other.issue("alice"), unknown).await;
    refused(TestAuthority::new("x").issue("alice"), unknown).await;
    refused(crate::test_authority::self_signed("alice"), unknown).await;
    refused(ca.issue_for_years("alice", 2001, 2002), "has expired").await;
    refused(ca.issue_for_years("alice", 2900, 2901), "becomes valid in").await;
    let server_only = |params: &mut rcgen::CertificateParams| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    };
    refused(ca.issue_changed("alice", server_only), "is not for clients").await;
    let authority = |params: &mut rcgen::CertificateParams| {
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    };
    refused(ca.issue_changed("alice", authority), "is that of an authority").await;
    // Alice issues a certificate to Mallory.
    let (alice, mut by_alice) = (ca.leaf_that_issues("alice"), None);
    by_alice.get_or_insert(alice.issue("mallory")).chain.push_str(&alice.pem);
    refused(by_alice.unwrap(), "was issued with a certificate that is not that of an authority").await;
    // The department's own certificate is missing.
    refused(ca.intermediate("department").issue("bob"), unknown).await;
}

#[tokio::test]
async fn certificates_with_broken_signatures_or_of_version_1_are_refused() {
    let ca = TestAuthority::new("ca");
    let node = Node::of(&ca).trusting(CA).without_revocation();
    let fixed = |chain: &str| Issued { chain: chain.to_owned(), key: LEAF_KEY.to_owned() };
    assert_refused(present(&node, &ca, &fixed(SHA1)).await, "such as with SHA-1");
    assert_refused(present(&node, &ca, &fixed(VERSION_1)).await, "is of version 1 of X.509");
}

#[tokio::test]
async fn revoked_certificates_are_refused() {
    let ca = TestAuthority::new("ca");
    let node = |lists: &str| Node::of(&ca).trusting(&ca.pem).revoking(lists);
    let (alice, bob) = (ca.issue_numbered("alice", 7), ca.issue_numbered("bob", 8));
    let revoking = node(&ca.revoking(&[7], 2900));
    assert_refused(present(&revoking, &ca, &alice).await, "is revoked");
    assert_eq!(present(&revoking, &ca, &bob).await, Ok(Some("bob".into())));
    // The newer of two lists counts, wherever it stands.
    let (older, newer) = (ca.revoking(&[], 2900), ca.revoking(&[7], 2900));
    for lists in [format!("{older}{newer}"), format!("{newer}{older}")] {
        assert_refused(present(&node(&lists), &ca, &alice).await, "is revoked");
    }
    let revoking = revoking.without_revocation();
    assert_eq!(present(&revoking, &ca, &alice).await, Ok(Some("alice".into())));
}

#[tokio::test]
async fn a_certificate_that_nobody_says_anything_about_is_refused() {
    let (ca, other) = (TestAuthority::new("ca"), TestAuthority::new("other"));
    let both = format!("{}{}", ca.pem, other.pem);
    let node = |lists: &str| Node::of(&ca).trusting(&both).revoking(lists);
    let of_other = node(&other.revoking(&[], 2900));
    assert_refused(present(&of_other, &ca, &ca.issue("alice")).await, "ssl.crlfile has no list of its authority");
    let warnings = of_other.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("has no list of the authority"), "{warnings:?}");
    assert!(warnings[0].contains("CN=ca: certificates that it has issued are refused"), "{warnings:?}");

    let old = node(&format!("{}{}", ca.revoking(&[], 2002), other.revoking(&[], 2900)));
    assert_refused(present(&old, &ca, &ca.issue("alice")).await, "is out of date");
    let warnings = old.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("CN=ca is out of date: certificates"), "{warnings:?}");

    // Somebody else has signed the list.
    let forged = TestAuthority::new("ca").revoking(&[], 2900);
    assert_refused(present(&node(&forged), &ca, &ca.issue("alice")).await, "is not signed with the key of that");
}

#[tokio::test]
async fn the_authorities_in_between_must_not_be_revoked_either() {
    let ca = TestAuthority::new("ca");
    let department = ca.intermediate_numbered("department", 5);
    let mut bob = department.issue("bob");
    bob.chain.push_str(&department.pem);
    let node = |lists: &[String]| Node::of(&ca).trusting(&ca.pem).revoking(&lists.concat());
    let (good, revoked) = (ca.revoking(&[], 2900), ca.revoking(&[5], 2900));
    let of_department = department.revoking(&[], 2900);
    assert_eq!(present(&node(&[good.clone(), of_department.clone()]), &ca, &bob).await, Ok(Some("bob".into())));
    assert_refused(present(&node(&[revoked, of_department]), &ca, &bob).await, "or one that comes with it is");
    assert_refused(present(&node(&[good]), &ca, &bob).await, "or of one between");
}

/// Nobody is let in by a certificate that may be revoked, and clients that come with a password as
/// well are not turned away.
#[tokio::test]
async fn without_lists_clients_are_asked_for_no_certificates_while_revocation_is_checked() {
    let ca = TestAuthority::new("ca");
    let node = Node::of(&ca).trusting(&ca.pem);
    assert_eq!(present(&node, &ca, &ca.issue("alice")).await, Ok(None));
    assert!(!node.read().asks_for_certificates());
    let warnings = node.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("Set ssl.crlfile, or check_crl = off"), "{warnings:?}");
    let node = node.without_revocation();
    assert!(node.warnings().is_empty() && node.read().asks_for_certificates());
    assert!(Node::of(&ca).warnings().is_empty(), "no client is asked for a certificate");
}
