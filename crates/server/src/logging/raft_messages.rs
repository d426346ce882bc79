//! What the metadata's library says in ordinary life, at the level that it deserves.
//!
//! openraft calls it a warning or an error that a member does not answer, that another one leads
//! now, and that it stops. Ombak handles all of that, and says itself when a peer is down or a
//! change is refused. Such messages are written at the level of debugging. Everything else keeps
//! its level: failures of the disk, a log that went back, and messages that are not known here.

use std::fmt::{Debug, Write};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// The target of the messages whose level is lowered.
const TARGET: &str = "ombak::metadata";

/// The number of bytes of a message that are shown.
const SHOWN_BYTES: usize = 1000;

/// An ordinary message of openraft 0.9.25.
struct Ordinary {
    level: Level,
    target: &'static str,
    /// A part of its text.
    part: &'static str,
}

const fn warning(target: &'static str, part: &'static str) -> Ordinary {
    Ordinary { level: Level::WARN, target, part }
}

const fn error(target: &'static str, part: &'static str) -> Ordinary {
    Ordinary { level: Level::ERROR, target, part }
}

/// The library says `Stopped` when the group stops on this node, because the node stops or follows
/// another cluster.
const ORDINARY: &[Ordinary] = &[
    // A member does not answer, or answers that another one leads.
    warning("openraft::replication", "error replication to target="),
    warning("openraft::replication", "backoff"),
    warning("openraft::replication", "failed to get snapshot from state machine"),
    warning("openraft::replication", "failed to send snapshot"),
    warning("openraft::replication", "weak_tx"),
    error("openraft::replication", "RPCError"),
    warning("openraft::network::snapshot_transport", ""),
    warning("openraft::engine::handler::replication_handler", "update progress error"),
    warning("openraft::engine::handler::replication_handler", "heartbeat error"),
    error("openraft::core::raft_core", "timeout"),
    error("openraft::core::raft_core", "while requesting vote"),
    // Votes and members change while messages are on their way.
    warning("openraft::engine::handler::establish_handler", "vote is not greater"),
    warning("openraft::core::raft_core", "leader has removed target"),
    warning("openraft::core::raft_core", "will be ignored because vote changed"),
    warning("openraft::core::raft_core", "membership_log_id changed"),
    error("openraft::raft::impl_raft_blocking_write", "step error"),
    // Whoever asked has left meanwhile.
    warning("openraft::raft::responder::impls", "OneshotConsumer"),
    error("openraft::core::raft_core", "fail to send HigherVote"),
    // The group stops.
    error("openraft::core::raft_core", "error reporting metrics"),
    error("openraft::core::raft_core", "all rx_notify senders are dropped"),
    error("openraft::core::raft_core", "rx_notify is disconnected"),
    error("openraft::core::sm::handle", "failed to receive snapshot"),
    warning("openraft::core::tick", "Double call to Raft::shutdown"),
    error("openraft::raft::raft_inner", "Stopped"),
    error("openraft::raft", "tx send error"),
    error("openraft::raft", "rx recv error"),
    error("openraft::storage::callback", "failed to send"),
];

/// Whether a message belongs to ordinary life. `text` has the message and its fields.
fn is_ordinary(level: Level, target: &str, text: &str) -> bool {
    ORDINARY.iter().any(|known| known.level == level && known.target == target && text.contains(known.part))
}

/// Lowers the level of ordinary messages of openraft.
pub(super) struct RaftMessages;

impl<S: Subscriber> Layer<S> for RaftMessages {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if !metadata.target().starts_with("openraft") {
            return true;
        }
        let text = text_of(event);
        if !is_ordinary(*metadata.level(), metadata.target(), &text) {
            return true;
        }
        tracing::debug!(target: TARGET, from = metadata.target(), "{text}");
        false
    }
}

/// The message and the fields of an event, cut off at [`SHOWN_BYTES`].
fn text_of(event: &Event<'_>) -> String {
    #[derive(Default)]
    struct Text {
        message: String,
        fields: String,
    }
    impl Visit for Text {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            // Writing to a string cannot fail.
            let _ = match field.name() {
                "message" => write!(self.message, "{value:?}"),
                name => write!(self.fields, " {name}={value:?}"),
            };
        }
    }
    let mut text = Text::default();
    event.record(&mut text);
    let mut whole = text.message + &text.fields;
    let most = SHOWN_BYTES.min(whole.len());
    whole.truncate((0..=most).rev().find(|at| whole.is_char_boundary(*at)).unwrap_or(0));
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_does_not_answer_is_ordinary() {
        let core = "openraft::core::raft_core";
        for (level, target, text) in [
            (
                Level::WARN,
                "openraft::replication",
                "error replication to target=7 error=NetworkError: it does not answer",
            ),
            (Level::ERROR, "openraft::replication", "RPCError err=NetworkError: it does not answer"),
            (Level::ERROR, core, "while requesting vote error=NetworkError: it does not answer target=7"),
            (Level::ERROR, core, "timeout error=timeout target=7"),
            (Level::ERROR, "openraft::raft::raft_inner", "failure receiving rx; message: core_result=Err(Stopped)"),
        ] {
            assert!(is_ordinary(level, target, text), "{text}");
        }
    }

    #[test]
    fn failures_of_the_disk_and_unknown_messages_keep_their_level() {
        let core = "openraft::core::raft_core";
        for (level, target, text) in [
            (
                Level::ERROR,
                "openraft::replication",
                "error replication to target=7 error=when Read Logs: the disk failed",
            ),
            (Level::ERROR, core, "quit RaftCore::main on error error=when Write Vote: the disk failed"),
            (Level::ERROR, "openraft::core::sm::worker", "when Write StateMachine while execute state machine command"),
            (Level::ERROR, "openraft::storage::callback", "LogFlush error: the disk failed, while flushing upto 7"),
            (Level::WARN, "openraft::replication", "follower log is reverted from 7 to 6"),
            (Level::ERROR, "openraft::raft::raft_inner", "core_call fatal error error=StorageError"),
            (Level::ERROR, core, "something new"),
        ] {
            assert!(!is_ordinary(level, target, text), "{text}");
        }
    }
}
