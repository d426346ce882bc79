//! Which program is executed as a process for functions.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The environment variable that every process for functions has.
pub(super) const MARK: &str = "OMBAK_FUNCTION_WORKER";

/// The name that lists of processes show in place of the file, which may be `/proc/self/exe`.
const SHOWN_NAME: &str = "ombak";

/// A program that calls [`serve`](super::serve) when it is executed with these arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerProgram {
    /// The file of the program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

impl WorkerProgram {
    /// The program that runs now, with these arguments. On Linux it is the same file even after
    /// another version has taken its name.
    pub fn this(arguments: &[&str]) -> io::Result<Self> {
        let program = match cfg!(target_os = "linux") {
            true => PathBuf::from("/proc/self/exe"),
            false => std::env::current_exe()?,
        };
        Ok(Self { program, arguments: arguments.iter().map(OsString::from).collect() })
    }

    /// Whether this process was executed as one for functions.
    pub fn is_this_process() -> bool {
        std::env::var_os(MARK).is_some()
    }

    /// Executes the program. It gets one end of a pair of sockets as its standard input, no
    /// environment but the time zone, and a process group of its own, so that signals from a
    /// terminal do not reach it.
    pub(super) fn execute(&self) -> io::Result<(std::process::Child, UnixStream)> {
        let (here, there) = UnixStream::pair()?;
        let mut command = Command::new(&self.program);
        command.arg0(SHOWN_NAME).args(&self.arguments).env_clear().env(MARK, "1").current_dir("/").process_group(0);
        if let Some(zone) = std::env::var_os("TZ") {
            command.env("TZ", zone);
        }
        command.stdin(Stdio::from(OwnedFd::from(there))).stdout(Stdio::null());
        Ok((command.spawn()?, here))
    }
}
