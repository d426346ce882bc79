//! The command `ombak start --background`: starts a node as a process of its own, and returns when
//! the node is ready.
//!
//! The process is the program itself with the command `start`. It is in a process group of its own,
//! so Ctrl-C in the terminal does not reach it. Its line on standard output says that it is ready.
//! What it prints on standard error before it ends is why it did not get ready.

use super::args::Common;
use super::failure::{Failure, NEEDS_OPERATOR};
use super::output::Output;
use serde_json::json;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

/// The variable that keeps the node from copying its log to standard error, which nobody reads.
const LOG_COPY: (&str, &str) = ("OMBAK_LOGGER__STDERR", "off");
/// The most that is kept of what a node prints before it ends, in bytes.
const COMPLAINT_BYTES_MAX: u64 = 64 * 1024;
/// What the lines contain by which a node says that it serves, or that it waits for its peers and
/// for an operator.
const SIGNS: [&str; 2] = [" is ready: ", " waits for its peers"];

/// Starts a node. If it ends before it is ready, the failure has its exit code and its last words.
pub fn start(common: &Common, accepts_loss: bool, out: Output) -> Result<(), Failure> {
    let cannot = |why: std::io::Error| Failure::new(format!("the node cannot be started: {why}"));
    let mut child = command(common, accepts_loss).and_then(|mut command| command.spawn()).map_err(cannot)?;
    let pid = child.id();
    let complaint = complaint_of(&mut child).map_err(cannot)?;
    let Some(line) = sign_of(&mut child) else {
        let status = child.wait().map_err(cannot)?;
        return Err(ended(status, &complaint.and_then(|thread| thread.join().ok()).unwrap_or_default()));
    };
    out.result(&json!({ "pid": pid, "ready": line.contains(SIGNS[0]) }), || line)
}

fn command(common: &Common, accepts_loss: bool) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("start");
    for (option, value) in [("--data", &common.data), ("--config", &common.config)] {
        if let Some(value) = value {
            command.arg(option).arg(value);
        }
    }
    if accepts_loss {
        command.arg("--accept-loss");
    }
    command.env(LOG_COPY.0, LOG_COPY.1).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command)
}

/// Reads what the node prints on standard error, until the node ends.
fn complaint_of(child: &mut Child) -> std::io::Result<Option<JoinHandle<String>>> {
    let Some(stderr) = child.stderr.take() else { return Ok(None) };
    let read = move || {
        let mut bytes = Vec::new();
        // What cannot be read is missing in the message.
        let _ = stderr.take(COMPLAINT_BYTES_MAX).read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    std::thread::Builder::new().name("ombak-complaint".into()).spawn(read).map(Some)
}

/// The line that says that the node is ready; `None` if the node ends without one.
fn sign_of(child: &mut Child) -> Option<String> {
    let lines = BufReader::new(child.stdout.take()?).lines();
    lines.map_while(Result::ok).find(|line| SIGNS.iter().any(|sign| line.contains(sign)))
}

fn ended(status: ExitStatus, complaint: &str) -> Failure {
    let how = match (status.code(), status.signal()) {
        (Some(0), _) => "the node was stopped before it was ready".to_owned(),
        (Some(code), _) => format!("the node ended with exit code {code} before it was ready"),
        (None, signal) => format!("signal {} ended the node before it was ready", signal.unwrap_or_default()),
    };
    let message = match complaint.trim() {
        "" => format!("{how}; its log says why"),
        said => said.to_owned(),
    };
    // A node that was told to stop ends with 0, and it is not ready either.
    let code = status.code().and_then(|code| u8::try_from(code).ok()).filter(|code| *code != 0).unwrap_or(1);
    match code {
        NEEDS_OPERATOR => Failure::needs_operator(message),
        _ => Failure { code, ..Failure::new(message) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_ends_early_leaves_its_code_and_its_words() {
        let failure = ended(ExitStatus::from_raw(78 << 8), "ring_size: no\n");
        assert_eq!((failure.code, failure.message.as_str()), (78, "ring_size: no"));
        assert_eq!(failure.kind, "needs_operator");
        let failure = ended(ExitStatus::from_raw(0), "");
        assert_eq!(failure.code, 1);
        assert!(failure.message.contains("was stopped before it was ready"), "{failure}");
        let failure = ended(ExitStatus::from_raw(9), "");
        assert_eq!((failure.code, failure.message.contains("signal 9")), (1, true));
    }
}
