//! Keys that were found for a piece and are left for the next one, so that a share is not visited
//! once for each piece. Nothing depends on them: what is missing is found again.

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

#[derive(Debug)]
struct Kept {
    /// The key before the first one.
    last: Place,
    keys: ShareKeys,
    bytes: usize,
    /// When the job ends.
    deadline: Instant,
}

impl KeptKeys {
    /// Keeps the keys behind `last`, if there is room.
    pub(super) fn keep(&mut self, share: Share, last: Place, keys: ShareKeys, deadline: Instant, now: Instant) {
        let over: Vec<Share> = self.shares.iter().filter(|(_, kept)| kept.deadline <= now).map(|(s, _)| *s).collect();
        over.into_iter().for_each(|share| drop(self.remove(share)));
        let bytes = keys.bytes();
        self.remove(share);
        if self.bytes + bytes <= BYTES_MAX {
            self.bytes += bytes;
            self.shares.insert(share, Kept { last, keys, bytes, deadline });
        }
    }

    /// Takes the keys behind a place, if those are kept.
    pub(super) fn take(&mut self, share: Share, after: Option<&Place>) -> Option<ShareKeys> {
        let kept = self.remove(share)?;
        (Some(&kept.last) == after).then_some(kept.keys)
    }

    /// Forgets what is kept for a job.
    pub(super) fn forget(&mut self, job: u128) {
        let shares: Vec<Share> = self.shares.range((job, 0)..=(job, u32::MAX)).map(|(share, _)| *share).collect();
        shares.into_iter().for_each(|share| drop(self.remove(share)));
    }

    fn remove(&mut self, share: Share) -> Option<Kept> {
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
        kept.keep((1, 7), place(3), keys(4), later, now);
        kept.keep((1, 8), place(3), keys(5), later, now);
        kept.keep((2, 7), place(3), keys(6), later, now);
        assert_eq!(kept.take((1, 7), Some(&place(3))).unwrap().keys, [place(4)]);
        assert!(kept.take((1, 7), Some(&place(3))).is_none(), "they are taken once");
        assert!(kept.take((1, 8), Some(&place(2))).is_none(), "another piece ended elsewhere");
        kept.forget(2);
        assert_eq!((kept.shares.len(), kept.bytes), (0, 0));
        kept.keep((3, 1), place(1), keys(2), now, now);
        kept.keep((4, 1), place(1), keys(2), later, now);
        assert_eq!(kept.shares.len(), 1, "a job that is over keeps nothing");
    }

    #[test]
    fn what_is_kept_for_all_jobs_together_is_bounded() {
        let (now, mut kept) = (Instant::now(), KeptKeys::default());
        let later = now + Duration::from_secs(1);
        let large = || ShareKeys { keys: [(1, Bytes::from(vec![0; BYTES_MAX / 2 - 100]))].into(), is_cut: false };
        for job in 0..3 {
            kept.keep((job, 0), place(0), large(), later, now);
        }
        assert_eq!(kept.shares.len(), 2, "the third has no room");
        kept.keep((1, 0), place(2), large(), later, now);
        assert_eq!(kept.shares.len(), 2, "what is kept anew takes the place of what was kept");
        assert!(kept.bytes <= BYTES_MAX);
        kept.forget(0);
        kept.keep((3, 0), place(0), large(), later, now);
        assert_eq!(kept.shares.len(), 2, "a job that ended made room");
    }
}
