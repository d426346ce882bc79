//! What a node proves itself with, and whom it trusts.

use crate::failure;
use crate::files::{CertificateFiles, Contents, FileProblem, FileRole, UNUSABLE_KEY};
use crate::verification::AnyNode;
use arc_swap::ArcSwap;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{ClientConfig, Resumption};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ParsedCertificate, ServerConfig, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{CertificateError, Error, RootCertStore};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The certificate of a node, its key and the authorities that it trusts. They can be read again
/// while the node runs; connections that are open stay as they are.
pub struct Certificates {
    files: CertificateFiles,
    current: ArcSwap<Current>,
}

/// What is in force.
pub(crate) struct Current {
    /// For connections that this node opens.
    pub(crate) client: Arc<ClientConfig>,
    /// For connections that it accepts.
    pub(crate) server: Arc<ServerConfig>,
    chain: Vec<CertificateDer<'static>>,
    verifier: Arc<AnyNode>,
}

impl Certificates {
    /// Reads the files, and checks that other nodes with the same authorities would accept this
    /// one.
    pub fn read(files: CertificateFiles) -> Result<Self, FileProblem> {
        let current = Current::read(&files)?;
        Ok(Self { files, current: ArcSwap::from_pointee(current) })
    }

    /// Reads the files again, for connections from now on. After an error, what was in force before
    /// stays in force.
    pub fn read_again(&self) -> Result<(), FileProblem> {
        self.current.store(Arc::new(Current::read(&self.files)?));
        Ok(())
    }

    /// What an operator has to know about the certificate in force: that it expires within `soon`,
    /// or has expired.
    pub fn expiry_within(&self, soon: Duration) -> Option<FileProblem> {
        let current = self.current.load();
        let now = UnixTime::now();
        let at = |time| current.verifier.verify_own(&current.chain, time);
        let what = match (at(now), at(UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs()) + soon))) {
            (Err(error), _) => format!("the certificate in force {}", failure::of_certificate(&error)),
            (_, Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. }))) => {
                let left = failure::span(not_after.as_secs().saturating_sub(now.as_secs()));
                format!("the certificate in force expires in {left}, or one that comes with it does")
            }
            _ => return None,
        };
        Some(self.files.problem(FileRole::Certificate, what))
    }

    pub(crate) fn current(&self) -> Arc<Current> {
        self.current.load_full()
    }
}

impl Current {
    fn read(files: &CertificateFiles) -> Result<Self, FileProblem> {
        let Contents { chain, key, authorities } = files.read()?;
        let certificate_problem = |what| files.problem(FileRole::Certificate, what);
        for certificate in &chain {
            let damaged = |error| certificate_problem(failure::of_certificate(&error));
            ParsedCertificate::try_from(certificate).map_err(damaged)?;
        }
        let provider = Arc::new(ring::default_provider());
        let authorities = trusted(authorities).map_err(|what| files.problem(FileRole::Authorities, what))?;
        let key_problem = |error| files.problem(FileRole::Key, unusable_key(&error, &files.certificate));
        let own = CertifiedKey::from_der(chain.clone(), key, &provider).map_err(key_problem)?;
        let verifier = Arc::new(AnyNode { authorities: Arc::clone(&authorities), provider: Arc::clone(&provider) });
        let clients = WebPkiClientVerifier::builder_with_provider(authorities, Arc::clone(&provider))
            // Strangers need not know whose certificates are accepted.
            .clear_root_hint_subjects()
            .build()
            .map_err(|error| files.problem(FileRole::Authorities, format!("cannot be used: {error}")))?;
        let now = UnixTime::now();
        let accepted = verifier.verify_own(&chain, now);
        accepted.and_then(|()| verify_own_as_client(&*clients, &chain, now)).map_err(|error| {
            let advice = format!("the authorities are those in {}", files.authorities.display());
            certificate_problem(format!("{}; {advice}", failure::of_certificate(&error)))
        })?;
        let failed = |error: Error| certificate_problem(format!("cannot be used: {error}"));
        let own = Arc::new(SingleCertAndKey::from(own));
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(failed)?
            .with_client_cert_verifier(clients)
            .with_cert_resolver(own.clone());
        // With a ticket a peer could come back after its certificate has expired.
        server.send_tls13_tickets = 0;
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(failed)?
            .dangerous()
            .with_custom_certificate_verifier(verifier.clone())
            .with_client_cert_resolver(own);
        client.resumption = Resumption::disabled();
        client.enable_sni = false;
        Ok(Self { client: Arc::new(client), server: Arc::new(server), chain, verifier })
    }
}

impl AnyNode {
    /// Whether a node that trusts the same authorities would accept this node's certificate when it
    /// connects.
    fn verify_own(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Result<(), Error> {
        let (own, intermediates) = chain.split_first().ok_or(Error::NoCertificatesPresented)?;
        let no_name = ServerName::from(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        self.verify_server_cert(own, intermediates, &no_name, &[], now).map(drop)
    }
}

fn verify_own_as_client(
    verifier: &dyn ClientCertVerifier,
    chain: &[CertificateDer<'_>],
    now: UnixTime,
) -> Result<(), Error> {
    let (own, intermediates) = chain.split_first().ok_or(Error::NoCertificatesPresented)?;
    verifier.verify_client_cert(own, intermediates, now).map(drop)
}

pub(crate) fn trusted(certificates: Vec<CertificateDer<'static>>) -> Result<Arc<RootCertStore>, String> {
    let mut store = RootCertStore::empty();
    for (index, certificate) in certificates.into_iter().enumerate() {
        let unusable = |error| format!("its certificate number {} {}", index + 1, failure::of_certificate(&error));
        store.add(certificate).map_err(unusable)?;
    }
    Ok(Arc::new(store))
}

pub(crate) fn unusable_key(error: &Error, certificate: &Path) -> String {
    match error {
        Error::InconsistentKeys(_) => {
            format!("does not belong to the certificate in {}", certificate.display())
        }
        _ => UNUSABLE_KEY.to_owned(),
    }
}
