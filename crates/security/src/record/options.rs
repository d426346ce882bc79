//! Options: names and values that somebody has given to a user, a group or a source.

use crate::bounds::{OPTION_NAME_BYTES_MAX, OPTION_VALUE_BYTES_MAX, OPTIONS_MAX};
use std::collections::BTreeMap;

/// Options by their names.
pub(crate) type Options = BTreeMap<String, String>;

/// Checks that options keep within the bounds.
pub(crate) fn check_options(options: &Options) -> Result<(), String> {
    if options.len() > OPTIONS_MAX {
        return Err(format!("there can be at most {OPTIONS_MAX} options"));
    }
    for (name, value) in options {
        if name.is_empty() || name.len() > OPTION_NAME_BYTES_MAX {
            return Err(format!("the name of an option has 1 to {OPTION_NAME_BYTES_MAX} bytes"));
        }
        if value.len() > OPTION_VALUE_BYTES_MAX {
            return Err(format!("the value of an option has at most {OPTION_VALUE_BYTES_MAX} bytes"));
        }
    }
    Ok(())
}
