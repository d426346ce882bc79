//! The settings of the HTTP driver.

use super::operation::HttpOperation;
use super::request::{Request, put_encoded};
use super::session::HttpSession;
use super::worker::HttpWorker;
use crate::config::{ConfigError, Operation, Settings};
use crate::drivers::network::{ExchangeError, Reasons, SettingsReader, Target, bytes};
use crate::drivers::{DriverError, Prepared};
use crate::term::Term;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const TIMEOUT_DEFAULT: Duration = Duration::from_millis(5_000);

/// The driver with its settings.
#[derive(Debug)]
pub struct HttpPlan {
    shared: Arc<HttpSettings>,
    file_dir: Option<PathBuf>,
}

/// The settings that all workers share.
#[derive(Debug)]
pub struct HttpSettings {
    /// The operations, by their index.
    pub operations: Vec<HttpOperation>,
    /// The servers. Each worker uses all of them in turn.
    pub targets: Vec<Target>,
    /// The setting `http_raw_path`.
    pub path: Vec<u8>,
    /// The setting `http_raw_params`, in the form that is appended to the path.
    pub params: Vec<u8>,
    /// The setting `http_raw_append_headers`, as bytes of a request.
    pub headers: Vec<u8>,
    /// The setting `http_solr_path`.
    pub solr_path: Vec<u8>,
    /// The setting `http_raw_request_timeout`.
    pub timeout: Duration,
    /// The setting `http_raw_disconnect_frequency`.
    pub disconnect: Disconnect,
    /// The files of `file_dir`, sorted.
    pub files: Vec<PathBuf>,
    /// The texts of errors from the servers.
    pub reasons: Reasons,
}

/// When a working connection is closed on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disconnect {
    /// Never.
    Never,
    /// After this many operations.
    Operations(u64),
    /// After this much time.
    After(Duration),
}

impl HttpPlan {
    /// Reads the settings of the driver.
    pub fn new(settings: &Settings, operations: &[Operation]) -> Result<Self, ConfigError> {
        let read = SettingsReader(settings);
        refuse_tls(settings)?;
        let parse = |operation: &Operation| {
            HttpOperation::parse(&operation.term).map_err(|what| ConfigError::setting("operations", what))
        };
        let shared = HttpSettings {
            operations: operations.iter().map(parse).collect::<Result<_, _>>()?,
            targets: read.targets("http_raw_ips", "http_raw_port", 8098)?,
            path: path(read, "http_raw_path", "/riak/test")?,
            params: read.text("http_raw_params", "")?.into_bytes(),
            headers: headers(settings)?,
            solr_path: path(read, "http_solr_path", "/solr/test")?,
            timeout: read.millis("http_raw_request_timeout", TIMEOUT_DEFAULT)?,
            disconnect: disconnect(settings)?,
            files: Vec::new(),
            reasons: Reasons::default(),
        };
        let file_dir = settings.get("file_dir").map(|_| read.text("file_dir", "")).transpose()?.map(PathBuf::from);
        if file_dir.is_none() && shared.operations.contains(&HttpOperation::PutFile) {
            return Err(ConfigError::setting("file_dir", "put_file needs the directory of the files"));
        }
        Ok(Self { shared: Arc::new(shared), file_dir })
    }

    /// The address of the first server.
    pub fn stats_address(&self) -> Option<String> {
        self.shared.targets.first().map(Target::to_string)
    }

    /// Describes the driver in words, one fact per line.
    pub fn describe(&self) -> Vec<String> {
        let shared = &self.shared;
        let targets: Vec<_> = shared.targets.iter().map(Target::to_string).collect();
        let mut lines = vec![
            format!("HTTP, request by request in turn to {}", targets.join(", ")),
            format!("objects below {}", String::from_utf8_lossy(&shared.path)),
        ];
        match shared.disconnect {
            Disconnect::Never => {}
            Disconnect::Operations(n) => lines.push(format!("a new connection after {n} operations")),
            Disconnect::After(time) => lines.push(format!("a new connection after {time:?}")),
        }
        lines
    }

    /// Checks that all servers answer, and finds out which operations they do not support.
    pub async fn prepare(&mut self) -> Result<Prepared, DriverError> {
        if let Some(dir) = &self.file_dir {
            let files = files(dir).map_err(|why| DriverError(format!("file_dir: {}: {why}", dir.display())))?;
            let shared = Arc::get_mut(&mut self.shared).ok_or_else(|| DriverError("workers run already".to_owned()))?;
            shared.files = files;
        }
        let mut prepared = Prepared::default();
        for target in &self.shared.targets {
            let mut session = HttpSession::open(target, &self.shared.reasons).await?;
            let host = target.to_string();
            let key = b"ombak-bench-probe";
            Request::new("GET", session.begin()).raw(&self.shared.path).segment(key).host(host.as_bytes()).end();
            let refused = |why: ExchangeError| DriverError(format!("{target} refuses to read a key: {}", why.reason()));
            match session.exchange(self.shared.timeout).await.map_err(refused)?.status {
                200 | 300 | 404 => {}
                status => return Err(refused(session.refused(status))),
            }
            if prepared.unsupported.is_empty() {
                prepared.unsupported = self.unsupported(&mut session, host.as_bytes()).await?;
            }
        }
        Ok(prepared)
    }

    async fn unsupported(&self, session: &mut HttpSession, host: &[u8]) -> Result<Vec<(usize, String)>, DriverError> {
        let mut unsupported = Vec::new();
        for (place, operation) in self.shared.operations.iter().enumerate() {
            match operation {
                HttpOperation::Search { query, .. } => {
                    write_search(&self.shared.solr_path, query, host, session.begin());
                }
                HttpOperation::Stat => Request::new("GET", session.begin()).raw(b"/stats").host(host).end(),
                _ => continue,
            }
            let answer = session.exchange(self.shared.timeout).await;
            let answer = answer.map_err(|why| DriverError(format!("a probe failed: {}", why.reason())))?;
            if answer.status != 200 {
                unsupported
                    .push((place, format!("the server refuses it: {}", session.refused(answer.status).reason())));
            }
        }
        Ok(unsupported)
    }

    /// Creates the driver's part of worker `worker`.
    pub async fn connect(&self, worker: usize) -> Result<HttpWorker, DriverError> {
        HttpWorker::open(worker, self.shared.clone()).await
    }
}

/// Writes a search request.
pub fn write_search(solr_path: &[u8], query: &[u8], host: &[u8], out: &mut Vec<u8>) {
    let mut target = Vec::new();
    put_encoded(query, &mut target);
    Request::new("GET", out).raw(solr_path).raw(b"/select?q=").raw(&target).raw(b"&wt=json&fl=id").host(host).end();
}

fn refuse_tls(settings: &Settings) -> Result<(), ConfigError> {
    match settings.get("http_use_ssl") {
        None => Ok(()),
        Some(Term::Atom(word)) if word == "false" => Ok(()),
        Some(_) => Err(ConfigError::setting("http_use_ssl", "ombak-bench does not speak TLS; false is needed")),
    }
}

fn path(read: SettingsReader<'_>, key: &str, default: &str) -> Result<Vec<u8>, ConfigError> {
    let path = read.text(key, default)?;
    if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(ConfigError::setting(key, format!("a path such as \"{default}\" is needed")));
    }
    Ok(path.trim_end_matches('/').as_bytes().to_vec())
}

/// Parses `[{Name, Value}]` and writes the headers as bytes of a request.
fn headers(settings: &Settings) -> Result<Vec<u8>, ConfigError> {
    let key = "http_raw_append_headers";
    let wrong = || ConfigError::setting(key, "a list of {\"Name\", \"Value\"} is needed");
    let mut written = Vec::new();
    let Some(term) = settings.get(key) else { return Ok(written) };
    let Term::List(items) = term else { return Err(wrong()) };
    for item in items {
        let Term::Tuple(pair) = item else { return Err(wrong()) };
        let [name, value] = &pair[..] else { return Err(wrong()) };
        let (name, value) = (bytes(name).ok_or_else(wrong)?, bytes(value).ok_or_else(wrong)?);
        let plain = |text: &[u8]| text.iter().all(|&byte| byte >= b' ' && byte != 0x7f);
        if name.is_empty() || !name.iter().all(|&b| b.is_ascii_graphic() && b != b':') || !plain(&value) {
            return Err(wrong());
        }
        for part in [&name[..], b": ", &value, b"\r\n"] {
            written.extend_from_slice(part);
        }
    }
    Ok(written)
}

fn disconnect(settings: &Settings) -> Result<Disconnect, ConfigError> {
    let key = "http_raw_disconnect_frequency";
    let number = |term: &Term| match term {
        Term::Integer(n @ 1..) => u64::try_from(*n).ok(),
        _ => None,
    };
    let found = match settings.get(key) {
        None => Some(Disconnect::Never),
        Some(Term::Atom(word)) if word == "infinity" => Some(Disconnect::Never),
        Some(Term::Tuple(pair)) => match &pair[..] {
            [Term::Atom(unit), n] if unit == "ops" => number(n).map(Disconnect::Operations),
            [Term::Atom(unit), n] if unit == "seconds" => number(n).map(|n| Disconnect::After(Duration::from_secs(n))),
            _ => None,
        },
        Some(term) => number(term).map(|seconds| Disconnect::After(Duration::from_secs(seconds))),
    };
    found.ok_or_else(|| ConfigError::setting(key, "infinity, a number of seconds or {ops, N} is needed"))
}

fn files(dir: &std::path::Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
