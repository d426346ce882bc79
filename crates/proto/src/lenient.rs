//! Decodes messages as Riak does: a field whose wire type is not the declared one is an unknown
//! field, not an error.
//!
//! The generated decoders refuse such a message. Only then is it cleaned and decoded again, so
//! ordinary messages have no extra cost.

use crate::wire::{Fields, Value, WireError, put_varint};
use bytes::Bytes;
use prost::{DecodeError, Message, Name};

/// Maximum nesting of messages during cleaning; the generated decoders have a limit of their own.
const DEPTH_MAX: u32 = 64;

/// A declared field and its wire type.
pub(crate) struct Field {
    pub(crate) number: u32,
    pub(crate) wire: u8,
    /// Index of the field's message in `MESSAGES`.
    pub(crate) message: Option<usize>,
}

pub(crate) mod schema {
    use super::Field;
    include!("generated/schema.rs");
}

/// Decodes a message and skips fields whose number or wire type is unknown.
pub fn decode<M: Message + Name + Default>(body: &Bytes) -> Result<M, DecodeError> {
    M::decode(body.clone()).or_else(|refusal| {
        let index = schema::MESSAGES.iter().position(|(name, _)| *name == M::NAME);
        match index.and_then(|index| without_unknown_fields(index, body, DEPTH_MAX).ok()) {
            Some(clean) => M::decode(clean.as_slice()).map_err(|_| refusal),
            None => Err(refusal),
        }
    })
}

/// The message without the fields that its schema does not declare in this form.
fn without_unknown_fields(index: usize, message: &[u8], depth: u32) -> Result<Vec<u8>, WireError> {
    let depth = depth.checked_sub(1).ok_or(WireError("nested too deep"))?;
    let declared = schema::MESSAGES.get(index).map_or(&[][..], |(_, fields)| fields);
    let (mut fields, mut out) = (Fields::new(message), Vec::with_capacity(message.len()));
    let mut rest = fields.rest();
    while let Some((number, value)) = fields.next()? {
        let raw = &rest[..rest.len() - fields.rest().len()];
        rest = fields.rest();
        let Some(field) = declared.iter().find(|f| f.number == number && f.wire == value.wire_type()) else { continue };
        match (field.message, value) {
            (Some(inner), Value::Bytes(bytes)) => {
                let inner = without_unknown_fields(inner, bytes, depth)?;
                put_varint(u64::from(number << 3 | 2), &mut out);
                put_varint(inner.len() as u64, &mut out);
                out.extend_from_slice(&inner);
            }
            _ => out.extend_from_slice(raw),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{RpbBucketProps, RpbSetBucketTypeReq};

    #[test]
    fn a_field_of_another_wire_type_is_skipped() {
        // An RpbSetBucketTypeReq in which property 28, a bool, is a text (recorded exchange
        // pb/118).
        let body = Bytes::from_static(b"\x0a\x08counters\x12\x06\xe2\x01\x03set");
        assert!(RpbSetBucketTypeReq::decode(body.clone()).is_err());
        let request: RpbSetBucketTypeReq = decode(&body).unwrap();
        assert_eq!((&request.r#type[..], request.props), (&b"counters"[..], RpbBucketProps::default()));
    }

    #[test]
    fn known_fields_beside_it_are_kept() {
        let props: RpbBucketProps = decode(&Bytes::from_static(b"\x08\x05\xe2\x01\x03set\x10\x01")).unwrap();
        assert_eq!(props, RpbBucketProps { n_val: Some(5), allow_mult: Some(true), ..RpbBucketProps::default() });
    }

    #[test]
    fn bytes_that_are_no_message_stay_an_error() {
        for bad in [&b"\x0a\x05ab"[..], b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x12\x02\x08"] {
            assert!(decode::<RpbSetBucketTypeReq>(&Bytes::copy_from_slice(bad)).is_err(), "{bad:?}");
        }
    }
}
