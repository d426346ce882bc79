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
        return Err(Failure::usage("say what to do with these keys: --push or --drop"));
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
        (Some(pushed), _) => {
            format!("{pushed} keys taken back; 'ombak admin transfers' shows how they reach the others")
        }
        (None, dropped) => format!("{} keys removed", dropped.unwrap_or(0)),
    })
}

fn text(report: &Value) -> String {
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
