//! The settings that can be changed while the node runs.

use crate::config::{Value, find_key, log_level, slow_request, unknown_key};
use crate::logging::Log;
use ombak_kv::Kv;

const LOG_LEVEL: &str = "logger.level";
const COVERAGE: &str = "participate_in_coverage";
const SLOW_REQUEST: &str = "log.slow_request";

/// The command that changes a key of transfers while the node runs.
fn other_command(key: &str) -> Option<&'static str> {
    match key {
        "handoff.inbound" | "handoff.outbound" => Some("ombak admin handoff enable|disable inbound|outbound|both"),
        "transfer_limit" => Some("ombak admin transfer-limit LIMIT"),
        "handoff.bytes_per_second" => Some("ombak admin transfer-limit --rate BYTES"),
        _ => None,
    }
}

/// Changes a setting in this process. The error says why the setting cannot be changed.
pub fn change(log: &Log, kv: &Kv, key: &str, value: &str) -> Result<(), String> {
    let spec = find_key(key).ok_or_else(|| unknown_key(key))?;
    let parsed = spec.kind.parse(value).map_err(|what| format!("{key} = {value}: {what}"))?;
    if let Some(command) = other_command(key) {
        return Err(format!("{key} is not changed with this command: use '{command}'"));
    }
    match (key, parsed) {
        (LOG_LEVEL, _) => log.set_level(log_level(value)),
        (COVERAGE, Value::Flag(participates)) => {
            kv.set_participates_in_coverage(participates);
            Ok(())
        }
        (SLOW_REQUEST, limit) => {
            kv.set_slow_request(slow_request(Some(&limit)));
            Ok(())
        }
        _ => Err(format!(
            "{key} cannot be changed while the node runs ({LOG_LEVEL}, {SLOW_REQUEST} and {COVERAGE} can): change the \
             configuration and start the node again"
        )),
    }
}
