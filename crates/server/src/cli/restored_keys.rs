//! The command `ombak admin cluster restored-keys`.

use super::admin_client::request;
use super::args::Common;
use super::failure::Failure;
use super::key_names::{KeyNames, shown_key};
use super::output::Output;
use super::target::Target;
use hyper::Method;
use serde_json::Value;
use std::fmt::Write;

const PATH: &str = "/admin/v1/restored-keys";

/// Prints the keys.
pub async fn list(names: &KeyNames, common: &Common, out: Output) -> Result<(), Failure> {
    if !names.is_empty() {
        return Err(Failure::usage("say what to do with these keys: --push, --drop or --push-dropped"));
    }
    let target = Target::find(common)?;
    let report = request(&target, Method::GET, PATH, "").await.map_err(|e| e.into_failure(&target))?;
    out.result(&report, || text(&report))
}

/// Pushes the keys to the nodes to which they belong, or drops them.
pub async fn decide(action: &str, names: &KeyNames, common: &Common, out: Output) -> Result<(), Failure> {
    let body = names.body(action)?;
    let target = Target::find(common)?;
    let answer = request(&target, Method::POST, PATH, &body).await.map_err(|e| e.into_failure(&target))?;
    let count = |what: &str| answer[what].as_u64();
    out.result(&answer, || match (count("pushed"), count("dropped")) {
        (Some(pushed), _) if action == "push-dropped" => {
            format!("{pushed} dropped copies stored again; 'ombak admin transfers' shows how they reach the others")
        }
        (Some(pushed), _) => {
            format!("{pushed} keys taken back; 'ombak admin transfers' shows how they reach the others")
        }
        (None, dropped) => format!("{} keys removed", dropped.unwrap_or(0)),
    })
}

fn text(report: &Value) -> String {
    match dropped_text(&report["dropped_copies"]) {
        Some(dropped) => format!("{}\n\n{dropped}", restored_text(report)),
        None => restored_text(report),
    }
}

/// What exchanges have dropped; none if that is nothing.
fn dropped_text(report: &Value) -> Option<String> {
    let copies = report["copies"].as_array().map_or(&[][..], Vec::as_slice);
    if copies.is_empty() {
        return None;
    }
    let mut text = String::from("Dropped copies\npartition        bytes  state      key");
    for copy in copies {
        let state = match (copy["tombstone"] == true, copy["held"] == true) {
            (true, _) => "tombstone",
            (false, true) => "is back",
            (false, false) => "dropped",
        };
        // Writing into a string does not fail.
        let _ = write!(text, "\n{:>9}  {:>11}  {state:<9}  {}", copy["partition"], copy["bytes"], shown_key(copy));
    }
    if report["more"] != 0 {
        let _ = write!(text, "\nand {} others", report["more"]);
    }
    text.push_str(
        "\nExchanges have removed these copies from this node, because their keys had been removed on all other\n\
         nodes. That happens only after a fault. '--push-dropped' stores copies again.",
    );
    Some(text)
}

fn restored_text(report: &Value) -> String {
    let keys = report["keys"].as_array().map_or(&[][..], Vec::as_slice);
    if keys.is_empty() && report["more"] == 0 {
        return "No key is held by a restored store alone".into();
    }
    let mut text = String::from("partition        bytes  compared  key");
    for key in keys {
        let is_compared = if key["compared"] == true { "yes" } else { "not yet" };
        // Writing into a string does not fail.
        let _ = write!(text, "\n{:>9}  {:>11}  {is_compared:<8}  {}", key["partition"], key["bytes"], shown_key(key));
    }
    if report["more"] != 0 {
        let _ = write!(text, "\nand {} others", report["more"]);
    }
    text.push_str(
        "\nOnly restored stores of this node have these keys. A key that is compared is on no other node: it may have\n\
         been deleted since. '--push' takes keys back, and '--drop' removes them.",
    );
    text
}
