//! The command `ombak admin bucket-type`. Its messages are those of Riak (docs/riak/semantics.md
//! §16).

use super::admin_client::{RequestError, request};
use super::args::{BucketTypeCommand, Common};
use super::failure::Failure;
use super::output::Output;
use super::target::Target;
use hyper::Method;
use serde_json::Value;
use std::fmt::Write;

const PATH: &str = "/admin/v1/bucket-types";
const NO_PROPS: &str = r#"{"props":{}}"#;

pub async fn run(command: &BucketTypeCommand, common: &Common, out: Output) -> Result<(), Failure> {
    let target = Target::find(common)?;
    let act = |name, action, body| change(&target, name, action, body);
    match command {
        BucketTypeCommand::Create { name, props } => {
            let props = props.as_deref().unwrap_or(NO_PROPS);
            let created = act(name, "create", props).await.map_err(|e| refusal(e, &target, "creat", name))?;
            out.result(&created, || format!("{name} created"))
        }
        BucketTypeCommand::Update { name, props } => {
            let updated = act(name, "update", props).await.map_err(|e| refusal(e, &target, "updat", name))?;
            out.result(&updated, || format!("{name} updated"))
        }
        BucketTypeCommand::Reset { name } => {
            let reset = act(name, "reset", "").await.map_err(|e| refusal(e, &target, "resett", name))?;
            out.result(&reset, || format!("{name} reset"))
        }
        BucketTypeCommand::Activate { name } => {
            let active = act(name, "activate", "").await.map_err(|e| e.into_failure(&target))?;
            out.result(&active, || format!("{name} has been activated"))
        }
        BucketTypeCommand::Status { name } => {
            let path = format!("{PATH}/{}", escaped(name));
            let status = request(&target, Method::GET, &path, "").await.map_err(|e| e.into_failure(&target))?;
            out.result(&status, || status_text(name, &status))
        }
        BucketTypeCommand::List => {
            let types = request(&target, Method::GET, PATH, "").await.map_err(|e| e.into_failure(&target))?;
            out.result(&types, || list_text(&types))
        }
    }
}

async fn change(target: &Target, name: &str, action: &str, body: &str) -> Result<Value, RequestError> {
    request(target, Method::POST, &format!("{PATH}/{}/{action}", escaped(name)), body).await
}

/// The failure of a command that changes a bucket type. `stem` is the stem of the verb: `creat`
/// gives 'Cannot create' and 'Error creating'.
fn refusal(error: RequestError, target: &Target, stem: &str, name: &str) -> Failure {
    let verb = if stem == "resett" { "reset".to_owned() } else { format!("{stem}e") };
    match error {
        RequestError::Refused { kind, message } if kind == "bad_request" => {
            Failure { kind, ..Failure::new(format!("Cannot {verb} bucket type {name}: {message}")) }
        }
        RequestError::Refused { kind, message } if kind == "refused" => {
            Failure { kind, ..Failure::new(format!("Error {stem}ing bucket type {name}:\n{message}")) }
        }
        other => other.into_failure(target),
    }
}

fn status_text(name: &str, status: &Value) -> String {
    let words = match status["status"].as_str() {
        Some("active") => "is active",
        Some("ready") => "has been created and may be activated",
        _ => "has been created but cannot be activated yet",
    };
    let mut text = format!("{name} {words}\n");
    for (property, value) in status["props"].as_object().into_iter().flatten() {
        let _ = write!(text, "\n{property}: {}", term(value));
    }
    text
}

fn list_text(types: &Value) -> String {
    let line = |t: &Value| {
        let active = if t["status"] == "active" { "active" } else { "not active" };
        format!("{} ({active})", t["name"].as_str().unwrap_or_default())
    };
    types["bucket_types"].as_array().into_iter().flatten().map(line).collect::<Vec<_>>().join("\n")
}

/// A value as Riak's tool prints it: words without quotes, functions as `{module,function}`.
fn term(value: &Value) -> String {
    match value {
        Value::String(word) => word.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(term).collect::<Vec<_>>().join(",")),
        Value::Object(map) => format!("{{{}}}", map.values().map(term).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

/// A name, escaped as one segment of a URL path.
pub fn escaped(name: &str) -> String {
    let mut out = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::admin_token::AdminToken;
    use serde_json::json;

    #[test]
    fn names_are_one_segment() {
        assert_eq!(escaped("a/b ü"), "a%2Fb%20%C3%BC");
    }

    #[test]
    fn a_status_lists_the_properties() {
        let status = json!({"status": "ready", "props": {"n_val": 3, "r": "quorum",
            "chash_keyfun": {"mod": "riak_core_util", "fun": "chash_std_keyfun"}, "precommit": []}});
        assert_eq!(
            status_text("t", &status),
            "t has been created and may be activated\n\nn_val: 3\nr: quorum\n\
             chash_keyfun: {riak_core_util,chash_std_keyfun}\nprecommit: []"
        );
    }

    #[test]
    fn refusals_have_riaks_words() {
        let http = "127.0.0.1:1".parse().expect("addr");
        let target = Target { http, pb: None, source: "x".into(), data_dir: None, token: AdminToken::Unknown };
        let refuse = |kind: &str, message: &str, stem| {
            let error = RequestError::Refused { kind: kind.into(), message: message.into() };
            refusal(error, &target, stem, "t").message
        };
        assert_eq!(refuse("bad_request", "invalid json", "creat"), "Cannot create bucket type t: invalid json");
        assert_eq!(
            refuse("refused", "n_val: not_integer", "creat"),
            "Error creating bucket type t:\nn_val: not_integer"
        );
        assert_eq!(refuse("refused", "x", "updat"), "Error updating bucket type t:\nx");
        assert_eq!(refuse("bad_request", "x", "resett"), "Cannot reset bucket type t: x");
    }
}
