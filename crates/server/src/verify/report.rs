//! The report of an examination.

use crate::cli::output::shown;
use crate::cli::value_json;
use ombak_storage::verify::{FINDINGS_KEPT, Finding, PartitionReport};
use ombak_types::names::decode_storage_key;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::PathBuf;

const DAMAGED_MEMBER: &str = "\
This node has been part of a cluster. Other members that have a copy replace a damaged value when it is read.";
const REPAIRED_MEMBER: &str = "\
This node has been part of a cluster. After its start it compares the repaired partitions with the other members, \
which bring back what was removed; 'ombak admin transfers' shows that. If there are none, what was removed is lost.";

/// What the examination of a node found.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Whether everything was read.
    pub complete: bool,
    /// Whether damage was to be removed.
    pub repair: bool,
    /// The number of damaged places, including those that a repair has removed.
    pub damaged: u64,
    /// The number of damaged places that are left after a repair. Without a repair, this is the
    /// number of all damaged places.
    pub damaged_left: u64,
    /// The backends, in the order of the configuration.
    pub stores: Vec<StoreReport>,
    /// Damaged files of the node itself, each with advice. A repair does not change them.
    pub node_files: Vec<String>,
    /// Whether the node has been part of a cluster, whose other members may have what is missing.
    pub member: bool,
}

/// What was found in the directory of one backend.
#[derive(Debug, Default, Serialize)]
pub struct StoreReport {
    /// The name of the backend in the configuration.
    pub name: String,
    /// `bitcask`, `leveled` or `leveldb`.
    pub backend: &'static str,
    /// The directory of the backend.
    pub data_root: PathBuf,
    /// The number of partitions that were examined.
    pub partitions: u64,
    /// The number of bytes that were read.
    pub bytes: u64,
    /// The number of undamaged records in data files.
    pub records: u64,
    /// The number of keys whose current version can be read.
    pub keys: u64,
    /// The number of losses that the stores had recorded before this examination.
    pub noted_losses: u64,
    /// Bytes of torn writes that a crash has left. They are not damage; the next start ignores
    /// them.
    pub torn_bytes: u64,
    /// The number of damaged places.
    pub damaged: u64,
    /// The directory with copies of what was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<PathBuf>,
    /// The first damaged places.
    #[serde(serialize_with = "findings_as_json")]
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether no damage is left in what was to be examined.
    pub fn is_well(&self) -> bool {
        self.complete && self.damaged_left == 0
    }

    /// The report as text for people.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        for store in &self.stores {
            store.put_text(self.repair, &mut out);
        }
        for damaged in &self.node_files {
            let _ = writeln!(out, "{damaged}");
        }
        out.push_str(&self.conclusion());
        if self.member && self.damaged > 0 {
            out.push('\n');
            out.push_str(if self.repair { REPAIRED_MEMBER } else { DAMAGED_MEMBER });
        }
        out
    }

    fn conclusion(&self) -> String {
        let files = self.node_files.len() as u64;
        match (self.complete, self.damaged, self.damaged_left) {
            (false, _, _) => "Interrupted: not everything was read.".into(),
            (true, 0, _) => "Nothing is damaged.".into(),
            (true, damaged, 0) => format!("Repaired: {} removed.", were_damaged(damaged)),
            (true, damaged, left) if left == files => {
                let repaired = if self.repair && damaged > files {
                    format!("Repaired: {} removed. ", were_damaged(damaged - files))
                } else {
                    String::new()
                };
                format!(
                    "{repaired}Damaged: {} of the node itself. --repair does not repair such files; the lines above say what to do.",
                    counted(files, "file")
                )
            }
            (true, damaged, left) if self.repair => {
                format!("{left} of {} remain.", counted(damaged, "damaged place"))
            }
            (true, damaged, _) => format!(
                "Damaged: {}. 'ombak admin backend verify --repair' removes damaged data from partitions and keeps everything else.",
                counted(damaged, "place")
            ),
        }
    }
}

fn were_damaged(count: u64) -> String {
    format!("{} {}", counted(count, "damaged place"), if count == 1 { "was" } else { "were" })
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

impl StoreReport {
    /// Adds the report of one partition.
    pub fn add(&mut self, mut partition: PartitionReport) {
        self.partitions += 1;
        self.bytes += partition.bytes;
        self.records += partition.records;
        self.keys += partition.keys;
        self.noted_losses += partition.noted_losses;
        self.torn_bytes += partition.torn_bytes;
        self.damaged += partition.damaged;
        partition.findings.truncate(FINDINGS_KEPT.saturating_sub(self.findings.len()));
        self.findings.append(&mut partition.findings);
    }

    fn put_text(&self, repair: bool, out: &mut String) {
        let name = if self.name == self.backend { String::new() } else { format!(" ({})", self.name) };
        let _ = writeln!(
            out,
            "{}{name} in {}: {} partitions, {} bytes, {} records, {} keys",
            self.backend,
            self.data_root.display(),
            self.partitions,
            self.bytes,
            self.records,
            self.keys
        );
        if self.torn_bytes > 0 {
            let _ = writeln!(out, "  {} bytes of writes that a crash has cut off: this is not damage", self.torn_bytes);
        }
        if self.noted_losses > 0 {
            let _ = writeln!(
                out,
                "  known from before: {}",
                if self.noted_losses == 1 { "1 loss".into() } else { format!("{} losses", self.noted_losses) }
            );
        }
        for finding in &self.findings {
            let _ = writeln!(out, "  {}", line(finding));
        }
        if self.damaged > self.findings.len() as u64 {
            let _ = writeln!(out, "  … and {} more", self.damaged - self.findings.len() as u64);
        }
        if let Some(quarantine) = self.quarantine.as_ref().filter(|_| repair) {
            let _ = writeln!(out, "  copies of the removed data are in {}", quarantine.display());
        }
    }
}

fn line(finding: &Finding) -> String {
    let mut line = finding.file.display().to_string();
    if finding.length > 0 {
        let _ = write!(line, " at byte {}, {} bytes", finding.offset, finding.length);
    }
    let _ = write!(line, ": {}; ", finding.damage.text());
    if let Some(key) = &finding.key {
        let _ = match decode_storage_key(key) {
            Ok((bucket, key)) if bucket.is_default_type() => write!(line, "{}/{}: ", shown(&bucket.name), shown(&key)),
            Ok((bucket, key)) => {
                write!(line, "{}/{}/{}: ", shown(&bucket.bucket_type), shown(&bucket.name), shown(&key))
            }
            Err(_) => write!(line, "{}: ", shown(key)),
        };
    }
    line.push_str(finding.effect.text());
    line
}

fn findings_as_json<S: Serializer>(findings: &[Finding], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(findings.iter().map(finding_as_json))
}

fn finding_as_json(finding: &Finding) -> Value {
    let mut value = json!({
        "partition": finding.partition,
        "file": finding.file,
        "offset": finding.offset,
        "length": finding.length,
        "damage": finding.damage.name(),
        "effect": finding.effect.name(),
    });
    if let Some(Ok((bucket, key))) = finding.key.as_ref().map(decode_storage_key) {
        value["bucket_type"] = value_json::name(&bucket.bucket_type);
        value["bucket"] = value_json::name(&bucket.name);
        value["key"] = value_json::name(&key);
    }
    value
}
