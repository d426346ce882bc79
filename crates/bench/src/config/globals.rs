//! The typed values of the settings that all drivers share, with basho_bench's defaults
//! (docs/riak/basho-bench.md §1.1).

use super::{ConfigError, Mode, Settings};
use crate::drivers::Plan;
use crate::term::Term;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// The highest number of workers. No machine has enough ports for more.
const CONCURRENT_MAX: i128 = 50_000;
/// The longest report interval, one day.
const REPORT_INTERVAL_SECS_MAX: f64 = 86_400.0;
/// The longest run, ten years.
const DURATION_MINS_MAX: f64 = 5_256_000.0;

const DURATION_MINS_DEFAULT: f64 = 5.0;
const REPORT_INTERVAL_SECS_DEFAULT: f64 = 10.0;
const CONCURRENT_DEFAULT: usize = 3;
const RATE_DEFAULT: f64 = 5.0;
const RNG_SEED_DEFAULT: [u64; 3] = [42, 23, 12];

/// The allowed operations per second and worker. A clock cannot tell faster operations apart.
const RATES: std::ops::RangeInclusive<f64> = 0.001..=1e6;

/// The setting `mode`.
pub fn mode(settings: &Settings) -> Result<Mode, ConfigError> {
    let Some(term) = settings.get("mode") else { return Ok(Mode::Rate(RATE_DEFAULT)) };
    let wrong = || {
        ConfigError::setting(
            "mode",
            format!("max or {{rate, PerSecond}} with a number from 0.001 to 1000000, not {term}"),
        )
    };
    if term.as_atom() == Some("max") {
        return Ok(Mode::Max);
    }
    match term.as_tuple() {
        Some([Term::Atom(rate), Term::Atom(max)]) if rate == "rate" && max == "max" => Ok(Mode::Max),
        Some([Term::Atom(rate), per_second]) if rate == "rate" => {
            per_second.as_number().filter(|n| RATES.contains(n)).map(Mode::Rate).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

/// The setting `duration`. `None` means `infinity`.
pub fn duration(settings: &Settings) -> Result<Option<Duration>, ConfigError> {
    let minutes = match settings.get("duration") {
        None => DURATION_MINS_DEFAULT,
        Some(Term::Atom(name)) if name == "infinity" => return Ok(None),
        Some(term) => positive("duration", term, "minutes, a number above 0, or infinity", DURATION_MINS_MAX)?,
    };
    Ok(Some(Duration::from_secs_f64(minutes * 60.0)))
}

/// The setting `concurrent`.
pub fn concurrent(settings: &Settings) -> Result<usize, ConfigError> {
    let Some(term) = settings.get("concurrent") else { return Ok(CONCURRENT_DEFAULT) };
    match term.as_integer() {
        Some(workers @ 1..=CONCURRENT_MAX) => Ok(workers as usize),
        _ => Err(ConfigError::setting("concurrent", format!("workers, from 1 to {CONCURRENT_MAX}, not {term}"))),
    }
}

/// The setting `driver`.
pub fn driver(settings: &Settings) -> Result<&str, ConfigError> {
    let Some(term) = settings.get("driver") else { return Ok(Plan::DRIVER_DEFAULT) };
    term.as_atom().ok_or_else(|| ConfigError::setting("driver", format!("the name of a driver, an atom, not {term}")))
}

/// The setting `report_interval`.
pub fn report_interval(settings: &Settings) -> Result<Duration, ConfigError> {
    let secs = match settings.get("report_interval") {
        None => REPORT_INTERVAL_SECS_DEFAULT,
        Some(term) => positive("report_interval", term, "seconds, a number above 0", REPORT_INTERVAL_SECS_MAX)?,
    };
    Ok(Duration::from_secs_f64(secs))
}

/// The setting `rng_seed`. The value `now` gives a different seed each time.
pub fn rng_seed(settings: &Settings) -> Result<[u64; 3], ConfigError> {
    let Some(term) = settings.get("rng_seed") else { return Ok(RNG_SEED_DEFAULT) };
    if term.as_atom() == Some("now") {
        return Ok([(); 3].map(|()| RandomState::new().build_hasher().finish()));
    }
    let part = |term: &Term| u64::try_from(term.as_integer()?.unsigned_abs()).ok();
    match term.as_tuple() {
        Some([a, b, c]) => part(a).zip(part(b)).zip(part(c)).map(|((a, b), c)| [a, b, c]),
        _ => None,
    }
    .ok_or_else(|| ConfigError::setting("rng_seed", format!("three integers as in {{42, 23, 12}}, or now, not {term}")))
}

/// The setting `shutdown_on_error`.
pub fn shutdown_on_error(settings: &Settings) -> Result<bool, ConfigError> {
    match settings.get("shutdown_on_error").map(|term| (term, term.as_atom())) {
        None | Some((_, Some("false"))) => Ok(false),
        Some((_, Some("true"))) => Ok(true),
        Some((term, _)) => Err(ConfigError::setting("shutdown_on_error", format!("true or false, not {term}"))),
    }
}

/// The setting `key_generator`.
pub fn key_generator(settings: &Settings) -> Term {
    let default = || Term::Tuple(vec![Term::atom("uniform_int"), Term::Integer(100_000)]);
    settings.get("key_generator").cloned().unwrap_or_else(default)
}

/// The setting `value_generator`.
pub fn value_generator(settings: &Settings) -> Term {
    let default = || Term::Tuple(vec![Term::atom("fixed_bin"), Term::Integer(100)]);
    settings.get("value_generator").cloned().unwrap_or_else(default)
}

fn positive(key: &str, term: &Term, what: &str, max: f64) -> Result<f64, ConfigError> {
    match term.as_number() {
        Some(number) if number > 0.0 && number <= max => Ok(number),
        Some(number) if number > max => Err(ConfigError::setting(key, format!("at most {max}, not {term}"))),
        _ => Err(ConfigError::setting(key, format!("{what}, not {term}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;

    fn with(text: &str) -> Settings {
        Settings::from_text("test", text).unwrap()
    }

    fn refuses<T: Debug>(read: impl Fn(&Settings) -> Result<T, ConfigError>, cases: &[(&str, &str)]) {
        for (text, message) in cases {
            assert_eq!(read(&with(text)).unwrap_err().to_string(), *message, "{text}");
        }
    }

    #[test]
    fn defaults_are_basho_benchs() {
        let none = Settings::default();
        assert_eq!(mode(&none), Ok(Mode::Rate(5.0)));
        assert_eq!(duration(&none), Ok(Some(Duration::from_secs(300))));
        assert_eq!(concurrent(&none), Ok(3));
        assert_eq!(driver(&none), Ok("basho_bench_driver_http_raw"));
        assert_eq!(report_interval(&none), Ok(Duration::from_secs(10)));
        assert_eq!(rng_seed(&none), Ok([42, 23, 12]));
        assert_eq!(shutdown_on_error(&none), Ok(false));
        assert_eq!(key_generator(&none).to_string(), "{uniform_int, 100000}");
        assert_eq!(value_generator(&none).to_string(), "{fixed_bin, 100}");
    }

    #[test]
    fn modes_are_read() {
        for (text, expected) in [
            ("{mode, max}.", Mode::Max),
            ("{mode, {rate, max}}.", Mode::Max),
            ("{mode, {rate, 10}}.", Mode::Rate(10.0)),
            ("{mode, {rate, 0.5}}.", Mode::Rate(0.5)),
        ] {
            assert_eq!(mode(&with(text)), Ok(expected));
        }
        refuses(
            mode,
            &[
                ("{mode, fast}.", "mode: max or {rate, PerSecond} with a number from 0.001 to 1000000, not fast"),
                (
                    "{mode, {rate, 0}}.",
                    "mode: max or {rate, PerSecond} with a number from 0.001 to 1000000, not {rate, 0}",
                ),
                (
                    "{mode, {rate, -1}}.",
                    "mode: max or {rate, PerSecond} with a number from 0.001 to 1000000, not {rate, -1}",
                ),
                (
                    "{mode, {speed, 5}}.",
                    "mode: max or {rate, PerSecond} with a number from 0.001 to 1000000, not {speed, 5}",
                ),
            ],
        );
    }

    #[test]
    fn durations_are_minutes() {
        assert_eq!(duration(&with("{duration, 1440}.")), Ok(Some(Duration::from_secs(86_400))));
        assert_eq!(duration(&with("{duration, 0.5}.")), Ok(Some(Duration::from_secs(30))));
        assert_eq!(duration(&with("{duration, infinity}.")), Ok(None));
        refuses(
            duration,
            &[
                ("{duration, 0}.", "duration: minutes, a number above 0, or infinity, not 0"),
                ("{duration, forever}.", "duration: minutes, a number above 0, or infinity, not forever"),
                ("{duration, 1.0e300}.", "duration: at most 5256000, not 1.0e300"),
            ],
        );
    }

    #[test]
    fn numbers_are_bounded() {
        assert_eq!(concurrent(&with("{concurrent, 1000}.")), Ok(1000));
        assert_eq!(report_interval(&with("{report_interval, 1}.")), Ok(Duration::from_secs(1)));
        refuses(
            concurrent,
            &[
                ("{concurrent, 0}.", "concurrent: workers, from 1 to 50000, not 0"),
                ("{concurrent, 50001}.", "concurrent: workers, from 1 to 50000, not 50001"),
                ("{concurrent, many}.", "concurrent: workers, from 1 to 50000, not many"),
            ],
        );
        refuses(
            report_interval,
            &[
                ("{report_interval, 0}.", "report_interval: seconds, a number above 0, not 0"),
                ("{report_interval, 100000}.", "report_interval: at most 86400, not 100000"),
            ],
        );
    }

    #[test]
    fn seeds_are_three_integers_or_another_one_each_time() {
        assert_eq!(rng_seed(&with("{rng_seed, {1, -2, 3}}.")), Ok([1, 2, 3]));
        let now = with("{rng_seed, now}.");
        assert_ne!(rng_seed(&now), rng_seed(&now));
        let message = |seed: &str| format!("rng_seed: three integers as in {{42, 23, 12}}, or now, not {seed}");
        for seed in ["{1, 2}", "{1, 2, x}", "later", "{1, 2, 36893488147419103232}"] {
            assert_eq!(rng_seed(&with(&format!("{{rng_seed, {seed}}}."))).unwrap_err().to_string(), message(seed));
        }
    }

    #[test]
    fn switches_and_names_are_atoms() {
        assert_eq!(shutdown_on_error(&with("{shutdown_on_error, true}.")), Ok(true));
        assert_eq!(shutdown_on_error(&with("{shutdown_on_error, false}.")), Ok(false));
        refuses(shutdown_on_error, &[("{shutdown_on_error, 1}.", "shutdown_on_error: true or false, not 1")]);
        assert_eq!(driver(&with("{driver, basho_bench_driver_nhs}.")), Ok("basho_bench_driver_nhs"));
        refuses(
            |settings| driver(settings).map(str::to_owned),
            &[("{driver, \"nhs\"}.", "driver: the name of a driver, an atom, not \"nhs\"")],
        );
    }
}
