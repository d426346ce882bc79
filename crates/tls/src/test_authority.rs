//! Authorities and certificates for tests.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "only tests use this module")]

use crate::files::CertificateFiles;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer, KeyIdMethod, KeyPair,
    RevokedCertParams, SanType, date_time_ymd,
};
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
        self.intermediate_numbered(name, 1)
    }

    /// An authority that this one vouches for, whose certificate can be revoked by this number.
    pub fn intermediate_numbered(&self, name: &str, number: u64) -> Self {
        let (mut params, key) = (Self::params(name), KeyPair::generate().unwrap());
        params.serial_number = Some(number.into());
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    fn params(name: &str) -> CertificateParams {
        let mut params = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    }

    /// Somebody who issues certificates with a certificate that is not that of an authority.
    #[cfg(test)]
    pub(crate) fn leaf_that_issues(&self, name: &str) -> Self {
        let (params, key) = (named(name), KeyPair::generate().unwrap());
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
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

    /// A certificate with a serial number, by which it can be revoked.
    pub fn issue_numbered(&self, name: &str, number: u64) -> Issued {
        self.issue_changed(name, |params| params.serial_number = Some(number.into()))
    }

    /// A certificate for the server of this host name.
    pub fn issue_for_host(&self, host: &str) -> Issued {
        self.issue_changed(host, |params| params.subject_alt_names = vec![SanType::DnsName(host.try_into().unwrap())])
    }

    /// A list of revoked certificates, in PEM form. It is out of date after `last_year`.
    pub fn revoking(&self, numbers: &[u64], last_year: i32) -> String {
        let revoked = |number: &u64| RevokedCertParams {
            serial_number: (*number).into(),
            revocation_time: date_time_ymd(2001, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2001, 1, 1 + u8::try_from(numbers.len()).unwrap()),
            next_update: date_time_ymd(last_year, 12, 31),
            crl_number: 1.into(),
            issuing_distribution_point: None,
            revoked_certs: numbers.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer).unwrap().pem().unwrap()
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
