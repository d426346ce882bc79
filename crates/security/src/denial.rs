//! What clients are told that may not do something.

use std::borrow::Cow;

/// The text for a client that may not do something to a type, or to a bucket of it. The type `None`
/// is the default type.
pub fn denial(user: &str, permission: &str, bucket_type: Option<&[u8]>, bucket: Option<&[u8]>) -> String {
    let bucket_type = bucket_type.map_or(Cow::Borrowed("default"), String::from_utf8_lossy);
    let resource = match bucket.map(String::from_utf8_lossy) {
        Some(bucket) => Cow::Owned(format!("{bucket_type}/{bucket}")),
        None => bucket_type,
    };
    text(user, permission, &resource)
}

/// The text for a client that may not do something that is about no type and no bucket.
pub fn denial_on_any(user: &str, permission: &str) -> String {
    text(user, permission, "any")
}

fn text(user: &str, permission: &str, resource: &str) -> String {
    format!("Permission denied: User '{user}' does not have '{permission}' on {resource}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recorded exchanges pb/530, http/842, http/843 and http/866, in this order.
    #[test]
    fn denials_read_as_recorded() {
        let recorded = [
            (denial("alice", "riak_kv.get", Some(b"sibs"), Some(b"tb")), "'riak_kv.get' on sibs/tb"),
            (denial("alice", "riak_kv.list_buckets", None, None), "'riak_kv.list_buckets' on default"),
            (denial("alice", "riak_kv.list_buckets", Some(b"sibs"), None), "'riak_kv.list_buckets' on sibs"),
            (denial("alice", "riak_kv.get", Some(b"nosuch"), Some(b"tb")), "'riak_kv.get' on nosuch/tb"),
            (denial("alice", "riak_kv.put", None, Some(b"sec2")), "'riak_kv.put' on default/sec2"),
            (denial_on_any("alice", "riak_kv.mapreduce"), "'riak_kv.mapreduce' on any"),
        ];
        for (text, end) in recorded {
            assert_eq!(text, format!("Permission denied: User 'alice' does not have {end}"));
        }
        assert!(denial("a", "p", None, Some(&[0xff])).ends_with("on default/\u{fffd}"));
    }
}
