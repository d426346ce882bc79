//! Where the records are.

use super::ConsoleError;

/// What an edit does to a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// It stays as it is.
    Keep,
    /// It gets this value.
    Set(String),
    /// It is removed.
    Remove,
}

/// Where the records are.
pub trait RecordStore {
    /// All records: keys and values.
    fn records(&self) -> Vec<(String, String)>;

    /// Changes one record. `edit` gets its present value and is asked again when others have
    /// changed it meanwhile. An error of `edit` changes nothing, and comes back as it is.
    fn change(&self, key: &str, edit: &dyn Fn(Option<&str>) -> Result<Edit, ConsoleError>) -> Result<(), ConsoleError>;
}
