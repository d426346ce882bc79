//! What a user may do. Hot: each request asks.

use crate::record::Grant;
use std::collections::{BTreeMap, BTreeSet};

/// The type of buckets that name none.
const DEFAULT_TYPE: &[u8] = b"default";

/// Permissions, sorted.
type Permissions = Box<[Box<str>]>;

/// The permissions of a type, and those of its buckets, while they are gathered.
type Gathered<'a> = (BTreeSet<&'a str>, BTreeMap<&'a str, BTreeSet<&'a str>>);

/// What a user may do: its own grants, those of its groups and of their groups, and those of all.
/// Asking allocates nothing.
#[derive(Debug, Default)]
pub struct EffectiveGrants {
    /// On everything.
    any: Permissions,
    /// By type, sorted.
    types: Box<[(Box<[u8]>, OfType)]>,
}

#[derive(Debug)]
struct OfType {
    /// On all buckets of the type, and on the type.
    whole: Permissions,
    /// By bucket, sorted.
    buckets: Box<[(Box<[u8]>, Permissions)]>,
}

impl EffectiveGrants {
    pub(crate) fn new<'a>(grants: impl IntoIterator<Item = &'a Grant>) -> Self {
        let mut any = BTreeSet::new();
        let mut types: BTreeMap<&str, Gathered<'_>> = BTreeMap::new();
        for grant in grants {
            let permissions = grant.permissions.iter().map(String::as_str);
            match (&grant.bucket_type, &grant.bucket) {
                (None, _) => any.extend(permissions),
                (Some(bucket_type), None) => types.entry(bucket_type).or_default().0.extend(permissions),
                (Some(bucket_type), Some(bucket)) => {
                    types.entry(bucket_type).or_default().1.entry(bucket).or_default().extend(permissions);
                }
            }
        }
        let of_type = |(name, (whole, buckets)): (&str, Gathered<'_>)| {
            let buckets = buckets.into_iter().map(|(bucket, list)| (bucket.as_bytes().into(), boxed(list))).collect();
            (name.as_bytes().into(), OfType { whole: boxed(whole), buckets })
        };
        Self { any: boxed(any), types: types.into_iter().map(of_type).collect() }
    }

    /// Whether a permission is granted for a bucket, or for a whole type if there is no bucket. The
    /// type `None` is the default type.
    ///
    /// A request that is about no type at all asks [`permits_on_any`](Self::permits_on_any).
    pub fn permits(&self, permission: &str, bucket_type: Option<&[u8]>, bucket: Option<&[u8]>) -> bool {
        if has(&self.any, permission) {
            return true;
        }
        let bucket_type = bucket_type.unwrap_or(DEFAULT_TYPE);
        let Some(of_type) = found(&self.types, bucket_type) else { return false };
        has(&of_type.whole, permission)
            || bucket
                .and_then(|bucket| found(&of_type.buckets, bucket))
                .is_some_and(|permissions| has(permissions, permission))
    }

    /// Whether a permission is granted on `any`, for requests that are about no bucket and no type.
    pub fn permits_on_any(&self, permission: &str) -> bool {
        has(&self.any, permission)
    }
}

fn boxed(permissions: BTreeSet<&str>) -> Permissions {
    permissions.into_iter().map(Box::from).collect()
}

fn has(permissions: &[Box<str>], permission: &str) -> bool {
    permissions.binary_search_by(|other| (**other).cmp(permission)).is_ok()
}

fn found<'a, T>(sorted: &'a [(Box<[u8]>, T)], name: &[u8]) -> Option<&'a T> {
    let place = sorted.binary_search_by(|(other, _)| (**other).cmp(name)).ok()?;
    sorted.get(place).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_reaches_as_far_as_it_says() {
        let grants = EffectiveGrants::new(&[
            Grant::new(None, None, ["riak_kv.get"]),
            Grant::new(Some("default"), None, ["riak_kv.put"]),
            Grant::new(Some("maps"), Some("b"), ["riak_kv.delete"]),
        ]);
        assert!(grants.permits("riak_kv.get", Some(b"maps"), Some(b"x")) && grants.permits_on_any("riak_kv.get"));
        assert!(grants.permits("riak_kv.put", None, Some(b"x")) && grants.permits("riak_kv.put", None, None));
        assert!(grants.permits("riak_kv.put", Some(b"default"), Some(b"x")));
        assert!(!grants.permits("riak_kv.put", Some(b"maps"), Some(b"x")) && !grants.permits_on_any("riak_kv.put"));
        assert!(grants.permits("riak_kv.delete", Some(b"maps"), Some(b"b")));
        assert!(!grants.permits("riak_kv.delete", Some(b"maps"), Some(b"c")));
        assert!(!grants.permits("riak_kv.delete", Some(b"maps"), None), "a grant on a bucket is none on its type");
        assert!(!grants.permits("riak_kv.delete", None, Some(b"b")) && !grants.permits_on_any("riak_kv.delete"));
        assert!(!EffectiveGrants::default().permits("", None, None));
    }
}
