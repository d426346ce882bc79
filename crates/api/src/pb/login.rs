//! Which messages a connection may send before its client has proved who it is, and how the client
//! proves it (docs/riak/pb-api.md §5.1). Hot while security is on.

use super::close_reason::CloseReason;
use super::context::PbContext;
use super::failure::Failure;
use super::handler::{Exchange, Handler, Request, Streaming};
use super::refusal::Refusal;
use super::session::PbSession;
use crate::access::Access;
use crate::security::{Credentials, LoginRefused};
use ombak_proto::Frame;
use ombak_proto::code;
use ombak_proto::messages::RpbAuthReq;
use ombak_proto::reply::{write_empty, write_error};
use std::sync::Arc;

/// The messages of this feature.
pub(super) const HANDLERS: &[Handler] = &[Handler::streaming::<RpbAuthReq>(code::AUTH_REQ)];

/// How often a client may try on one connection.
const ATTEMPTS_MAX: u32 = 3;

/// Refuses a message that comes before the client has proved who it is. With security off it costs
/// one load.
#[inline]
pub(super) fn admit(ctx: &PbContext, session: &PbSession, frame: &Frame) -> Result<(), Refusal> {
    match &ctx.config.security {
        Some(security) if security.is_on() => admit_securely(session, frame.code),
        _ => Ok(()),
    }
}

fn admit_securely(session: &PbSession, message: u8) -> Result<(), Refusal> {
    let client = &session.client;
    match (client.is_encrypted, &client.user, message) {
        (false, _, code::START_TLS) | (true, None, code::AUTH_REQ) => Ok(()),
        (false, ..) => Err(Refusal::new("Security is enabled, please STARTTLS first")),
        (true, None, _) => Err(Refusal::new("Security is enabled, please authenticate first")),
        (true, Some(_), _) => Ok(()),
    }
}

impl Request for RpbAuthReq {
    fn access(&self) -> Option<Access<'_>> {
        None
    }
}

impl Streaming for RpbAuthReq {
    async fn serve(self, exchange: Exchange<'_, '_>) -> Result<(), Failure> {
        let Exchange { frame, ctx, session, reader, writer } = exchange;
        let security = ctx.config.security.as_deref().filter(|security| security.is_on());
        let Some(security) = security.filter(|_| session.client.user.is_none()) else {
            return Err(Refusal::new(format!("Unknown message code: {}", code::AUTH_REQ)).into());
        };
        if frame.body.is_empty() {
            return Err(CloseReason::EmptyLogin.into());
        }
        // What is no text is no name of a user.
        let user = std::str::from_utf8(&self.user).unwrap_or_default();
        let credentials = Credentials { user, password: &self.password };
        // The client need not wait for the answers before this one until its password was checked.
        writer.flush().await?;
        // If it goes meanwhile, its guess makes room for others.
        match reader.while_open(security.log_in(&session.client, credentials)).await? {
            Ok(client) => {
                session.client = Arc::new(client);
                write_empty(code::AUTH_RESP, &mut writer.buffer);
                Ok(())
            }
            Err(LoginRefused::Overload) => {
                Err(Refusal::new("overload: too many clients prove who they are at the same time").into())
            }
            Err(LoginRefused::Failed) => {
                Err(Refusal::new("internal error: the node has failed to check the password").into())
            }
            Err(LoginRefused::NotProved) => {
                session.login_attempts += 1;
                if session.login_attempts < ATTEMPTS_MAX {
                    return Err(Refusal::new("Authentication failed").into());
                }
                write_error("Authentication failed", &mut writer.buffer);
                writer.flush().await?;
                Err(CloseReason::LoginsFailed.into())
            }
        }
    }
}
