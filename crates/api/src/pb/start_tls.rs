//! The change of a connection to TLS (docs/riak/pb-api.md §1.1).
//!
//! The answer is the last frame without TLS. The client begins the handshake when it has read the
//! answer, so bytes that it has sent before belong to somebody else, and the connection ends.

use super::handler::{Exchange, Handler};
use super::refusal::Refusal;
use ombak_proto::code;
use ombak_proto::reply::write_empty;

/// The messages of this feature.
pub(super) const HANDLERS: &[Handler] = &[Handler::bare(code::START_TLS, start_tls)];

fn start_tls(exchange: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
    let config = &exchange.ctx.config;
    let is_off = config.security.as_ref().is_some_and(|security| !security.is_on());
    // Riak says the same when the connection has TLS already (pb/519).
    if is_off || config.start_tls.is_none() || exchange.session.client.is_encrypted {
        return Err(Refusal::new("Security not enabled; STARTTLS not allowed."));
    }
    exchange.session.begins_tls = true;
    write_empty(code::START_TLS, &mut exchange.writer.buffer);
    Ok(())
}
