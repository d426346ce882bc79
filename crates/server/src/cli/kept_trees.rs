//! The commands `ombak admin tictacaae treestatus`, `rebuild-now` and `rebuild-soon`: the kept
//! trees of a node.

use super::admin_client::request;
use super::args::Common;
use super::exchange_args::{OnPartition, TreeStates};
use super::failure::Failure;
use super::output::Output;
use super::target::Target;
use hyper::Method;
use serde_json::{Value, json};

const PATH: &str = "/admin/v1/kept-trees";
const REBUILD_PATH: &str = "/admin/v1/kept-trees/rebuild";
const NODE_PATH: &str = "/admin/v1/node";

impl TreeStates {
    fn includes(self, status: &str) -> bool {
        match self {
            Self::All => true,
            Self::Unbuilt => status == "unbuilt",
            Self::Building => status == "building",
            Self::Built => status == "built",
            Self::Rebuilding => status == "rebuilding",
        }
    }
}

/// Prints the trees in these states.
pub(super) async fn show(states: &[TreeStates], common: &Common, out: Output) -> Result<(), Failure> {
    let target = Target::find(common)?;
    let mut answer = request(&target, Method::GET, PATH, "").await.map_err(|e| e.into_failure(&target))?;
    let all = answer["trees"].as_array().map_or(0, Vec::len);
    if let Some(trees) = answer["trees"].as_array_mut() {
        let status = |tree: &Value| tree["status"].as_str().unwrap_or_default().to_owned();
        trees.retain(|tree| states.iter().any(|state| state.includes(&status(tree))));
    }
    answer["all"] = json!(all);
    out.result(&answer, || text(&answer))
}

/// Lets trees be made anew.
pub(super) async fn rebuild(delay: u64, of: &OnPartition, common: &Common, out: Output) -> Result<(), Failure> {
    let partition = partition_of(&of.partition)?;
    let target = Target::find(common)?;
    if let Some(wanted) = &of.member {
        let node = request(&target, Method::GET, NODE_PATH, "").await.map_err(|e| e.into_failure(&target))?;
        if node["name"] != wanted.as_str() {
            let asked = node["name"].as_str().unwrap_or_default();
            return Err(Failure::new(format!("this asks '{asked}': run the command on the machine of '{wanted}'")));
        }
    }
    let body = json!({ "partition": partition, "delay_secs": delay }).to_string();
    let answer = request(&target, Method::POST, REBUILD_PATH, &body).await.map_err(|e| e.into_failure(&target))?;
    out.result(&answer, || {
        let when = if delay == 0 { "now".to_owned() } else { format!("in {delay} s") };
        match answer["trees"].as_u64() {
            Some(0) | None => "there is no such tree to make".to_owned(),
            Some(1) => format!("1 tree is made anew {when}"),
            Some(trees) => format!("{trees} trees are made anew {when}, one after the other"),
        }
    })
}

fn partition_of(word: &str) -> Result<Option<u32>, Failure> {
    match word {
        "all" => Ok(None),
        number => number.parse().map(Some).map_err(|_| {
            let advice = "name a partition by its number, as 'ombak admin cluster partitions' shows it, or 'all'";
            Failure::usage(advice)
        }),
    }
}

fn text(answer: &Value) -> String {
    let trees = answer["trees"].as_array().map_or(&[][..], Vec::as_slice);
    match (trees.len(), answer["all"].as_u64().unwrap_or_default()) {
        (0, 0) => return "no tree is kept: no fold has asked for one within a day".to_owned(),
        (0, all) => return format!("no tree is in such a state; '--show all' prints all {all}"),
        _ => {}
    }
    let mut lines =
        vec![format!("{:>9}  {:>5}  {:<10}  {:<14}  {}", "partition", "n_val", "status", "made", "made anew")];
    for tree in trees {
        let made = time(&tree["made_before_secs"]).map_or("-".to_owned(), |time| format!("{time} ago"));
        let anew = time(&tree["made_anew_in_secs"]).map_or("-".to_owned(), |time| format!("in {time}"));
        let (partition, n_val) = (tree["partition"].to_string(), tree["n_val"].to_string());
        let status = tree["status"].as_str().unwrap_or_default();
        let mut line = format!("{partition:>9}  {n_val:>5}  {status:<10}  {made:<14}  {anew}");
        if tree["has_expiring"] == true {
            line += "  (objects expire, so folds walk)";
        }
        lines.push(line);
    }
    lines.join("\n")
}

/// A time in seconds, for people.
fn time(secs: &Value) -> Option<String> {
    let secs = secs.as_u64()?;
    Some(match secs {
        0..120 => format!("{secs} s"),
        120..7_200 => format!("{} min", secs / 60),
        7_200..172_800 => format!("{} h", secs / 3_600),
        _ => format!("{} days", secs / 86_400),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_lines() {
        let tree = |status, made: Option<u64>| {
            json!({
                "partition": 7, "n_val": 3, "status": status, "has_expiring": made.is_some(),
                "made_before_secs": made, "made_anew_in_secs": made.map(|made| made * 100),
            })
        };
        let answer = json!({ "trees": [tree("unbuilt", None), tree("built", Some(90))], "all": 2 });
        let expected = "partition  n_val  status      made            made anew
        7      3  unbuilt     -               -
        7      3  built       90 s ago        in 2 h  (objects expire, so folds walk)";
        assert_eq!(text(&answer), expected);
        assert!(text(&json!({ "trees": [], "all": 8 })).contains("prints all 8"));
        assert!(text(&json!({ "trees": [], "all": 0 })).contains("no tree is kept"));
    }

    #[test]
    fn a_partition_is_a_number_or_all() {
        assert_eq!(partition_of("all").ok(), Some(None));
        assert_eq!(partition_of("17").ok(), Some(Some(17)));
        assert!(partition_of("-1").is_err());
    }
}
