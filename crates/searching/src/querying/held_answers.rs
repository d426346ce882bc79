//! The memory of answers that come while earlier ones are held.

use ombak_kv::MemoryReservation;
use ombak_types::Error;
use std::future::Future;
use std::pin::Pin;

/// Reserves what comes beside what is held already.
pub(super) struct HeldAnswers<'a> {
    room: &'a mut dyn MemoryReservation,
    held_bytes: u64,
    /// The most that was asked for beside that.
    coming_bytes: u64,
}

impl<'a> HeldAnswers<'a> {
    pub(super) fn none(room: &'a mut dyn MemoryReservation) -> Self {
        Self { room, held_bytes: 0, coming_bytes: 0 }
    }

    /// What has come is held from now on.
    pub(super) fn hold(&mut self) {
        self.held_bytes += std::mem::take(&mut self.coming_bytes);
    }
}

impl MemoryReservation for HeldAnswers<'_> {
    fn reserve(&mut self, bytes: u64) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + '_>> {
        self.coming_bytes = self.coming_bytes.max(bytes);
        self.room.reserve(self.held_bytes.saturating_add(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::ready;

    struct Room(u64);

    impl MemoryReservation for Room {
        fn reserve(&mut self, bytes: u64) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + '_>> {
            self.0 = bytes;
            Box::pin(ready(Ok(())))
        }
    }

    #[test]
    fn what_comes_later_counts_beside_what_is_held() {
        let mut room = Room(0);
        let mut answers = HeldAnswers::none(&mut room);
        drop(answers.reserve(10));
        drop(answers.reserve(30));
        answers.hold();
        drop(answers.reserve(5));
        assert_eq!(room.0, 35);
    }
}
