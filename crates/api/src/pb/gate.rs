//! The gate: the one place where a request is allowed or refused before it reaches its feature.
//! Hot.
//!
//! Gets, puts and deletes pass it as every other request does. No feature asks it: the code that
//! calls the features does ([`super::handler`]). The one exception is a MapReduce job, whose inputs
//! are known when the job has been read: `crate::map_reduce` asks for it.

use super::context::PbContext;
use super::refusal::Refusal;
use crate::access::{Access, Session};

/// Allows a request, or refuses it with the text of the policy. `None` is a request that needs no
/// permission, such as a ping.
#[inline]
pub(super) fn permit(ctx: &PbContext, session: &Session, access: Option<Access<'_>>) -> Result<(), Refusal> {
    match (&ctx.config.policy, access) {
        (Some(policy), Some(access)) => policy.check(session, &access).map_err(Refusal::new),
        _ => Ok(()),
    }
}
