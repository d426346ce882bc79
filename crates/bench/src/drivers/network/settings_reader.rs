//! Reads the settings of a driver.

use super::Target;
use crate::config::{ConfigError, Settings};
use crate::term::Term;
use ombak_types::Quorum;
use std::time::Duration;

/// The duration that stands for `infinity`, because a timer needs a number.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Reads settings with their defaults, and describes what is wrong with an invalid one.
#[derive(Clone, Copy, Debug)]
pub struct SettingsReader<'a>(pub &'a Settings);

impl SettingsReader<'_> {
    /// A number, 0 or higher.
    pub fn count(self, key: &str, default: u64) -> Result<u64, ConfigError> {
        match self.0.get(key) {
            None => Ok(default),
            Some(Term::Integer(n)) => u64::try_from(*n).map_err(|_| wrong(key, "a number of 0 or more is needed")),
            Some(_) => Err(wrong(key, "a number of 0 or more is needed")),
        }
    }

    /// A text, in any of the forms that Erlang programs use.
    pub fn text(self, key: &str, default: &str) -> Result<String, ConfigError> {
        match self.0.get(key) {
            None => Ok(default.to_owned()),
            Some(term) => {
                let bytes = bytes(term).ok_or_else(|| wrong(key, "a text is needed, such as \"test\""))?;
                String::from_utf8(bytes).map_err(|_| wrong(key, "a text in UTF-8 is needed"))
            }
        }
    }

    /// A number of milliseconds, or `infinity`.
    pub fn millis(self, key: &str, default: Duration) -> Result<Duration, ConfigError> {
        match self.0.get(key) {
            None => Ok(default),
            Some(Term::Integer(n @ 1..)) => {
                Ok(Duration::from_millis(u64::try_from(*n).unwrap_or(u64::MAX)).min(FOREVER))
            }
            Some(Term::Atom(word)) if word == "infinity" => Ok(FOREVER),
            Some(_) => Err(wrong(key, "a number of milliseconds (1 or more) or infinity is needed")),
        }
    }

    /// A number of replies or a word for one, encoded as requests carry it.
    pub fn quorum(self, key: &str) -> Result<Option<u32>, ConfigError> {
        let what = "a number of replies is needed, or one of one, quorum, all and default";
        match self.0.get(key) {
            None => Ok(None),
            Some(Term::Integer(n)) => u32::try_from(*n).map(Some).map_err(|_| wrong(key, what)),
            Some(Term::Atom(word)) => match Quorum::from_word(word) {
                Some(quorum) => Ok(Some(quorum.to_wire())),
                None => Err(wrong(key, what)),
            },
            Some(_) => Err(wrong(key, what)),
        }
    }

    /// A list of servers. `ips` names the setting with their addresses, and `port` the setting with
    /// the port of addresses without one.
    pub fn targets(self, ips: &str, port: &str, port_default: u16) -> Result<Vec<Target>, ConfigError> {
        let number = self.count(port, u64::from(port_default))?;
        let number = u16::try_from(number).ok().filter(|&n| n > 0);
        let number = number.ok_or_else(|| wrong(port, "a port from 1 to 65535 is needed"))?;
        match self.0.get(ips) {
            None => Ok(vec![Target { host: "127.0.0.1".into(), port: number }]),
            Some(term) => Target::parse_all(ips, term, number),
        }
    }
}

/// The bytes of a text, a binary, an atom or a list of bytes.
pub fn bytes(term: &Term) -> Option<Vec<u8>> {
    match term {
        Term::Text(text) | Term::Atom(text) => Some(text.as_bytes().to_vec()),
        Term::Binary(bytes) => Some(bytes.clone()),
        Term::List(items) => {
            let byte = |item: &Term| match item {
                Term::Integer(n) => u8::try_from(*n).ok(),
                _ => None,
            };
            items.iter().map(byte).collect()
        }
        _ => None,
    }
}

fn wrong(key: &str, what: &str) -> ConfigError {
    ConfigError::setting(key, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(key: &str, term: Term) -> Settings {
        let mut settings = Settings::default();
        settings.set(key, term);
        settings
    }

    #[test]
    fn what_is_absent_has_its_default() {
        let settings = Settings::default();
        let read = SettingsReader(&settings);
        assert_eq!(read.count("a", 7), Ok(7));
        assert_eq!(read.text("a", "x").unwrap(), "x");
        assert_eq!(read.millis("a", Duration::from_secs(2)), Ok(Duration::from_secs(2)));
        assert_eq!(read.quorum("a"), Ok(None));
        assert_eq!(read.targets("a", "b", 8098).unwrap()[0].to_string(), "127.0.0.1:8098");
    }

    #[test]
    fn quorums_are_riaks() {
        let quorum = |term| SettingsReader(&with("r", term)).quorum("r");
        for (word, number) in
            [("one", 4294967294), ("quorum", 4294967293), ("all", 4294967292), ("default", 4294967291)]
        {
            assert_eq!(quorum(Term::Atom(word.into())), Ok(Some(number)), "{word}");
        }
        assert_eq!(quorum(Term::Integer(2)), Ok(Some(2)));
        assert!(quorum(Term::Atom("most".into())).unwrap_err().to_string().starts_with("r: a number of replies"));
    }

    #[test]
    fn times_may_be_endless_but_not_nothing() {
        let millis = |term| SettingsReader(&with("t", term)).millis("t", Duration::ZERO);
        assert_eq!(millis(Term::Integer(1500)), Ok(Duration::from_millis(1500)));
        assert_eq!(millis(Term::Atom("infinity".into())), Ok(FOREVER));
        assert_eq!(millis(Term::Integer(i128::MAX)), Ok(FOREVER));
        assert!(millis(Term::Integer(0)).is_err());
    }
}
