//! The command `ombak admin diag`: what an operator should look at, on the node and in its cluster.

use super::admin_client::request;
use super::args::Common;
use super::failure::Failure;
use super::output::Output;
use super::target::Target;
use hyper::Method;
use serde_json::{Value, json};

/// Prints one line for each finding. The exit code is 1 if there is one.
pub async fn run(common: &Common, out: Output) -> Result<(), Failure> {
    let target = Target::find(common)?;
    let ask = async |path: &str| request(&target, Method::GET, path, "").await.map_err(|e| e.into_failure(&target));
    let node = ask("/admin/v1/node").await?;
    let ring = ask("/admin/v1/cluster/ring-ready").await?;
    let settled = ask("/admin/v1/cluster/settled").await?;
    let found = findings(&node, &ring, &settled);
    out.result(&json!({ "node": node["name"], "messages": found }), || match found.is_empty() {
        true => "No diagnostic messages to report.".to_owned(),
        false => found.join("\n"),
    })?;
    if found.is_empty() { Ok(()) } else { Err(Failure::already_reported()) }
}

fn findings(node: &Value, ring: &Value, settled: &Value) -> Vec<String> {
    let mut found: Vec<String> = node["takes_no_part"].as_str().map(ToOwned::to_owned).into_iter().collect();
    let problems = node["problems"].as_array().into_iter().flatten().filter_map(Value::as_str);
    found.extend(problems.map(ToOwned::to_owned));
    for loss in node["known_losses"].as_array().into_iter().flatten() {
        found.push(format!(
            "data of partition {} is known to be missing, in {} places; 'ombak admin backend verify' shows what is known",
            loss["partition"], loss["places"]
        ));
    }
    let memory = &node["request_memory"];
    if let Some(refused) = memory["refused_requests"].as_u64().filter(|refused| *refused > 0) {
        found.push(format!("{refused} requests were refused since the start for lack of memory (request_memory)"));
    }
    for (answer, is_well) in [(ring, "ring_ready"), (settled, "settled")] {
        if answer[is_well] != true {
            found.push(answer["text"].as_str().unwrap_or_default().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_is_one_message() {
        let well = json!({"problems": [], "known_losses": [], "request_memory": {"refused_requests": 0}});
        let (ready, settled) = (json!({"ring_ready": true}), json!({"settled": true}));
        assert_eq!(findings(&well, &ready, &settled), Vec::<String>::new());
        let ill = json!({
            "takes_no_part": "it was removed",
            "problems": ["a disk of the node is full"],
            "known_losses": [{"partition": 3, "places": 2}],
            "request_memory": {"refused_requests": 7},
        });
        let (apart, unsettled) =
            (json!({"ring_ready": false, "text": "FALSE a"}), json!({"settled": false, "text": "FALSE b"}));
        let found = findings(&ill, &apart, &unsettled);
        assert_eq!(found.len(), 6, "{found:?}");
        assert!(found[2].contains("partition 3 is known to be missing, in 2 places"), "{found:?}");
        assert_eq!(found[5], "FALSE b");
    }
}
