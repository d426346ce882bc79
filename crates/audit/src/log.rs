//! The audit log of a node.

use crate::event::{AuditEvent, EventKind};
use crate::figures::Counts;
use crate::line;
use crate::rates::Rates;
use crate::writer::{AuditFile, Message, Writer};
use ombak_stats::Feature;
use parking_lot::Mutex;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// How many lines wait for each file. A line of a refusal has at most 5 KB, and one of a change at
/// most 500 KB, usually far less than one.
const LINES_MAX: usize = 512;

/// How long a stop waits for the lines that are not written yet.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(2);

/// How often a stop looks whether a full queue has room.
const SETTLE_PAUSE: Duration = Duration::from_millis(5);

/// The audit log of a node. A clone is the same log. The default one writes nothing.
#[derive(Clone, Default)]
pub struct AuditLog(Option<Arc<Shared>>);

struct Shared {
    changes: SyncSender<Message>,
    refusals: SyncSender<Message>,
    rates: Mutex<Rates>,
    counts: Arc<Counts>,
    begun: Instant,
    timestamp: fn() -> String,
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "AuditLog(on)" } else { "AuditLog(off)" })
    }
}

impl AuditLog {
    /// Starts a log in two files: one for what administration changes, and one for what is refused.
    /// `timestamp` tells the time, as lines have it.
    pub fn start(
        changes: Box<dyn AuditFile>,
        refusals: Box<dyn AuditFile>,
        timestamp: fn() -> String,
    ) -> io::Result<Self> {
        let counts = Arc::<Counts>::default();
        let begin = |file, kinds| {
            let (lines, messages) = sync_channel(LINES_MAX);
            let writer = Writer::new(file, kinds, Arc::clone(&counts), timestamp);
            thread::Builder::new().name("audit".to_owned()).spawn(move || writer.run(&messages))?;
            io::Result::Ok(lines)
        };
        let changes = begin(changes, EventKind::CHANGES)?;
        let refusals = begin(refusals, EventKind::REFUSALS)?;
        let (rates, begun) = (Mutex::default(), Instant::now());
        Ok(Self(Some(Arc::new(Shared { changes, refusals, rates, counts, begun, timestamp }))))
    }

    /// Whether anything is written.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Records an event, unless there have been too many. It never waits for the disk.
    pub fn record(&self, event: &AuditEvent<'_>) {
        let Some(log) = &self.0 else { return };
        let address = event.place.peer.ip();
        let is_admitted = log.rates.lock().admit(event.kind, address, log.begun.elapsed());
        let lines = if event.kind.is_refusal() { &log.refusals } else { &log.changes };
        // A line is made only for an event that may be written.
        let line = || Message::Line(event.kind, line::of_event(&(log.timestamp)(), event));
        match is_admitted && lines.try_send(line()).is_ok() {
            true => log.counts.note_recorded(event.kind),
            false => log.counts.note_dropped(event.kind),
        }
    }

    /// Opens the files that now have the names: another program has moved those before.
    pub fn reopen(&self) {
        for lines in self.files() {
            if lines.try_send(Message::Reopen).is_err() {
                tracing::error!("a file of the audit log cannot be reopened: its disk does not respond");
            }
        }
    }

    /// Waits until everything that was recorded has been written, at most for two seconds.
    pub fn settle(&self) {
        let deadline = Instant::now() + SETTLE_TIME_MAX;
        let left = || deadline.saturating_duration_since(Instant::now());
        for lines in self.files() {
            let (settled, wait) = sync_channel(1);
            let mut message = Message::Settle(settled);
            while let Err(TrySendError::Full(back)) = lines.try_send(message) {
                if left().is_zero() {
                    break;
                }
                message = back;
                // Nobody answers yet, so this is a pause until the thread has written some lines.
                let _ = wait.recv_timeout(SETTLE_PAUSE);
            }
            if wait.recv_timeout(left()).is_err() {
                tracing::warn!("the last lines of the audit log may be missing: its disk does not respond");
            }
        }
    }

    fn files(&self) -> impl Iterator<Item = &SyncSender<Message>> {
        self.0.iter().flat_map(|log| [&log.changes, &log.refusals])
    }

    /// What the log counts, for the statistics of the node.
    pub fn figures(&self) -> Arc<dyn Feature> {
        match &self.0 {
            Some(log) => Arc::clone(&log.counts) as Arc<dyn Feature>,
            None => Arc::<Counts>::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Outcome, Place, Shown};
    use serde_json::{Value, json};
    use std::io::Write;
    use std::net::SocketAddr;

    /// A file that tests read. Whoever holds `disk` keeps it from taking anything.
    #[derive(Clone, Default)]
    struct File {
        disk: Arc<Mutex<()>>,
        bytes: Arc<Mutex<Vec<u8>>>,
        /// How many bytes it takes before it is full, and how many it has of the line then.
        room: Arc<Mutex<Option<usize>>>,
    }

    impl Write for File {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _disk = self.disk.lock();
            match &mut *self.room.lock() {
                Some(0) => Err(io::ErrorKind::StorageFull.into()),
                Some(room) => {
                    let taken = bytes.len().min(*room);
                    self.bytes.lock().extend_from_slice(&bytes[..taken]);
                    *room -= taken;
                    Ok(taken)
                }
                None => self.bytes.lock().write(bytes),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl AuditFile for File {
        fn reopen(&mut self) -> io::Result<()> {
            self.bytes.lock().extend_from_slice(b"\"reopened\"\n");
            Ok(())
        }
    }

    impl File {
        fn log(&self) -> AuditLog {
            AuditLog::start(Box::new(self.clone()), Box::new(self.clone()), || "now".to_owned()).unwrap()
        }

        /// The lines, each of which is a JSON document or nothing.
        fn lines(&self) -> Vec<Option<Value>> {
            let text = String::from_utf8(self.bytes.lock().clone()).unwrap();
            text.lines().map(|line| serde_json::from_str(line).ok()).collect()
        }
    }

    fn event(kind: EventKind, user: &str) -> AuditEvent<'_> {
        AuditEvent {
            kind,
            place: Place {
                peer: SocketAddr::from(([10, 0, 0, 1], 7)),
                listener: "listener.https.a",
                is_encrypted: true,
            },
            user: Some(user),
            proof: "password",
            action: "riak_kv.get",
            bucket: (None, Some(b"orders")),
            outcome: Outcome::Refused("no"),
            body: None,
        }
    }

    #[test]
    fn an_event_is_one_line_whatever_names_clients_choose() {
        let (file, name) = (File::default(), "a\nb\x1b[2J\"");
        let log = file.log();
        log.record(&event(EventKind::Denied, name));
        log.record(&event(EventKind::Denied, &"x".repeat(100_000)));
        log.settle();
        let lines = file.lines();
        let first = json!({
            "timestamp": "now", "event": "denied", "outcome": "refused", "user": "0x610A621B5B324A22",
            "proof": "password", "peer": "10.0.0.1:7", "listener": "listener.https.a", "encrypted": true,
            "action": "riak_kv.get", "bucket": "orders", "why": "no",
        });
        assert_eq!((lines.len(), &lines[0]), (2, &Some(first)));
        assert!(file.bytes.lock().len() < 2_000);
    }

    #[test]
    fn a_flood_is_cut_off_and_a_line_says_how_much_is_missing() {
        let file = File::default();
        let log = file.log();
        (0..1_000).for_each(|_| log.record(&event(EventKind::LoginRefused, "mallory")));
        log.record(&event(EventKind::Administration, "root"));
        log.settle();
        let lines = file.lines();
        let dropped = json!({ "timestamp": "now", "event": "dropped", "login_refused": 980, "denied": 0 });
        assert_eq!((lines.len(), lines.contains(&Some(dropped))), (22, true));
        let figures = log.0.as_ref().unwrap().counts.dropped();
        assert_eq!(figures, [980, 0, 0]);
        log.settle();
        assert_eq!(file.lines().len(), 22, "it is said once");
    }

    #[test]
    fn a_disk_that_hangs_keeps_nobody_waiting() {
        let file = File::default();
        let log = file.log();
        let hanging = file.disk.lock();
        for _ in 0..LINES_MAX + 10 {
            log.record(&event(EventKind::Administration, "root"));
        }
        drop(hanging);
        let deadline = Instant::now() + Duration::from_secs(10);
        let dropped = loop {
            // A full queue takes no wish to settle.
            log.settle();
            match file.lines().pop().flatten() {
                Some(line) if line["event"] == "dropped" => break line,
                last => assert!(Instant::now() < deadline, "{last:?}"),
            }
        };
        let lines = file.lines();
        // The thread may have taken one line before its disk hung.
        assert!(matches!(dropped["administration"].as_u64(), Some(9 | 10)), "{dropped}");
        let events = lines.iter().flatten().filter(|line| line["event"] == "administration").count() as u64;
        assert_eq!(events + dropped["administration"].as_u64().unwrap(), LINES_MAX as u64 + 10);
    }

    #[test]
    fn refusals_that_nobody_writes_keep_no_change_from_the_log() {
        let (changes, refusals) = (File::default(), File::default());
        let log = AuditLog::start(Box::new(changes.clone()), Box::new(refusals.clone()), || "now".to_owned()).unwrap();
        let hanging = refusals.disk.lock();
        for number in 0..2_000_u32 {
            let mut refused = event(EventKind::Denied, "mallory");
            refused.place.peer = SocketAddr::from((number.to_be_bytes(), 7));
            log.record(&refused);
        }
        log.record(&event(EventKind::Administration, "root"));
        let deadline = Instant::now() + Duration::from_secs(10);
        while changes.lines().is_empty() {
            assert!(Instant::now() < deadline, "the change is not in the log");
            thread::yield_now();
        }
        drop(hanging);
        log.settle();
        assert_eq!(changes.lines().len(), 1);
        assert_eq!(refusals.lines().pop().flatten().unwrap()["event"], "dropped");
    }

    #[test]
    fn a_line_has_no_command_to_a_terminal_and_a_body_of_a_change_is_in_it() {
        let file = File::default();
        let log = file.log();
        let body = json!({ "arguments": ["a\u{9b}31m\u{202e}\u{7f}\u{ad}\u{e0041}", "password=x"] }).to_string();
        let changed =
            AuditEvent { body: Some((body.as_bytes(), Shown::Values)), ..event(EventKind::Administration, "root") };
        log.record(&changed);
        log.settle();
        let text = String::from_utf8(file.bytes.lock().clone()).unwrap();
        assert!(!text.contains(['\u{9b}', '\u{202e}', '\u{7f}', '\u{ad}', '\u{e0041}']), "{text}");
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            line["detail"]["arguments"],
            json!(["a\u{9b}31m\u{202e}\u{7f}\u{ad}\u{e0041}", "password=[hidden]"])
        );
    }

    #[test]
    fn what_a_full_disk_has_cut_off_spoils_no_other_line() {
        let file = File::default();
        let log = file.log();
        *file.room.lock() = Some(30);
        log.record(&event(EventKind::Administration, "root"));
        log.settle();
        *file.room.lock() = None;
        log.record(&event(EventKind::Administration, "root"));
        log.settle();
        let lines = file.lines();
        let events: Vec<_> = lines.iter().map(|line| line.as_ref().map(|line| line["event"].clone())).collect();
        assert_eq!(events, [None, Some(json!("administration")), Some(json!("dropped"))]);
        assert_eq!(lines[2].as_ref().unwrap()["administration"], 1);
    }

    #[test]
    fn a_log_that_is_off_records_nothing() {
        let log = AuditLog::default();
        log.record(&event(EventKind::Denied, "x"));
        log.settle();
        assert!(!log.is_on());
    }
}
