//! The value syntax of riak.conf: which values a key may have.

use super::host_port::HostPort;
use ombak_api::http::parse_origin;
use ombak_api::security::AddressRange;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The syntax of a key's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Any text.
    Text,
    /// `name@host`.
    NodeName,
    /// A path in the file system.
    Path,
    /// `on`/`off`, `enabled`/`disabled` or `true`/`false`.
    Flag,
    /// A whole number from the first bound to the second.
    Int(i64, i64),
    /// A power of two from the first bound to the second.
    PowerOfTwo(i64, i64),
    /// A percentage from 0 to 100, with or without the percent sign.
    Percent,
    /// A number of bytes, with an optional unit `KB`, `MB` or `GB` (powers of 1024).
    ByteSize,
    /// A duration such as `10s`, `1h30m` or `500ms`.
    Duration,
    /// A duration, or this word, which stands for "never" or "no limit".
    DurationOr(&'static str),
    /// `IP:PORT`.
    Address,
    /// `HOST:PORT` to listen on: the host is a name or an IP address, and port 0 is any free port.
    HostToListen,
    /// `HOST:PORT` that other nodes connect to.
    Host,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of the words of the first list. The second list has words of Riak that are refused, each
    /// with an explanation.
    ChoiceWithRefused(&'static [&'static str], &'static [(&'static str, &'static str)]),
    /// A number of replicas, `one`, `quorum` or `all`.
    Quorum,
    /// `keep`, `immediate` or a duration. A bare number is in milliseconds, as in Riak's
    /// advanced.config.
    DeleteMode,
    /// Commit hooks, each `module:function`, separated by whitespace.
    Hooks,
    /// Pairs `PREFIX=NAME`, separated by whitespace.
    BackendPrefixes,
    /// Origins of web pages, each `SCHEME://HOST[:PORT]`, separated by whitespace.
    Origins,
    /// Ranges of addresses, each `ADDRESS/BITS`, separated by whitespace.
    AddressRanges,
    /// Host names or addresses without a port, separated by whitespace.
    HostNames,
    /// `HOST:PORT` of other nodes, several separated by whitespace.
    Hosts,
}

/// A value that has been parsed.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text, paths, names, hooks, and words such as the one for "no limit".
    Text(String),
    /// An on/off switch.
    Flag(bool),
    /// A number, a percentage or a power of two.
    Int(i64),
    /// A number of bytes.
    Bytes(u64),
    /// A duration.
    Duration(Duration),
    /// An address to listen on or connect to.
    Address(SocketAddr),
    /// The same, by the name of its host or by its IP address.
    Host(HostPort),
}

impl Kind {
    /// Parses a value. The error says what would be right.
    pub fn parse(self, text: &str) -> Result<Value, String> {
        match self {
            Self::Text => Ok(Value::Text(text.to_owned())),
            Self::Path if text.is_empty() => Err("must be a path".into()),
            Self::Path => Ok(Value::Text(text.to_owned())),
            Self::NodeName => node_name(text),
            Self::Flag => flag(text),
            Self::Int(min, max) => int(text, min, max).map(Value::Int),
            Self::PowerOfTwo(min, max) => match int(text, min, max) {
                Ok(n) if n.count_ones() == 1 => Ok(Value::Int(n)),
                _ => Err(format!("must be a power of two from {min} to {max}")),
            },
            Self::Percent => percent(text.trim_end_matches('%').trim_end()).map(Value::Int),
            Self::ByteSize => byte_size(text).map(Value::Bytes),
            Self::Duration => duration(text).map(Value::Duration),
            Self::DurationOr(none) if text == none => Ok(Value::Text(text.to_owned())),
            Self::DurationOr(none) => duration(text).map(Value::Duration).map_err(|e| format!("{e}, or {none}")),
            Self::Address => text
                .parse()
                .map(Value::Address)
                .map_err(|_| "must be IP:PORT, such as 127.0.0.1:8098 or [::1]:8098".to_owned()),
            Self::HostToListen => HostPort::parse_to_listen(text).map(Value::Host),
            Self::Host => HostPort::parse(text).map(Value::Host),
            Self::Choice(words) => choice(text, words),
            Self::ChoiceWithRefused(words, refused) => match refused.iter().find(|(word, _)| *word == text) {
                Some((_, why)) => Err((*why).to_owned()),
                None => choice(text, words),
            },
            Self::Quorum => match text {
                "one" | "quorum" | "all" => Ok(Value::Text(text.to_owned())),
                n => int(n, 0, i64::from(u16::MAX))
                    .map(Value::Int)
                    .map_err(|_| "must be a whole number, one, quorum or all".to_owned()),
            },
            Self::DeleteMode => delete_mode(text),
            Self::Hooks => hooks(text),
            Self::BackendPrefixes => backend_prefixes(text).map(|_| Value::Text(text.to_owned())),
            Self::Origins => words(text, |word| parse_origin(word).is_some())
                .map_err(|word| format!("'{word}' is not an origin: it must be SCHEME://HOST or SCHEME://HOST:PORT")),
            Self::AddressRanges => words(text, |word| word.parse::<AddressRange>().is_ok())
                .map_err(|word| format!("'{word}' is no range of addresses: it must be ADDRESS/BITS")),
            Self::Hosts => {
                let wrong = text.split_whitespace().find_map(|word| Some((word, HostPort::parse(word).err()?)));
                wrong.map_or_else(|| Ok(Value::Text(text.to_owned())), |(word, why)| Err(format!("'{word}': {why}")))
            }
            Self::HostNames => words(text, is_host_name)
                .map_err(|word| format!("'{word}' is not a host name: it must be a name or an address without a port")),
        }
    }

    /// The syntax in words, for `ombak config describe`.
    pub fn describe(self) -> String {
        match self {
            Self::Text => "text".into(),
            Self::NodeName => "NAME@HOST".into(),
            Self::Path => "a path".into(),
            Self::Flag => "on or off (also enabled/disabled, true/false)".into(),
            Self::Int(min, i64::MAX) => format!("a whole number from {min}"),
            Self::Int(min, max) => format!("a whole number from {min} to {max}"),
            Self::PowerOfTwo(min, max) => format!("a power of two from {min} to {max}"),
            Self::Percent => "a percentage from 0 to 100".into(),
            Self::ByteSize => "bytes, such as 512KB, 50MB or 2GB".into(),
            Self::Duration => "a time, such as 500ms, 10s, 3m, 1h, 1d or 1w".into(),
            Self::DurationOr(none) => format!("a time, such as 500ms, 10s, 3m, 1h, 1d or 1w; or {none}"),
            Self::Address => "IP:PORT".into(),
            Self::Host | Self::HostToListen => "HOST:PORT; HOST is a name or an IP address".into(),
            Self::Choice(words) | Self::ChoiceWithRefused(words, _) => format!("one of {}", words.join(", ")),
            Self::Quorum => "a whole number, one, quorum or all".into(),
            Self::DeleteMode => "keep, immediate or a time (a bare number is milliseconds)".into(),
            Self::Hooks => "module:function, several separated by blanks".into(),
            Self::BackendPrefixes => "PREFIX=NAME, several separated by blanks".into(),
            Self::AddressRanges => "ADDRESS/BITS, such as 10.0.0.0/8, several separated by blanks".into(),
            Self::Origins => "SCHEME://HOST[:PORT], several separated by blanks".into(),
            Self::Hosts => "HOST:PORT, several separated by blanks; HOST is a name or an IP address".into(),
            Self::HostNames => "a host name, several separated by blanks".into(),
        }
    }
}

impl fmt::Display for Value {
    /// Writes the value in the form of the configuration file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Flag(on) => f.write_str(if *on { "on" } else { "off" }),
            Self::Int(n) => write!(f, "{n}"),
            Self::Bytes(bytes) => write_bytes(*bytes, f),
            Self::Duration(d) => write_duration(*d, f),
            Self::Address(address) => write!(f, "{address}"),
            Self::Host(address) => write!(f, "{address}"),
        }
    }
}

fn node_name(text: &str) -> Result<Value, String> {
    let plain =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:[]".contains(c));
    match text.split_once('@') {
        Some((name, host)) if plain(name) && plain(host) => Ok(Value::Text(text.to_owned())),
        _ => Err("must be NAME@HOST, such as riak@127.0.0.1".into()),
    }
}

fn flag(text: &str) -> Result<Value, String> {
    match text {
        "on" | "enabled" | "true" => Ok(Value::Flag(true)),
        "off" | "disabled" | "false" => Ok(Value::Flag(false)),
        _ => Err("must be on or off".into()),
    }
}

fn int(text: &str, min: i64, max: i64) -> Result<i64, String> {
    match text.parse::<i64>() {
        Ok(n) if (min..=max).contains(&n) => Ok(n),
        _ if max == i64::MAX => Err(format!("must be a whole number from {min}")),
        _ => Err(format!("must be a whole number from {min} to {max}")),
    }
}

/// Parses a percentage and drops its fraction. Some of Riak's keys spell it `75.0`.
fn percent(text: &str) -> Result<i64, String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return Err("must be a percentage from 0 to 100".into());
    }
    int(whole, 0, 100)
}

/// Parses prefixes of untyped buckets with the names of their backends, in the order of the text.
pub fn backend_prefixes(text: &str) -> Result<Vec<(Vec<u8>, String)>, String> {
    let pair = |pair: &str| {
        let (prefix, name) = pair.rsplit_once('=').filter(|(prefix, name)| !prefix.is_empty() && !name.is_empty())?;
        Some((unescape(prefix)?, name.to_owned()))
    };
    let bad =
        |text: &str| format!("'{text}' is not PREFIX=NAME, such as 0b:=blocks; a blank in a prefix is written %20");
    text.split_whitespace().map(|text| pair(text).ok_or_else(|| bad(text))).collect()
}

/// Replaces each `%XX` by the byte with that hexadecimal value.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(bytes)
}

fn choice(text: &str, words: &[&str]) -> Result<Value, String> {
    if words.contains(&text) {
        Ok(Value::Text(text.to_owned()))
    } else {
        Err(format!("must be {}", words.join(" or ")))
    }
}

const BYTE_UNITS: [(&str, u64); 3] = [("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)];

fn byte_size(text: &str) -> Result<u64, String> {
    let upper = text.to_ascii_uppercase();
    let (digits, unit) = BYTE_UNITS
        .iter()
        .find_map(|(name, unit)| upper.strip_suffix(name).map(|rest| (rest, *unit)))
        .unwrap_or_else(|| (upper.strip_suffix('B').unwrap_or(&upper), 1));
    digits
        .trim()
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(unit))
        .ok_or_else(|| "must be a number of bytes, such as 1048576, 512KB, 50MB or 2GB".into())
}

fn write_bytes(bytes: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match BYTE_UNITS.iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((name, unit)) => write!(f, "{}{name}", bytes / unit),
        None => write!(f, "{bytes}"),
    }
}

/// Units of time in milliseconds. `f` is a fortnight. `ms` comes before `m` and `s`, so that it is
/// not taken for either of them.
const TIME_UNITS: [(&str, f64); 7] = [
    ("ms", 1.0),
    ("f", 14.0 * 86_400_000.0),
    ("w", 7.0 * 86_400_000.0),
    ("d", 86_400_000.0),
    ("h", 3_600_000.0),
    ("m", 60_000.0),
    ("s", 1_000.0),
];

/// The longest duration that a value may have: a hundred years. This bound keeps every sum of two
/// durations in range.
const TIME_MS_MAX: f64 = 100.0 * 366.0 * 86_400_000.0;

fn duration(text: &str) -> Result<Duration, String> {
    let bad = || "must be a time with its unit, such as 500ms, 10s, 3m, 1h30m, 1d or 1w".to_owned();
    let mut rest = text.trim();
    let mut total_ms = 0.0;
    if rest.is_empty() {
        return Err(bad());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(bad)?;
        let (number, tail) = rest.split_at(digits);
        let (name, unit_ms) = TIME_UNITS.iter().find(|(name, _)| tail.starts_with(name)).ok_or_else(bad)?;
        total_ms += number.parse::<f64>().map_err(|_| bad())? * unit_ms;
        rest = &tail[name.len()..];
    }
    if total_ms > TIME_MS_MAX { Err("must be less than a hundred years".into()) } else { Ok(millis(total_ms)) }
}

fn millis(ms: f64) -> Duration {
    Duration::from_millis(ms.ceil() as u64)
}

fn write_duration(d: Duration, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let ms = d.as_millis();
    let whole = [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)]
        .into_iter()
        .find(|(_, unit)| ms >= *unit && ms.is_multiple_of(*unit));
    match whole {
        Some((name, unit)) => write!(f, "{}{name}", ms / unit),
        None => write!(f, "{ms}ms"),
    }
}

fn delete_mode(text: &str) -> Result<Value, String> {
    if text == "keep" || text == "immediate" {
        return Ok(Value::Text(text.to_owned()));
    }
    match text.parse::<u32>() {
        Ok(ms) => Ok(Value::Duration(Duration::from_millis(ms.into()))),
        Err(_) => {
            duration(text).map(Value::Duration).map_err(|_| "must be keep, immediate or a time such as 3s".to_owned())
        }
    }
}

fn hooks(text: &str) -> Result<Value, String> {
    let well_formed = |hook: &str| hook.split_once(':').is_some_and(|(m, f)| !m.is_empty() && !f.is_empty());
    if text.split_whitespace().all(well_formed) {
        Ok(Value::Text(text.to_owned()))
    } else {
        Err("must be module:function, several separated by blanks".into())
    }
}

/// Checks every word of a list. The error is the first word that is not well formed.
fn words(text: &str, is_well_formed: impl Fn(&str) -> bool) -> Result<Value, String> {
    match text.split_whitespace().find(|word| !is_well_formed(word)) {
        Some(word) => Err(word.to_owned()),
        None => Ok(Value::Text(text.to_owned())),
    }
}

fn is_host_name(word: &str) -> bool {
    word.parse::<IpAddr>().is_ok() || word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: Kind, text: &str) -> Result<String, String> {
        kind.parse(text).map(|v| v.to_string())
    }

    #[test]
    fn byte_sizes_count_in_1024() {
        assert_eq!(Kind::ByteSize.parse("50MB"), Ok(Value::Bytes(50 << 20)));
        assert_eq!(Kind::ByteSize.parse("2gb"), Ok(Value::Bytes(2 << 30)));
        assert_eq!(shown(Kind::ByteSize, "1048576"), Ok("1MB".into()));
        assert_eq!(shown(Kind::ByteSize, "1000"), Ok("1000".into()));
        for bad in ["", "MB", "5 apples", "-1KB", "99999999999999999999GB", "20000000000GB"] {
            assert!(Kind::ByteSize.parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_add_up() {
        let ms = |text| match Kind::Duration.parse(text) {
            Ok(Value::Duration(d)) => d.as_millis(),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(ms("12ms"), 12);
        assert_eq!(ms("1.5s"), 1500);
        assert_eq!(ms("1w1d1h1m1s1ms"), 694_861_001);
        assert_eq!(ms("1f"), 14 * 86_400_000);
        for bad in ["", "10", "s", "1x", "1s2", "..s", "99999999w"] {
            assert!(Kind::Duration.parse(bad).is_err(), "{bad}");
        }
        assert_eq!(Kind::DurationOr("off").parse("off"), Ok(Value::Text("off".into())));
    }

    #[test]
    fn percentages_may_have_decimals() {
        assert_eq!(Kind::Percent.parse("75.0"), Ok(Value::Int(75)));
        assert_eq!(Kind::Percent.parse("30 %"), Ok(Value::Int(30)));
        for bad in ["", "101", "75.", "7.x", "-1"] {
            assert!(Kind::Percent.parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn prefixes_keep_their_order_and_bytes() {
        let expected = vec![(b"0b:".to_vec(), "blocks".to_owned()), (b"a=\xff".to_vec(), "other".to_owned())];
        assert_eq!(backend_prefixes("0b:=blocks  a=%fF=other"), Ok(expected));
        assert_eq!(backend_prefixes(""), Ok(vec![]));
        for bad in ["x", "=x", "x=", "%0=x", "%+1=x", "%é=x"] {
            assert!(backend_prefixes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_value_that_was_shown_parses_to_the_same() {
        for (kind, text) in [
            (Kind::Duration, "336h"),
            (Kind::Duration, "90s"),
            (Kind::DurationOr("off"), "off"),
            (Kind::DurationOr("unlimited"), "unlimited"),
            (Kind::BackendPrefixes, "0b:=blocks %00=other"),
            (Kind::Origins, "https://a.example http://b:81"),
            (Kind::AddressRanges, "10.0.0.0/8 ::1/128"),
            (Kind::HostNames, "db.example riak1 ::1"),
            (Kind::Hosts, "10.0.0.1:8099 [::1]:8099 node-1.example:8099"),
            (Kind::Host, "node-1.example:8099"),
            (Kind::HostToListen, "127.0.0.1:0"),
            (Kind::ByteSize, "10MB"),
            (Kind::Flag, "enabled"),
            (Kind::Address, "[::1]:8098"),
            (Kind::Quorum, "quorum"),
            (Kind::DeleteMode, "3000"),
        ] {
            let value = kind.parse(text).expect("parses");
            assert_eq!(kind.parse(&value.to_string()), Ok(value), "{text}");
        }
    }

    #[test]
    fn lists_for_web_pages_name_the_word_that_is_wrong() {
        for bad in ["a.example", "http://", "http://a/", "https://a,http://b", "null", "*"] {
            let why = Kind::Origins.parse(&format!("http://ok {bad}"));
            assert!(why.is_err_and(|why| why.starts_with(&format!("'{bad}' is not an origin"))), "{bad}");
        }
        for bad in ["a:8098", "http://a", "a,b", "*", "[::1]"] {
            let why = Kind::HostNames.parse(&format!("ok {bad}"));
            assert!(why.is_err_and(|why| why.starts_with(&format!("'{bad}' is not a host name"))), "{bad}");
        }
    }

    #[test]
    fn of_several_hosts_the_wrong_one_is_named() {
        let why = Kind::Hosts.parse("10.0.0.1:8099 db:+80").expect_err("no port");
        assert!(why.starts_with("'db:+80': must be HOST:PORT") && why.contains("'+80' is not a port"), "{why}");
        assert!(Kind::Hosts.parse("db:0").is_err() && Kind::Host.parse("127.0.0.1:0").is_err());
    }

    #[test]
    fn a_refused_word_says_why() {
        let kind = Kind::ChoiceWithRefused(&["bitcask"], &[("leveled", "not here")]);
        assert_eq!(kind.parse("leveled"), Err("not here".into()));
        assert_eq!(kind.parse("x"), Err("must be bitcask".into()));
    }

    #[test]
    fn ring_sizes_are_powers_of_two() {
        assert_eq!(Kind::PowerOfTwo(8, 1024).parse("64"), Ok(Value::Int(64)));
        for bad in ["0", "4", "100", "2048", "64.0", "-64"] {
            assert!(Kind::PowerOfTwo(8, 1024).parse(bad).is_err(), "{bad}");
        }
    }
}
