//! The thread that writes the lines.

use crate::event::EventKind;
use crate::figures::Counts;
use crate::line;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

/// The time between two lines about events that were left out.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// The file of the log. Each `write` is one whole line.
pub trait AuditFile: Write + Send {
    /// Opens the file that now has the name, or creates it. After an error the log continues in
    /// the file that is open.
    fn reopen(&mut self) -> io::Result<()>;
}

/// What the thread is told.
pub(crate) enum Message {
    /// A line to write.
    Line(EventKind, Vec<u8>),
    /// The file has another name now.
    Reopen,
    /// Everything before it has been written when it is answered.
    Settle(SyncSender<()>),
}

/// The thread's state.
pub(crate) struct Writer {
    file: Box<dyn AuditFile>,
    counts: Arc<Counts>,
    timestamp: fn() -> String,
    /// The kinds of events that are in the file.
    kinds: &'static [EventKind],
    /// How many of them the file says were left out.
    reported: Vec<u64>,
    report_due: Instant,
    /// Whether the end of the file may be a part of a line.
    is_torn: bool,
}

impl Writer {
    pub(crate) fn new(
        file: Box<dyn AuditFile>,
        kinds: &'static [EventKind],
        counts: Arc<Counts>,
        timestamp: fn() -> String,
    ) -> Self {
        let report_due = Instant::now() + REPORT_INTERVAL;
        let reported = vec![0; kinds.len()];
        Self { file, kinds, counts, timestamp, reported, report_due, is_torn: false }
    }

    /// Writes until nobody can send any more.
    pub(crate) fn run(mut self, messages: &Receiver<Message>) {
        loop {
            match messages.recv_timeout(self.report_due.saturating_duration_since(Instant::now())) {
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if Instant::now() >= self.report_due {
                self.report_dropped();
                self.report_due = Instant::now() + REPORT_INTERVAL;
            }
        }
        self.report_dropped();
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Line(kind, line) => {
                if !self.write(&line) {
                    self.counts.note_dropped(kind);
                }
            }
            Message::Reopen => {
                if let Err(why) = self.file.reopen() {
                    tracing::error!(%why, "the audit log cannot be reopened; the node keeps writing to the old file");
                }
            }
            Message::Settle(settled) => {
                self.report_dropped();
                // Nobody waits any more if it cannot be sent.
                let _ = settled.try_send(());
            }
        }
    }

    fn write(&mut self, line: &[u8]) -> bool {
        let written = match self.is_torn {
            // A reader finds the next line behind what a full disk has cut off.
            true => self.file.write_all(&[b"\n", line].concat()),
            false => self.file.write_all(line),
        };
        self.is_torn = written.is_err();
        if let Err(why) = &written {
            tracing::error!(%why, "a line of the audit log cannot be written");
        }
        written.is_ok()
    }

    /// Writes how many events were left out since the last such line. If that fails, the next such
    /// line tells of them, too.
    fn report_dropped(&mut self) {
        let dropped = self.counts.dropped();
        let now: Vec<u64> = self.kinds.iter().map(|kind| dropped[*kind as usize]).collect();
        if now == self.reported {
            return;
        }
        let names = self.kinds.iter().map(|kind| kind.name());
        let since = now.iter().zip(&self.reported).map(|(now, before)| now - before);
        let line = line::of_dropped(&(self.timestamp)(), &names.zip(since).collect::<Vec<_>>());
        if self.write(&line) {
            self.reported = now;
        }
    }
}
