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
    if exchange.ctx.config.start_tls.is_none() {
        return Err(Refusal::new("Security not enabled; STARTTLS not allowed."));
    }
    if exchange.session.client.is_encrypted {
        return Err(Refusal::new("The connection has TLS already"));
    }
    exchange.session.begins_tls = true;
    write_empty(code::START_TLS, &mut exchange.writer.buffer);
    Ok(())
}
