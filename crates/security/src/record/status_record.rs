//! The record that says whether security is on.

use super::codec::{Record, VERSION};
use crate::bounds::CIPHERS_BYTES_MAX;
use serde::{Deserialize, Serialize};

/// Whether security is on, and the ciphers of TLS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StatusRecord {
    version: u32,
    pub(crate) enabled: bool,
    /// The list as it was given: names with colons between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ciphers: Option<String>,
}

impl Default for StatusRecord {
    fn default() -> Self {
        Self { version: VERSION, enabled: false, ciphers: None }
    }
}

impl Record for StatusRecord {
    fn check(&self) -> Result<(), String> {
        if self.ciphers.as_ref().is_some_and(|list| list.len() > CIPHERS_BYTES_MAX) {
            return Err(format!("the list of ciphers has at most {CIPHERS_BYTES_MAX} bytes"));
        }
        Ok(())
    }
}
