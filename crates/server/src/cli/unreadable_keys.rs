//! The command `ombak admin cluster unreadable-keys`.

use super::admin_client::request;
use super::args::Common;
use super::failure::Failure;
use super::key_names::{KeyNames, shown_key};
use super::output::Output;
use super::target::Target;
use hyper::Method;
use serde_json::Value;
use std::fmt::Write;

const PATH: &str = "/admin/v1/unreadable-keys";

/// Prints the keys.
pub async fn list(names: &KeyNames, common: &Common, out: Output) -> Result<(), Failure> {
    if !names.is_empty() {
        return Err(Failure::usage("say what to do with these keys: --drop"));
    }
    let target = Target::find(common)?;
    let report = request(&target, Method::GET, PATH, "").await.map_err(|e| e.into_failure(&target))?;
    out.result(&report, || text(&report))
}

/// Gives keys up.
pub async fn give_up(names: &KeyNames, common: &Common, out: Output) -> Result<(), Failure> {
    let body = names.body("drop")?;
    let target = Target::find(common)?;
    let answer = request(&target, Method::POST, PATH, &body).await.map_err(|e| e.into_failure(&target))?;
    out.result(&answer, || format!("{} keys given up", answer["dropped"].as_u64().unwrap_or(0)))
}

fn text(report: &Value) -> String {
    let keys = report["keys"].as_array().map_or(&[][..], Vec::as_slice);
    if keys.is_empty() && report["more"] == 0 {
        return "This node has found no key that it cannot read".into();
    }
    let mut text = String::from("partition  held for  failed repairs  key");
    for key in keys {
        let held_for = if key["hint"] == true { "others" } else { "itself" };
        // Writing into a string does not fail.
        let _ =
            write!(text, "\n{:>9}  {held_for:<8}  {:>14}  {}", key["partition"], key["failed_repairs"], shown_key(key));
    }
    if report["more"] != 0 {
        let _ = write!(text, "\nand {} others", report["more"]);
    }
    text.push_str(
        "\nThis node cannot read these keys, and no other node has what could take their place. It tries again by\n\
         itself. Repair the disk if that is possible. '--drop' gives the keys up: what only this node had is lost.",
    );
    text
}
