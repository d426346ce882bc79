//! Keys that were found for a piece and are left for the next one, so that a share is not visited
//! once for each piece. Nothing depends on them: what is missing is found again.
//!
//! Threads of connections may wait for the lock of what is kept, so nothing under it visits keys.

use super::keys::{Place, ShareKeys};
use std::collections::BTreeMap;
use std::time::Instant;

/// How many bytes of keys are kept, over all jobs.
const BYTES_MAX: usize = 64 << 20;

/// A home partition of a job.
type Share = (u128, u32);

/// The keys that are kept.
#[derive(Debug, Default)]
pub(super) struct KeptKeys {
    shares: BTreeMap<Share, Kept>,
    bytes: usize,
}

/// Keys that are kept.
#[derive(Debug)]
pub(super) struct Kept {
    /// The key before the first one.
    last: Place,
    keys: ShareKeys,
    bytes: usize,
    /// When the job ends.
    deadline: Instant,
}

impl Kept {
    /// Keeps the keys behind `last` until `deadline`.
    pub(super) fn new(last: Place, keys: ShareKeys, deadline: Instant) -> Self {
        Self { last, bytes: keys.bytes(), keys, deadline }
    }

    /// The keys, if they are those behind a place.
    pub(super) fn behind(self, after: Option<&Place>) -> Option<ShareKeys> {
        (Some(&self.last) == after).then_some(self.keys)
    }
}

impl KeptKeys {
    /// Keeps keys, if there is room. Returns what is not kept any more, to be dropped without the
    /// lock.
    pub(super) fn keep(&mut self, share: Share, keys: Kept, now: Instant) -> Vec<Kept> {
        let over: Vec<Share> = self.shares.iter().filter(|(_, kept)| kept.deadline <= now).map(|(s, _)| *s).collect();
        let mut dropped: Vec<Kept> = over.into_iter().chain([share]).filter_map(|share| self.take(share)).collect();
        if self.bytes + keys.bytes <= BYTES_MAX {
            self.bytes += keys.bytes;
            self.shares.insert(share, keys);
        } else {
            dropped.push(keys);
        }
        dropped
    }

    /// Takes what is kept for a job, to be dropped without the lock.
    pub(super) fn forget(&mut self, job: u128) -> Vec<Kept> {
        let shares: Vec<Share> = self.shares.range((job, 0)..=(job, u32::MAX)).map(|(share, _)| *share).collect();
        shares.into_iter().filter_map(|share| self.take(share)).collect()
    }

    /// Takes the keys of a share.
    pub(super) fn take(&mut self, share: Share) -> Option<Kept> {
        let kept = self.shares.remove(&share)?;
        self.bytes -= kept.bytes;
        Some(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use std::time::Duration;

    fn place(n: u64) -> Place {
        (n, Bytes::from(n.to_string()))
    }

    fn keys(n: u64) -> ShareKeys {
        ShareKeys { keys: [place(n)].into(), is_cut: false }
    }

    #[test]
    fn keys_are_kept_for_the_place_where_they_begin_until_their_job_ends() {
        let (now, mut kept) = (Instant::now(), KeptKeys::default());
        let later = now + Duration::from_secs(1);
        let of = |last, n, deadline| Kept::new(place(last), keys(n), deadline);
        kept.keep((1, 7), of(3, 4, later), now);
        kept.keep((1, 8), of(3, 5, later), now);
        kept.keep((2, 7), of(3, 6, later), now);
        assert_eq!(kept.take((1, 7)).unwrap().behind(Some(&place(3))).unwrap().keys, [place(4)]);
        assert!(kept.take((1, 7)).is_none(), "they are taken once");
        assert!(kept.take((1, 8)).unwrap().behind(Some(&place(2))).is_none(), "another piece ended elsewhere");
        assert_eq!(kept.forget(2).len(), 1);
        assert_eq!((kept.shares.len(), kept.bytes), (0, 0));
        kept.keep((3, 1), of(1, 2, now), now);
        assert_eq!(kept.keep((4, 1), of(1, 2, later), now).len(), 1, "a job that is over keeps nothing");
        assert_eq!(kept.shares.len(), 1);
    }

    #[test]
    fn what_is_kept_for_all_jobs_together_is_bounded() {
        let (now, mut kept) = (Instant::now(), KeptKeys::default());
        let later = now + Duration::from_secs(1);
        let large = || {
            let keys = ShareKeys { keys: [(1, Bytes::from(vec![0; BYTES_MAX / 2 - 100]))].into(), is_cut: false };
            Kept::new(place(0), keys, later)
        };
        for job in 0..3 {
            assert_eq!(kept.keep((job, 0), large(), now).len(), usize::from(job == 2), "the third has no room");
        }
        assert_eq!(kept.keep((1, 0), large(), now).len(), 1, "it takes the place of what was kept");
        assert_eq!(kept.shares.len(), 2);
        assert!(kept.bytes <= BYTES_MAX);
        kept.forget(0);
        kept.keep((3, 0), large(), now);
        assert_eq!(kept.shares.len(), 2, "a job that ended made room");
    }
}
