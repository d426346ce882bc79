//! An allocator that counts, and what must hold of the bytes that decoders count. The fuzz target
//! `counted_bytes` uses it too.

#![allow(unsafe_code, reason = "an allocator cannot be written without; this one hands everything to the system's")]

use ombak_mapreduce::{Encoding, JobError};
use ombak_types::DecodeBudget;
use ombak_types::etf::{self, EtfError, Limits};
use ombak_types::json::{BadJsonKind, Json};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// The bytes that this thread has allocated and not freed.
    static BYTES: Cell<usize> = const { Cell::new(0) };
    /// The most bytes that these were at once.
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, with a count for each thread.
pub struct Counting;

// SAFETY: every call goes to the system's allocator with the same arguments; the counts are numbers
// of this thread that need no memory of their own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that ends has no counts any more, and none is read then.
        let _ = BYTES.try_with(|bytes| {
            bytes.set(bytes.get().wrapping_add(layout.size()));
            let _ = PEAK.try_with(|peak| peak.set(peak.get().max(bytes.get())));
        });
        // SAFETY: the caller has promised what the system's allocator needs.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let _ = BYTES.try_with(|bytes| bytes.set(bytes.get().wrapping_sub(layout.size())));
        // SAFETY: the caller has promised what the system's allocator needs.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// The most bytes that `work` has held at once.
fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = BYTES.get();
    PEAK.set(before);
    let done = work();
    (done, PEAK.get() - before)
}

/// What a decoder takes beside its values: the state of an inflater, and the texts of errors.
const FIXED_BYTES: usize = 128 << 10;

/// Decodes a message, which must not take more than was counted, and not more than allowed.
fn check<T, E: std::fmt::Debug>(
    what: &str,
    message: &[u8],
    read: impl Fn(&[u8], &mut DecodeBudget) -> Result<T, E>,
    is_too_large: impl Fn(&E) -> bool,
) {
    for share in [2, 11, 1 << 20] {
        let bytes_max = message.len().saturating_mul(share);
        let mut budget = DecodeBudget::new(bytes_max);
        let (read, peak) = peak_of(|| read(message, &mut budget));
        assert!(budget.bytes_peak() <= bytes_max, "{what}: {} of {bytes_max}", budget.bytes_peak());
        let counted = budget.bytes_peak();
        assert!(peak <= counted + FIXED_BYTES, "{what}: {peak} bytes, {counted} counted, {} sent", message.len());
        if !matches!(&read, Err(error) if is_too_large(error)) {
            return;
        }
    }
}

/// Checks everything that reads a message of a client with a budget.
pub fn check_all(message: &[u8]) {
    check("JSON", message, Json::read_within, |bad| matches!(bad.kind, BadJsonKind::TooLarge { .. }));
    let limits = Limits { terms_max: usize::MAX, ..Limits::default() };
    let terms = |message: &[u8], budget: &mut DecodeBudget| etf::decode_within(message, limits, budget);
    check("terms", message, terms, |bad| matches!(bad, EtfError::OverBudget(_)));
    // Regular expressions have a bound of their own.
    if message.windows(7).any(|name| name == b"matches") {
        return;
    }
    for encoding in [Encoding::Json, Encoding::Erlang] {
        let job = |message: &[u8], budget: &mut DecodeBudget| encoding.job(message, budget);
        check("a job", message, job, |bad| matches!(bad, JobError::TooLarge { .. }));
    }
}
