//! The command itself: gathers the parts, removes secrets, and writes the file.

use super::archive::{pack, write_new};
use super::offline::{self, Places};
use super::online;
use super::part::{Part, in_time};
use super::secrets::{Secrets, is_telling};
use crate::cli::args::Common;
use crate::cli::failure::Failure;
use crate::cli::local_config;
use crate::cli::output::Output;
use crate::cli::target::Target;
use crate::config::{Effective, Problem, Settings};
use crate::node::token;
use crate::wall_clock::now_secs;
use clap::Args;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long it may take to find out where the node and its secrets are.
const FIND_TIME: Duration = Duration::from_secs(10);
/// The largest file of secrets that is read.
const SECRET_BYTES_MAX: u64 = 64 << 10;
/// The keys of files with secrets.
const SECRET_FILES: [&str; 3] = ["cluster.secret_file", "cluster.ssl.keyfile", "ssl.keyfile"];
const MANIFEST: &str = "manifest.json";

/// Options of the command. Users see the doc comments of the fields in `--help`.
#[derive(Debug, Args)]
pub struct DebugArgs {
    /// The file to write; it must not exist [default: ombak-debug-UNIX_SECONDS.tar.gz].
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Another node of the cluster to ask, too. Repeat it for each. What needs the admin token is
    /// answered if OMBAK_ADMIN_TOKEN has the token of that node.
    #[arg(long, value_name = "HOST:PORT")]
    also: Vec<String>,
}

/// What is known before any part is gathered.
struct Found {
    effective: Result<Effective, Vec<Problem>>,
    places: Places,
    secrets: Secrets,
}

/// Runs the command.
pub async fn run(args: &DebugArgs, common: &Common, out: Output) -> Result<(), Failure> {
    let time_secs = now_secs();
    let name = format!("ombak-debug-{time_secs}");
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.tar.gz")));
    // The file is created at the end. This only saves the wait for a refusal.
    if path.symlink_metadata().is_ok() {
        return Err(exists(&path));
    }
    let found = common.clone();
    let Found { effective, places, secrets } =
        in_time(FIND_TIME, move || Ok(find(&found))).await.map_err(Failure::new)?;
    let nodes = nodes(common, &args.also).await;
    let parts = gather(&effective, &places, &nodes).await;
    let manifest = manifest(&parts, &nodes, time_secs, &secrets);
    let files = files(&parts, &manifest, &secrets, &name);
    let packed = pack(files.iter().map(|(path, content)| (path.as_str(), content.as_slice())), time_secs)
        .map_err(|e| Failure::new(format!("cannot pack the bundle: {e}")))?;
    write_new(&path, &packed).map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => exists(&path),
        _ => Failure::new(format!("cannot write {}: {e}", path.display())),
    })?;
    let failed: Vec<&Value> = manifest["parts"].as_array().into_iter().flatten().filter(|p| p["ok"] == false).collect();
    let result =
        json!({"file": path.display().to_string(), "bytes": packed.len(), "parts": parts.len(), "failed": failed});
    out.result(&result, || text(&path, packed.len(), parts.len(), &failed))
}

/// Gathers all parts at the same time.
async fn gather(
    effective: &Result<Effective, Vec<Problem>>,
    places: &Places,
    nodes: &[(String, Result<Target, String>)],
) -> Vec<Part> {
    let asked = nodes.iter().filter_map(|(dir, target)| Some(online::parts(target.as_ref().ok()?, dir)));
    let (offline, online) =
        futures_util::future::join(offline::parts(effective, places), futures_util::future::join_all(asked)).await;
    offline.into_iter().chain(online.into_iter().flatten()).collect()
}

fn exists(path: &Path) -> Failure {
    Failure::new(format!("{} exists already, and is not overwritten: name another file with -o", path.display()))
}

/// The nodes to ask: the directory of their parts, and how to reach them or why that is not known.
async fn nodes(common: &Common, also: &[String]) -> Vec<(String, Result<Target, String>)> {
    let others = also.iter().map(|address| Common { node: Some(address.clone()), ..common.clone() });
    let all = std::iter::once(common.clone()).chain(others).enumerate();
    let found = all.map(|(number, asked)| async move {
        let dir = if number == 0 { "node".to_owned() } else { format!("other-node-{number}") };
        (dir, in_time(FIND_TIME, move || Target::find(&asked).map_err(|failure| failure.message)).await)
    });
    futures_util::future::join_all(found).await
}

fn find(common: &Common) -> Found {
    let effective = local_config::load(common);
    let places = Places::of(common, &effective);
    let secrets = secrets(common, &effective, &places.data_dir);
    Found { effective, places, secrets }
}

/// Everything that is known to be secret.
fn secrets(common: &Common, effective: &Result<Effective, Vec<Problem>>, data_dir: &Path) -> Secrets {
    let mut secrets = Secrets::default();
    let mut learn_file = |path: &Path| {
        let mut content = Vec::new();
        // A file that cannot be read is in no part either: parts read no files of secrets.
        if File::open(path).and_then(|file| file.take(SECRET_BYTES_MAX).read_to_end(&mut content)).is_ok() {
            secrets.learn(&String::from_utf8_lossy(&content));
        }
    };
    learn_file(&token::path(data_dir));
    // The default one, should the configuration not be readable.
    learn_file(&data_dir.join("cluster.secret"));
    if let Ok(effective) = effective {
        for key in SECRET_FILES {
            if let Some(path) = effective.get(key) {
                learn_file(Path::new(&path.to_string()));
            }
        }
        if let Some(path) = Settings::new(effective).ok().and_then(|settings| settings.peer_secret_file) {
            learn_file(&path);
        }
    }
    for (name, value) in std::env::vars_os() {
        if is_telling(&name.to_string_lossy()) {
            secrets.learn(&value.to_string_lossy());
        }
    }
    for setting in effective.iter().flat_map(|effective| effective.settings()) {
        if is_telling(&setting.key)
            && setting.spec.default != setting.value.as_ref().map(ToString::to_string).as_deref()
            && let Some(value) = &setting.value
        {
            secrets.learn(&value.to_string());
        }
    }
    // A configuration with errors has no values, but its lines may be in the messages about them.
    for (key, value) in local_config::lines(common) {
        if is_telling(&key) {
            secrets.learn(&value);
        }
    }
    secrets
}

fn manifest(parts: &[Part], nodes: &[(String, Result<Target, String>)], time_secs: u64, secrets: &Secrets) -> Value {
    let part = |part: &Part| {
        json!({
            "file": part.path,
            "ok": part.content.is_ok(),
            "error": part.content.as_ref().err().map(|why| secrets.of_text(why)),
            "left_out_bytes": part.left_out_bytes,
            "took_ms": u64::try_from(part.took.as_millis()).unwrap_or(u64::MAX),
        })
    };
    let node = |(dir, target): &(String, Result<Target, String>)| match target {
        Ok(target) => json!({"directory": dir, "address": target.http.to_string()}),
        Err(why) => json!({"directory": dir, "error": secrets.of_text(why)}),
    };
    json!({
        "format": 1,
        "ombak": env!("CARGO_PKG_VERSION"),
        "created_secs": time_secs,
        "nodes": nodes.iter().map(node).collect::<Vec<_>>(),
        "parts": parts.iter().map(part).collect::<Vec<_>>(),
    })
}

/// The files of the bundle, all without secrets. The manifest comes first.
fn files(parts: &[Part], manifest: &Value, secrets: &Secrets, dir: &str) -> Vec<(String, Vec<u8>)> {
    let mut files = vec![(format!("{dir}/{MANIFEST}"), format!("{manifest:#}\n").into_bytes())];
    for part in parts {
        if let Ok(content) = &part.content {
            files.push((format!("{dir}/{}", part.path), secrets.remove_from(content)));
        }
    }
    files
}

fn text(path: &Path, bytes: usize, parts: usize, failed: &[&Value]) -> String {
    let mut text = format!("{} has {bytes} bytes, {parts} parts", path.display());
    if failed.is_empty() {
        text.push_str(", and no secrets. Log lines and statistics in it name buckets and keys.");
        return text;
    }
    text.push_str(&format!(", {} of which failed:", failed.len()));
    for part in failed {
        let word = |name: &str| part[name].as_str().unwrap_or_default();
        text.push_str(&format!("\n  {}: {}", word("file"), word("error")));
    }
    text
}
