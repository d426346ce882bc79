//! The configuration of the running node, and the keys that can be changed at run time.

use super::AdminError;
use super::path::AdminPath;
use crate::access::Permission;
use crate::http::Part::Word;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const SHOW: Permission = Permission::named("ombak_admin.config");
const CHANGE: Permission = Permission::named("ombak_admin.change_config");

/// The paths of this resource.
pub(super) const PATHS: &[AdminPath] = &[
    AdminPath::get(&[Word(b"config")], SHOW, |call| Box::pin(async move { Ok(call.ctx.config.describe()) })),
    AdminPath::post(&[Word(b"config")], CHANGE, |call| Box::pin(async move { call.ctx.config.set(call.body) })),
];

/// The origin of a value that was changed at run time.
const CHANGED: &str = "administration";

/// A configuration key with its value in the running node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigEntry {
    /// The key.
    pub key: String,
    /// The value in the form of the configuration file.
    pub value: String,
    /// The origin of the value: `default`, `file`, `environment` or `command line`, or
    /// `administration` if it was changed at run time.
    pub origin: String,
}

/// Changes the value of a key in the running node. The error says why the key cannot be changed.
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
    /// Takes the values with which the node started, in the order of their documentation, and the
    /// function that changes a value.
    pub fn new(entries: Vec<ConfigEntry>, change: Change) -> Self {
        Self { entries: Mutex::new(entries), change }
    }

    fn describe(&self) -> Value {
        json!({ "config": *self.entries.lock() })
    }

    /// Changes the value that the body names, until the node stops.
    fn set(&self, body: &[u8]) -> Result<Value, AdminError> {
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
