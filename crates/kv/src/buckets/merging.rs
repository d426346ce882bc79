//! Whether the objects of this node keep their meaning under the bucket types, properties and
//! records of another cluster, which the node is about to join (docs/design/replication.md §15).
//!
//! What it is: a comparison of two states. It does not look into stores: it says for which bucket
//! or type a difference counts only if the node holds objects of it.

use super::registry::BucketRegistry;
use super::state::{RecordChange, Records, Snapshot};
use crate::requests::Holdings;
use ombak_types::Bucket;
use ombak_types::props::BucketProps;

/// Something that differs, and that speaks against joining.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropertyConflict {
    /// What differs and what to do, as a sentence for operators.
    pub text: String,
    /// The conflict counts only if the node holds objects there; `None`: it always counts.
    pub only_if_held: Option<Holdings>,
}

impl BucketRegistry {
    /// What speaks against taking over all records of another cluster, and giving up the own ones.
    pub fn conflicts_with(&self, theirs: Vec<RecordChange>) -> Vec<PropertyConflict> {
        let mut records = Records::default();
        theirs.into_iter().for_each(|change| records.apply(change));
        let (ours, theirs) = (self.snapshot(), Snapshot::new(self.settings(), records));
        let mut conflicts = Vec::new();
        for (name, record) in &ours.records.types {
            let (shown, held) = (name.escape_ascii(), Some(Holdings::Type(name.clone())));
            let (text, only_if_held) = match theirs.records.types.get(name) {
                None => {
                    let text = format!("this node has the bucket type '{shown}', and the cluster has not.");
                    (format!("{text} Create it there first."), None)
                }
                Some(of_cluster) if record.active && !of_cluster.active => {
                    (format!("the bucket type '{shown}' is not active in the cluster. Activate it there first."), held)
                }
                Some(_) => {
                    let both = ours.props_of_type(name).zip(theirs.props_of_type(name));
                    let Some(difference) = both.and_then(|(own, of_cluster)| difference(own, of_cluster)) else {
                        continue;
                    };
                    (format!("the bucket type '{shown}' has {difference}."), held)
                }
            };
            conflicts.push(PropertyConflict { text, only_if_held });
        }
        for (bucket, record) in &ours.records.buckets {
            let of_cluster = theirs.records.buckets.get(bucket);
            if of_cluster.is_none_or(|of_cluster| of_cluster.overrides != record.overrides) {
                let text = format!(
                    "{} has properties of its own here, and not the same ones in the cluster. Set the same ones \
                     there, or reset them here.",
                    shown(bucket)
                );
                conflicts.push(PropertyConflict { text, only_if_held: None });
            }
        }
        for bucket in theirs.records.buckets.keys().filter(|bucket| !ours.records.buckets.contains_key(*bucket)) {
            let (Some(own), Ok(of_cluster)) = (ours.props_of_type(&bucket.bucket_type), theirs.props(bucket)) else {
                continue;
            };
            if let Some(difference) = difference(own, of_cluster) {
                let text = format!("{} has {difference}.", shown(bucket));
                conflicts.push(PropertyConflict { text, only_if_held: Some(Holdings::Bucket(bucket.clone())) });
            }
        }
        for (name, own) in ours.records.open.iter() {
            let of_cluster = theirs.records.open.named(&name);
            let text = self.namespaces().conflict(&name, own, of_cluster);
            conflicts.extend(text.map(|text| PropertyConflict { text, only_if_held: None }));
        }
        conflicts
    }
}

fn shown(bucket: &Bucket) -> String {
    let name = bucket.name.escape_ascii();
    match bucket.is_default_type() {
        true => format!("the bucket '{name}'"),
        false => format!("the bucket '{name}' of the type '{}'", bucket.bucket_type.escape_ascii()),
    }
}

/// The first property that says what an object is or where it lies, and that differs: these do not
/// change while there are objects. The others may change at any time.
fn difference(own: &BucketProps, of_cluster: &BucketProps) -> Option<String> {
    let hashing = |props: &BucketProps| if props.hash_bucket_only { "the bucket" } else { "the bucket and the key" };
    let datatype =
        |props: &BucketProps| props.datatype.map_or_else(|| "none".to_owned(), |kind| kind.name().to_owned());
    let properties = [
        ("n_val", own.n_val.to_string(), of_cluster.n_val.to_string()),
        ("datatype", datatype(own), datatype(of_cluster)),
        ("write_once", own.write_once.to_string(), of_cluster.write_once.to_string()),
        ("consistent", own.consistent.to_string(), of_cluster.consistent.to_string()),
        ("chash_keyfun that hashes", hashing(own).into(), hashing(of_cluster).into()),
    ];
    let differing = properties.into_iter().find(|(_, own, of_cluster)| own != of_cluster);
    differing.map(|(name, own, of_cluster)| {
        let text = format!("{name} {own} here and {of_cluster} in the cluster");
        format!("{text}, and this node holds objects of it. Objects keep their place and their kind only if both agree")
    })
}

#[cfg(test)]
mod tests {
    use super::super::state::{BucketRecord, TypeRecord};
    use super::*;
    use bytes::Bytes;
    use ombak_storage::fs::RealFs;
    use ombak_types::PropMap;
    use serde_json::json;
    use std::sync::Arc;

    fn map(props: serde_json::Value) -> Arc<PropMap> {
        Arc::new(props.as_object().cloned().unwrap_or_default().into_iter().collect())
    }

    fn a_type(name: &'static str, active: bool, props: serde_json::Value) -> RecordChange {
        RecordChange::Type(Bytes::from(name), Some(TypeRecord { active, overrides: map(props), version: 1 }))
    }

    fn a_bucket(bucket: Bucket, props: serde_json::Value) -> RecordChange {
        RecordChange::Bucket(bucket, Some(BucketRecord { overrides: map(props), version: 1 }))
    }

    fn conflicts(own: Vec<RecordChange>, theirs: Vec<RecordChange>) -> Vec<PropertyConflict> {
        let dir = tempfile::tempdir().unwrap();
        let registry = BucketRegistry::open(Arc::new(RealFs), dir.path(), "n@h", &PropMap::default()).unwrap();
        registry.adopt(own);
        registry.conflicts_with(theirs)
    }

    fn one(own: RecordChange, theirs: Vec<RecordChange>) -> (String, Option<Holdings>) {
        let mut found = conflicts(vec![own], theirs);
        assert_eq!(found.len(), 1, "{found:?}");
        let conflict = found.remove(0);
        (conflict.text, conflict.only_if_held)
    }

    #[test]
    fn the_same_records_and_more_in_the_cluster_agree() {
        let own = || {
            vec![
                a_type("t", true, json!({"n_val": 2})),
                a_bucket(Bucket::typed("t", "b"), json!({"allow_mult": false})),
            ]
        };
        let mut theirs = own();
        theirs.push(a_type("other", true, json!({"n_val": 5})));
        theirs.push(a_bucket(Bucket::typed("other", "b"), json!({"n_val": 1})));
        theirs.push(a_bucket(Bucket::typed("t", "c"), json!({"allow_mult": false, "r": 1})));
        assert_eq!(conflicts(own(), theirs), []);
        // What does not touch where objects lie may differ for a type.
        let theirs = vec![a_type("t", true, json!({"n_val": 2, "allow_mult": false, "w": "all"}))];
        assert_eq!(conflicts(vec![a_type("t", true, json!({"n_val": 2}))], theirs), []);
    }

    #[test]
    fn a_type_that_is_missing_or_another_is_named() {
        let own = || a_type("t", true, json!({"n_val": 2}));
        let (text, held) = one(own(), vec![]);
        assert!(text.contains("'t', and the cluster has not") && held.is_none(), "{text}");
        let (text, held) = one(own(), vec![a_type("t", false, json!({"n_val": 2}))]);
        assert!(text.contains("not active") && held == Some(Holdings::Type("t".into())), "{text}");
        for (props, named) in [
            (json!({"n_val": 3}), "n_val 2 here and 3 in the cluster"),
            (json!({"n_val": 2, "datatype": "set"}), "datatype none here and set"),
            (json!({"n_val": 2, "write_once": true}), "write_once false here and true"),
        ] {
            let (text, held) = one(own(), vec![a_type("t", true, props)]);
            assert!(text.contains(named) && held == Some(Holdings::Type("t".into())), "{text}");
        }
    }

    #[test]
    fn a_function_that_is_missing_or_another_is_named() {
        let function = |source: &str| {
            let name = super::super::RecordName::new("functions", b"f");
            RecordChange::Open(name, Some(super::super::OpenRecord { value: source.into(), version: 1 }))
        };
        let (text, held) = one(function("s"), vec![]);
        assert!(text.contains("the function 'f' is registered here, and not") && held.is_none(), "{text}");
        let (text, held) = one(function("s"), vec![function("other")]);
        assert!(text.contains("the function 'f' has another source") && held.is_none(), "{text}");
        assert_eq!(conflicts(vec![function("s")], vec![function("s")]), []);
        assert_eq!(conflicts(vec![], vec![function("s")]), []);
    }

    #[test]
    fn a_bucket_that_differs_is_named() {
        let bucket = || Bucket::untyped("b");
        let (text, held) = one(a_bucket(bucket(), json!({"w": 1})), vec![]);
        assert!(text.contains("'b' has properties of its own here") && held.is_none(), "{text}");
        let (text, _) = one(a_bucket(bucket(), json!({"w": 1})), vec![a_bucket(bucket(), json!({"w": 2}))]);
        assert!(text.contains("not the same ones"), "{text}");
        let found = conflicts(vec![], vec![a_bucket(bucket(), json!({"n_val": 1}))]);
        assert!(found[0].text.contains("n_val 3 here and 1"), "{found:?}");
        assert_eq!(found[0].only_if_held, Some(Holdings::Bucket(bucket())));
    }
}
