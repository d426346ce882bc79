//! Durations in words.

use std::time::Duration;

/// A duration such as `8.64 s`, `1 min 55 s` or `24 h`.
pub fn length(time: Duration) -> String {
    let secs = time.as_secs_f64();
    if secs < 60.0 {
        return format!("{} s", (secs * 1000.0).round() / 1000.0);
    }
    let secs = secs.round() as u64;
    [(secs / 3600, "h"), (secs / 60 % 60, "min"), (secs % 60, "s")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_said_as_people_do() {
        for (secs, words) in [
            (0.25, "0.25 s"),
            (1.0, "1 s"),
            (8.64, "8.64 s"),
            (60.0, "1 min"),
            (115.2, "1 min 55 s"),
            (3600.0, "1 h"),
            (5400.0, "1 h 30 min"),
            (86_400.0, "24 h"),
        ] {
            assert_eq!(length(Duration::from_secs_f64(secs)), words);
        }
    }
}
