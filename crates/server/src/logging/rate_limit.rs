//! Bounds how many log lines one place in the program may write.
//!
//! Clients can cause many log lines, for example with refused frames, large objects or reads of
//! damaged versions. Without a bound these lines fill a disk, or push all other lines out of the
//! files that are kept. Each place in the program (each callsite) may write [`BURST_LINES`] lines
//! at once, and then one line for each [`LINE_INTERVAL`]. Further lines are counted, and
//! [`RateLimit::report`] regularly says how many lines of which place were omitted.
//!
//! No line is omitted before [`RateLimit::begin`]: during start-up there are no clients, and there
//! may be much to report.
//!
//! Memory is bounded by the number of callsites, which is fixed when the program is compiled.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt::{Debug, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// The number of lines that one place may write at once.
const BURST_LINES: u32 = 20;
/// The time between two lines of one place after a burst.
const LINE_INTERVAL: Duration = Duration::from_secs(6);
/// The number of bytes of an omitted line that a report shows.
const SHOWN_BYTES: usize = 200;
/// The target of the reports about omitted lines. The reports themselves are never omitted.
const REPORT_TARGET: &str = "ombak::logging::rate_limit";

/// Counts lines by their callsite.
#[derive(Default)]
pub struct RateLimit {
    is_on: AtomicBool,
    places: Mutex<HashMap<Identifier, Place>>,
}

/// The state of one callsite.
struct Place {
    metadata: &'static Metadata<'static>,
    /// The number of lines that it may write now.
    lines_left: u32,
    /// The time up to which `lines_left` has been refilled.
    refilled: Instant,
    left_out: u64,
    /// The text of the first omitted line.
    first_left_out: String,
}

impl RateLimit {
    /// Starts the limit: from now on, lines may be omitted.
    pub fn begin(&self) {
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// Whether this event may be written. An event that may not is counted.
    fn admits(&self, event: &Event<'_>, now: Instant) -> bool {
        let metadata = event.metadata();
        if !self.is_on.load(Ordering::Relaxed) || metadata.target() == REPORT_TARGET {
            return true;
        }
        let mut places = self.places.lock();
        let place = places.entry(metadata.callsite()).or_insert_with(|| Place::new(metadata, now));
        place.refill(now);
        if place.lines_left > 0 {
            place.lines_left -= 1;
            return true;
        }
        if place.left_out == 0 {
            place.first_left_out = shown(event);
        }
        place.left_out += 1;
        false
    }

    /// Writes one line for each place that has omitted lines since the last report.
    pub fn report(&self) {
        self.report_at(Instant::now());
    }

    fn report_at(&self, now: Instant) {
        let mut reports = Vec::new();
        self.places.lock().retain(|_, place| {
            place.refill(now);
            if place.left_out > 0 {
                reports.push((place.metadata, place.left_out, std::mem::take(&mut place.first_left_out)));
                place.left_out = 0;
            }
            place.lines_left < BURST_LINES
        });
        for (metadata, count, first) in reports {
            let (from, level) = (metadata.target(), metadata.level().as_str());
            tracing::warn!(target: REPORT_TARGET, count, from, of_level = level, first, "log lines were left out");
        }
    }
}

impl Place {
    fn new(metadata: &'static Metadata<'static>, now: Instant) -> Self {
        Self { metadata, lines_left: BURST_LINES, refilled: now, left_out: 0, first_left_out: String::new() }
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.refilled).as_millis() / LINE_INTERVAL.as_millis();
        let lines = u32::try_from(passed).unwrap_or(u32::MAX).min(BURST_LINES);
        if lines == BURST_LINES {
            self.refilled = now;
        } else {
            self.refilled += LINE_INTERVAL * lines;
        }
        self.lines_left = self.lines_left.saturating_add(lines).min(BURST_LINES);
    }
}

/// The message and the fields of an event, cut off at [`SHOWN_BYTES`].
fn shown(event: &Event<'_>) -> String {
    struct Text(String);
    impl Visit for Text {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            if self.0.len() < SHOWN_BYTES {
                // Writing to a string cannot fail.
                let _ = match field.name() {
                    "message" => write!(self.0, "{value:?} "),
                    name => write!(self.0, "{name}={value:?} "),
                };
            }
        }
    }
    let mut text = Text(String::new());
    event.record(&mut text);
    let ends = text.0.char_indices().map(|(at, char)| at + char.len_utf8());
    let end = ends.take_while(|end| *end <= SHOWN_BYTES).last().unwrap_or(0);
    text.0[..end].trim_end().to_owned()
}

/// The limit as a layer. An event that it does not admit reaches no other layer.
pub struct RateLimitLayer(pub Arc<RateLimit>);

impl<S: Subscriber> Layer<S> for RateLimitLayer {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        self.0.admits(event, Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::fmt;
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Runs `work` with a log of its own, and returns the lines.
    fn logged(limit: &Arc<RateLimit>, work: impl FnOnce()) -> Vec<String> {
        let lines = Lines::default();
        let writer = lines.clone();
        let to_lines = fmt::layer().with_ansi(false).with_writer(move || writer.clone());
        let log = tracing_subscriber::registry().with(to_lines).with(RateLimitLayer(Arc::clone(limit)));
        tracing::subscriber::with_default(log, work);
        let text = String::from_utf8(lines.0.lock().clone()).expect("UTF-8");
        text.lines().map(str::to_owned).collect()
    }

    fn flood(count: u32) {
        for n in 0..count {
            tracing::warn!(n, "a frame was refused");
        }
    }

    #[test]
    fn a_flood_from_one_place_is_cut_off_and_counted_and_other_places_are_heard() {
        let limit = Arc::<RateLimit>::default();
        limit.begin();
        let lines = logged(&limit, || {
            flood(BURST_LINES + 500);
            tracing::warn!("something else");
            limit.report();
            limit.report();
        });
        let of = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
        assert_eq!(lines.len(), BURST_LINES as usize + 2, "{lines:?}");
        assert_eq!(of("something else"), 1);
        let report = lines.last().expect("a report");
        assert!(report.contains("log lines were left out count=500"), "{report}");
        assert!(report.contains(&format!("a frame was refused n={BURST_LINES}")), "{report}");
    }

    #[test]
    fn nothing_is_left_out_before_the_limit_begins() {
        let limit = Arc::<RateLimit>::default();
        assert_eq!(logged(&limit, || flood(500)).len(), 500);
    }

    #[test]
    fn a_place_gets_its_lines_back_with_time_and_is_forgotten_when_it_has_all() {
        let limit = Arc::<RateLimit>::default();
        limit.begin();
        logged(&limit, || flood(BURST_LINES + 1));
        assert_eq!(limit.places.lock().len(), 1);
        let now = Instant::now();
        let left = |limit: &RateLimit| limit.places.lock().values().next().map(|place| place.lines_left);
        limit.report_at(now + LINE_INTERVAL * 3);
        assert_eq!(left(&limit), Some(3));
        limit.report_at(now + LINE_INTERVAL * (BURST_LINES + 1));
        assert_eq!(left(&limit), None);
    }

    #[test]
    fn long_lines_are_shown_in_part() {
        let limit = Arc::<RateLimit>::default();
        limit.begin();
        let lines = logged(&limit, || {
            for _ in 0..=BURST_LINES {
                tracing::warn!(key = "ü".repeat(1000), "large object");
            }
            limit.report();
        });
        let report = lines.last().expect("a report");
        assert!(report.contains("large object key=") && report.len() < 500, "{report}");
    }
}
