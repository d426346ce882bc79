//! The settings of one or more configuration files, as they were written.

use super::ConfigError;
use crate::term::{self, Placed, Term};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The largest configuration file that is read, in bytes. Real ones have a few kilobytes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The pairs `{Key, Value}.` of all files. A later pair overrides an earlier one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings(BTreeMap<String, Term>);

impl Settings {
    /// Reads files in order.
    pub fn from_files<P: AsRef<Path>>(files: &[P]) -> Result<Self, ConfigError> {
        let mut settings = Self::default();
        for file in files {
            let file = file.as_ref();
            settings.read(&file.display().to_string(), &bytes_of(file)?)?;
        }
        Ok(settings)
    }

    /// Reads text. `name` stands for the file name in errors.
    pub fn from_text(name: &str, text: &str) -> Result<Self, ConfigError> {
        let mut settings = Self::default();
        settings.read(name, text.as_bytes())?;
        Ok(settings)
    }

    fn read(&mut self, file: &str, bytes: &[u8]) -> Result<(), ConfigError> {
        let syntax = |line, column, what| ConfigError::Syntax { file: file.to_owned(), line, column, what };
        for Placed { line, column, term } in
            term::read(bytes).map_err(|error| syntax(error.line, error.column, error.what))?
        {
            match pair(term) {
                Ok((key, value)) => self.set(key, value),
                Err(term) => {
                    return Err(syntax(line, column, format!("a setting is written {{key, Value}}. and not {term}.")));
                }
            }
        }
        Ok(())
    }

    /// The value of a setting, as it was written.
    pub fn get(&self, key: &str) -> Option<&Term> {
        self.0.get(key)
    }

    /// Sets a value and overrides an earlier one.
    pub fn set(&mut self, key: impl Into<String>, value: Term) {
        self.0.insert(key.into(), value);
    }

    /// The names of all settings.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// All settings with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Term)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }
}

/// Writes a file that reads back as the same settings.
impl Display for Settings {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(key, value)| writeln!(f, "{{{}, {value}}}.", Term::atom(key)))
    }
}

/// Splits `{key, Value}` into its parts. The error is the term, if it is not such a pair.
fn pair(term: Term) -> Result<(String, Term), Term> {
    match term {
        Term::Tuple(elements) => match <[Term; 2]>::try_from(elements) {
            Ok([Term::Atom(key), value]) => Ok((key, value)),
            Ok(elements) => Err(Term::Tuple(elements.into())),
            Err(elements) => Err(Term::Tuple(elements)),
        },
        term => Err(term),
    }
}

fn bytes_of(file: &Path) -> Result<Vec<u8>, ConfigError> {
    let unreadable = |what: String| ConfigError::File { file: file.display().to_string(), what };
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|open| open.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(unreadable(format!("it has more than {FILE_BYTES_MAX} bytes, so it is not a configuration")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_files_win() {
        let dir = tempfile::tempdir().unwrap();
        let files = [dir.path().join("a.config"), dir.path().join("b.config")];
        std::fs::write(&files[0], "{mode, max}.\n{concurrent, 3}. {concurrent, 4}.").unwrap();
        std::fs::write(&files[1], "% more\n{concurrent, 5}.\n{ips, [{127,0,0,1}]}.").unwrap();
        let settings = Settings::from_files(&files).unwrap();
        assert_eq!(settings.keys().collect::<Vec<_>>(), ["concurrent", "ips", "mode"]);
        assert_eq!(settings.get("concurrent"), Some(&Term::Integer(5)));
        assert_eq!(settings.get("duration"), None);
        let text = "{concurrent, 5}.\n{ips, [{127, 0, 0, 1}]}.\n{mode, max}.\n";
        assert_eq!(settings.to_string(), text);
        assert_eq!(Settings::from_text("again", text).unwrap(), settings);
    }

    #[test]
    fn what_is_wrong_is_said_with_file_and_place() {
        for (text, message) in [
            ("{mode, max}", "f.config:1:12: '.' was expected after the term, not the end"),
            ("\n {mode}.", "f.config:2:2: a setting is written {key, Value}. and not {mode}."),
            ("{mode, max, 1}.", "f.config:1:1: a setting is written {key, Value}. and not {mode, max, 1}."),
            ("{\"mode\", max}.", "f.config:1:1: a setting is written {key, Value}. and not {\"mode\", max}."),
            ("[{mode, max}].", "f.config:1:1: a setting is written {key, Value}. and not [{mode, max}]."),
        ] {
            assert_eq!(Settings::from_text("f.config", text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn files_that_are_no_configurations_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("missing");
        let error = Settings::from_files(&[&missing]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}: ", missing.display())) && error.contains("No such file"), "{error}");
        let large = dir.path().join("large");
        std::fs::write(&large, vec![b' '; FILE_BYTES_MAX as usize + 1]).unwrap();
        let error = Settings::from_files(&[&large]).unwrap_err().to_string();
        assert!(error.ends_with("it has more than 4194304 bytes, so it is not a configuration"), "{error}");
    }
}
