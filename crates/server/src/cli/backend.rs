//! The commands `ombak admin backend convert` and `verify`, which work on the files of a stopped
//! node.

use super::args::{BackendCommand, Common};
use super::config;
use super::failure::Failure;
use super::output::Output;
use crate::convert;
use crate::verify;
use serde_json::json;

/// Runs one of these commands.
pub fn run(command: BackendCommand, common: &Common, out: Output) -> Result<(), Failure> {
    match command {
        BackendCommand::Convert { from, to } => {
            let report = convert::run(&convert::Options { from, to }, &config::load(common)?).map_err(Failure::new)?;
            out.result(&json!(report), || report.to_text())?;
            if report.complete { Ok(()) } else { Err(Failure::already_reported()) }
        }
        BackendCommand::Verify { repair, backend } => {
            let report =
                verify::run(&verify::Options { repair, backend }, &config::load(common)?).map_err(Failure::new)?;
            out.result(&json!(report), || report.to_text())?;
            if report.is_well() { Ok(()) } else { Err(Failure::already_reported()) }
        }
    }
}
