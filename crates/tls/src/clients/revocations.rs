//! Lists of revoked certificates.

use super::settings::ClientFiles;
use crate::files::{self, FileProblem, FileRole};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateRevocationListDer;
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{CertRevocationListError, RootCertStore};
use std::path::Path;
use std::sync::Arc;
use x509_parser::prelude::{CertificateRevocationList, FromDer, X509Version};

/// A list of revoked certificates.
pub(super) struct Revocations {
    pub(super) der: CertificateRevocationListDer<'static>,
    /// The name of the authority, as it is encoded.
    pub(super) issuer: Vec<u8>,
    /// Its name for people.
    pub(super) shown_issuer: String,
    /// When the next list should be there, in seconds since the beginning of 1970; `None`: never.
    pub(super) next_update: Option<u64>,
    made: i64,
}

/// Reads the lists of a file. Of two lists of the same authority, the newer one comes first: the
/// first one counts.
pub(super) fn read(
    path: &Path,
    files: &ClientFiles,
    authorities: &Arc<RootCertStore>,
    provider: &Arc<CryptoProvider>,
) -> Result<Vec<Revocations>, FileProblem> {
    let mut lists = Vec::new();
    for (index, der) in files::revocations(path)?.into_iter().enumerate() {
        let unusable =
            |what: String| files.problem(FileRole::Revocations, format!("its list number {} {what}", index + 1));
        lists.push(of(der.clone()).map_err(|what| unusable(what.to_owned()))?);
        // What a verifier refuses is found here, where its number is known.
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(authorities), Arc::clone(provider));
        if let Err(VerifierBuilderError::InvalidCrl(error)) = verifier.with_crls([der]).build() {
            return Err(unusable(fault(&error)));
        }
    }
    lists.sort_by_key(|list| std::cmp::Reverse(list.made));
    Ok(lists)
}

/// The end of a sentence that begins with the list.
fn fault(error: &CertRevocationListError) -> String {
    match error {
        CertRevocationListError::UnsupportedDeltaCrl => "has changes only: the whole list is needed".to_owned(),
        other => format!("cannot be used: {other:?}"),
    }
}

/// The error is the end of a sentence that begins with the list.
fn of(der: CertificateRevocationListDer<'static>) -> Result<Revocations, &'static str> {
    let (_, parsed) = CertificateRevocationList::from_der(&der).map_err(|_| "is damaged")?;
    if parsed.version() != Some(X509Version::V2) {
        return Err(
            "is of version 1: it has to have a number, which 'openssl ca -gencrl' gives it if its configuration \
                    has crlnumber",
        );
    }
    let next_update = parsed.next_update().map(|time| u64::try_from(time.timestamp()).unwrap_or(0));
    let (issuer, shown_issuer) = (parsed.issuer().as_raw().to_vec(), parsed.issuer().to_string());
    let made = parsed.last_update().timestamp();
    Ok(Revocations { issuer, shown_issuer, next_update, made, der })
}
