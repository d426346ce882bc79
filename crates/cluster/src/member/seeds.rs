//! The nodes that the configuration names.
//!
//! A new node asks them before it serves (`joining::newcomer`). If the configuration names them by
//! the names of their hosts, the names are resolved again for each round of questions. Under these
//! names members that are away are looked for, too (`following::moved_members`).

use ombak_runtime::BoxFuture;
use std::net::SocketAddr;
use std::sync::Arc;

/// A node that the configuration names, and where it may be reached at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// How the configuration names it.
    pub name: String,
    /// Its addresses at present, or why there are none.
    pub addresses: Result<Vec<SocketAddr>, String>,
}

/// Resolves the names of hosts in the configuration.
pub trait SeedNames: Send + Sync {
    /// All names with their present addresses. It takes a bounded time.
    fn resolve(&self) -> BoxFuture<'_, Vec<Seed>>;
}

/// The nodes that the configuration names.
#[derive(Clone, Default)]
pub struct Seeds {
    addresses: Vec<SocketAddr>,
    names: Option<Arc<dyn SeedNames>>,
}

impl From<Vec<SocketAddr>> for Seeds {
    fn from(addresses: Vec<SocketAddr>) -> Self {
        Self { addresses, names: None }
    }
}

impl Seeds {
    /// The same nodes, and those with these names.
    pub fn with_names(self, names: Arc<dyn SeedNames>) -> Self {
        Self { names: Some(names), ..self }
    }

    /// Whether the configuration names nodes by the names of their hosts.
    pub(super) fn have_names(&self) -> bool {
        self.names.is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.names.is_none()
    }

    /// All nodes, as they are called, with an address or with the reason why there is none.
    pub(super) async fn look_up(&self) -> Vec<(String, Result<SocketAddr, String>)> {
        let mut found: Vec<_> = self.addresses.iter().map(|address| (address.to_string(), Ok(*address))).collect();
        let Some(names) = &self.names else { return found };
        for Seed { name, addresses } in names.resolve().await {
            match addresses {
                Ok(addresses) => found.extend(addresses.iter().map(|at| (format!("{name} ({at})"), Ok(*at)))),
                Err(why) => found.push((name, Err(why))),
            }
        }
        found
    }
}
