//! Authorities and certificates for tests.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "only tests use this module")]

use crate::files::CertificateFiles;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// An authority that issues certificates.
pub struct TestAuthority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate.
    pub pem: String,
}

/// A certificate with its private key.
pub struct Issued {
    /// The certificate, and those that come with it.
    pub chain: String,
    /// Its private key.
    pub key: String,
}

impl TestAuthority {
    /// An authority that nobody else vouches for.
    pub fn new(name: &str) -> Self {
        let (params, key) = (Self::params(name), KeyPair::generate().unwrap());
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// An authority that this one vouches for.
    pub fn intermediate(&self, name: &str) -> Self {
        let (params, key) = (Self::params(name), KeyPair::generate().unwrap());
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    fn params(name: &str) -> CertificateParams {
        let mut params = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    }

    /// A certificate for a node.
    pub fn issue(&self, name: &str) -> Issued {
        self.issue_changed(name, |_| {})
    }

    /// A certificate that is valid for some years only.
    pub fn issue_for_years(&self, name: &str, first: i32, last: i32) -> Issued {
        self.issue_changed(name, |params| {
            (params.not_before, params.not_after) = (date_time_ymd(first, 1, 1), date_time_ymd(last, 12, 31));
        })
    }

    /// A certificate with other properties than usual.
    pub(crate) fn issue_changed(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Issued {
        let mut params = named(name);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let chain = params.signed_by(&key, &self.issuer).unwrap().pem();
        Issued { chain, key: key.serialize_pem() }
    }
}

/// A certificate that nobody vouches for.
pub fn self_signed(name: &str) -> Issued {
    let key = KeyPair::generate().unwrap();
    Issued { chain: named(name).self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

impl Issued {
    /// Writes the files of a node that trusts `authorities`. Each file is replaced as a whole.
    pub fn write(&self, dir: &Path, authorities: &str) -> CertificateFiles {
        let file = |name: &str, text: &str| {
            let (path, fresh) = (dir.join(name), dir.join("fresh"));
            fs::write(&fresh, text).unwrap();
            fs::set_permissions(&fresh, Permissions::from_mode(0o600)).unwrap();
            fs::rename(&fresh, &path).unwrap();
            path
        };
        CertificateFiles {
            certificate: file("node.crt", &self.chain),
            key: file("node.key", &self.key),
            authorities: file("ca.crt", authorities),
        }
    }
}
