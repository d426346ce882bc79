//! TLS for clients, as it is in force.

use super::ciphers::{self, CipherError};
use super::material::{Material, Soon};
use super::settings::ClientTlsSettings;
use crate::files::{FileProblem, FileRole};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::SupportedCipherSuite;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::UnixTime;
use rustls::server::{NoServerSessionStorage, ServerConfig, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use std::sync::Arc;
use std::time::Duration;

/// TLS for clients, as it is in force. Files can be read again and ciphers can be changed while the
/// node runs. Connections that are open stay as they are.
pub struct ClientCertificates {
    settings: ClientTlsSettings,
    /// What the configuration in force was made from. Its lock also puts changes in order.
    sources: Mutex<Sources>,
    current: ArcSwap<ServerConfig>,
}

struct Sources {
    material: Material,
    ciphers: Option<Vec<SupportedCipherSuite>>,
}

impl ClientCertificates {
    /// Reads the files. A certificate that has expired can be used, and so can one that no
    /// authority vouches for: clients decide whom they trust.
    pub fn read(settings: ClientTlsSettings) -> Result<Self, FileProblem> {
        let sources = Sources { material: Material::read(&settings)?, ciphers: None };
        let config = sources.config(&settings).map_err(|error| unusable(&settings, &error))?;
        Ok(Self { settings, sources: Mutex::new(sources), current: ArcSwap::from_pointee(config) })
    }

    /// Reads the files again, for connections from now on. After an error, what was in force before
    /// stays in force.
    pub fn read_again(&self) -> Result<(), FileProblem> {
        let mut sources = self.sources.lock();
        let fresh = Sources { material: Material::read(&self.settings)?, ciphers: sources.ciphers.clone() };
        let config = fresh.config(&self.settings).map_err(|error| unusable(&self.settings, &error))?;
        *sources = fresh;
        self.current.store(Arc::new(config));
        Ok(())
    }

    /// Allows these ciphers to connections from now on, in this order of preference: a list in
    /// OpenSSL's form ([`ciphers::parse`]). `None`: all that this program has. A list without a
    /// name of TLS 1.3 leaves that version's ciphers as they are, as with OpenSSL.
    ///
    /// # Errors
    /// No connection would be possible. What was in force before stays in force.
    pub fn set_ciphers(&self, list: Option<&str>) -> Result<(), CipherError> {
        let wanted = list.map(ciphers::chosen).transpose()?;
        let mut sources = self.sources.lock();
        let before = std::mem::replace(&mut sources.ciphers, wanted);
        match sources.config(&self.settings) {
            Ok(config) => {
                self.current.store(Arc::new(config));
                Ok(())
            }
            Err(error) => {
                sources.ciphers = before;
                Err(error)
            }
        }
    }

    /// The configuration for a handshake that begins now.
    pub fn current(&self) -> Arc<ServerConfig> {
        self.current.load_full()
    }

    /// Whether clients are asked for certificates.
    pub fn asks_for_certificates(&self) -> bool {
        self.sources.lock().material.clients.is_some()
    }

    /// What an operator has to know about the files in force: certificates that end within
    /// `certificates` and lists that end within `lists`, or have ended, and why certificates of
    /// clients are refused.
    pub fn warnings(&self, certificates: Duration, lists: Duration) -> Vec<FileProblem> {
        let now = UnixTime::now().as_secs();
        self.sources.lock().material.warnings(&self.settings, now, Soon { certificates, lists })
    }
}

impl Sources {
    fn config(&self, settings: &ClientTlsSettings) -> Result<ServerConfig, CipherError> {
        let suites = self.ciphers.clone().unwrap_or_else(|| ring::DEFAULT_CIPHER_SUITES.to_vec());
        if !suites.iter().any(|suite| ciphers::serves(*suite, settings.versions, self.material.algorithm)) {
            return Err(CipherError::NoneFits {
                fitting: ciphers::fitting(settings.versions, self.material.algorithm),
            });
        }
        let mut versions = Vec::new();
        versions.extend(settings.versions.tls13.then_some(&TLS13));
        versions.extend(settings.versions.tls12.then_some(&TLS12));
        let provider = CryptoProvider { cipher_suites: suites, ..ring::default_provider() };
        let clients = self.material.clients.clone().unwrap_or_else(WebPkiClientVerifier::no_client_auth);
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&versions)
            .map_err(|error| CipherError::Unusable(error.to_string()))?
            .with_client_cert_verifier(clients)
            .with_cert_resolver(self.material.own.clone());
        config.ignore_client_order = settings.honors_own_order;
        // A session that is resumed would not prove its certificate again, which may be revoked by
        // then. Riak has no resumption either.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(config)
    }
}

fn unusable(settings: &ClientTlsSettings, error: &CipherError) -> FileProblem {
    settings.files.problem(FileRole::Certificate, format!("cannot be used: {error}"))
}
