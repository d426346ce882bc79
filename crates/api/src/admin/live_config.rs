//! The configuration that the node runs with, and the keys of it that can be changed meanwhile.

use super::AdminError;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Where the value of a key is from that was changed while the node runs.
const CHANGED: &str = "administration";

/// One configuration key with the value that the node runs with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigEntry {
    /// The key.
    pub key: String,
    /// Its value in the form of the file.
    pub value: String,
    /// `default`, `file`, `environment`, `command line`, or `administration` for one that was changed while the node runs.
    pub origin: String,
}

/// Gives a key another value in the running node. The error says why that cannot be.
pub type Change = Box<dyn Fn(&str, &str) -> Result<(), String> + Send + Sync>;

/// The values in force.
pub struct LiveConfig {
    entries: Mutex<Vec<ConfigEntry>>,
    change: Change,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    key: String,
    value: String,
}

impl LiveConfig {
    /// The values that the node began with, in the order of their documentation, and how one is changed.
    pub fn new(entries: Vec<ConfigEntry>, change: Change) -> Self {
        Self { entries: Mutex::new(entries), change }
    }

    pub(super) fn describe(&self) -> Value {
        json!({ "config": *self.entries.lock() })
    }

    /// Changes what the body asks for, until the node stops.
    pub(super) fn set(&self, body: &[u8]) -> Result<Value, AdminError> {
        let wanted: Wanted = serde_json::from_slice(body)
            .map_err(|e| AdminError::BadRequest(format!(r#"the body must be {{"key": "…", "value": "…"}}: {e}"#)))?;
        let mut entries = self.entries.lock();
        (self.change)(&wanted.key, &wanted.value).map_err(AdminError::Refused)?;
        tracing::info!(key = wanted.key, value = wanted.value, "a setting was changed");
        let changed = ConfigEntry { key: wanted.key, value: wanted.value, origin: CHANGED.into() };
        if let Some(entry) = entries.iter_mut().find(|entry| entry.key == changed.key) {
            *entry = changed.clone();
        }
        Ok(json!(changed))
    }
}
