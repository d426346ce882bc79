//! Numbers and text for people.

/// Escapes text for an HTML element or attribute.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            // A page may not contain a control character, not even an escaped one.
            c if c.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}

/// A number with separated thousands, such as `1,234,567`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number with three significant digits: `0.0123`, `1.23`, `12.3`, `123`, `1,234`.
pub(super) fn digits3(value: f64) -> String {
    let decimals = match value.abs() {
        v if !v.is_finite() => return "–".to_owned(),
        0.0 => 0,
        v if v >= 99.95 => return grouped(value.round().max(0.0) as u64),
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        v if v >= 0.09995 => 3,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

/// The label of a tick on an axis: `0.05`, `200`, `1,500`, `20k`, `1.5M`.
pub(super) fn tick(value: f64) -> String {
    let (value, suffix) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, "G"),
        v if v >= 1e6 => (value / 1e6, "M"),
        v if v >= 1e4 => (value / 1e3, "k"),
        v if v >= 1e3 => return grouped(value.round().max(0.0) as u64),
        _ => (value, ""),
    };
    let text = format!("{value:.4}");
    format!("{}{suffix}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A number of bytes with its unit: `850 B`, `1.23 MB`.
pub(super) fn bytes(bytes: f64) -> String {
    let (divisor, name) = byte_unit(bytes);
    format!("{} {name}", digits3(bytes / divisor))
}

/// The largest unit that is not larger than `bytes`.
pub(super) fn byte_unit(bytes: f64) -> (f64, &'static str) {
    [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")]
        .into_iter()
        .find(|(divisor, _)| bytes >= *divisor)
        .unwrap_or((1.0, "B"))
}

/// A duration: `45 s`, `8 min`, `8 min 20 s`, `24 h`, `24 h 5 min`.
pub(super) fn duration(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    let two = |first: u64, first_unit: &str, second: u64, second_unit: &str| match second {
        0 => format!("{first} {first_unit}"),
        _ => format!("{first} {first_unit} {second} {second_unit}"),
    };
    match whole {
        0..10 => format!("{} s", digits3(seconds)),
        10..120 => format!("{whole} s"),
        120..7200 => two(whole / 60, "min", whole % 60, "s"),
        _ => two(whole / 3600, "h", whole % 3600 / 60, "min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([grouped(0), grouped(999), grouped(1_000), grouped(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
        let shown = [0.0, 0.012_34, 0.1234, 0.999_6, 1.234, 12.34, 99.96, 1234.4].map(digits3);
        assert_eq!(shown, ["0", "0.0123", "0.123", "1.00", "1.23", "12.3", "100", "1,234"]);
        assert_eq!([0.05, 0.0, 200.0, 1500.0, 20_000.0, 1.5e6].map(tick), ["0.05", "0", "200", "1,500", "20k", "1.5M"]);
        assert_eq!([850.0, 1.234e6].map(bytes), ["850 B", "1.23 MB"]);
        let shown = [1.5, 45.2, 480.0, 500.0, 86_400.0, 86_700.0].map(duration);
        assert_eq!(shown, ["1.50 s", "45 s", "8 min", "8 min 20 s", "24 h", "24 h 5 min"]);
    }

    #[test]
    fn nothing_breaks_out_of_text() {
        assert_eq!(escaped("<a b=\"c\">&\u{1}"), "&lt;a b=&quot;c&quot;&gt;&amp;\u{fffd}");
    }
}
