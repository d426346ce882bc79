//! A process for functions, as the thread that owns it sees it.

use super::wire::{self, Called, Fields, Frame, bad, kind};
use super::{WorkerProgram, sandbox};
use ombak_script::{Limits, Log, Program, ScriptError};
use parking_lot::Mutex;
use std::fmt;
use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::sync::Arc;
use std::time::Duration;

/// A process that has ended or no longer makes sense. It is of no use any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Died {
    /// What became of it, such as `signal: 9 (SIGKILL)`.
    pub(crate) why: String,
}

impl fmt::Display for Died {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// Ends a process from another thread.
#[derive(Clone, Debug)]
pub(crate) struct Killer(Arc<Mutex<std::process::Child>>);

impl Killer {
    /// Ends the process at once, whatever it does.
    pub(crate) fn kill(&self) {
        // It fails only for a process that has ended.
        let _ = self.0.lock().kill();
    }

    /// Lets the process run when no other one wants the processor, from now on.
    pub(crate) fn give_way(&self) {
        let mut child = self.0.lock();
        // The number of a process that has ended may have come to another one.
        if matches!(child.try_wait(), Ok(None)) {
            sandbox::let_give_way(child.id());
        }
    }
}

/// A process for functions. It ends when this is dropped.
pub(crate) struct Child {
    killer: Killer,
    stream: UnixStream,
    frame_bytes_max: usize,
    read: Vec<u8>,
    written: Vec<u8>,
}

/// What a process gave for several calls.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// What the calls gave. There are fewer than calls if one failed, or if time was over.
    pub(crate) called: Vec<Called>,
    /// What the functions wrote with `ejsLog`.
    pub(crate) log: Log,
}

impl Child {
    /// Executes the program. `started` gets the way to end it before anything is waited for.
    /// Returns what the operator should know, too.
    pub(crate) fn start(
        program: &WorkerProgram,
        limits: &Limits,
        gives_way: bool,
        sessions_max: usize,
        answer_time_max: Option<Duration>,
        started: impl FnOnce(Killer),
    ) -> Result<(Self, Log), Died> {
        let (child, stream) =
            program.execute().map_err(|why| Died { why: format!("it could not be started: {why}") })?;
        let killer = Killer(Arc::new(Mutex::new(child)));
        started(killer.clone());
        let frame_bytes_max = wire::frame_bytes_max(limits);
        let mut child = Self { killer, stream, frame_bytes_max, read: Vec::new(), written: Vec::new() };
        Frame::new(&mut child.written, kind::BEGIN)
            .u8(wire::VERSION)
            .u8(u8::from(gives_way))
            .u64(limits.memory_bytes_max as u64)
            .u64(limits.stack_bytes_max as u64)
            .u32(u32::try_from(sessions_max).unwrap_or(u32::MAX))
            .end();
        let timed = child.stream.set_read_timeout(answer_time_max);
        let ready =
            timed.and_then(|()| child.send()).and_then(|()| child.answers(0)).map_err(|why| child.died(&why))?;
        Ok((child, ready.log))
    }

    /// Opens a session. The number must not be that of another session.
    pub(crate) fn open(
        &mut self,
        session: u32,
        program: &Program,
        time_max: Duration,
    ) -> Result<Result<(), ScriptError>, Died> {
        let frame = Frame::new(&mut self.written, kind::OPEN).u32(session).time(time_max);
        let (is_source, text) = program.function_text();
        frame.texts(program.libraries()).u8(u8::from(is_source)).text(text).end();
        self.send().and_then(|()| self.opened()).map_err(|why| self.died(&why))
    }

    /// Calls the function of a session once for each of these lists of arguments, which are equally
    /// long, until a call fails or `batch_time_max` has passed. At least one call is made.
    pub(crate) fn call(
        &mut self,
        session: u32,
        (time_max, batch_time_max): (Duration, Duration),
        calls: &[&[&str]],
    ) -> Result<Answers, Died> {
        let arguments = calls.first().map_or(0, |call| call.len()) as u32;
        let mut frame = Frame::new(&mut self.written, kind::CALL).u32(session).time(time_max).time(batch_time_max);
        frame = frame.u32(arguments).u32(calls.len() as u32);
        for argument in calls.iter().copied().flatten() {
            frame = frame.text(argument);
        }
        frame.end();
        self.send().and_then(|()| self.answers(calls.len())).map_err(|why| self.died(&why))
    }

    /// Lets a session forget what its calls have left behind.
    pub(crate) fn reset(&mut self, session: u32) {
        Frame::new(&mut self.written, kind::RESET).u32(session).end();
    }

    /// Ends a session with the next message.
    pub(crate) fn close(&mut self, session: u32) {
        Frame::new(&mut self.written, kind::CLOSE).u32(session).end();
    }

    /// Sends what was written so far.
    pub(crate) fn flush(&mut self) -> Result<(), Died> {
        self.send().map_err(|why| self.died(&why))
    }

    /// The maximum number of bytes of all arguments of all calls of one message.
    pub(crate) const fn arguments_bytes_max(&self) -> usize {
        self.frame_bytes_max / 2
    }

    fn send(&mut self) -> io::Result<()> {
        let sent = self.stream.write_all(&self.written);
        self.written.clear();
        self.written.shrink_to(wire::BUFFER_BYTES_KEPT);
        sent
    }

    fn opened(&mut self) -> io::Result<Result<(), ScriptError>> {
        let (kind, mut fields) = wire::read_frame(&mut self.stream, &mut self.read, self.frame_bytes_max)?;
        match kind {
            kind::DONE => Ok(Ok(())),
            kind::FAILED => Ok(Err(fields.error()?)),
            other => Err(unexpected(other, &mut fields)),
        }
    }

    /// Reads answers until the one that says that there are no more.
    fn answers(&mut self, calls: usize) -> io::Result<Answers> {
        let mut answers = Answers::default();
        loop {
            let (kind, mut fields) = wire::read_frame(&mut self.stream, &mut self.read, self.frame_bytes_max)?;
            match kind {
                kind::DONE => {
                    answers.log = fields.log()?;
                    self.read.shrink_to(wire::BUFFER_BYTES_KEPT);
                    return Ok(answers);
                }
                kind::RESULT | kind::FAILED if answers.called.len() >= calls => {
                    return Err(bad("there are more results than calls"));
                }
                kind::RESULT => answers.called.push(Ok(match fields.u8()? {
                    0 => None,
                    _ => Some(fields.text()?.to_owned()),
                })),
                kind::FAILED => answers.called.push(Err(fields.error()?)),
                other => return Err(unexpected(other, &mut fields)),
            }
        }
    }

    /// What became of the process after talking to it has failed. It has ended afterwards.
    fn died(&self, why: &io::Error) -> Died {
        let mut child = self.killer.0.lock();
        let is_gone = matches!(why.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe)
            || why.kind() == io::ErrorKind::ConnectionReset;
        // A process whose socket is closed is ending by itself, unless it has closed only that.
        let _ = child.kill();
        let why = match child.wait() {
            Ok(status) if is_gone && status.signal().is_some() => status.to_string(),
            Ok(status) if is_gone => format!("it ended by itself ({status})"),
            Ok(_) if why.kind() == io::ErrorKind::WouldBlock => "it did not answer in time".to_owned(),
            Ok(_) => why.to_string(),
            Err(no_status) => no_status.to_string(),
        };
        Died { why }
    }
}

fn unexpected(kind: u8, fields: &mut Fields<'_>) -> io::Error {
    match kind {
        kind::REFUSED => io::Error::other(fields.text().unwrap_or("it refused to serve").to_owned()),
        _ => bad("an answer has an unknown kind"),
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let mut child = self.killer.0.lock();
        let _ = child.kill();
        // Without this it would stay among the processes of the system after its end.
        let _ = child.wait();
    }
}
