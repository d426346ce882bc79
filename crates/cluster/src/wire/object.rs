//! Objects of messages that are not stored as they are: the object of a put and of its reply.

use super::reader::Malformed;
use bytes::Bytes;
use ombak_types::{Object, stored_object};

/// The stored form of an object: head and body. The value of a single sibling is not copied.
pub(super) fn stored_form(object: &Object) -> (Bytes, Bytes) {
    let mut head = Vec::new();
    stored_object::encode_head(object, &mut head);
    let body = match object.siblings.as_slice() {
        [only] => only.value.clone(),
        siblings => siblings.iter().map(|sibling| &sibling.value[..]).collect::<Vec<_>>().concat().into(),
    };
    (head.into(), body)
}

/// The object of a stored form. Siblings without values stay in the order in which they were sent,
/// because only values decide their order.
pub(super) fn object_of(head: &Bytes, body: &Bytes) -> Result<Object, Malformed> {
    let decode = |body| stored_object::decode(head, body).map_err(|_| Malformed("its object does not decode"));
    let object = decode(Some(body))?;
    if body.is_empty() && object.siblings.len() > 1 { decode(None) } else { Ok(object) }
}
