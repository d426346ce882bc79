//! Runs the commit hooks of buckets, before and after a put.

use super::engine::{Engine, check_bucket, check_key};
use crate::hooks::HookedKey;
use crate::requests::PutRequest;
use ombak_types::props::Hook;
use ombak_types::{Error, Object};
use std::sync::Arc;
use std::time::Instant;

/// The refusal of an operation on a data type in a bucket with pre-commit hooks.
const OPERATION_WITH_HOOKS: &str =
    "pre-commit hooks cannot see updates of data types; remove the hooks from the bucket";

/// What the post-commit hooks of a put get.
pub(crate) struct AfterPut {
    pub(super) at: HookedKey,
    pub(super) hooks: Vec<Hook>,
    /// The object as it is stored on this node.
    pub(super) object: Object,
}

impl Engine {
    /// The pre-commit hooks of a bucket, if this node runs hooks. A put sees the hooks that were in
    /// force when it began on the node that coordinates it.
    pub(crate) fn pre_commit_hooks(&self, request: &PutRequest) -> Option<Vec<Hook>> {
        let buckets = self.buckets.snapshot();
        if !buckets.may_have_hooks || self.config.hooks.commit.is_none() {
            return None;
        }
        // A bucket without an active type is refused later, like any other put.
        let hooks = &buckets.props(&request.bucket).ok()?.precommit;
        (!hooks.is_empty()).then(|| hooks.clone())
    }

    /// Runs pre-commit hooks on the object of a put.
    pub(crate) async fn run_pre_commit(
        &self,
        request: &mut PutRequest,
        hooks: Vec<Hook>,
        until: Option<Instant>,
    ) -> Result<(), Error> {
        let Some(commit) = &self.config.hooks.commit else { return Ok(()) };
        let key = request.key.clone().unwrap_or_default();
        check_bucket(&request.bucket)?;
        check_key(&key)?;
        if request.options.operation.is_some() {
            // A hook would see the bytes of the operation, and could change them.
            return Err(Error::Unsupported(OPERATION_WITH_HOOKS.to_owned()));
        }
        let at = HookedKey { bucket: request.bucket.clone(), key };
        let object = std::mem::take(&mut request.object);
        request.object = commit.pre_commit(at, hooks, object, until).await?;
        Ok(())
    }

    /// Lets post-commit hooks run. It does not wait for them.
    pub(crate) fn run_post_commit(&self, after: AfterPut) {
        let AfterPut { at, hooks, object } = after;
        match &self.config.hooks.commit {
            None => self.stats.postcommit_failed(hooks.len()),
            Some(commit) => {
                let stats = self.stats.clone();
                commit.post_commit(at, hooks, object, Arc::new(move || stats.postcommit_failed(1)));
            }
        }
    }
}
