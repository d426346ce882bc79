//! The security of the node: who its clients are, and what they may do.

use ombak_api::NodeSecurity;
use ombak_api::security::{NoTls, TlsCiphers};
use ombak_audit::AuditLog;
use ombak_tls::clients::{ClientCertificates, ciphers};
use std::fmt;
use std::sync::Arc;

/// The security of a node, which is off until the metadata say otherwise.
pub fn of_node(certificates: Option<&Arc<ClientCertificates>>, audit: AuditLog) -> Result<Arc<NodeSecurity>, String> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|why| format!("there are no random bytes: {why}"))?;
    let ciphers: Arc<dyn TlsCiphers> = match certificates {
        Some(certificates) => Arc::new(OfClients(Arc::clone(certificates))),
        None => Arc::new(NoTls),
    };
    Ok(Arc::new(NodeSecurity::new(key, ciphers).with_audit(audit)))
}

/// The cipher suites of TLS for clients.
struct OfClients(Arc<ClientCertificates>);

impl fmt::Debug for OfClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OfClients(…)")
    }
}

impl TlsCiphers for OfClients {
    fn is_there(&self) -> bool {
        true
    }

    fn is_known(&self, name: &str) -> bool {
        ciphers::is_supported(name)
    }

    fn choose(&self, list: Option<&str>) {
        if let Err(why) = self.0.set_ciphers(list) {
            tracing::error!(%why, "the list of security ciphers cannot be used: the one before stays in force");
        }
    }
}
