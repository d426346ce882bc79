//! What has been read from the files.

use super::certificate_checks::{self, Facts};
use super::revocations::{self, Revocations};
use super::settings::{ClientFiles, ClientTlsSettings};
use crate::certificates::{trusted, unusable_key};
use crate::failure;
use crate::files::{self, FileProblem, FileRole};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{RootCertStore, SignatureAlgorithm};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The names of authorities that the node tells to clients have at most this many bytes together.
/// The message in which they stand has room for 64 KiB.
const HINT_BYTES_MAX: usize = 32 << 10;

/// What has been read from the files, and can be used.
pub(super) struct Material {
    pub(super) own: Arc<SingleCertAndKey>,
    /// What the key of the node signs with.
    pub(super) algorithm: SignatureAlgorithm,
    /// Verifies the certificates of clients; `None` if clients are asked for none.
    pub(super) clients: Option<Arc<dyn ClientCertVerifier>>,
    chain: Vec<Facts>,
    authorities: Vec<Facts>,
    /// `None` if nobody is looked up in them.
    revocations: Option<Vec<Revocations>>,
}

impl Material {
    pub(super) fn read(settings: &ClientTlsSettings) -> Result<Self, FileProblem> {
        let provider = Arc::new(ring::default_provider());
        let files = &settings.files;
        let (chain, facts) = own_chain(files)?;
        let own = CertifiedKey::from_der(chain, files::private_key(&files.key)?, &provider)
            .map_err(|error| files.problem(FileRole::Key, unusable_key(&error, &files.certificate)))?;
        let algorithm = own.key.algorithm();
        let mut material = Self {
            own: Arc::new(SingleCertAndKey::from(own)),
            algorithm,
            clients: None,
            chain: facts,
            authorities: Vec::new(),
            revocations: None,
        };
        if let Some(path) = &files.authorities {
            material.take_authorities(path, settings, &provider)?;
        }
        Ok(material)
    }

    fn take_authorities(
        &mut self,
        path: &Path,
        settings: &ClientTlsSettings,
        provider: &Arc<CryptoProvider>,
    ) -> Result<(), FileProblem> {
        let files = &settings.files;
        let certificates = files::certificates(FileRole::Authorities, path)?;
        for (index, certificate) in certificates.iter().enumerate() {
            let facts = certificate_checks::of_authority(certificate).map_err(|what| {
                files.problem(FileRole::Authorities, format!("its certificate number {} {what}", index + 1))
            })?;
            self.authorities.push(facts);
        }
        let store = trusted(certificates).map_err(|what| files.problem(FileRole::Authorities, what))?;
        if settings.checks_revocation {
            // Without a list nobody knows which certificates are revoked, so none is accepted.
            let Some(path) = &files.revocations else { return Ok(()) };
            self.revocations = Some(revocations::read(path, files, &store, provider)?);
        }
        self.clients = Some(self.verifier(store, provider).map_err(|what| files.problem(FileRole::Authorities, what))?);
        Ok(())
    }

    fn verifier(
        &self,
        authorities: Arc<RootCertStore>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>, String> {
        let names_bytes: usize = authorities.subjects().iter().map(|name| name.as_ref().len()).sum();
        let mut builder = WebPkiClientVerifier::builder_with_provider(authorities, Arc::clone(provider));
        if names_bytes > HINT_BYTES_MAX {
            builder = builder.clear_root_hint_subjects();
        }
        if let Some(lists) = &self.revocations {
            builder = builder.with_crls(lists.iter().map(|list| list.der.clone())).enforce_revocation_expiration();
        }
        builder.allow_unauthenticated().build().map_err(|error| format!("cannot be used: {error}"))
    }

    /// What an operator has to know: certificates and lists that end within a time, and authorities
    /// whose certificates are refused for want of a list.
    pub(super) fn warnings(&self, settings: &ClientTlsSettings, now: u64, soon: Soon) -> Vec<FileProblem> {
        let problem = |role, what| settings.files.problem(role, what);
        let mut warnings = Vec::new();
        for (index, facts) in self.chain.iter().enumerate() {
            let which = if index == 0 { "the certificate in force" } else { "an intermediate certificate in force" };
            if let Some(what) = of_validity(facts, now, soon.certificates) {
                warnings.push(problem(FileRole::Certificate, format!("{which} {what}")));
            }
        }
        match &self.revocations {
            Some(lists) => warnings.extend(self.of_lists(lists, settings, now, soon.lists)),
            None if settings.checks_revocation && !self.authorities.is_empty() => warnings.push(problem(
                FileRole::Authorities,
                "clients are asked for no certificates, because check_crl is on and ssl.crlfile is not set: nobody \
                 knows which certificates are revoked. Set ssl.crlfile, or check_crl = off"
                    .to_owned(),
            )),
            None => {}
        }
        warnings
    }

    fn of_lists(
        &self,
        lists: &[Revocations],
        settings: &ClientTlsSettings,
        now: u64,
        soon: Duration,
    ) -> Vec<FileProblem> {
        let problem = |what| settings.files.problem(FileRole::Revocations, what);
        let missing = self.authorities.iter().filter(|facts| lists.iter().all(|list| list.issuer != facts.subject));
        let missing = missing.map(|facts| {
            let name = &facts.shown_subject;
            problem(format!("has no list of the authority {name}: certificates that it has issued are refused"))
        });
        let ending = lists.iter().filter_map(|list| {
            let (end, name) = (list.next_update?, &list.shown_issuer);
            let what = match end.checked_sub(now) {
                None => "is out of date: certificates that it has issued are refused".to_owned(),
                Some(left) if left <= soon.as_secs() => format!("is out of date in {}", failure::span(left)),
                Some(_) => return None,
            };
            Some(problem(format!("the list of the authority {name} {what}")))
        });
        missing.chain(ending).collect()
    }
}

/// How long before an end the operator is warned.
#[derive(Clone, Copy)]
pub(super) struct Soon {
    pub(super) certificates: Duration,
    pub(super) lists: Duration,
}

fn own_chain(files: &ClientFiles) -> Result<(Vec<CertificateDer<'static>>, Vec<Facts>), FileProblem> {
    let chain = files::certificates(FileRole::Certificate, &files.certificate)?;
    let mut facts = Vec::new();
    for certificate in &chain {
        let unusable = |what| files.problem(FileRole::Certificate, what);
        ParsedCertificate::try_from(certificate).map_err(|error| unusable(failure::of_certificate(&error)))?;
        facts.push(certificate_checks::of_own(certificate).map_err(unusable)?);
    }
    Ok((chain, facts))
}

fn of_validity(facts: &Facts, now: u64, soon: Duration) -> Option<String> {
    if facts.not_before > now {
        let left = failure::span(facts.not_before - now);
        return Some(format!(
            "becomes valid in {left} only, and clients refuse it: is the clock of this machine right?"
        ));
    }
    match facts.not_after.checked_sub(now) {
        None => Some(format!("has expired {} ago, and clients refuse it", failure::span(now - facts.not_after))),
        Some(left) if left <= soon.as_secs() => Some(format!("expires in {}", failure::span(left))),
        Some(_) => None,
    }
}
