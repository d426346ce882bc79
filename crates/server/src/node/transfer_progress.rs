//! How far a transfer is, how fast it goes, and when it will end.

use ombak_cluster::{ActiveTransfer, MemberTransfers};
use serde_json::{Value, json};

/// How far a transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferProgress {
    /// About how many objects it has to compare, if that is known.
    pub objects_total: Option<u64>,
    /// How long it has run.
    pub running_ms: u64,
    /// How many bytes it has sent in a second, on average; `None` at its begin.
    pub bytes_per_second: Option<u64>,
    /// How long the rest takes if it goes on as so far; `None` while that is not known.
    pub secs_left: Option<u64>,
}

impl TransferProgress {
    /// The progress of a transfer of a member, at a moment in Unix seconds.
    pub fn of(sender: &MemberTransfers, transfer: &ActiveTransfer, now_secs: u64) -> Self {
        let compared = transfer.objects_compared;
        // A member of an earlier version says when the transfer began, by its own clock.
        let since_begin = now_secs.saturating_sub(transfer.since_secs).saturating_mul(1000);
        let running_ms = transfer.running_ms.unwrap_or(since_begin);
        let is_of = |partition| transfer.kind == "hinted" && partition == transfer.partition;
        let hints = sender.hints.iter().find(|hints| is_of(hints.partition)).map(|hints| hints.objects);
        let objects_total = transfer.objects_total.or(hints).filter(|total| *total >= compared.max(1));
        let left = |total: u64| running_ms.saturating_mul(total - compared).div_ceil(compared).div_ceil(1000);
        Self {
            objects_total,
            running_ms,
            bytes_per_second: transfer.bytes_sent.saturating_mul(1000).checked_div(running_ms),
            secs_left: objects_total.filter(|_| compared > 0).map(left),
        }
    }

    /// The part of the objects that is compared, from 0 to 1, if that is known.
    pub fn part(&self, transfer: &ActiveTransfer) -> Option<f64> {
        self.objects_total.map(|total| transfer.objects_compared as f64 / total as f64)
    }
}

/// A transfer as JSON, with the name of the receiver.
pub fn transfer_json(sender: &MemberTransfers, transfer: &ActiveTransfer, receiver: &str, now_secs: u64) -> Value {
    let progress = TransferProgress::of(sender, transfer, now_secs);
    json!({
        "type": transfer.kind,
        "partition": transfer.partition,
        "n_val": transfer.n_val,
        "receiver": receiver,
        "objects_compared": transfer.objects_compared,
        "objects_total": progress.objects_total,
        "bytes_sent": transfer.bytes_sent,
        "since_secs": transfer.since_secs,
        "bytes_per_second": progress.bytes_per_second,
        "seconds_left": progress.secs_left,
    })
}

/// About so many seconds, or minutes if there are many.
pub fn about(secs: u64) -> String {
    match secs {
        1 => "about 1 second".into(),
        0..120 => format!("about {secs} seconds"),
        _ => format!("about {} minutes", secs.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_cluster::PartitionHints;
    use ombak_types::NodeId;

    fn transfer() -> ActiveTransfer {
        ActiveTransfer {
            kind: "ownership".into(),
            partition: 7,
            n_val: 3,
            receiver: NodeId::new(2),
            objects_compared: 100,
            bytes_sent: 10_000,
            since_secs: 90,
            objects_total: Some(400),
            running_ms: Some(2_500),
        }
    }

    #[test]
    fn the_rate_and_the_time_that_is_left_follow_from_what_was_done() {
        let of = |transfer: ActiveTransfer| TransferProgress::of(&MemberTransfers::default(), &transfer, 100);
        let known = of(transfer());
        assert_eq!((known.bytes_per_second, known.secs_left), (Some(4_000), Some(8)));
        assert_eq!(known.part(&transfer()), Some(0.25));
        let begun = of(ActiveTransfer { objects_compared: 0, bytes_sent: 0, running_ms: Some(0), ..transfer() });
        assert_eq!((begun.bytes_per_second, begun.secs_left, begun.objects_total), (None, None, Some(400)));
        // More was compared than was there when it was counted.
        let grown = of(ActiveTransfer { objects_compared: 401, ..transfer() });
        assert_eq!((grown.objects_total, grown.secs_left), (None, None));
        let older = of(ActiveTransfer { running_ms: None, objects_total: None, ..transfer() });
        assert_eq!((older.running_ms, older.bytes_per_second, older.secs_left), (10_000, Some(1_000), None));
        let huge = of(ActiveTransfer { objects_total: Some(u64::MAX), running_ms: Some(u64::MAX), ..transfer() });
        assert!(huge.secs_left.is_some() && huge.bytes_per_second == Some(0));
    }

    #[test]
    fn what_is_held_for_others_is_the_total_of_a_hand_back() {
        let hints = vec![PartitionHints { partition: 7, objects: 200, bytes: 1 }];
        let sender = MemberTransfers { hints, ..MemberTransfers::default() };
        let hinted = ActiveTransfer { kind: "hinted".into(), objects_total: None, ..transfer() };
        assert_eq!(TransferProgress::of(&sender, &hinted, 0).objects_total, Some(200));
        let other = ActiveTransfer { partition: 8, ..hinted };
        assert_eq!(TransferProgress::of(&sender, &other, 0).objects_total, None);
    }

    #[test]
    fn a_long_time_is_told_in_minutes() {
        assert_eq!(
            [1, 0, 119, 121].map(about),
            ["about 1 second", "about 0 seconds", "about 119 seconds", "about 3 minutes"]
        );
    }
}
