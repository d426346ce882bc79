//! The settings that can be changed while the node runs.

use crate::config::{find_key, log_level, unknown_key};
use crate::logging::Log;

const LOG_LEVEL: &str = "logger.level";

/// Changes a setting in this process. The error says why the setting cannot be changed.
pub fn change(log: &Log, key: &str, value: &str) -> Result<(), String> {
    let spec = find_key(key).ok_or_else(|| unknown_key(key))?;
    spec.kind.parse(value).map_err(|what| format!("{key} = {value}: {what}"))?;
    if key != LOG_LEVEL {
        return Err(format!(
            "{key} cannot be changed while the node runs ({LOG_LEVEL} can): change the configuration and start the node again"
        ));
    }
    log.set_level(log_level(value))
}
