//! Why an index cannot be opened, written or asked.

use std::io;
use tantivy::TantivyError;
use tantivy::directory::error::OpenReadError;

/// Why an index cannot be opened, written or asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// Its files are damaged. Whoever owns the index removes its directory and begins anew.
    #[error("the files of the index are damaged: {0}")]
    Damaged(String),
    /// Its files have another format, or are of another schema. Whoever owns the index removes its
    /// directory and begins anew.
    #[error("the files of the index are not of this schema and format: {0}")]
    OtherSchema(String),
    /// The query asks for what cannot be; the text says what would be right.
    #[error("{0}")]
    BadQuery(String),
    /// The query costs too much; the text says the bound.
    #[error("{0}")]
    TooCostly(String),
    /// There was no time left.
    #[error("the search was not finished in time")]
    TimedOut,
    /// The disk or the system refused something.
    #[error("the index cannot be read or written: {0}")]
    Storage(String),
}

impl From<TantivyError> for IndexError {
    fn from(error: TantivyError) -> Self {
        let text = error.to_string();
        match error {
            // A process can have too many files.
            TantivyError::OpenReadError(OpenReadError::IoError { io_error, .. }) => Self::of_io(&io_error),
            TantivyError::DataCorruption(_)
            | TantivyError::OpenReadError(_)
            | TantivyError::IncompatibleIndex(_)
            | TantivyError::InternalError(_)
            | TantivyError::DeserializeError(_)
            | TantivyError::SchemaError(_)
            | TantivyError::FieldNotFound(_) => Self::Damaged(text),
            TantivyError::IoError(error) => Self::of_io(&error),
            _ => Self::Storage(text),
        }
    }
}

impl From<io::Error> for IndexError {
    fn from(error: io::Error) -> Self {
        Self::of_io(&error)
    }
}

impl IndexError {
    fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::NotFound => {
                Self::Damaged(error.to_string())
            }
            _ => Self::Storage(error.to_string()),
        }
    }
}

/// Runs what reads or writes files of the index. The library panics on some damage; that is an
/// error here.
pub(crate) fn guarded<T>(run: impl FnOnce() -> Result<T, IndexError>) -> Result<T, IndexError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(IndexError::Damaged(format!("reading failed unexpectedly: {text}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_library_is_damage() {
        let result: Result<(), IndexError> = guarded(|| panic!("index {} out of range", 7));
        assert_eq!(result, Err(IndexError::Damaged("reading failed unexpectedly: index 7 out of range".into())));
    }
}
