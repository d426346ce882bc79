//! Plans as Riak prints them (docs/riak/semantics.md §16).

use super::change::Change;
use super::plan::{Plan, Share, Transfer, Warning};
use super::view::MemberStatus;
use ombak_types::NodeId;
use std::fmt::Write;

const COLUMNS: usize = 79;

impl Change {
    /// The change as a line of a plan.
    pub fn line(&self, name_of: impl Fn(NodeId) -> String) -> String {
        let (action, node) = (self.action(), name_of(self.node()));
        if let Some(location) = self.location() {
            return format!("{action}  '{node}' to {location}");
        }
        match self.replacement() {
            Some(with) => format!("{action:<15}'{node}' with '{}'", name_of(with)),
            None => format!("{action:<15}'{node}'"),
        }
    }

    /// What the operator is told when the change was staged. A join also names the node that is
    /// joined, so it has no text here.
    pub fn staged_text(&self, name_of: impl Fn(NodeId) -> String) -> Option<String> {
        let node = name_of(self.node());
        let with = self.replacement().map(&name_of).unwrap_or_default();
        Some(match self {
            Self::Join { .. } => return None,
            Self::Leave { .. } => format!("Success: staged leave request for '{node}'"),
            Self::ForceRemove { .. } => format!("Success: staged remove request for '{node}'"),
            Self::Replace { .. } => format!("Success: staged replacement of '{node}' with '{with}'"),
            Self::ForceReplace { .. } => format!("Success: staged forced replacement of '{node}' with '{with}'"),
            Self::SetLocation { location, .. } => {
                format!("Success: staged changing location of node '{node}' to {location}")
            }
        })
    }

    const fn action(&self) -> &'static str {
        match self {
            Self::Join { .. } => "join",
            Self::Leave { .. } => "leave",
            Self::ForceRemove { .. } => "force-remove",
            Self::Replace { .. } => "replace",
            Self::ForceReplace { .. } => "force-replace",
            Self::SetLocation { .. } => "set-location",
        }
    }
}

impl Share {
    /// The share before and after, as a row of the table of members. The second column has dashes
    /// when nothing changes.
    pub fn row(&self, partitions: u32, name_of: impl Fn(NodeId) -> String) -> String {
        let percent = |owned: u32| f64::from(owned) * 100.0 / f64::from(partitions);
        let pending = if self.partitions_after == self.partitions_before {
            "    --  ".to_owned()
        } else {
            format!("{:>7.1}%", percent(self.partitions_after))
        };
        let before = percent(self.partitions_before);
        format!("{:<8}  {before:>5.1}%  {pending}    '{}'", self.status.to_string(), name_of(self.node))
    }
}

impl Plan {
    /// The plan as Riak prints it.
    pub fn text(&self, name_of: impl Fn(NodeId) -> String) -> String {
        let mut out = String::new();
        // Writing into a string does not fail.
        let _ = self.write(&mut out, &name_of);
        out
    }

    fn write(&self, out: &mut String, name_of: &impl Fn(NodeId) -> String) -> std::fmt::Result {
        let rule = |c: &str| c.repeat(COLUMNS);
        writeln!(out, "{:=^COLUMNS$}", " Staged Changes ")?;
        writeln!(out, "Action         Details(s)\n{}", rule("-"))?;
        for change in self.changes() {
            writeln!(out, "{}", change.line(name_of))?;
        }
        writeln!(out, "{}\n", rule("-"))?;
        let is_loss = |warning: &&Warning| matches!(warning, Warning::ReplicasLost(_));
        for warning in self.warnings.iter().filter(is_loss) {
            writeln!(out, "{}", warning.text(name_of))?;
        }
        writeln!(out, "\nNOTE: Applying these changes will result in 1 cluster transition\n")?;
        writeln!(out, "{0}\n{1:25}After cluster transition 1/1\n{0}\n", rule("#"), "")?;
        writeln!(out, "{:=^COLUMNS$}", " Membership ")?;
        writeln!(out, "Status     Ring    Pending    Node\n{}", rule("-"))?;
        for share in self.shares_after() {
            let location = self.locations.get(&share.node).map_or_else(String::new, |at| format!(" ({at})"));
            writeln!(out, "{}{location}", share.row(self.ring.size().get(), name_of))?;
        }
        writeln!(out, "{}\n{}\n", rule("-"), self.footer())?;
        for warning in self.warnings.iter().filter(|warning| !is_loss(warning)) {
            writeln!(out, "{}\n", warning.text(name_of))?;
        }
        write_moves(out, "Partitions reassigned from cluster changes", "reassigned", &self.reassigned, name_of)?;
        write_moves(out, "Transfers resulting from cluster changes", "transfers", &self.transfers, name_of)
    }

    /// The rows of the nodes that are members after the changes, with the status that they have
    /// then.
    fn shares_after(&self) -> impl Iterator<Item = Share> {
        self.shares.iter().filter_map(|share| Some(Share { status: *self.members.get(&share.node)?, ..*share }))
    }

    fn footer(&self) -> String {
        let count = |wanted| self.members.values().filter(|status| **status == wanted).count();
        format!(
            "Valid:{} / Leaving:{} / Exiting:{} / Joining:{} / Down:{}",
            count(MemberStatus::Valid),
            count(MemberStatus::Leaving),
            count(MemberStatus::Exiting),
            count(MemberStatus::Joining),
            count(MemberStatus::Down)
        )
    }
}

fn write_moves(
    out: &mut String,
    title: &str,
    verb: &str,
    moves: &[Transfer],
    name_of: &impl Fn(NodeId) -> String,
) -> std::fmt::Result {
    if moves.is_empty() {
        return Ok(());
    }
    writeln!(out, "{title}: {}", moves.iter().map(|transfer| transfer.partitions).sum::<u32>())?;
    for Transfer { from, to, partitions } in moves {
        writeln!(out, "  {partitions} {verb} from '{}' to '{}'", name_of(*from), name_of(*to))?;
    }
    writeln!(out)
}
