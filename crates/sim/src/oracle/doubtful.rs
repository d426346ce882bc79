//! Copies that a store has in doubt because a fault has hit it. It may drop them when all others
//! lack them (docs/design/anti-entropy.md §5, rule 6), so they are no promise.

use super::copies::{Copies, DiskCopy};
use super::{Key, Oracle};
use crate::world::HostId;

impl Oracle {
    /// Whether a host may drop a copy of a key that it has in doubt. Where a store is the only
    /// primary, nobody else can say that something was removed. What it holds for others goes if
    /// all primaries lack it.
    pub(super) fn may_drop_what_is_in_doubt(&self, key: Key, host: HostId) -> bool {
        let holds_for_others = || self.witness.hosts_in_force(key).is_some_and(|hosts| !hosts.contains(&host));
        key.kind.n > 1 || holds_for_others()
    }

    /// The copies of a key without those that a host has in doubt, or will have: a store from which
    /// a record has vanished may learn that later, and then also doubts what it has stored since.
    /// Only a host that a fault has hit is in doubt rightly.
    pub(super) fn without_doubtful(&self, key: Key, copies: &Copies) -> Copies {
        let home = self.witness.home_of(key);
        let may_go = |host: HostId, copy: &DiskCopy| {
            let is_in_doubt = matches!(copy, DiskCopy::Version { is_in_doubt: true, .. })
                || home.is_some_and(|home| self.robbed.contains(&(host, home)));
            is_in_doubt && self.witness.is_doubtful(host) && self.may_drop_what_is_in_doubt(key, host)
        };
        let left = |(host, copy): (&HostId, &DiskCopy)| {
            (*host, if may_go(*host, copy) { DiskCopy::Absent } else { copy.clone() })
        };
        copies.iter().map(left).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, Token};
    use super::*;
    use crate::bucket_kinds::BucketKind;
    use std::collections::BTreeSet;
    use std::time::Duration;

    const WHOLE: HostId = HostId(1);
    const DAMAGED: HostId = HostId(2);

    fn version(token: Token, is_in_doubt: bool) -> DiskCopy {
        DiskCopy::Version {
            tokens: BTreeSet::from([token]),
            events: Vec::new(),
            clock: Vec::new(),
            digest: 1,
            is_synced: true,
            is_timeless: false,
            hides_values: false,
            is_in_doubt,
            fault: None,
        }
    }

    /// Whether an acknowledged write counts as destroyed when the only other copy is lost.
    fn is_destroyed(kind: BucketKind, is_in_doubt: bool, is_damaged: bool) -> bool {
        is_destroyed_in(Oracle::default(), kind, (is_in_doubt, is_damaged))
    }

    fn is_destroyed_in(mut oracle: Oracle, kind: BucketKind, (is_in_doubt, is_damaged): (bool, bool)) -> bool {
        let key = Key { kind, number: 0 };
        let token = oracle.write_begins(key, BTreeSet::new(), false);
        oracle.history(key).writes.get_mut(&token).unwrap().outcome = Outcome::Acknowledged;
        if is_damaged {
            oracle.witness.note_doubtful(DAMAGED);
        }
        let before = Copies::from([(WHOLE, version(token, false)), (DAMAGED, version(token, is_in_doubt))]);
        let after = Copies::from([(WHOLE, DiskCopy::Absent), (DAMAGED, version(token, is_in_doubt))]);
        oracle.mark_destroyed(key, &before, &after, Duration::ZERO);
        oracle.history(key).writes[&token].is_destroyed
    }

    #[test]
    fn a_write_is_destroyed_when_only_a_copy_in_doubt_is_left() {
        let of_n = |is_meant: fn(u32) -> bool| BucketKind::ALL.into_iter().find(|kind| is_meant(kind.n)).unwrap();
        let several = of_n(|n| n > 1);
        assert!(is_destroyed(several, true, true));
        assert!(!is_destroyed(several, false, true), "it is not in doubt");
        let mut oracle = Oracle::default();
        oracle.witness.note_home(Key { kind: several, number: 0 }, 7);
        oracle.robbed.insert((DAMAGED, 7));
        assert!(is_destroyed_in(oracle, several, (false, true)), "its store does not know yet what it has lost");
        assert!(!is_destroyed(several, true, false), "no fault has hit that store");
        assert!(!is_destroyed(of_n(|n| n == 1), true, true), "nobody else can say that it was removed");
    }
}
