//! How many places of a disk could not be read lately.
//!
//! A place is a block of [`BLOCK_BYTES`] of a data file, and each counts once within the last
//! minute, however often it is read. All stores of a root count together, because they lie on one
//! volume.
//!
//! A few such places are bad sectors: the versions in them are repaired from other replicas. More
//! than [`PLACES_MAX`] within a minute are a disk that fails, or a volume that comes and goes. Then
//! a store fails as a whole: its versions are not taken for lost.

use super::policy::JournalPolicy;
use super::store::Core;
use crate::error::StorageError;
use crate::fs::BLOCK_BYTES;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How many places of a root may turn out to be unreadable within [`WINDOW`].
pub(crate) const PLACES_MAX: usize = 32;
/// How long a place counts after a read of it has failed.
const WINDOW: Duration = Duration::from_secs(60);

/// A block: partition, data file, number in the file. A block of a ledger has no file.
type Place = (u32, Option<u32>, u64);

/// The places that could not be read within the last minute; see the module.
#[derive(Default)]
pub(super) struct MediaErrors(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    places: BTreeMap<Place, Instant>,
    /// There were too many once. That stays until the next start, because nobody has looked after
    /// the disk before that.
    were_too_many: bool,
}

impl MediaErrors {
    /// Counts a place. Returns whether there are or were too many.
    fn note(&self, place: Place, now: Instant) -> bool {
        let mut noted = self.0.lock();
        if noted.were_too_many {
            return true;
        }
        noted.places.retain(|_, at| now.saturating_duration_since(*at) < WINDOW);
        noted.places.insert(place, now);
        noted.were_too_many = noted.places.len() > PLACES_MAX;
        noted.were_too_many
    }
}

impl<P: JournalPolicy> Core<P> {
    /// Says what an error of a read means: a version that cannot be read, or a store that fails as
    /// a whole and takes no writes from then on. Other errors stay what they are.
    pub(super) fn judge_media_error(&self, file_id: Option<u32>, error: StorageError) -> StorageError {
        let StorageError::MediaError { offset, .. } = &error else { return error };
        let place = (self.partition, file_id, offset / BLOCK_BYTES);
        if !self.shared.media_errors.note(place, self.shared.fs.machine().now()) {
            return error;
        }
        let what = format!(
            "more than {PLACES_MAX} places could not be read within a minute, so the disk or its connection fails; the \
             last one: {error}"
        );
        self.poison(&StorageError::Unusable { path: self.shared.root.clone(), what });
        // Whatever poisoned the store first is the reason that its status shows.
        self.check_writable().err().unwrap_or(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_once_in_a_minute_and_no_longer() {
        let (errors, began) = (MediaErrors::default(), Instant::now());
        let at = |secs: u64| began + Duration::from_secs(secs);
        let place = |number: u64| (0, Some(1), number);
        for _ in 0..1000 {
            assert!(!errors.note(place(0), at(0)), "one bad block is read again and again");
        }
        let most = PLACES_MAX as u64;
        assert!((1..most).all(|number| !errors.note(place(number), at(30))));
        assert!((1..most).all(|number| !errors.note(place(most + number), at(95))), "those are older than a minute");
        assert!(!errors.note((7, Some(1), 0), at(96)), "as many as are allowed, in two stores of the root");
        assert!(errors.note((7, None, 0), at(97)), "one more");
        assert!(errors.note(place(0), at(10_000)), "that is known until the next start");
    }
}
