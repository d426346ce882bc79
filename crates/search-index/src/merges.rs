//! Which segments are merged.
//!
//! Each commit makes a segment, and a search looks through all of them. One merge of an index runs
//! at a time, beside its writes. If an index has too many segments nevertheless, its next write
//! waits for the merge.

use crate::error::IndexError;
use crate::writer_pool::OpenWriter;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use tantivy::FutureResult;
use tantivy::merge_policy::{LogMergePolicy, MergePolicy};

/// Segments of an index, after which a write waits for a merge.
pub(crate) const SEGMENTS_MAX: usize = 48;

/// Documents of a segment that is not merged any more, unless many of them are deleted.
const MERGED_DOCUMENTS_MAX: usize = 1_000_000;

/// Segments below this size are merged with each other first.
const LAYER_DOCUMENTS_MIN: u32 = 1_000;

/// Begins a merge if there is one to do and none runs. Whether a merge has ended since.
pub(crate) fn go_on(open: &mut OpenWriter) -> Result<bool, IndexError> {
    let segments = open.writer.index().searchable_segment_metas()?;
    let mut has_ended = false;
    if let Some(merge) = &mut open.merge {
        let poll = Pin::new(&mut *merge).poll(&mut Context::from_waker(Waker::noop()));
        match poll {
            Poll::Pending if segments.len() < SEGMENTS_MAX => return Ok(false),
            Poll::Pending => {
                if let Some(merge) = open.merge.take() {
                    note(wait(merge));
                }
            }
            Poll::Ready(result) => note(result),
        }
        open.merge = None;
        has_ended = true;
    }
    let segments = if has_ended { open.writer.index().searchable_segment_metas()? } else { segments };
    // The smallest ones cost least and are most.
    let candidates = policy().compute_merge_candidates(&segments);
    let size = |ids: &[tantivy::index::SegmentId]| -> u64 {
        segments.iter().filter(|meta| ids.contains(&meta.id())).map(|meta| u64::from(meta.num_docs())).sum()
    };
    if let Some(candidate) = candidates.iter().min_by_key(|candidate| size(&candidate.0)) {
        open.merge = Some(open.writer.merge(&candidate.0));
    }
    Ok(has_ended)
}

/// Waits for a merge. The library's own way panics if somebody asked before whether it has ended.
pub(crate) fn wait<T>(mut merge: FutureResult<T>) -> tantivy::Result<T> {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match Pin::new(&mut merge).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// A merge that fails changes nothing. Damage shows in searches.
fn note<T>(result: tantivy::Result<T>) {
    if let Err(error) = result {
        tracing::warn!(%error, "segments of a search index could not be merged");
    }
}

fn policy() -> LogMergePolicy {
    let mut policy = LogMergePolicy::default();
    policy.set_max_docs_before_merge(MERGED_DOCUMENTS_MAX);
    policy.set_min_layer_size(LAYER_DOCUMENTS_MIN);
    policy.set_del_docs_ratio_before_merge(0.4);
    policy
}
