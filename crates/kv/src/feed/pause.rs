//! How long a consumer waits in a partition in which something failed.

/// The rounds after the first failure, and the most after several in a row.
const ROUNDS_MIN: u32 = 25;
const ROUNDS_MAX: u32 = 300;

/// The pause after a failure; see the module. Each failure in a row doubles it, because a consumer
/// that begins anew reads a whole store each time.
pub(super) struct Pause {
    rounds: u32,
    left: u32,
}

impl Pause {
    /// The pause after one more failure.
    pub(super) fn after(before: Option<&Self>) -> Self {
        let rounds = before.map_or(ROUNDS_MIN, |before| (before.rounds * 2).min(ROUNDS_MAX));
        Self { rounds, left: rounds }
    }

    /// Takes part in a round. Returns whether it is one of the pause.
    pub(super) fn lasts(&mut self) -> bool {
        let lasts = self.left > 0;
        self.left -= u32::from(lasts);
        lasts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_its_bound() {
        let rounds = |mut pause: Pause| {
            let count = (0..1000).take_while(|_| pause.lasts()).count();
            (count, pause)
        };
        let (first, pause) = rounds(Pause::after(None));
        let (second, mut pause) = rounds(Pause::after(Some(&pause)));
        assert_eq!((first, second), (25, 50));
        for _ in 0..40 {
            pause = Pause::after(Some(&pause));
        }
        assert_eq!(rounds(pause).0, 300);
    }
}
