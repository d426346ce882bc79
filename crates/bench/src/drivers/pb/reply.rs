//! The content of an `RpbGetResp`, borrowed from its frame, and the parts that an update keeps.

use crate::drivers::network::ExchangeError;
use ombak_proto::wire::{Fields, Value, WireError};

/// The answer to a read. Without contents, the key does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GetReply<'a> {
    /// The number of siblings.
    pub contents: usize,
    /// The first sibling, encoded.
    pub first: &'a [u8],
    /// The vector clock, for the put that replaces the siblings.
    pub vclock: &'a [u8],
}

impl<'a> GetReply<'a> {
    /// Decodes and checks the body: an object must have a vector clock, and each sibling must have
    /// a value or be marked as deleted.
    pub fn read(body: &'a [u8]) -> Result<Self, ExchangeError> {
        let mut reply = Self::default();
        let mut fields = Fields::new(body);
        while let Some(field) = fields.next().map_err(|_| UNREADABLE)? {
            match field {
                (1, Value::Bytes(content)) => {
                    check_content(content)?;
                    if reply.contents == 0 {
                        reply.first = content;
                    }
                    reply.contents += 1;
                }
                (2, Value::Bytes(vclock)) => reply.vclock = vclock,
                _ => {}
            }
        }
        if reply.contents > 0 && reply.vclock.is_empty() {
            return Err(ExchangeError::answer("an object without a clock"));
        }
        Ok(reply)
    }

    /// Whether the key exists.
    pub const fn is_found(&self) -> bool {
        self.contents > 0
    }
}

const UNREADABLE: ExchangeError = ExchangeError::answer("an answer that cannot be read");

fn check_content(content: &[u8]) -> Result<(), ExchangeError> {
    let (mut value_bytes, mut deleted) = (None, false);
    let mut fields = Fields::new(content);
    while let Some(field) = fields.next().map_err(|_| UNREADABLE)? {
        match field {
            (1, Value::Bytes(value)) => value_bytes = Some(value.len()),
            (11, Value::Varint(flag)) => deleted = flag != 0,
            _ => {}
        }
    }
    match value_bytes {
        None => Err(ExchangeError::answer("an object without a value")),
        Some(0) if !deleted => Err(ExchangeError::answer("an object with an empty value")),
        Some(_) => Ok(()),
    }
}

/// The parts of a read object that an update keeps: the vector clock, and everything of the first
/// sibling except its value.
#[derive(Debug, Default)]
pub struct ReadForUpdate {
    /// The vector clock; empty if nothing was read.
    vclock: Vec<u8>,
    content_type: Vec<u8>,
    /// The further fields of the content, encoded.
    fields: Vec<u8>,
}

/// Whether an update keeps the index entries that it has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexes {
    /// The index entries are kept.
    Keep,
    /// The index entries are removed.
    Remove,
}

impl ReadForUpdate {
    /// Forgets everything, because the key is new.
    pub fn clear(&mut self) {
        self.vclock.clear();
        self.content_type.clear();
        self.fields.clear();
    }

    /// Keeps what a put needs to replace this object.
    pub fn keep(&mut self, reply: &GetReply<'_>, indexes: Indexes) -> Result<(), ExchangeError> {
        self.clear();
        self.vclock.extend_from_slice(reply.vclock);
        self.keep_fields(reply.first, indexes).map_err(|_| UNREADABLE)
    }

    fn keep_fields(&mut self, content: &[u8], indexes: Indexes) -> Result<(), WireError> {
        let mut fields = Fields::new(content);
        let mut rest = fields.rest();
        while let Some(field) = fields.next()? {
            let raw = rest.get(..rest.len() - fields.rest().len()).unwrap_or_default();
            rest = fields.rest();
            match field {
                (2, Value::Bytes(content_type)) => self.content_type.extend_from_slice(content_type),
                // Charset, encoding, links and user metadata are kept. The put makes value, vtag,
                // time and deletion mark anew.
                (3 | 4 | 6 | 9, _) => self.fields.extend_from_slice(raw),
                (10, _) if indexes == Indexes::Keep => self.fields.extend_from_slice(raw),
                _ => {}
            }
        }
        Ok(())
    }

    /// The vector clock, if an object was read.
    pub fn vclock(&self) -> Option<&[u8]> {
        Some(&self.vclock[..]).filter(|vclock| !vclock.is_empty())
    }

    /// The content type of the object, if it has one.
    pub fn content_type(&self) -> Option<&[u8]> {
        Some(&self.content_type[..]).filter(|content_type| !content_type.is_empty())
    }

    /// The further fields of the object.
    pub fn fields(&self) -> &[u8] {
        &self.fields
    }

    /// The further fields, to which more may be appended.
    pub const fn fields_mut(&mut self) -> &mut Vec<u8> {
        &mut self.fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_proto::messages::{RpbContent, RpbGetResp, RpbPair};
    use prost::Message;

    fn content() -> RpbContent {
        let pair = |key: &'static str, value: &'static str| RpbPair { key: key.into(), value: Some(value.into()) };
        RpbContent {
            value: "value".into(),
            content_type: Some("text/plain".into()),
            charset: Some("utf-8".into()),
            vtag: Some("tag".into()),
            last_mod: Some(7),
            last_mod_usecs: Some(8),
            usermeta: vec![pair("m", "1")],
            indexes: vec![pair("a_bin", "x")],
            ..RpbContent::default()
        }
    }

    fn reply(content: Vec<RpbContent>, vclock: Option<&'static str>) -> Vec<u8> {
        RpbGetResp { content, vclock: vclock.map(Into::into), unchanged: None }.encode_to_vec()
    }

    #[test]
    fn what_is_there_has_a_clock_and_a_value() {
        assert!(!GetReply::read(&[]).unwrap().is_found());
        let whole = reply(vec![content(), content()], Some("clock"));
        let read = GetReply::read(&whole).unwrap();
        assert_eq!((read.contents, read.vclock), (2, &b"clock"[..]));
        for (body, what) in [
            (reply(vec![content()], None), "an object without a clock"),
            (reply(vec![RpbContent { value: "".into(), ..content() }], Some("c")), "an object with an empty value"),
            (b"\x0a\x00\x12\x01c".to_vec(), "an object without a value"),
            (whole[..whole.len() - 1].to_vec(), "an answer that cannot be read"),
        ] {
            assert_eq!(GetReply::read(&body), Err(ExchangeError::answer(what)));
        }
        let tombstone = RpbContent { value: "".into(), deleted: Some(true), ..RpbContent::default() };
        assert!(GetReply::read(&reply(vec![tombstone], Some("c"))).is_ok());
    }

    #[test]
    fn an_update_keeps_the_metadata_of_the_first_sibling() {
        let body = reply(vec![content(), RpbContent { value: "other".into(), ..RpbContent::default() }], Some("clock"));
        let reply = GetReply::read(&body).unwrap();
        let mut kept = ReadForUpdate::default();
        for (indexes, left) in [(Indexes::Keep, 1), (Indexes::Remove, 0)] {
            kept.keep(&reply, indexes).unwrap();
            let mut bytes = kept.fields().to_vec();
            // The generated decoder requires a value, which the kept fields do not have.
            bytes.extend_from_slice(b"\x0a\x01v");
            let fields = RpbContent::decode(&bytes[..]).unwrap();
            assert_eq!((fields.usermeta.len(), fields.indexes.len()), (1, left));
            assert_eq!((fields.charset.as_deref(), fields.vtag, fields.last_mod), (Some(&b"utf-8"[..]), None, None));
            assert_eq!((kept.vclock(), kept.content_type()), (Some(&b"clock"[..]), Some(&b"text/plain"[..])));
        }
        kept.clear();
        assert_eq!((kept.vclock(), kept.content_type(), kept.fields()), (None, None, &b""[..]));
    }
}
