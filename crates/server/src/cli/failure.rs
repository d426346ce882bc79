//! How a command fails: message, kind and exit code.

use serde_json::{Value, json};
use std::fmt;

/// The exit code of a node that does not start until an operator has changed something: `EX_CONFIG`
/// of sysexits.h. Supervisors of processes should not start it again.
pub const NEEDS_OPERATOR: u8 = 78;

/// Why a command failed. The message is one line if one line can say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind of failure, for programs: one of the kinds created here, or the kind of an
    /// [`AdminError`](ombak_api::admin::AdminError).
    pub kind: String,
    /// What is wrong and what to do. Empty if the printed result already says it.
    pub message: String,
    /// The exit code.
    pub code: u8,
    /// Whether the command has already printed a result that reports the failure. With `--json`,
    /// standard output then has its single document already.
    pub has_result: bool,
}

impl Failure {
    /// A command that was used correctly but could not do its work.
    pub fn new(message: impl Into<String>) -> Self {
        Self { kind: "failed".into(), message: message.into(), code: 1, has_result: false }
    }

    /// A command that was used in the wrong way.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { kind: "usage".into(), code: 2, ..Self::new(message) }
    }

    /// A start that fails again until an operator has changed something.
    pub fn needs_operator(message: impl Into<String>) -> Self {
        Self { kind: "needs_operator".into(), code: NEEDS_OPERATOR, ..Self::new(message) }
    }

    /// A command that got no answer from a node.
    pub fn no_node(message: impl Into<String>) -> Self {
        Self { kind: "no_node".into(), ..Self::new(message) }
    }

    /// A command whose printed result already reports the failure. Only the exit code remains to be
    /// set.
    pub fn already_reported() -> Self {
        Self::new("").after_result()
    }

    /// The end of a command whose output nobody reads any more. It is silent, and the exit code is
    /// 0.
    pub fn unread() -> Self {
        Self { code: 0, ..Self::already_reported() }
    }

    /// The same failure, of a command that has already printed a result.
    pub fn after_result(self) -> Self {
        Self { has_result: true, ..self }
    }

    /// The failure as `--json` prints it.
    pub fn to_json(&self) -> Value {
        json!({"error": {"kind": self.kind, "message": self.message}})
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
