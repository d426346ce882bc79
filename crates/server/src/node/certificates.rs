//! The certificates of a node for other nodes: the files `cluster.ssl.*`.

use crate::config::{CERTIFICATE_KEYS, Settings};
use ombak_tls::{Certificates, FileProblem, FileRole};
use std::sync::Arc;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long before the end of a certificate the log begins to warn.
const WARN_BEFORE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Reads the certificates, if the node listens for others and has some. The error is one line for
/// the operator.
pub fn of_node(settings: &Settings) -> Result<Option<Arc<Certificates>>, String> {
    let Some(files) = settings.peer_certificates.clone().filter(|_| settings.peer.is_some()) else { return Ok(None) };
    Certificates::read(files).map(|certificates| Some(Arc::new(certificates))).map_err(|problem| line(&problem))
}

/// Reads the files again. If they cannot be used, what was read before stays in force.
pub fn read_again(certificates: &Certificates) {
    match certificates.read_again() {
        Ok(()) => {
            tracing::info!("the certificates were read again on SIGHUP: new connections between nodes use them");
            warn_of_expiry(certificates);
        }
        Err(problem) => {
            tracing::error!("{}; the certificates that were read before stay in force", line(&problem));
        }
    }
}

/// Warns of a certificate that expires soon, now and then once a day.
pub async fn watch_expiry(certificates: Arc<Certificates>) {
    loop {
        warn_of_expiry(&certificates);
        tokio::time::sleep(DAY).await;
    }
}

fn warn_of_expiry(certificates: &Certificates) {
    if let Some(problem) = certificates.expiry_within(WARN_BEFORE) {
        tracing::warn!("{}: replace it, and send SIGHUP to the node", line(&problem));
    }
}

fn line(problem: &FileProblem) -> String {
    let [certificate, key, authorities] = CERTIFICATE_KEYS;
    let key = match problem.role {
        FileRole::Certificate => certificate,
        FileRole::Key => key,
        FileRole::Authorities | FileRole::Revocations => authorities,
    };
    format!("{key} = {problem}")
}
