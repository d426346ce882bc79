//! The fields that a message may have beyond its fixed part.
//!
//! A field is a tag, a length and so many bytes. The tags of a message rise, so each occurs at most
//! once. A reader that does not know a tag refuses the message if the tag is below
//! [`OPTIONAL_FROM`], and skips the field otherwise. So a later version can add a field to any
//! message: with a low tag if an earlier version must not act without understanding it, and with a
//! high tag if it may.
//!
//! The tags of each message are listed in its file.

use super::reader::{Malformed, Reader};

/// The first tag of a field that a reader may skip.
pub const OPTIONAL_FROM: u8 = 128;

/// Whether a tag was known.
pub(crate) enum Field {
    Read,
    Unknown,
}

/// Reads the fields of a message up to their end. `read` gets each tag with the content, of which
/// it reads all or nothing.
pub(crate) fn read_fields<'a>(
    message: &mut Reader<'a>,
    mut read: impl FnMut(u8, &mut Reader<'a>) -> Result<Field, Malformed>,
) -> Result<(), Malformed> {
    let mut last = 0;
    loop {
        let tag = message.u8()?;
        if tag == 0 {
            return Ok(());
        }
        if tag <= last {
            return Err(Malformed("its fields are not in order"));
        }
        last = tag;
        let mut content = message.part()?;
        match read(tag, &mut content)? {
            Field::Read => content.end()?,
            Field::Unknown if tag < OPTIONAL_FROM => return Err(Malformed("a field is not known")),
            Field::Unknown => {}
        }
    }
}

/// Reads the fields of a message that has none in this version.
pub(crate) fn no_fields(message: &mut Reader<'_>) -> Result<(), Malformed> {
    read_fields(message, |_, _| Ok(Field::Unknown))
}
