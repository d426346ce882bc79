//! The command `ombak admin search`.

use super::admin_client::{RequestError, request};
use super::args::Common;
use super::bucket_type::escaped;
use super::failure::Failure;
use super::function::read;
use super::output::Output;
use super::scrub::size;
use super::search_args::{IndexCommand, SchemaCommand, SearchCommand};
use super::target::Target;
use crate::table::table;
use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

const INDEXES: &str = "/admin/v1/search/indexes";
const SCHEMAS: &str = "/admin/v1/search/schemas";

pub async fn run(command: &SearchCommand, common: &Common, out: Output) -> Result<(), Failure> {
    match command {
        SearchCommand::Index(command) => index(command, common, out).await,
        SearchCommand::Schema(command) => schema(command, common, out).await,
    }
}

async fn index(command: &IndexCommand, common: &Common, out: Output) -> Result<(), Failure> {
    let target = Target::find(common)?;
    let failed = |error: RequestError| error.into_failure(&target);
    match command {
        IndexCommand::List => {
            let list = request(&target, Method::GET, INDEXES, "").await.map_err(failed)?;
            let indexes = statuses(&list["indexes"])?;
            out.result(&list, || list_text(&indexes))
        }
        IndexCommand::Create { name, schema, n_val } => {
            let body = json!({ "schema": schema, "n_val": n_val });
            let created = act(&target, name, "create", &body).await.map_err(failed)?;
            out.result(&created, || {
                format!("the index {name} exists; search_index of a bucket or bucket type names it")
            })
        }
        IndexCommand::Delete { name } => {
            let deleted = act(&target, name, "delete", &json!({})).await.map_err(failed)?;
            out.result(&deleted, || format!("the index {name} is deleted"))
        }
        IndexCommand::Rebuild { name } => {
            let begun = act(&target, name, "rebuild", &json!({})).await.map_err(failed)?;
            let text =
                format!("the index {name} is being built anew; 'ombak admin search index status {name}' shows it");
            out.result(&begun, || text)
        }
        IndexCommand::Status { name: None } => {
            let list = request(&target, Method::GET, INDEXES, "").await.map_err(failed)?;
            let indexes = statuses(&list["indexes"])?;
            let texts: Vec<String> = indexes.iter().map(Index::text).collect();
            out.result(&list, || if texts.is_empty() { NO_INDEXES.to_owned() } else { texts.join("\n\n") })
        }
        IndexCommand::Status { name: Some(name) } => {
            let path = format!("{INDEXES}/{}", escaped(name));
            let status = request(&target, Method::GET, &path, "").await.map_err(failed)?;
            let index: Index = parsed(&status)?;
            out.result(&status, || index.text())
        }
    }
}

async fn act(target: &Target, name: &str, action: &str, body: &Value) -> Result<Value, RequestError> {
    request(target, Method::POST, &format!("{INDEXES}/{}/{action}", escaped(name)), &body.to_string()).await
}

async fn schema(command: &SchemaCommand, common: &Common, out: Output) -> Result<(), Failure> {
    match command {
        SchemaCommand::Upload { name, file } => {
            let body = json!({ "source": read(file)? }).to_string();
            let target = Target::find(common)?;
            let path = format!("{SCHEMAS}/{}/upload", escaped(name));
            let kept = request(&target, Method::POST, &path, &body).await;
            let kept = kept.map_err(|error| refusal(error, &target, name))?;
            for note in kept["notes"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                out.note(&format!("note: {note}"));
            }
            out.result(&kept, || format!("the schema {name} is kept; indexes have it when they are created or rebuilt"))
        }
        SchemaCommand::List => {
            let target = Target::find(common)?;
            let found = request(&target, Method::GET, SCHEMAS, "").await.map_err(|e| e.into_failure(&target))?;
            let names = found["schemas"].as_array().into_iter().flatten().filter_map(|schema| schema["name"].as_str());
            out.result(&found, || names.collect::<Vec<_>>().join("\n"))
        }
        SchemaCommand::Show { name } => {
            let target = Target::find(common)?;
            let path = format!("{SCHEMAS}/{}", escaped(name));
            let schema = request(&target, Method::GET, &path, "").await.map_err(|e| e.into_failure(&target))?;
            match out.json {
                true => out.line(&schema.to_string()),
                false => out.value(schema["source"].as_str().unwrap_or_default().as_bytes()),
            }
        }
    }
}

/// The failure of an upload.
fn refusal(error: RequestError, target: &Target, name: &str) -> Failure {
    match error {
        RequestError::Refused { kind, message } if kind == "bad_request" => {
            Failure { kind, ..Failure::new(format!("Cannot keep the schema {name}: {message}")) }
        }
        other => other.into_failure(target),
    }
}

const NO_INDEXES: &str = "there are no indexes";

/// An index on the node that is asked.
#[derive(Deserialize)]
struct Index {
    name: String,
    schema: String,
    n_val: u32,
    build: Option<u64>,
    next_build: Option<u64>,
    documents: u64,
    bytes: u64,
    partitions: Vec<Partition>,
    last_error: Option<String>,
}

#[derive(Deserialize)]
struct Partition {
    partition: u32,
    lag_ms: Option<u64>,
    is_being_read: bool,
}

fn statuses(list: &Value) -> Result<Vec<Index>, Failure> {
    parsed(list)
}

fn parsed<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, Failure> {
    serde_json::from_value(value.clone())
        .map_err(|why| Failure::new(format!("the node's answer cannot be read: {why}")))
}

fn list_text(indexes: &[Index]) -> String {
    let line = |index: &Index| {
        let Index { name, schema, n_val, documents, bytes, .. } = index;
        let behind = index.behind();
        format!("{name} (schema {schema}, n_val {n_val}): {documents} documents, {}; {behind}", size(*bytes))
    };
    let lines: Vec<String> = indexes.iter().map(line).collect();
    if lines.is_empty() { NO_INDEXES.to_owned() } else { lines.join("\n") }
}

impl Index {
    /// How far it is behind the stores of the node.
    fn behind(&self) -> String {
        let incomplete = self.partitions.iter().filter(|partition| partition.lag_ms.is_none()).count();
        let all = self.partitions.len();
        match (all, incomplete) {
            (0, _) => "nothing is indexed here yet".to_owned(),
            (_, 0) => {
                let lag_ms = self.partitions.iter().filter_map(|partition| partition.lag_ms).max().unwrap_or(0);
                format!("up to {} behind", time(lag_ms))
            }
            _ => format!("{incomplete} of {all} partitions are incomplete"),
        }
    }

    fn text(&self) -> String {
        let Self { name, schema, n_val, documents, .. } = self;
        let mut lines = vec![
            format!("Index {name}: schema {schema}, n_val {n_val}"),
            format!("{documents} documents and {} on this node; {}", size(self.bytes), self.behind()),
        ];
        lines.push(match (self.build, self.next_build) {
            (Some(now), Some(next)) => format!("build {now} answers, and build {next} is being made"),
            (Some(now), None) => format!("build {now} answers"),
            (None, _) => "no build is there yet".to_owned(),
        });
        lines.extend(self.last_error.as_ref().map(|error| format!("the last write has failed: {error}")));
        if !self.partitions.is_empty() {
            let rows: Vec<[String; 3]> = self.partitions.iter().map(Partition::row).collect();
            lines.push(table(["partition", "behind", "state"], &rows));
        }
        lines.join("\n")
    }
}

impl Partition {
    fn row(&self) -> [String; 3] {
        let state = match (self.is_being_read, self.lag_ms) {
            (true, _) => "is being read",
            (false, None) => "incomplete",
            (false, Some(_)) => "complete",
        };
        [self.partition.to_string(), self.lag_ms.map_or_else(|| "-".to_owned(), time), state.to_owned()]
    }
}

/// A time with a unit.
fn time(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{ms} ms"),
        10_000..600_000 => format!("{} s", ms / 1_000),
        _ => format!("{} min", ms / 60_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(partitions: Value, next_build: Value, last_error: Value) -> Index {
        let index = json!({"name": "people", "schema": "_yz_default", "n_val": 3, "build": 0, "next_build": next_build,
            "documents": 12, "bytes": 2_048, "partitions": partitions, "last_error": last_error});
        serde_json::from_value(index).unwrap()
    }

    #[test]
    fn a_list_says_documents_bytes_and_lag() {
        let lag = |ms: u64| json!({"partition": 1, "lag_ms": ms, "is_being_read": false});
        let behind = index(json!([lag(40), lag(320)]), Value::Null, Value::Null);
        let expected = "people (schema _yz_default, n_val 3): 12 documents, 2.0 KB; up to 320 ms behind";
        assert_eq!(list_text(&[behind]), expected);
        assert_eq!(list_text(&[]), NO_INDEXES);
        assert_eq!(index(json!([]), Value::Null, Value::Null).behind(), "nothing is indexed here yet");
    }

    #[test]
    fn a_status_has_a_row_for_each_partition() {
        let partitions = json!([
            {"partition": 1, "lag_ms": 40, "is_being_read": false},
            {"partition": 2, "lag_ms": null, "is_being_read": true},
            {"partition": 3, "lag_ms": null, "is_being_read": false},
        ]);
        let expected = "\
Index people: schema _yz_default, n_val 3
12 documents and 2.0 KB on this node; 2 of 3 partitions are incomplete
build 0 answers, and build 1 is being made
the last write has failed: full
+---------+------+-------------+
|partition|behind|    state    |
+---------+------+-------------+
|    1    |40 ms |  complete   |
|    2    |  -   |is being read|
|    3    |  -   | incomplete  |
+---------+------+-------------+";
        assert_eq!(index(partitions, json!(1), json!("full")).text(), expected);
    }

    #[test]
    fn times_have_a_unit() {
        assert_eq!([time(9_999), time(10_000), time(600_000)], ["9999 ms", "10 s", "10 min"]);
    }
}
