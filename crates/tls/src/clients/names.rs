//! The name that a client's certificate proves.

use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The common name of a certificate. `None` if it has none, several, or one that cannot be a name:
/// it is empty, has control characters, or is in an encoding other than UTF-8 and its subsets.
/// Nothing is proved by reading it: the certificate must have been verified.
pub fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let (rest, certificate) = X509Certificate::from_der(certificate).ok()?;
    let mut names = certificate.subject().iter_common_name();
    let (Some(name), None) = (names.next(), names.next()) else { return None };
    let name = name.as_str().ok()?;
    (rest.is_empty() && !name.is_empty() && !name.contains(char::is_control)).then(|| name.to_owned())
}
