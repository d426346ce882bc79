//! The ciphers of TLS.

use super::arguments::Arguments;
use super::present::{Damaged, Present};
use super::{Answer, ConsoleError};
use crate::bounds::CIPHERS_BYTES_MAX;
use crate::record::{RecordKey, StatusRecord};
use ombak_types::is_deceptive;
use serde_json::json;

/// Sets the ciphers if a list is given, and shows them.
pub(super) fn ciphers(present: &Present<'_>, arguments: Arguments<'_>) -> Result<Answer, ConsoleError> {
    match arguments.all().as_slice() {
        [] => Ok(show(present)),
        [list] => {
            set(present, list)?;
            Ok(show(present))
        }
        _ => Err(arguments.usage()),
    }
}

fn set(present: &Present<'_>, list: &str) -> Result<(), ConsoleError> {
    if list.len() > CIPHERS_BYTES_MAX || list.chars().any(is_deceptive) {
        return Err(ConsoleError::refused(format!(
            "A list of ciphers has at most {CIPHERS_BYTES_MAX} bytes, and no control characters"
        )));
    }
    if !names(list).any(|name| present.world.is_known_cipher(name)) {
        return Err(ConsoleError::refused("No known or supported ciphers in list."));
    }
    present.change_or_create(RecordKey::Status, Damaged::Refused, &|record: &mut StatusRecord| {
        record.ciphers = Some(list.to_owned());
    })
}

fn show(present: &Present<'_>) -> Answer {
    let roles = present.roles();
    let Some(list) = roles.ciphers() else {
        let text = "Configured ciphers\n\nnone: the node chooses them\n";
        return Answer::new(text, json!({ "configured": null, "valid": [], "unknown": [] }));
    };
    let (valid, unknown): (Vec<&str>, Vec<&str>) = names(list).partition(|name| present.world.is_known_cipher(name));
    let mut text = format!("Configured ciphers\n\n{list}\n\nValid ciphers({})\n\n{}\n", valid.len(), valid.join(":"));
    if !unknown.is_empty() {
        text += &format!("\nUnknown/Unsupported ciphers({})\n\n{}\n", unknown.len(), unknown.join(":"));
    }
    Answer::new(text, json!({ "configured": list, "valid": valid, "unknown": unknown }))
}

fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(':').filter(|name| !name.is_empty())
}
