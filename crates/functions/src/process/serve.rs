//! What happens in a process for functions.

use super::server::{Begin, Server};
use super::wire::{self, bad, kind, read_frame};
use super::{WorkerProgram, sandbox};
use ombak_script::Limits;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

/// The longest first message, in bytes.
const BEGIN_BYTES_MAX: usize = 1 << 10;
/// Runs functions for the process that has started this one, until that closes the socket. A
/// program calls this when it is executed as [`WorkerProgram`].
pub fn serve() -> ExitCode {
    if !WorkerProgram::is_this_process() {
        eprintln!("A node starts such processes for functions in JavaScript. They serve nobody else.");
        return ExitCode::from(2);
    }
    match prepared() {
        Ok((stream, begin)) => served(stream, begin),
        // The parent has gone, or is another program.
        Err(_) => ExitCode::FAILURE,
    }
}

/// Reads the first message.
fn prepared() -> io::Result<(UnixStream, Begin)> {
    sandbox::end_with_parent()?;
    // Whoever stops all processes of a service stops the node, and the node ends this process when
    // it has answered its clients.
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let mut stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut buffer = Vec::new();
    let (kind, mut fields) = read_frame(&mut stream, &mut buffer, BEGIN_BYTES_MAX)?;
    if kind != kind::BEGIN || fields.u8()? != wire::VERSION {
        return Err(bad("the first message is of another version"));
    }
    let gives_way = fields.u8()? != 0;
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let limits =
        Limits { memory_bytes_max: bytes(fields.u64()?), stack_bytes_max: bytes(fields.u64()?), ..Limits::default() };
    Ok((stream, Begin { gives_way, limits, sessions_max: fields.u32()? }))
}

/// Serves on a thread with the stack that functions may use.
fn served(mut stream: UnixStream, begin: Begin) -> ExitCode {
    let stack_bytes = begin.limits.thread_stack_bytes();
    let frame_bytes_max = wire::frame_bytes_max(&begin.limits);
    let serving = thread::Builder::new().name("functions".to_owned()).stack_size(stack_bytes).spawn(move || {
        let (mut read, mut written) = (Vec::new(), Vec::new());
        let mut server = Server::enter(begin, &mut written)?;
        loop {
            stream.write_all(&written)?;
            written.clear();
            written.shrink_to(wire::BUFFER_BYTES_KEPT);
            read.shrink_to(wire::BUFFER_BYTES_KEPT);
            let (kind, fields) = read_frame(&mut stream, &mut read, frame_bytes_max)?;
            server.serve(kind, fields, &mut stream, &mut written)?;
        }
    });
    let ended: io::Result<io::Result<()>> = serving.and_then(|thread| thread.join().map_err(|_| bad("it panicked")));
    match ended {
        Ok(Err(why)) if why.kind() == io::ErrorKind::UnexpectedEof => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
