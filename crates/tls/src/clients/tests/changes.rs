//! Files that are replaced while the node runs.

use super::*;

#[tokio::test]
async fn what_was_read_again_counts_for_new_connections_and_unusable_files_change_nothing() {
    let (ca, next) = (TestAuthority::new("ca"), TestAuthority::new("next"));
    let node = Node::of(&ca).trusting(&ca.pem).revoking(&ca.revoking(&[], 2900));
    let certificates = node.read();
    let alice = ca.issue_numbered("alice", 7);
    let of = |authority: &TestAuthority| Arc::new(Client::trusting(&authority.pem).showing(&alice).config());
    let (mut ours, mut theirs) = meet(certificates.current(), of(&ca)).await.unwrap();

    let fresh = next.issue_for_host("localhost");
    write(node.dir.path(), "cert.pem", &fresh.chain);
    // The key is still the old one.
    let problem = certificates.read_again().unwrap_err().to_string();
    assert!(problem.contains("does not belong to the certificate"), "{problem}");
    meet(certificates.current(), of(&ca)).await.unwrap();
    write(node.dir.path(), "key.pem", &fresh.key);
    certificates.read_again().unwrap();
    meet(certificates.current(), of(&next)).await.unwrap();

    write(node.dir.path(), "crl.pem", "nothing");
    assert!(certificates.read_again().is_err());
    meet(certificates.current(), of(&next)).await.unwrap();
    write(node.dir.path(), "crl.pem", &ca.revoking(&[7], 2900));
    certificates.read_again().unwrap();
    assert_refused(meet(certificates.current(), of(&next)).await, "is revoked");

    // The connection that is open stays.
    theirs.write_all(b"still here").await.unwrap();
    let mut heard = [0; 10];
    soon(ours.read_exact(&mut heard)).await.unwrap();
    assert_eq!(&heard, b"still here");
}
