//! The health of the requests to one peer: a state machine without a clock.

use super::traffic::Traffic;
use crate::config::InvalidTimes;
use std::time::Duration;

/// The times and limits of [`RequestHealth`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthConfig {
    /// An answer that took this long or longer counts as a failure.
    pub slow_after: Duration,
    /// No answer came for this long, neither to a request nor to a probe: the peer is down for
    /// requests.
    pub stall_max: Duration,
    /// Failures count for this long.
    pub window: Duration,
    /// The peer is down after this many failures within the window, if no more requests than that
    /// were answered in time.
    pub failures_max: u64,
    /// A peer that is up is probed if no answer came for this long. It has had no requests, or
    /// those that it had were given up because other replicas were faster.
    pub probe_after: Duration,
    /// A peer that is down is probed this long after the last probe ended.
    pub probe_interval: Duration,
    /// How long a probe may take.
    pub probe_limit: Duration,
    /// How many good probes in a row let a peer back in.
    pub probes_to_return: u32,
    /// The most probes that a peer needs after relapses.
    pub probes_to_return_max: u32,
    /// A peer that is down again this soon after its return has relapsed. One that stays up for
    /// longer needs only `probes_to_return` the next time.
    pub relapse_within: Duration,
    /// How often the counters are looked at.
    pub tick: Duration,
}

impl Default for HealthConfig {
    fn default() -> Self {
        Self {
            slow_after: Duration::from_millis(1000),
            stall_max: Duration::from_millis(1000),
            window: Duration::from_secs(2),
            failures_max: 3,
            probe_after: Duration::from_millis(500),
            probe_interval: Duration::from_millis(200),
            probe_limit: Duration::from_millis(1000),
            probes_to_return: 2,
            probes_to_return_max: 16,
            relapse_within: Duration::from_secs(30),
            tick: Duration::from_millis(100),
        }
    }
}

impl HealthConfig {
    /// Checks that the times make sense together.
    pub fn check(&self) -> Result<(), InvalidTimes> {
        let demands = [
            (!self.tick.is_zero(), "the tick of request health must not be zero"),
            (
                self.stall_max >= self.probe_after + 2 * self.tick,
                "stall_max must be at least probe_after and two ticks",
            ),
            (self.window >= self.tick, "the window of request health must be at least a tick"),
            (self.failures_max > 0, "failures_max must not be zero"),
            (self.probes_to_return > 0, "probes_to_return must not be zero"),
            (
                self.probes_to_return <= self.probes_to_return_max,
                "probes_to_return_max must not be below probes_to_return",
            ),
        ];
        match demands.iter().find(|(holds, _)| !holds) {
            Some((_, demand)) => Err(InvalidTimes(demand)),
            None => Ok(()),
        }
    }
}

/// What a look at the counters came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The peer's health has changed to this.
    pub changed_to: Option<bool>,
    /// Send a probe now, and report its end with [`RequestHealth::probed`].
    pub probe: bool,
}

/// The health of one peer. Times are local: they do not run while this node is paused.
#[derive(Clone, Debug)]
pub struct RequestHealth {
    seen: Traffic,
    /// When the peer last answered anything.
    heard_at: Duration,
    /// The counts of the present window and of the one before.
    windows: [Counts; 2],
    window_began: Duration,
    probe: Probe,
    state: State,
    /// Doublings of how many probes the peer needs.
    relapses: u32,
    up_since: Duration,
    /// Whether the peer was down for requests before.
    has_returned: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    good: u64,
    bad: u64,
}

#[derive(Clone, Copy, Debug)]
enum Probe {
    UnderWay,
    EndedAt(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Healthy,
    Down { good_probes: u32 },
}

impl RequestHealth {
    /// A peer that counts as healthy. `seen` are the totals of its counters so far.
    pub fn new(now: Duration, seen: Traffic) -> Self {
        Self {
            seen,
            heard_at: now,
            windows: [Counts::default(); 2],
            window_began: now,
            probe: Probe::EndedAt(now),
            state: State::Healthy,
            relapses: 0,
            up_since: now,
            has_returned: false,
        }
    }

    /// Whether requests may be sent to the peer.
    pub const fn is_healthy(&self) -> bool {
        matches!(self.state, State::Healthy)
    }

    /// Looks at the counters, at least once every tick.
    pub fn look(&mut self, config: &HealthConfig, now: Duration, totals: Traffic) -> Step {
        let new = totals.since(&self.seen);
        self.seen = totals;
        self.roll(config, now);
        self.windows[0].good += new.good;
        self.windows[0].bad += new.late + new.failed;
        if new.good + new.late > 0 {
            self.heard_at = now;
        }
        let stalled = now.saturating_sub(self.heard_at) >= config.stall_max;
        let mut step = Step::default();
        if self.is_healthy() && (stalled || self.fails_too_often(config)) {
            self.go_down(config, now);
            step.changed_to = Some(false);
        }
        step.probe = self.probe_is_due(config, now);
        if step.probe {
            self.probe = Probe::UnderWay;
        }
        step
    }

    /// Notes the end of a probe. Returns true if the peer is healthy again by it.
    pub fn probed(&mut self, config: &HealthConfig, now: Duration, is_good: bool) -> bool {
        self.probe = Probe::EndedAt(now);
        if is_good {
            self.heard_at = now;
        }
        match &mut self.state {
            State::Healthy if is_good => self.windows[0].good += 1,
            State::Healthy => self.windows[0].bad += 1,
            State::Down { good_probes } if !is_good => *good_probes = 0,
            State::Down { good_probes } => {
                *good_probes += 1;
                let needed = config.probes_to_return.saturating_mul(1 << self.relapses.min(16));
                if *good_probes >= needed.min(config.probes_to_return_max) {
                    self.come_back(now);
                    return true;
                }
            }
        }
        false
    }

    /// The peer was restarted: nothing that was learned holds any more. Returns true if the peer
    /// was down for requests.
    pub fn restarted(&mut self, now: Duration) -> bool {
        let was_down = !self.is_healthy();
        self.come_back(now);
        (self.relapses, self.has_returned) = (0, false);
        was_down
    }

    fn come_back(&mut self, now: Duration) {
        (self.state, self.has_returned) = (State::Healthy, true);
        self.windows = [Counts::default(); 2];
        (self.window_began, self.heard_at, self.up_since) = (now, now, now);
    }

    fn go_down(&mut self, config: &HealthConfig, now: Duration) {
        let has_relapsed = self.has_returned && now.saturating_sub(self.up_since) < config.relapse_within;
        self.relapses = if has_relapsed { self.relapses.saturating_add(1).min(16) } else { 0 };
        self.state = State::Down { good_probes: 0 };
    }

    fn roll(&mut self, config: &HealthConfig, now: Duration) {
        let half = config.window / 2;
        while now.saturating_sub(self.window_began) >= half {
            self.windows = [Counts::default(), self.windows[0]];
            self.window_began += half.max(Duration::from_millis(1));
            // After a long time without a look both windows are empty.
            if now.saturating_sub(self.window_began) >= config.window {
                (self.windows, self.window_began) = ([Counts::default(); 2], now);
            }
        }
    }

    fn fails_too_often(&self, config: &HealthConfig) -> bool {
        let [a, b] = self.windows;
        let (good, bad) = (a.good + b.good, a.bad + b.bad);
        bad >= config.failures_max && bad >= good
    }

    fn probe_is_due(&self, config: &HealthConfig, now: Duration) -> bool {
        let Probe::EndedAt(ended) = self.probe else { return false };
        match self.state {
            State::Down { .. } => now.saturating_sub(ended) >= config.probe_interval,
            State::Healthy => now.saturating_sub(self.heard_at.max(ended)) >= config.probe_after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// A peer with requests, and probes that end after `probe_takes`; `None` means never.
    struct Peer {
        config: HealthConfig,
        health: RequestHealth,
        now: Duration,
        totals: Traffic,
        probe_takes: Option<Duration>,
        probe_began: Option<Duration>,
        probes: u32,
        changes: Vec<(u128, bool)>,
    }

    impl Peer {
        fn new() -> Self {
            Self {
                config: HealthConfig::default(),
                health: RequestHealth::new(Duration::ZERO, Traffic::default()),
                now: Duration::ZERO,
                totals: Traffic::default(),
                probe_takes: Some(MS(1)),
                probe_began: None,
                probes: 0,
                changes: Vec::new(),
            }
        }

        /// Runs for some ticks. `each` adds what requests came to.
        fn run(&mut self, ticks: u32, mut each: impl FnMut(&mut Traffic)) {
            for _ in 0..ticks {
                self.now += self.config.tick;
                each(&mut self.totals);
                if let Some(began) = self.probe_began {
                    let took = self.now - began;
                    let is_good = self.probe_takes.is_some_and(|takes| takes <= took);
                    if is_good || took >= self.config.probe_limit {
                        self.probe_began = None;
                        if self.health.probed(&self.config, self.now, is_good) {
                            self.changes.push((self.now.as_millis(), true));
                        }
                    }
                }
                let step = self.health.look(&self.config, self.now, self.totals);
                if let Some(healthy) = step.changed_to {
                    self.changes.push((self.now.as_millis(), healthy));
                }
                if step.probe {
                    assert!(self.probe_began.is_none(), "one probe at a time");
                    (self.probe_began, self.probes) = (Some(self.now), self.probes + 1);
                }
            }
        }
    }

    fn answered(totals: &mut Traffic) {
        (totals.began, totals.ended, totals.good) = (totals.began + 5, totals.ended + 5, totals.good + 5);
    }

    fn unanswered(totals: &mut Traffic) {
        totals.began += 5;
    }

    fn abandoned(totals: &mut Traffic) {
        (totals.began, totals.ended) = (totals.began + 5, totals.ended + 5);
    }

    #[test]
    fn a_peer_that_answers_stays_up_and_is_not_probed() {
        let mut peer = Peer::new();
        peer.run(100, answered);
        assert_eq!((peer.changes.len(), peer.probes), (0, 0));
        peer.run(100, |_| {});
        assert!(peer.changes.is_empty() && (10..=20).contains(&peer.probes), "an idle peer: {}", peer.probes);
    }

    #[test]
    fn a_peer_that_stops_is_down_in_time_whether_it_is_busy_or_idle() {
        for busy in [unanswered, abandoned, |_: &mut Traffic| {}] {
            let mut peer = Peer::new();
            peer.run(10, answered);
            peer.probe_takes = None;
            peer.run(50, busy);
            assert_eq!(peer.changes, [(2_000, false)]);
        }
    }

    /// The other replicas are faster, so that no request is ever waited for.
    #[test]
    fn a_peer_whose_answers_nobody_waits_for_stays_up() {
        let mut peer = Peer::new();
        peer.run(200, abandoned);
        assert!(peer.changes.is_empty() && peer.probes > 10);
    }

    #[test]
    fn a_pause_of_200_ms_is_nothing() {
        let mut peer = Peer::new();
        for _ in 0..50 {
            peer.run(3, answered);
            peer.run(2, unanswered);
            let late = peer.totals.waiting();
            peer.run(1, |totals| (totals.ended, totals.good) = (totals.ended + late, totals.good + late));
        }
        assert!(peer.changes.is_empty());
    }

    #[test]
    fn a_peer_that_refuses_connections_is_down_at_once() {
        let mut peer = Peer::new();
        peer.run(20, answered);
        peer.probe_takes = None;
        peer.run(10, |totals| {
            (totals.began, totals.ended, totals.failed) = (totals.began + 5, totals.ended + 5, totals.failed + 5);
        });
        assert!(peer.changes.first().is_some_and(|(at, up)| !up && *at <= 3_000), "{:?}", peer.changes);
    }

    /// A slow disk: requests that read are answered at once, requests that write late.
    #[test]
    fn a_peer_that_is_late_half_of_the_time_is_down_and_one_that_is_rarely_late_is_not() {
        let mix = |good: u64, late: u64| {
            move |totals: &mut Traffic| {
                let all = good + late;
                (totals.began, totals.ended) = (totals.began + all, totals.ended + all);
                (totals.good, totals.late) = (totals.good + good, totals.late + late);
            }
        };
        let mut peer = Peer::new();
        peer.run(30, mix(20, 1));
        assert!(peer.changes.is_empty());
        peer.run(30, mix(1, 1));
        assert_eq!(peer.changes.first().map(|change| change.1), Some(false));
    }

    #[test]
    fn probes_let_a_peer_back_in_within_a_second_and_each_relapse_takes_longer() {
        let mut peer = Peer::new();
        let mut returns = Vec::new();
        for _ in 0..5 {
            peer.probe_takes = None;
            peer.run(30, unanswered);
            assert!(!peer.health.is_healthy());
            peer.probe_takes = Some(MS(1));
            let healed = peer.now;
            while !peer.health.is_healthy() {
                peer.run(1, |_| {});
            }
            returns.push((peer.now - healed).as_millis());
        }
        assert!(returns[0] <= 1_000, "{returns:?}");
        assert!(returns.windows(2).all(|pair| pair[0] <= pair[1]) && returns[4] > 2 * returns[0], "{returns:?}");
        peer.run(400, answered);
        peer.probe_takes = None;
        peer.run(30, unanswered);
        peer.probe_takes = Some(MS(1));
        peer.run(10, |_| {});
        assert!(peer.health.is_healthy(), "a peer that was up for long is let in quickly again");
    }

    #[test]
    fn a_restart_forgets_everything() {
        let mut peer = Peer::new();
        peer.probe_takes = None;
        peer.run(30, unanswered);
        assert!(peer.health.restarted(peer.now) && peer.health.is_healthy());
        assert!(!peer.health.restarted(peer.now));
    }

    #[test]
    fn impatient_callers_say_nothing_about_a_peer() {
        use super::super::{Outcome, TrafficCounters};
        let (counters, slow) = (TrafficCounters::default(), MS(1000));
        for outcome in [Outcome::TimedOut, Outcome::Abandoned] {
            counters.began();
            counters.ended(outcome, MS(3), slow);
        }
        assert_eq!(counters.totals(), Traffic { began: 2, ended: 2, ..Traffic::default() });
        for (outcome, took) in
            [(Outcome::TimedOut, 1000), (Outcome::Lost, 0), (Outcome::Answered, 5), (Outcome::Answered, 1500)]
        {
            counters.began();
            counters.ended(outcome, MS(took), slow);
        }
        assert_eq!(counters.totals(), Traffic { began: 6, ended: 6, good: 1, late: 1, failed: 2 });
    }

    proptest! {
        /// Whatever happened before: once all probes and requests are answered, the peer is up
        /// within the time that the most probes take, and stays up.
        #[test]
        fn a_peer_that_answers_again_comes_back_and_stays(
            past in prop::collection::vec((0..4u8, 1..30u32, any::<bool>()), 0..30)
        ) {
            let mut peer = Peer::new();
            for (kind, ticks, probes_answered) in past {
                peer.probe_takes = probes_answered.then_some(MS(1));
                match kind {
                    0 => peer.run(ticks, answered),
                    1 => peer.run(ticks, unanswered),
                    2 => peer.run(ticks, abandoned),
                    _ => peer.run(ticks, |totals| {
                        (totals.began, totals.ended, totals.failed) = (totals.began + 1, totals.ended + 1, totals.failed + 1);
                    }),
                }
            }
            peer.probe_takes = Some(MS(1));
            peer.run(10 + 4 * peer.config.probes_to_return_max, |_| {});
            prop_assert!(peer.health.is_healthy());
            let changes = peer.changes.len();
            peer.run(100, answered);
            prop_assert_eq!(peer.changes.len(), changes);
        }
    }
}
