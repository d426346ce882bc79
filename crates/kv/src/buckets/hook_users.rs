//! Which bucket types and buckets name which functions as hooks.

use super::function_record::HookUser;
use super::state::{RecordChange, Snapshot};
use ombak_types::BucketProps;
use ombak_types::names::DEFAULT_TYPE;
use ombak_types::props::Hook;
use std::collections::{BTreeMap, BTreeSet};

impl Snapshot {
    /// The functions that the hooks of a type or bucket name after a change of it, and did not name
    /// before.
    pub(super) fn newly_named(&self, after: &Self, change: &RecordChange) -> impl Iterator<Item = String> + use<> {
        let named = |snapshot: &Self| match change {
            RecordChange::Type(name, _) => snapshot.props_of_type(name).map(|props| names(props)),
            RecordChange::Bucket(bucket, _) => snapshot.props(bucket).ok().map(|props| names(props)),
            RecordChange::Open(..) => None,
        };
        let before = named(self).unwrap_or_default();
        named(after).unwrap_or_default().into_iter().filter(move |name| !before.contains(name))
    }

    /// What names each function as a hook: types, and buckets with hooks of their own.
    pub(super) fn hook_users(&self) -> BTreeMap<String, Vec<HookUser>> {
        let mut users = BTreeMap::new();
        let default_type = self.default_type_props();
        add_user(&mut users, default_type, || HookUser::Type(DEFAULT_TYPE.into()));
        for name in self.records.types.keys() {
            if let Some(props) = self.props_of_type(name) {
                add_user(&mut users, props, || HookUser::Type(name.clone()));
            }
        }
        for (bucket, record) in &self.records.buckets {
            let has_own = ["precommit", "postcommit"].iter().any(|hooks| record.overrides.contains_key(*hooks));
            if let Ok(props) = self.props(bucket)
                && has_own
            {
                add_user(&mut users, props, || HookUser::Bucket(bucket.clone()));
            }
        }
        users
    }
}

/// The functions that hooks name.
fn names(props: &BucketProps) -> BTreeSet<String> {
    let hooks = props.precommit.iter().chain(&props.postcommit);
    hooks.filter_map(|hook| if let Hook::Named(name) = hook { Some(name.clone()) } else { None }).collect()
}

fn add_user(users: &mut BTreeMap<String, Vec<HookUser>>, props: &BucketProps, user: impl Fn() -> HookUser) {
    for hook in props.precommit.iter().chain(&props.postcommit) {
        if let Hook::Named(name) = hook {
            let of_name = users.entry(name.clone()).or_default();
            if of_name.last() != Some(&user()) {
                of_name.push(user());
            }
        }
    }
}
