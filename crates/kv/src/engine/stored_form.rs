//! A version in the form in which it is stored and sent.

use bytes::{Bytes, BytesMut};
use ombak_types::{Object, Sibling, stored_object};

/// The bytes of one version. They are made once, however many replicas get them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredForm {
    pub(super) head: Bytes,
    pub(super) body: Bytes,
}

impl StoredForm {
    /// What an operation has added to the value of an object, in place of the value. The object may
    /// have the value.
    pub(super) fn of_addition(object: &Object, addition: &Bytes) -> Self {
        let added = |sibling: &Sibling| Sibling { value: addition.clone(), meta: sibling.meta.clone() };
        let siblings = object.siblings.iter().map(added).collect();
        Self::of(&Object { clock: object.clock.clone(), siblings })
    }

    pub(super) fn of(object: &Object) -> Self {
        let mut head = Vec::new();
        stored_object::encode_head(object, &mut head);
        let body = match object.siblings.as_slice() {
            // The usual case: the value is not copied.
            [only] => only.value.clone(),
            siblings => {
                let mut body = BytesMut::with_capacity(object.value_bytes() as usize);
                siblings.iter().for_each(|sibling| body.extend_from_slice(&sibling.value));
                body.freeze()
            }
        };
        Self { head: head.into(), body }
    }
}
