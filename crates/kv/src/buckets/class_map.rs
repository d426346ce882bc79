//! Tells states of the registry apart by what they say of the places of keys.
//!
//! Whatever counts keys by class must begin anew when the class of some key changes, and where a
//! node has several backends, also when its backend changes. Most changes of properties change
//! neither. Each n has a map of its own, because most of the others change the classes of one or
//! two n only.

use ombak_types::BucketProps;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Which keys are in the classes of one n, and on which backend, as two numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClassMap {
    /// A wrapping sum of [`print_of`] over the types of this n, and over the buckets that differ
    /// from their types and have this n or whose types have it. Equal maps have equal prints, also
    /// after a restart.
    pub(crate) print: u64,
    /// Rises with each change of the map. Of one registry, two states with the same epoch have the
    /// same map, and so had every state between them.
    pub(crate) epoch: u64,
}

/// Parts of the prints of class maps, by n.
pub(super) type Prints = BTreeMap<u32, u64>;

/// The class map of each n. One that is not there was never changed.
#[derive(Clone, Debug, Default)]
pub(super) struct ClassMaps(Arc<BTreeMap<u32, ClassMap>>);

impl ClassMaps {
    /// The map of the classes with this n.
    pub(super) fn of(&self, n: u32) -> ClassMap {
        self.0.get(&n).copied().unwrap_or_default()
    }

    /// Parts of the maps have got other prints.
    pub(super) fn change(&mut self, before: &Prints, after: &Prints) {
        let part = |prints: &Prints, n: u32| prints.get(&n).copied().unwrap_or_default();
        let ns: BTreeSet<u32> = before.keys().chain(after.keys()).copied().collect();
        for n in ns.into_iter().filter(|n| part(before, *n) != part(after, *n)) {
            Arc::make_mut(&mut self.0).entry(n).or_default().change(part(before, n), part(after, n));
        }
    }

    /// These maps after others that were in force before them.
    pub(super) fn succeeding(&self, earlier: &Self) -> Self {
        let ns: BTreeSet<u32> = self.0.keys().chain(earlier.0.keys()).copied().collect();
        Self(Arc::new(ns.into_iter().map(|n| (n, self.of(n).succeeding(earlier.of(n)))).collect()))
    }
}

/// Adds the print of a type or bucket to that of the classes with this n.
pub(super) fn add_print(prints: &mut Prints, n: u32, print: u64) {
    let sum = prints.entry(n).or_default();
    *sum = sum.wrapping_add(print);
}

impl ClassMap {
    /// A part of the map has got another print.
    const fn change(&mut self, before: u64, after: u64) {
        if before != after {
            self.print = self.print.wrapping_sub(before).wrapping_add(after);
            self.epoch += 1;
        }
    }

    /// This map after another one that was in force before it.
    const fn succeeding(self, earlier: Self) -> Self {
        let is_same = self.print == earlier.print;
        Self { print: self.print, epoch: if is_same { earlier.epoch } else { earlier.epoch + 1 } }
    }

    /// Whether keys with one of these properties are in the same class and on the same backend.
    pub(super) fn places_alike(one: &BucketProps, other: &BucketProps) -> bool {
        (one.n_val, &one.backend) == (other.n_val, &other.backend)
    }
}

/// A number for the class and the backend of the keys of a type or bucket.
pub(super) fn print_of(name: &[u8], props: &BucketProps) -> u64 {
    let backend = props.backend.as_deref().unwrap_or_default();
    let (length, n) = ((name.len() as u64).to_le_bytes(), props.n_val.to_le_bytes());
    xxh3_64(&[&length[..], name, &n[..], backend].concat())
}

/// A number for a type or bucket whose keys are not in kept trees, while its class has them or not.
pub(super) fn exclusion_print_of(name: &[u8]) -> u64 {
    xxh3_64(&[b"aae_tree_exclude", name].concat())
}

#[cfg(test)]
mod tests {
    use super::super::BucketRegistry;
    use super::*;
    use ombak_storage::fs::RealFs;
    use ombak_types::{Bucket, PropMap};
    use serde_json::json;

    fn map(value: serde_json::Value) -> PropMap {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn the_epoch_rises_exactly_when_a_key_changes_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let open = || BucketRegistry::open(Arc::new(RealFs), dir.path(), "n", &PropMap::new()).unwrap();
        let registry = open();
        let now = || registry.snapshot().class_map(3);
        let of_two = || registry.snapshot().class_map(2);
        let (bucket, began) = (Bucket::untyped("b"), now());
        registry.set_bucket(&bucket, &map(json!({"allow_mult": true}))).unwrap();
        assert_eq!(now(), began, "another property");
        registry.set_bucket(&bucket, &map(json!({"n_val": 2}))).unwrap();
        let changed = now();
        assert!(changed.epoch > began.epoch && changed.print != began.print, "keys have left the classes");
        assert!(of_two().epoch > 0, "and are in others");
        assert_eq!(open().snapshot().class_map(3).print, changed.print, "the same after a restart");
        registry.set_bucket(&bucket, &map(json!({"n_val": 3}))).unwrap();
        assert!(now().print == began.print && now().epoch > changed.epoch, "it is not as if nothing had happened");
        let (others, before) = (now(), of_two());
        registry.create_type(b"t", &map(json!({"n_val": 2}))).unwrap();
        let typed = of_two();
        assert!(typed.epoch > before.epoch && typed.print != before.print, "keys of the type are in a class now");
        registry.activate_type(b"t").unwrap();
        assert_eq!((of_two(), now()), (typed, others), "no key of the other classes has moved");
        registry.set_bucket(&Bucket::typed("t", "own"), &map(json!({"n_val": 5}))).unwrap();
        let own = registry.snapshot().class_map(5);
        assert!(own.epoch > 0 && of_two().epoch > typed.epoch, "keys of the bucket have left the classes of the type");
        registry.update_type(b"t", &map(json!({"n_val": 5}))).unwrap();
        assert!(registry.snapshot().class_map(5).epoch > own.epoch);
        assert_eq!(now(), others);
    }

    #[test]
    fn kept_trees_have_other_keys_exactly_when_a_bucket_is_excluded_or_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let open = || BucketRegistry::open(Arc::new(RealFs), dir.path(), "n", &PropMap::new()).unwrap();
        let registry = open();
        let now = || (registry.snapshot().class_map(3), registry.snapshot().exclusion_map(3));
        let exclude = |bucket: &Bucket, is_excluded: bool| {
            registry.set_bucket(bucket, &map(json!({"aae_tree_exclude": is_excluded}))).unwrap();
        };
        let (bucket, began) = (Bucket::untyped("b"), now());
        registry.set_bucket(&bucket, &map(json!({"allow_mult": true}))).unwrap();
        assert_eq!(now(), began, "another property");
        exclude(&bucket, true);
        let excluded = now();
        assert_eq!(excluded.0, began.0, "its keys are where they were");
        assert!(excluded.1.epoch > began.1.epoch && excluded.1.print != began.1.print);
        assert_eq!(open().snapshot().exclusion_map(3).print, excluded.1.print, "the same after a restart");
        assert_eq!(registry.snapshot().exclusion_map(2), ClassMap::default(), "the bucket has another n");
        exclude(&bucket, false);
        assert!(now().1.print == began.1.print && now().1.epoch > excluded.1.epoch);
        registry.create_type(b"t", &map(json!({"aae_tree_exclude": true}))).unwrap();
        registry.activate_type(b"t").unwrap();
        let typed = now().1;
        assert!(typed.print != began.1.print, "a whole type");
        exclude(&Bucket::typed("t", "own"), true);
        assert_eq!(now().1, typed, "the bucket is as its type");
        exclude(&Bucket::typed("t", "own"), false);
        assert!(now().1.epoch > typed.epoch);
    }

    #[test]
    fn an_equal_map_succeeds_without_a_new_epoch() {
        let (one, other) = (ClassMap { print: 7, epoch: 4 }, ClassMap { print: 8, epoch: 1 });
        assert_eq!(ClassMap { print: 7, epoch: 1 }.succeeding(one), one);
        assert_eq!(other.succeeding(one), ClassMap { print: 8, epoch: 5 });
    }
}
