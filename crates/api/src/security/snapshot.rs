//! What a node knows of security at one moment.

use super::remembered_grants::RememberedGrants;
use ombak_security::{EffectiveGrants, Roles, UnreadableRecord};
use std::sync::Arc;

/// What a node knows of security at one moment. A change makes a new snapshot, which shares with
/// the one before it what has not changed.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    pub(super) roles: Roles,
    grants: Arc<RememberedGrants>,
}

impl Snapshot {
    /// The snapshot after a record has got this value, or is gone. A value that cannot be read is
    /// returned with it, and gives nobody anything. It costs as much as one record.
    pub(super) fn after(&self, key: &[u8], value: Option<&str>) -> (Self, Option<UnreadableRecord>) {
        let mut next = self.clone();
        let changed = next.roles.change(key, value);
        (next, changed.err())
    }

    /// What a user may do. An unknown user may do nothing.
    pub(super) fn grants_of(&self, name: &str) -> Arc<EffectiveGrants> {
        match self.roles.shared_user(name) {
            Some(user) => self.grants.of(user, self.roles.inherited_version(), || self.roles.grants_of(name)),
            None => Arc::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn user(number: usize, permission: &str) -> (String, String) {
        let sources = r#"[{"cidr":"10.0.0.0/8","kind":"password","options":{}}]"#;
        let grants = format!(r#"[{{"type":"default","bucket":"b{number}","permissions":["{permission}"]}}]"#);
        let value = format!(r#"{{"version":1,"id":"{number:016x}","sources":{sources},"grants":{grants}}}"#);
        (format!("user/u{number}"), value)
    }

    fn with(users: usize) -> Snapshot {
        (0..users).map(|number| user(number, "riak_kv.get")).fold(Snapshot::default(), |snapshot, (key, value)| {
            let (next, unreadable) = snapshot.after(key.as_bytes(), Some(&value));
            assert_eq!(unreadable, None);
            next
        })
    }

    #[test]
    fn a_change_of_a_user_leaves_what_others_may_do_and_one_of_a_group_does_not() {
        let before = with(3);
        let of = |snapshot: &Snapshot| ["u0", "u1"].map(|name| snapshot.grants_of(name));
        let [grants_0, grants_1] = of(&before);
        let (key, value) = user(0, "riak_kv.put");
        let (after, _) = before.after(key.as_bytes(), Some(&value));
        let [other_0, other_1] = of(&after);
        assert!(Arc::ptr_eq(&grants_1, &other_1), "it was not gathered again");
        let may = |grants: &EffectiveGrants| {
            ["riak_kv.get", "riak_kv.put"].map(|name| grants.permits(name, None, Some(b"b0")))
        };
        assert_eq!((may(&grants_0), may(&other_0)), ([true, false], [false, true]));
        assert_eq!(may(&before.grants_of("u0")), [true, false], "a request goes on with the snapshot that it has");
        let all = r#"{"version":1,"grants":[{"permissions":["riak_kv.put"]}]}"#;
        let (after, _) = after.after(b"all", Some(all));
        assert_eq!(of(&after).map(|grants| grants.permits_on_any("riak_kv.put")), [true; 2]);
        let (after, _) = after.after(b"user/u0", None);
        assert!(!after.grants_of("u0").permits_on_any("riak_kv.put"));
    }

    /// A change must cost what one record costs, however many there are: 7 us where all take 80 ms.
    /// The bound is loose, since others use the processor too. Copying 10,000 entries exceeds it.
    #[test]
    fn a_change_among_ten_thousand_users_costs_as_much_as_one_record() {
        let (mut snapshot, mut times) = (with(10_000), Vec::new());
        for number in 0..100 {
            let (key, value) = user(number, "riak_kv.put");
            let began = Instant::now();
            snapshot = snapshot.after(key.as_bytes(), Some(&value)).0;
            times.push(began.elapsed());
        }
        let records: Vec<_> = (0..10_000).map(|number| user(number, "riak_kv.get")).collect();
        let began = Instant::now();
        let read = Roles::from_records(records.iter().map(|(key, value)| (key.as_bytes(), value.as_str())));
        let whole: Duration = began.elapsed();
        drop(read);
        times.sort_unstable();
        println!("one change: {:?} in the median, all records: {whole:?}", times[50]);
        assert!(times[50] * 1000 < whole, "{:?} {whole:?}", times[50]);
    }
}
