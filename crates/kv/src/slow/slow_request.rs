//! A slow request, and its line in the log.

use super::request_kind::RequestKind;
use super::spent::Spent;
use ombak_types::{Bucket, ShownKey, ShownName};
use std::fmt::Display;
use tracing::field::{Value, display};
use tracing::warn;

/// The maximum of the characters of a result that are shown. An error may quote what a client sent.
const RESULT_CHARS_MAX: usize = 300;

/// A request that took too long.
pub(crate) struct SlowRequest<'a> {
    pub(crate) kind: RequestKind,
    /// The bucket. Its name is empty for a listing of buckets, and so is its type for a job whose
    /// inputs lie in no bucket.
    pub(crate) bucket: &'a Bucket,
    /// The key, or the name of the index; empty if there is none.
    pub(crate) key: &'a [u8],
    pub(crate) took_us: u64,
    pub(crate) spent: Spent,
    /// How the request ended: `ok`, the error, or that its client left.
    pub(crate) result: &'a dyn Display,
}

/// Writes the line from a place in the program that only this kind has. The log limits how many
/// lines each place writes, so one kind silences no other, and the report about omitted lines names
/// the kind in `from`.
macro_rules! line_of {
    ($kind:literal, $request:expr) => {{
        let request: &SlowRequest<'_> = $request;
        let Spent { waiting_us, hooks_us, store_us, replicas_us, forwarded_us, client_us, asked, answered } =
            request.spent;
        let at = ShownKey::in_bucket(request.bucket, request.key);
        let result = request.result.to_string().chars().take(RESULT_CHARS_MAX).collect::<String>();
        let has_replicas = asked > 0 || replicas_us > 0;
        warn!(
            target: concat!("ombak_kv::slow::", $kind),
            operation = $kind,
            bucket_type = shown(at.bucket_type),
            bucket = shown(at.bucket),
            key = shown(at.key),
            took_ms = millis(request.took_us),
            waiting_ms = part(waiting_us),
            hooks_ms = part(hooks_us),
            store_ms = part(store_us),
            replicas_ms = part(replicas_us),
            replicas_asked = has_replicas.then_some(asked),
            replicas_answered = has_replicas.then_some(answered),
            forwarded_ms = part(forwarded_us),
            client_ms = part(client_us),
            result = %result,
            "slow request"
        )
    }};
}

impl SlowRequest<'_> {
    /// Writes the line.
    pub(super) fn log(&self) {
        match self.kind {
            RequestKind::Get => line_of!("get", self),
            RequestKind::Fetch => line_of!("fetch", self),
            RequestKind::Put => line_of!("put", self),
            RequestKind::Update => line_of!("update", self),
            RequestKind::Delete => line_of!("delete", self),
            RequestKind::ListKeys => line_of!("list_keys", self),
            RequestKind::ListBuckets => line_of!("list_buckets", self),
            RequestKind::IndexQuery => line_of!("index_query", self),
            RequestKind::Job => line_of!("job", self),
        }
    }
}

/// A name; `None` if there is none.
fn shown(name: ShownName<'_>) -> Option<impl Value> {
    (!name.0.is_empty()).then(|| display(name))
}

/// Milliseconds with three digits behind the point.
fn millis(us: u64) -> f64 {
    us as f64 / 1_000.0
}

/// The time of a part; `None` if it took none or was not measured.
fn part(us: u64) -> Option<f64> {
    (us > 0).then(|| millis(us))
}
