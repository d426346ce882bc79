//! The names that certificates prove.

use super::*;
use crate::clients::common_name;
use rcgen::string::BmpString;
use rcgen::{DnType, DnValue};

fn name_in(change: impl FnOnce(&mut rcgen::CertificateParams)) -> Option<String> {
    let issued = TestAuthority::new("ca").issue_changed("alice", change);
    common_name(&certificates(&issued.chain)[0])
}

#[test]
fn the_common_name_is_taken_as_it_stands() {
    assert_eq!(name_in(|_| {}).as_deref(), Some("alice"));
    for name in ["Alice", "alice@example.com", "ålïcé", " alice ", "a,CN=b"] {
        assert_eq!(name_in(|params| params.distinguished_name.push(DnType::CommonName, name)).as_deref(), Some(name));
    }
    let others = |params: &mut rcgen::CertificateParams| {
        params.distinguished_name.push(DnType::OrganizationName, "bob");
        params.subject_alt_names = vec![rcgen::SanType::DnsName("carol".try_into().unwrap())];
    };
    assert_eq!(name_in(others).as_deref(), Some("alice"));
}

#[test]
fn what_cannot_be_a_name_proves_none() {
    for name in ["", "alice\0", "alice\0.example.com", "a\nb", "a\u{7f}", "a\u{85}b"] {
        let found = name_in(|params| params.distinguished_name.push(DnType::CommonName, name));
        assert_eq!(found, None, "{name:?}");
    }
    assert_eq!(name_in(|params| params.distinguished_name = rcgen::DistinguishedName::new()), None);
    let wide = DnValue::BmpString(BmpString::try_from("alice").unwrap());
    assert_eq!(name_in(|params| params.distinguished_name.push(DnType::CommonName, wide)), None);
    // A second common name, which the library for tests knows as some attribute of this number.
    let second = DnType::CustomDnType(vec![2, 5, 4, 3]);
    assert_eq!(name_in(|params| params.distinguished_name.push(second, "bob")), None);
    assert_eq!(common_name(&CertificateDer::from(vec![0x30, 0])), None);
    let mut longer = certificates(&TestAuthority::new("ca").issue("alice").chain)[0].to_vec();
    longer.push(0);
    assert_eq!(common_name(&CertificateDer::from(longer)), None);
}
