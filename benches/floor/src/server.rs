//! The servers that are measured. Each is a process of its own.

use crate::options::Options;
use crate::workload::Protocol;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take until it accepts connections.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A running server. Dropping it kills its process and removes its data.
pub struct Server {
    pub name: &'static str,
    pub protocol: Protocol,
    pub address: SocketAddr,
    process: Child,
    dir: PathBuf,
}

impl Server {
    /// Starts all servers, the echo server first.
    pub fn start_all(options: &Options) -> Result<Vec<Self>, String> {
        let mut servers = vec![Self::echo(options, "echo", false)?];
        if options.files {
            servers.push(Self::echo(options, "echo, files", true)?);
        }
        if options.redis && options.wants("redis") {
            match Self::redis(options) {
                Ok(redis) => servers.push(redis),
                Err(why) => eprintln!("Redis is left out: {why}"),
            }
        }
        for (name, backend) in [("ombak memory", "memory"), ("ombak bitcask", "bitcask")] {
            if options.wants(name) {
                servers.push(Self::ombak(options, name, backend)?);
            }
        }
        Ok(servers)
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    fn echo(options: &Options, name: &'static str, with_files: bool) -> Result<Self, String> {
        let this = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
        let port = free_port()?;
        let mut command = Command::new(this);
        command.args(["echo", "--port", &port.to_string()]);
        if with_files {
            command.arg("--files").arg(data_dir(options, name)?);
        }
        Self::start(name, Protocol::Echo, port, command, options)
    }

    fn redis(options: &Options) -> Result<Self, String> {
        let port = free_port()?;
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        Self::start("redis", Protocol::Redis, port, command, options)
    }

    fn ombak(options: &Options, name: &'static str, backend: &str) -> Result<Self, String> {
        let (port, http_port) = (free_port()?, free_port()?);
        let dir = data_dir(options, name)?;
        let config = dir.join("ombak.conf");
        let text = format!(
            "nodename = floor@127.0.0.1\nplatform_data_dir = {}\nstorage_backend = {backend}\n\
             listener.protobuf.internal = 127.0.0.1:{port}\nlistener.http.internal = 127.0.0.1:{http_port}\n",
            dir.join("data").display()
        );
        fs::write(&config, text).map_err(|e| format!("cannot write {}: {e}", config.display()))?;
        let mut command = Command::new(&options.ombak);
        command.arg("start").arg("--config").arg(&config);
        Self::start(name, Protocol::Frames, port, command, options)
    }

    fn start(
        name: &'static str,
        protocol: Protocol,
        port: u16,
        mut command: Command,
        options: &Options,
    ) -> Result<Self, String> {
        let dir = data_dir(options, name)?;
        let log = dir.join("output.txt");
        let output = || File::options().create(true).append(true).open(&log);
        let output = output().and_then(|out| Ok((out, output()?)));
        let (out, err) = output.map_err(|e| format!("cannot write {}: {e}", log.display()))?;
        command.current_dir(&dir).env("TOKIO_WORKER_THREADS", options.workers.to_string());
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        let program = command.get_program().to_string_lossy().into_owned();
        let process = command.spawn().map_err(|e| format!("cannot start {program}: {e}"))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut server = Self { name, protocol, address, process, dir };
        server.wait_until_ready(&log)?;
        Ok(server)
    }

    fn wait_until_ready(&mut self, log: &Path) -> Result<(), String> {
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect(self.address).is_err() {
            let said = || fs::read_to_string(log).unwrap_or_default();
            if let Ok(Some(status)) = self.process.try_wait() {
                return Err(format!("{} ended with {status}; it said:\n{}", self.name, said()));
            }
            if Instant::now() > deadline {
                return Err(format!("{} does not listen on {}; it said:\n{}", self.name, self.address, said()));
            }
            pause();
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let ended = self.process.kill().and_then(|()| self.process.wait()).and_then(|_| fs::remove_dir_all(&self.dir));
        if let Err(error) = ended {
            eprintln!("{}: {error}", self.name);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "another program tells nobody when it begins to listen")]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

/// The directory of a server in this run. Creates it if needed.
fn data_dir(options: &Options, name: &str) -> Result<PathBuf, String> {
    let dir = options.dir.join(format!("ombak-floor-{}-{}", std::process::id(), name.replace([' ', ','], "-")));
    fs::create_dir_all(&dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
    Ok(dir)
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|e| format!("no free port: {e}"))
}
