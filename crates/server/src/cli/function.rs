//! The command `ombak admin function`.

use super::admin_client::{RequestError, request};
use super::args::Common;
use super::bucket_type::escaped;
use super::failure::Failure;
use super::function_args::{FunctionCommand, Role};
use super::output::Output;
use super::target::Target;
use hyper::Method;
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

const PATH: &str = "/admin/v1/functions";
/// The largest file that is read. The node takes no larger request, and less of a source.
const FILE_BYTES_MAX: u64 = 1 << 20;

pub async fn run(command: &FunctionCommand, common: &Common, out: Output) -> Result<(), Failure> {
    match command {
        FunctionCommand::Create { name, file, replace } => {
            let body = json!({"source": read(file)?, "replace": replace});
            let target = Target::find(common)?;
            let created = act(&target, name, "create", &body).await.map_err(|e| refusal(e, &target, name))?;
            out.result(&created, || format!("{name} is registered"))
        }
        FunctionCommand::List => {
            let target = Target::find(common)?;
            let list = request(&target, Method::GET, PATH, "").await.map_err(|e| e.into_failure(&target))?;
            out.result(&list, || list_text(&list))
        }
        FunctionCommand::Show { name } => {
            let target = Target::find(common)?;
            let path = format!("{PATH}/{}", escaped(name));
            let function = request(&target, Method::GET, &path, "").await.map_err(|e| e.into_failure(&target))?;
            match out.json {
                true => out.line(&function.to_string()),
                false => out.value(function["source"].as_str().unwrap_or_default().as_bytes()),
            }
        }
        FunctionCommand::Delete { name, force } => {
            let target = Target::find(common)?;
            let deleted = act(&target, name, "delete", &json!({ "force": force })).await;
            out.result(&deleted.map_err(|e| e.into_failure(&target))?, || format!("{name} is deleted"))
        }
        FunctionCommand::Test { name, object, values, arg, role } => {
            let (input, usual) = match (object, values) {
                (Some(file), _) => (parsed("the object", &read(file)?)?, Role::Map),
                (None, values) => (parsed("--values", values.as_deref().unwrap_or_default())?, Role::Reduce),
            };
            let arg = arg.as_deref().map_or(Ok(Value::Null), |arg| parsed("--arg", arg))?;
            let body = json!({"as": role.unwrap_or(usual).word(), "input": input, "arg": arg});
            let target = Target::find(common)?;
            let tested = act(&target, name, "test", &body).await.map_err(|e| e.into_failure(&target))?;
            out.result(&tested, || test_text(&tested))?;
            if tested.get("failure").is_some() { Err(Failure::already_reported()) } else { Ok(()) }
        }
    }
}

async fn act(target: &Target, name: &str, action: &str, body: &Value) -> Result<Value, RequestError> {
    request(target, Method::POST, &format!("{PATH}/{}/{action}", escaped(name)), &body.to_string()).await
}

/// The failure of a registration.
fn refusal(error: RequestError, target: &Target, name: &str) -> Failure {
    match error {
        RequestError::Refused { kind, message } if kind == "bad_request" => {
            Failure { kind, ..Failure::new(format!("Cannot register {name}: {message}")) }
        }
        other => other.into_failure(target),
    }
}

/// Reads a file, or standard input for `-`.
pub(super) fn read(path: &Path) -> Result<String, Failure> {
    let fails = |why: &dyn std::fmt::Display| Failure::new(format!("{} cannot be read: {why}", path.display()));
    let mut bytes = Vec::new();
    let done = match path == Path::new("-") {
        true => io::stdin().lock().take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes),
        false => File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)),
    };
    done.map_err(|why| fails(&why))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(fails(&format_args!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| fails(&"it is not UTF-8"))
}

fn parsed(what: &str, text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|why| Failure::new(format!("{what} is not JSON: {why}")))
}

fn list_text(list: &Value) -> String {
    let line = |function: &Value| {
        let name = function["name"].as_str().unwrap_or_default();
        let hook_of: Vec<&str> =
            function["hook_of"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut line = format!("{name} ({} bytes, digest {})", function["bytes"], plain(&function["digest"]));
        if !hook_of.is_empty() {
            // Writing to a text does not fail.
            let _ = write!(line, ", a commit hook of {}", hook_of.join(", "));
        }
        line
    };
    let lines: Vec<String> = list["functions"].as_array().into_iter().flatten().map(line).collect();
    if lines.is_empty() { "no functions are registered".to_owned() } else { lines.join("\n") }
}

fn test_text(tested: &Value) -> String {
    let mut text = match (tested.get("failure"), tested["outcome"].as_str()) {
        (Some(failure), _) => failure_text(failure),
        (None, Some("put")) => format!("the put goes on with {}", tested["result"]),
        (None, Some(_)) if tested["result"].is_null() => "the put is refused".to_owned(),
        (None, Some(_)) => format!("the put is refused: {}", plain(&tested["result"])),
        (None, None) => format!("result: {}", tested["result"]),
    };
    for line in tested["log"].as_array().into_iter().flatten() {
        let _ = write!(text, "\nlog: {}", plain(line));
    }
    if let Some(dropped) = tested["log_lines_dropped"].as_u64().filter(|dropped| *dropped > 0) {
        let _ = write!(text, "\nlog: {dropped} earlier lines were dropped");
    }
    let time_ms = tested["time_us"].as_u64().unwrap_or_default() as f64 / 1000.0;
    let _ = write!(text, "\ntime: {time_ms:.1} ms");
    text
}

fn failure_text(failure: &Value) -> String {
    let message = plain(&failure["message"]);
    match failure["line"].as_u64() {
        Some(line) if line > 0 => format!("failed: {message} (line {line}: {})", plain(&failure["source"])),
        _ => format!("failed: {message}"),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_which_functions_are_hooks() {
        let list = json!({"functions": [
            {"name": "a", "bytes": 12, "digest": "00ff", "hook_of": []},
            {"name": "b", "bytes": 7, "digest": "0001", "hook_of": ["the bucket type t", "the bucket c"]},
        ]});
        let expected = "a (12 bytes, digest 00ff)\n\
                        b (7 bytes, digest 0001), a commit hook of the bucket type t, the bucket c";
        assert_eq!(list_text(&list), expected);
        assert_eq!(list_text(&json!({"functions": []})), "no functions are registered");
    }

    #[test]
    fn a_test_prints_result_log_and_time() {
        let text = |tested: Value| {
            let mut whole = json!({"log": [], "log_lines_dropped": 0, "time_us": 1234});
            whole.as_object_mut().unwrap().extend(tested.as_object().unwrap().clone());
            test_text(&whole)
        };
        assert_eq!(
            text(json!({"result": [1, "a"], "log": ["f: x"], "log_lines_dropped": 2})),
            "result: [1,\"a\"]\nlog: f: x\nlog: 2 earlier lines were dropped\ntime: 1.2 ms"
        );
        let put = json!({"outcome": "put", "result": {"key": "k"}});
        assert_eq!(text(put), "the put goes on with {\"key\":\"k\"}\ntime: 1.2 ms");
        assert_eq!(text(json!({"outcome": "fail", "result": null})), "the put is refused\ntime: 1.2 ms");
        assert_eq!(text(json!({"outcome": "fail", "result": "no"})), "the put is refused: no\ntime: 1.2 ms");
        let failure = json!({"failure": {"message": "TypeError: x", "line": 3, "source": "x.y()"}});
        assert_eq!(text(failure), "failed: TypeError: x (line 3: x.y())\ntime: 1.2 ms");
        let failure = json!({"failure": {"message": "too long", "line": 0, "source": "unknown"}});
        assert_eq!(text(failure), "failed: too long\ntime: 1.2 ms");
    }
}
