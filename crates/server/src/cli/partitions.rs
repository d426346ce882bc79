//! The commands `ombak admin cluster partitions`, `partition-count` and `partition`: who owns which
//! partitions, in Riak's tables.

use super::failure::Failure;
use super::output::Output;
use crate::table::table;
use ombak_ring::{PartitionIndex, RingSize};
use serde::Deserialize;
use serde_json::{Value, json};

/// What a node tells about the partitions of its cluster.
#[derive(Deserialize)]
pub struct Partitions {
    ring_size: u32,
    /// The name of the node that was asked.
    node: String,
    members: Vec<OfMember>,
}

#[derive(Deserialize)]
struct OfMember {
    name: String,
    primary: Vec<u32>,
    secondary: Vec<u32>,
    stopped: Vec<u32>,
}

impl Partitions {
    /// Reads the answer of a node.
    pub fn read(answer: Value) -> Result<Self, Failure> {
        serde_json::from_value(answer).map_err(|e| Failure::new(format!("the node's answer is not understood: {e}")))
    }

    /// The partitions of a member, or of the node that was asked.
    pub fn print(&self, member: Option<&str>, out: Output) -> Result<(), Failure> {
        let of = self.member(member.unwrap_or(&self.node))?;
        let mut rows = Vec::new();
        let mut list = Vec::new();
        for (kind, partitions) in [("primary", &of.primary), ("secondary", &of.secondary), ("stopped", &of.stopped)] {
            if partitions.is_empty() {
                rows.push([kind.to_owned(), "--".to_owned(), "--".to_owned()]);
            }
            for id in partitions {
                let index = self.index(*id)?;
                list.push(json!({ "type": kind, "index": index, "id": id }));
                rows.push([kind.to_owned(), index, id.to_string()]);
            }
        }
        out.result(&json!({ "node": of.name, "partitions": list }), || {
            format!("Partitions owned by '{}':\n{}", of.name, table(["type", "index", "id"], &rows))
        })
    }

    /// The number of partitions of the ring, or those that a member owns.
    pub fn print_count(&self, member: Option<&str>, out: Output) -> Result<(), Failure> {
        let Some(member) = member else {
            let text = || format!("Cluster-wide partition-count: {}", self.ring_size);
            return out.result(&json!({ "partitions": self.ring_size }), text);
        };
        let of = self.member(member)?;
        let count = of.primary.len() + of.stopped.len();
        let percent = count as f64 * 100.0 / f64::from(self.ring_size);
        out.result(&json!({ "node": of.name, "partitions": count, "percent": percent }), || {
            let row = [of.name.clone(), count.to_string(), format!("{percent:>5.1}")];
            table(["node", "partitions", "pct"], &[row])
        })
    }

    /// The index, number and owner of the partition that is named `id=NUMBER` or `index=INDEX`.
    pub fn print_one(&self, named: &str, out: Output) -> Result<(), Failure> {
        let id = self.id(named)?;
        let owns = |of: &&OfMember| of.primary.contains(&id) || of.stopped.contains(&id);
        let owner = self.members.iter().find(owns).map(|of| of.name.clone());
        let index = self.index(id)?;
        out.result(&json!({ "index": index, "id": id, "node": owner }), || {
            let row = [index.clone(), id.to_string(), owner.clone().unwrap_or_else(|| "--".to_owned())];
            table(["index", "id", "node"], &[row])
        })
    }

    fn member(&self, name: &str) -> Result<&OfMember, Failure> {
        let found = self.members.iter().find(|of| of.name == name);
        found.ok_or_else(|| Failure::new(format!("Failed: '{name}' is not a member of the cluster.")))
    }

    fn size(&self) -> Result<RingSize, Failure> {
        RingSize::new(self.ring_size).map_err(|e| Failure::new(format!("the node's answer is not understood: {e}")))
    }

    fn index(&self, id: u32) -> Result<String, Failure> {
        Ok(PartitionIndex::of(id, self.size()?).to_string())
    }

    fn id(&self, named: &str) -> Result<u32, Failure> {
        let invalid =
            |what: &str, value: &str| Failure::new(format!("ERROR: The given value {value} for {what} is invalid."));
        match named.split_once('=') {
            Some(("id", value)) => match value.parse::<u32>() {
                Ok(id) if id < self.ring_size => Ok(id),
                Ok(id) => Err(Failure::new(format!("ERROR: Id {id} is invalid."))),
                Err(_) => Err(invalid("id", value)),
            },
            Some(("index", value)) => {
                let index: PartitionIndex = value.parse().map_err(|_| invalid("index", value))?;
                let no_boundary = |_| Failure::new(format!("ERROR: Index {value} isn't a partition boundary value."));
                index.partition(self.size()?).map_err(no_boundary)
            }
            _ => Err(Failure::usage(format!("{named}: name the partition as id=NUMBER or index=INDEX"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partitions() -> Partitions {
        let member = |name: &str, primary: Vec<u32>, stopped: Vec<u32>| json!({ "name": name, "node": "0", "up": true, "primary": primary, "secondary": [], "stopped": stopped });
        let members = [member("a@h", vec![0, 2, 4, 6], vec![]), member("b@h", vec![], vec![1, 3, 5, 7])];
        Partitions::read(json!({ "ring_size": 8, "node": "a@h", "members": members, "text": "" })).unwrap()
    }

    #[test]
    fn a_partition_is_named_by_its_number_or_its_index() {
        let of = partitions();
        assert_eq!(of.id("id=7"), Ok(7));
        let index = of.index(2).unwrap();
        assert_eq!(index, "365375409332725729550921208179070754913983135744");
        assert_eq!(of.id(&format!("index={index}")), Ok(2));
        let said = |named: &str| of.id(named).unwrap_err().message;
        assert_eq!(said("id=8"), "ERROR: Id 8 is invalid.");
        assert_eq!(said("id=-1"), "ERROR: The given value -1 for id is invalid.");
        assert_eq!(said("index=1"), "ERROR: Index 1 isn't a partition boundary value.");
        assert_eq!(of.id("7").unwrap_err().code, 2);
        assert_eq!(of.member("c@h").map(|_| ()).unwrap_err().message, "Failed: 'c@h' is not a member of the cluster.");
    }
}
