//! TLS with clients: the files `ssl.*`.

use crate::config::{CLIENT_FILE_KEYS, Settings};
use ombak_api::{ClientTls, Handshakes};
use ombak_tls::clients::{self, ClientCertificates};
use ombak_tls::{FileProblem, FileRole};
use std::sync::Arc;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long before the end of a certificate the log begins to warn.
const WARN_BEFORE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long before a list of revoked certificates is out of date. Lists are often made each day.
const WARN_BEFORE_LIST: Duration = Duration::from_secs(2 * 24 * 60 * 60);
/// The number of handshakes that compute at the same time, however many processors there are. Even
/// with keys of RSA this is some thousand handshakes a second.
const AT_ONCE_MAX: usize = 4;

/// Reads the files, if the node has TLS for clients. The error is one line for the operator.
pub fn of_node(settings: &Settings) -> Result<Option<Arc<ClientCertificates>>, String> {
    let Some(config) = &settings.client_tls else { return Ok(None) };
    match ClientCertificates::read(config.tls.clone()) {
        Ok(certificates) => Ok(Some(Arc::new(certificates))),
        Err(problem) => Err(line(&problem)),
    }
}

/// What an operator has to know about the files.
pub fn warnings(certificates: &ClientCertificates) -> Vec<String> {
    certificates.warnings(WARN_BEFORE, WARN_BEFORE_LIST).iter().map(line).collect()
}

/// How connections of clients begin TLS. It serves all listeners: they share its bounds.
pub fn for_listeners(
    settings: &Settings,
    certificates: Option<&Arc<ClientCertificates>>,
    threads: usize,
) -> Option<ClientTls> {
    let (config, certificates) = (settings.client_tls.as_ref()?, Arc::clone(certificates?));
    // The other threads go on serving while handshakes compute.
    let at_once = (threads / 2).clamp(1, AT_ONCE_MAX);
    let handshakes = Handshakes::new(config.handshake_timeout, config.handshakes_max, at_once);
    let tls = ClientTls::new(move || certificates.current(), handshakes);
    Some(tls.with_names(clients::common_name).with_faults(clients::explain))
}

/// Reads the files again. If they cannot be used, what was read before stays in force.
pub fn read_again(certificates: &ClientCertificates) {
    match certificates.read_again() {
        Ok(()) => {
            tracing::info!("the files ssl.* were read again on SIGHUP: new connections of clients use them");
            warn(certificates);
        }
        Err(problem) => tracing::error!("{}; the files that were read before stay in force", line(&problem)),
    }
}

/// Warns of certificates and lists that end soon, now and then once a day.
pub async fn watch_ends(certificates: Arc<ClientCertificates>) {
    loop {
        warn(&certificates);
        tokio::time::sleep(DAY).await;
    }
}

fn warn(certificates: &ClientCertificates) {
    for warning in warnings(certificates) {
        tracing::warn!("{warning}");
    }
}

fn line(problem: &FileProblem) -> String {
    let [certificate, key, authorities, revocations] = CLIENT_FILE_KEYS;
    let key = match problem.role {
        FileRole::Certificate => certificate,
        FileRole::Key => key,
        FileRole::Authorities => authorities,
        FileRole::Revocations => revocations,
    };
    format!("{key} = {problem}")
}
