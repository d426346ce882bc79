//! How long the driver of a ring change waits between two rounds.

use std::time::Duration;

/// The pause between rounds: short after a round that learned or did something, and twice as long
/// after each one that did not. A home needs about five rounds, so that their length would decide
/// how long a change of a cluster with few objects takes.
#[derive(Debug)]
pub(in crate::member) struct Pace {
    shortest: Duration,
    longest: Duration,
    pause: Duration,
}

impl Pace {
    /// Begins with the shortest pause.
    pub const fn new(shortest: Duration, longest: Duration) -> Self {
        Self { shortest, longest, pause: shortest }
    }

    /// The pause after a round.
    pub fn after_round(&mut self, has_progressed: bool) -> Duration {
        self.pause = if has_progressed { self.shortest } else { (self.pause * 2).min(self.longest) };
        self.pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_without_progress_become_rare_and_progress_makes_them_frequent_again() {
        let mut pace = Pace::new(Duration::from_millis(20), Duration::from_millis(500));
        let mut after = |has_progressed| pace.after_round(has_progressed).as_millis();
        let idle: Vec<u128> = (0..6).map(|_| after(false)).collect();
        assert_eq!(idle, [40, 80, 160, 320, 500, 500]);
        assert_eq!([after(true), after(true), after(false)], [20, 20, 40]);
    }
}
