//! The sessions of a process for functions, and what they are asked for.

use super::sandbox;
use super::wire::{Called, Fields, Frame, bad, kind};
use ombak_runtime::{begin_burst, give_way, pause_if_due};
use ombak_script::{Clock, Limits, Log, Program, ScriptError, Session};
use std::collections::HashMap;
use std::io::{self, Write};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Results are sent when there are so many bytes of them, or at the end.
const SEND_BYTES: usize = 64 << 10;

/// What the first message says.
pub(super) struct Begin {
    pub(super) gives_way: bool,
    pub(super) limits: Limits,
    pub(super) sessions_max: u32,
}

/// The sessions of the process.
pub(super) struct Server {
    begin: Begin,
    clock: Clock,
    sessions: HashMap<u32, Session>,
}

impl Server {
    /// Prepares what has to be read from files, and gives up everything that functions do not need.
    /// Writes what the parent waits for: a line for its log if the kernel does not confine this.
    pub(super) fn enter(begin: Begin, written: &mut Vec<u8>) -> io::Result<Self> {
        let began = Instant::now();
        let gives_way = begin.gives_way;
        if gives_way {
            give_way();
        }
        let clock: Clock = Rc::new(move || {
            // The engine asks for the time after some thousand calls and jumps back, so long calls
            // of jobs pause here.
            if gives_way {
                pause_if_due();
            }
            began.elapsed()
        });
        read_time_zone(&begin.limits, &clock);
        let mut log = Log::default();
        let functions_bytes = u64::from(begin.sessions_max).saturating_mul(begin.limits.memory_bytes_max as u64);
        if let Err(why) = sandbox::enter(functions_bytes) {
            log.lines.push_back(format!("the system does not confine processes for functions: {why}"));
        }
        Frame::new(written, kind::DONE).log(&log).end();
        Ok(Self { begin, clock, sessions: HashMap::new() })
    }

    /// Does what one message asks for, and writes the answer.
    pub(super) fn serve(
        &mut self,
        kind: u8,
        mut fields: Fields<'_>,
        to: &mut impl Write,
        written: &mut Vec<u8>,
    ) -> io::Result<()> {
        if self.begin.gives_way {
            begin_burst();
        }
        let number = fields.u32()?;
        match kind {
            kind::OPEN => self.open(number, fields, written),
            kind::CALL => self.call(number, fields, to, written),
            kind::RESET => {
                self.session(number)?.reset();
                Ok(())
            }
            kind::CLOSE => {
                self.sessions.remove(&number);
                Ok(())
            }
            _ => Err(bad("a message has an unknown kind")),
        }
    }

    fn session(&mut self, number: u32) -> io::Result<&mut Session> {
        self.sessions.get_mut(&number).ok_or_else(|| bad("a message names no session"))
    }

    fn open(&mut self, number: u32, mut fields: Fields<'_>, written: &mut Vec<u8>) -> io::Result<()> {
        let limits = Limits { call_time_max: fields.time()?, ..self.begin.limits };
        match program(&mut fields)?.and_then(|program| Session::open(program, limits, Rc::clone(&self.clock))) {
            Ok(session) => {
                self.sessions.insert(number, session);
                Frame::new(written, kind::DONE).log(&Log::default()).end();
            }
            Err(why) => Frame::new(written, kind::FAILED).error(&why).end(),
        }
        Ok(())
    }

    fn call(
        &mut self,
        number: u32,
        mut fields: Fields<'_>,
        to: &mut impl Write,
        written: &mut Vec<u8>,
    ) -> io::Result<()> {
        let (time_max, batch_time_max) = (fields.time()?, fields.time()?);
        let (arguments, calls) = (fields.u32()?, fields.u32()?);
        let clock = Rc::clone(&self.clock);
        let ends_at = clock().saturating_add(batch_time_max);
        let session = self.session(number)?;
        session.set_call_time_max(time_max);
        for _ in 0..calls {
            let arguments = (0..arguments).map(|_| fields.text()).collect::<io::Result<Vec<_>>>()?;
            let called = session.call(&arguments);
            write_called(&called, written);
            if called.is_err() || clock() >= ends_at {
                break;
            }
            if written.len() >= SEND_BYTES {
                to.write_all(written)?;
                written.clear();
            }
        }
        Frame::new(written, kind::DONE).log(&session.take_log()).end();
        Ok(())
    }
}

fn write_called(called: &Called, written: &mut Vec<u8>) {
    match called {
        Ok(Some(result)) => Frame::new(written, kind::RESULT).u8(1).text(result).end(),
        Ok(None) => Frame::new(written, kind::RESULT).u8(0).end(),
        Err(why) => Frame::new(written, kind::FAILED).error(why).end(),
    }
}

/// The program of a message.
fn program(fields: &mut Fields<'_>) -> io::Result<Result<Program, ScriptError>> {
    let libraries = (0..fields.u32()?).map(|_| fields.text()).collect::<io::Result<Vec<_>>>()?;
    let is_source = fields.u8()? != 0;
    let text = fields.text()?;
    let program = if is_source { Program::source(text) } else { Program::named(text) };
    Ok(libraries.into_iter().fold(program, |program, library| program?.with_library(library)))
}

/// Lets the C library read the time zone, which it does once. Functions may ask for the local time,
/// and nothing can be read in the sandbox.
fn read_time_zone(limits: &Limits, clock: &Clock) {
    let limits = Limits { call_time_max: Duration::from_secs(1), ..*limits };
    let program = Program::source("function() { return new Date(0).getHours(); }");
    // Without a time zone the time is that of UTC.
    let _ = program.and_then(|program| Session::open(program, limits, Rc::clone(clock))?.call(&[]));
}
