//! What a few threads have counted.

use super::largest::Largest;
use super::name::{Name, id_of};
use super::sampler::Sampler;
use super::sketch::Sketch;
use ombak_types::Bucket;
use std::time::{Duration, Instant};

/// How long a window lasts. A report covers the window before the present one, too.
pub(super) const WINDOW: Duration = Duration::from_secs(30);
/// How many keys and buckets each window counts.
pub(super) const KEYS_MAX: usize = 128;
pub(super) const BUCKETS_MAX: usize = 64;
/// How many large objects each window keeps.
pub(super) const LARGEST_MAX: usize = 16;

/// What was counted in one window.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) keys: Sketch<Name>,
    pub(super) buckets: Sketch<Name>,
    pub(super) largest: Largest<Name>,
}

impl Window {
    fn new() -> Self {
        Self { keys: Sketch::new(KEYS_MAX), buckets: Sketch::new(BUCKETS_MAX), largest: Largest::new(LARGEST_MAX) }
    }
}

/// The present window of some threads, and the one before.
#[derive(Debug)]
pub(super) struct Shard {
    began: Instant,
    before: Option<Window>,
    now: Window,
    pub(super) sampler: Sampler,
}

impl Shard {
    pub(super) fn new(now: Instant, seed: u32) -> Self {
        Self { began: now, before: None, now: Window::new(), sampler: Sampler::new(now, seed) }
    }

    /// Counts a request that stands for `weight` requests.
    pub(super) fn count(&mut self, bucket: &Bucket, key: &[u8], bytes: u64, weight: u64) {
        let id = id_of(bucket, key);
        self.now.keys.add(id, weight, || Name::of(bucket, key));
        self.now.buckets.add(id_of(bucket, &[]), weight, || Name::of(bucket, &[]));
        self.now.largest.offer(id, bytes, || Name::of(bucket, key));
    }

    /// Notes a large object of a request that is not counted.
    pub(super) fn note_large(&mut self, bucket: &Bucket, key: &[u8], bytes: u64) {
        self.now.largest.offer(id_of(bucket, key), bytes, || Name::of(bucket, key));
    }

    /// Ends windows whose time is over.
    pub(super) fn turn(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.began);
        if passed < WINDOW {
            return;
        }
        let ended = std::mem::replace(&mut self.now, Window::new());
        self.before = (passed < 2 * WINDOW).then_some(ended);
        self.began = now;
    }

    /// The windows.
    pub(super) fn windows(&self) -> impl Iterator<Item = &Window> {
        self.before.iter().chain([&self.now])
    }

    /// How long the windows have lasted.
    pub(super) fn covers(&self, now: Instant) -> Duration {
        let before = if self.before.is_some() { WINDOW } else { Duration::ZERO };
        before + now.saturating_duration_since(self.began)
    }
}
