//! The answer to the client of a read whose newest version is known.

use super::plan::GetPlan;
use crate::coordination::expiry;
use crate::hooks::{ValueKind, merge_values, show_values};
use crate::requests::GetReply;
use ombak_types::{Error, Object};

/// What the client sees of the newest version. `values` is the kind of the bucket's values, if they
/// merge into one.
///
/// # Errors
/// A value of a kind is damaged.
pub(crate) fn reply_with(
    mut object: Object,
    plan: &GetPlan,
    values: Option<&dyn ValueKind>,
) -> Result<GetReply, Error> {
    match values {
        Some(kind) => merge_values(kind, &mut object),
        None if !plan.dvv => object.unite_equal_contents(),
        None => {}
    }
    if plan.newest_only && values.is_none() {
        if plan.prefers_live && !object.is_deleted() {
            object.siblings.retain(|sibling| !sibling.meta.deleted);
        }
        object.keep_newest();
    }
    // Expired siblings are dropped after the newest was chosen: a replaced sibling must not
    // reappear when the newest expires.
    let is_expired = !object.is_deleted() && object.is_absent(plan.now);
    if is_expired {
        return Ok(GetReply::NotFound { tombstone: None });
    }
    expiry::show(&mut object, plan.now);
    if object.is_deleted() {
        let has_tombstone = !object.siblings.is_empty();
        return Ok(GetReply::NotFound { tombstone: has_tombstone.then_some(object.clock) });
    }
    if plan.head {
        object.siblings.iter_mut().for_each(|s| s.value.clear());
    } else if let Some(kind) = values.filter(|_| !plan.as_stored) {
        show_values(kind, &mut object)?;
    }
    Ok(GetReply::Found(object))
}
