//! Hooks after a put.

use crate::counts::{HookCounts, is_timeout, reached_limit, took_too_long};
use crate::opened::OpenFunctions;
use crate::owner;
use ombak_functions::Lane;
use ombak_kv::hooks::HookedKey;
use ombak_mapreduce::{Input, object_to_json};
use ombak_types::props::Hook;
use ombak_types::{Object, ShownKey};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tracing::warn;

/// How many bytes of objects may wait for post-commit hooks.
const WAITING_BYTES_MAX: u64 = 32 << 20;
/// What an object takes besides its values, in bytes.
const OBJECT_BYTES: u64 = 1 << 10;

/// An object that waits for hooks, counted until it is dropped.
struct Waiting {
    input: Input,
    object: Object,
    bytes: u64,
    counts: Arc<HookCounts>,
}

impl Waiting {
    /// Counts an object; `None` if there is no room for it.
    fn count(input: Input, object: Object, counts: &Arc<HookCounts>) -> Option<Arc<Self>> {
        let bytes = OBJECT_BYTES + object.value_bytes();
        let before = counts.waiting_bytes.fetch_add(bytes, Ordering::SeqCst);
        let waiting = Self { input, object, bytes, counts: counts.clone() };
        (before + bytes <= WAITING_BYTES_MAX).then(|| Arc::new(waiting))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.counts.waiting_bytes.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

type Failed = Arc<dyn Fn() + Send + Sync>;

/// Queues hooks. `failed` is called for each that cannot be run or that fails.
pub(crate) fn queue_all(
    functions: &OpenFunctions,
    counts: &Arc<HookCounts>,
    (at, object): (HookedKey, Object),
    hooks: Vec<Hook>,
    until: Instant,
    failed: &Failed,
) {
    let waiting = Waiting::count(Input::new(at.bucket.clone(), at.key.clone()), object, counts);
    for hook in hooks {
        let queued = match (&waiting, hook) {
            (Some(waiting), Hook::Named(name)) => queue(functions, waiting.clone(), name, until, failed),
            (None, _) => Err("too many bytes wait for post-commit hooks".to_owned()),
            (_, Hook::ModFun { module, function }) => Err(format!("{module}:{function} is an Erlang function")),
        };
        if let Err(why) = queued {
            let ShownKey { bucket_type, bucket, key } = ShownKey::in_bucket(&at.bucket, &at.key);
            warn!(%bucket_type, %bucket, %key, why, "a post-commit hook was not run");
            counts.dropped.add(1);
            failed();
        }
    }
}

fn queue(
    functions: &OpenFunctions,
    waiting: Arc<Waiting>,
    name: String,
    until: Instant,
    failed: &Failed,
) -> Result<(), String> {
    let function = functions.get(Lane::PostCommit, &name).map_err(|why| why.to_string())?;
    let bucket = waiting.input.bucket.clone();
    if !waiting.counts.admits(&bucket, &name) {
        return Err("the hook is suspended".to_owned());
    }
    let owner = owner(&bucket, &name);
    let (failed_there, failed) = (failed.clone(), failed.clone());
    let hook: Arc<str> = name.into();
    let hook_there = hook.clone();
    let (counts, counts_there) = (waiting.counts.clone(), waiting.counts.clone());
    let work = function.submit(
        &owner,
        until,
        move |calls| {
            let done = match object_to_json(&waiting.input, &waiting.object) {
                Ok(json) => calls.post_commit(&json).map_err(|why| {
                    if is_timeout(&why) {
                        counts_there.post_timeouts.add(1);
                        counts_there.note_limit(&waiting.input.bucket, &hook_there);
                    }
                    why.to_string()
                }),
                Err(why) => Err(why.to_string()),
            };
            if let Err(why) = done {
                let at = &waiting.input;
                let ShownKey { bucket_type, bucket, key } = ShownKey::in_bucket(&at.bucket, &at.key);
                let hook = &*hook_there;
                warn!(hook, %bucket_type, %bucket, %key, why, "a post-commit hook failed");
                failed_there();
            }
        },
        move |why| {
            let at = ShownKey::of_bucket(&bucket);
            warn!(hook = &*hook, bucket_type = %at.bucket_type, bucket = %at.bucket, %why, "a post-commit hook was not run");
            counts.post_timeouts.add(u64::from(took_too_long(&why)));
            if reached_limit(&why) {
                counts.note_limit(&bucket, &hook);
            }
            counts.dropped.add(1);
            failed();
        },
    );
    work.map_err(|why| why.to_string())
}
