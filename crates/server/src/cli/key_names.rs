//! The keys that a command of an operator is about, and the keys in an answer.

use super::failure::Failure;
use super::output::shown;
use super::value_json::name;
use clap::Args;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// The keys that a command is about. Users see the doc comments of the fields in `--help`.
#[derive(Debug, Args)]
pub struct KeyNames {
    /// All keys.
    #[arg(long, conflicts_with_all = ["bucket", "key"])]
    all: bool,
    /// The keys of this bucket.
    #[arg(long)]
    bucket: Option<OsString>,
    /// The bucket type.
    #[arg(short = 't', long = "type", value_name = "TYPE", requires = "bucket")]
    bucket_type: Option<OsString>,
    /// Only this key.
    #[arg(long, requires = "bucket")]
    key: Option<OsString>,
}

impl KeyNames {
    /// Whether the command names no keys.
    pub const fn is_empty(&self) -> bool {
        !self.all && self.bucket.is_none()
    }

    /// The body of a request that decides about the keys.
    pub fn body(&self, action: &str) -> Result<String, Failure> {
        if self.is_empty() {
            return Err(Failure::usage(format!("--{action}: name the keys with --bucket, or --all of them")));
        }
        let mut body = json!({ "action": action, "all": self.all });
        for (field, value) in [("bucket_type", &self.bucket_type), ("bucket", &self.bucket), ("key", &self.key)] {
            if let Some(value) = value {
                body[field] = name(value.as_bytes());
            }
        }
        Ok(body.to_string())
    }
}

/// A key of an answer as `TYPE/BUCKET/KEY`.
pub fn shown_key(key: &Value) -> String {
    let word = |value: &Value| match value.as_str() {
        Some(text) => shown(text.as_bytes()),
        None => format!("base64:{}", value["base64"].as_str().unwrap_or_default()),
    };
    format!("{}/{}/{}", word(&key["bucket_type"]), word(&key["bucket"]), word(&key["key"]))
}
