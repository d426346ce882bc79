//! What rustls or every client would refuse later, found when the files are read.

use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, SubjectPublicKeyInfo, X509Certificate};
use x509_parser::public_key::PublicKey;

/// Signatures that nobody may trust any more, by their object identifiers.
const BROKEN_SIGNATURES: &[(&str, &str)] = &[
    ("1.2.840.113549.1.1.4", "MD5"),
    ("1.2.840.113549.1.1.5", "SHA-1"),
    ("1.3.14.3.2.29", "SHA-1"),
    ("1.2.840.10045.4.1", "SHA-1"),
    ("1.2.840.10040.4.3", "SHA-1"),
];

const RSA: &str = "1.2.840.113549.1.1.1";
const EC: &str = "1.2.840.10045.2.1";
const ED25519: &str = "1.3.101.112";
/// P-256 and P-384.
const CURVES: &[&str] = &["1.2.840.10045.3.1.7", "1.3.132.0.34"];
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// What the node knows of a certificate beside what rustls reads.
pub(super) struct Facts {
    /// When it expires, in seconds since the beginning of 1970.
    pub(super) not_after: u64,
    /// When it becomes valid.
    pub(super) not_before: u64,
    /// Its subject, as it is encoded.
    pub(super) subject: Vec<u8>,
    /// Its subject for people.
    pub(super) shown_subject: String,
}

/// Looks at a certificate that the node shows to clients. The error is the end of a sentence that
/// begins with the certificate.
pub(super) fn of_own(certificate: &CertificateDer<'_>) -> Result<Facts, String> {
    let parsed = parsed(certificate)?;
    // Nobody verifies the signature of a certificate that its own subject has issued.
    let is_self_issued = parsed.subject().as_raw() == parsed.issuer().as_raw();
    let oid = parsed.signature_algorithm.algorithm.to_id_string();
    match BROKEN_SIGNATURES.iter().find(|(broken, _)| *broken == oid) {
        Some((_, hash)) if !is_self_issued => {
            Err(format!("is signed with {hash}, which clients refuse: it has to be issued anew, with SHA-256"))
        }
        _ => Ok(facts(&parsed)),
    }
}

/// Looks at the certificate of an authority that issues certificates to clients. Its own signature,
/// its version and its dates do not count.
pub(super) fn of_authority(certificate: &CertificateDer<'_>) -> Result<Facts, String> {
    let parsed = parsed(certificate)?;
    usable_key(parsed.public_key())?;
    Ok(facts(&parsed))
}

fn parsed<'a>(certificate: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, String> {
    X509Certificate::from_der(certificate).map(|(_, parsed)| parsed).map_err(|_| "is damaged".to_owned())
}

fn facts(parsed: &X509Certificate<'_>) -> Facts {
    let seconds = |timestamp: i64| u64::try_from(timestamp).unwrap_or(0);
    Facts {
        not_after: seconds(parsed.validity().not_after.timestamp()),
        not_before: seconds(parsed.validity().not_before.timestamp()),
        subject: parsed.subject().as_raw().to_vec(),
        shown_subject: parsed.subject().to_string(),
    }
}

/// Whether signatures of this key can be verified.
fn usable_key(key: &SubjectPublicKeyInfo<'_>) -> Result<(), String> {
    const MAY_BE: &str = "it may be ECDSA (P-256, P-384), Ed25519, or RSA with 2048 to 8192 bits";
    let curve = || key.algorithm.parameters.as_ref().and_then(|p| p.as_oid().ok()).map(|oid| oid.to_id_string());
    match key.algorithm.algorithm.to_id_string().as_str() {
        ED25519 => Ok(()),
        EC if curve().is_some_and(|curve| CURVES.contains(&curve.as_str())) => Ok(()),
        RSA => match key.parsed() {
            Ok(PublicKey::RSA(rsa)) if RSA_BITS.contains(&rsa.key_size()) => Ok(()),
            Ok(PublicKey::RSA(rsa)) => Err(format!("has an RSA key of {} bits: {MAY_BE}", rsa.key_size())),
            _ => Err("has a damaged key".to_owned()),
        },
        _ => Err(format!("has a key of a kind that cannot be used: {MAY_BE}")),
    }
}
