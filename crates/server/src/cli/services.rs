//! The commands `ombak admin services` and `wait-for-service`, by which deployment tools find out
//! when a node can be used.

use super::admin_client::{RequestError, request};
use super::args::Common;
use super::failure::Failure;
use super::output::Output;
use super::target::Target;
use hyper::Method;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The services of every node that takes part: requests, and MapReduce.
const SERVICES: [&str; 2] = ["riak_kv", "riak_pipe"];
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Prints the services that the node runs, in Riak's form.
pub async fn list(common: &Common, out: Output) -> Result<(), Failure> {
    let target = Target::find(common)?;
    let node = describe(&target).await.map_err(|e| e.into_failure(&target))?;
    let services = services_of(&node);
    out.result(&json!({ "node": node["name"], "services": services }), || format!("[{}]", services.join(",")))
}

/// Waits until a service runs on the node that is asked, or on the member with this name.
pub async fn wait_for(
    service: &str,
    node: Option<&str>,
    wait_secs: u64,
    common: &Common,
    out: Output,
) -> Result<(), Failure> {
    if !SERVICES.contains(&service) {
        return Err(Failure::new(format!(
            "{service} is not up: the services of this program are [{}]",
            SERVICES.join(",")
        )));
    }
    let deadline = Instant::now() + Duration::from_secs(wait_secs);
    let mut had_no_token = false;
    loop {
        // The node may start meanwhile, and then its directory says where it listens, and its host
        // may get an address.
        let target = match Target::find(common) {
            Ok(target) => target,
            Err(failure) if Instant::now() >= deadline => return Err(failure),
            Err(_) => {
                tokio::time::sleep(POLL_INTERVAL).await;
                continue;
            }
        };
        let why_not = match is_up(&target, service, node).await {
            Ok(true) => return out.result(&json!({ "service": service, "up": true }), || format!("{service} is up")),
            Ok(false) => Failure::new(format!("{service} is not up after {wait_secs} s")),
            Err(error @ RequestError::NoUsableAnswer(_)) => error.into_failure(&target),
            // A node that begins to serve writes its token a moment later.
            Err(RequestError::Refused { kind, message }) if kind == "no_token" && !had_no_token => {
                had_no_token = true;
                RequestError::Refused { kind, message }.into_failure(&target)
            }
            Err(refused) => return Err(refused.into_failure(&target)),
        };
        if Instant::now() >= deadline {
            return Err(why_not);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn describe(target: &Target) -> Result<Value, RequestError> {
    request(target, Method::GET, "/admin/v1/node", "").await
}

/// The services of the node that was asked. One that takes no part in its cluster has none.
fn services_of(node: &Value) -> Vec<&'static str> {
    if node["takes_no_part"].is_string() { Vec::new() } else { SERVICES.to_vec() }
}

async fn is_up(target: &Target, service: &str, node: Option<&str>) -> Result<bool, RequestError> {
    let asked = describe(target).await?;
    let Some(wanted) = node.filter(|node| asked["name"] != **node) else {
        return Ok(services_of(&asked).contains(&service));
    };
    let cluster = request(target, Method::GET, "/admin/v1/cluster/status", "").await?;
    let member = cluster["members"].as_array().into_iter().flatten().find(|member| member["name"] == wanted);
    let Some(member) = member else {
        let message = format!("Failed: '{wanted}' is not a member of the cluster.");
        return Err(RequestError::Refused { kind: "refused".into(), message });
    };
    Ok(member["up"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_takes_no_part_has_no_services() {
        assert_eq!(services_of(&json!({"takes_no_part": null})), ["riak_kv", "riak_pipe"]);
        assert_eq!(services_of(&json!({})), ["riak_kv", "riak_pipe"], "a node of an earlier version");
        assert!(services_of(&json!({"takes_no_part": "it was removed"})).is_empty());
    }
}
