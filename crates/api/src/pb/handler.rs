//! What a feature registers: for each of its message codes, how the message is served.
//!
//! A feature implements [`Immediate`] or [`Streaming`] for the types of its messages and lists them
//! as [`Handler`]s in a constant, which the registry collects. Between decoding a message and
//! serving it, the functions of this module ask the gate, so that no feature can forget it.

use super::context::PbContext;
use super::failure::Failure;
use super::gate;
use super::message::{self, MESSAGE_BYTES_MAX};
use super::operation::Operation;
use super::reader::Reader;
use super::refusal::Refusal;
use super::session::PbSession;
use super::writer::Writer;
use crate::access::{Access, Session};
use crate::decoding::IN_PLACE_BYTES_MAX;
use crate::memory::Lease;
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt, ready};
use ombak_proto::Frame;
use ombak_proto::decoded_bytes::decoded_bytes;
use ombak_types::{DecodeBudget, SMALL_MESSAGE_BYTES};
use prost::{Message, Name};
use std::future::Future;

/// How the messages with one code are served.
pub(super) struct Handler {
    /// The message code.
    pub(super) code: u8,
    /// Whether messages may have more than [`MESSAGE_BYTES_MAX`] bytes.
    may_be_large: bool,
    /// Whether only a node with search knows the message.
    pub(super) is_of_search: bool,
    /// How a message is served.
    pub(super) serve: Serve,
}

/// How a message is served.
#[derive(Clone, Copy)]
pub(super) enum Serve {
    /// A request for one key. Several of them run at the same time on one connection.
    OneKey(fn(&Bytes) -> Result<Operation, Refusal>),
    /// A request that is answered without waiting.
    Immediate(fn(&mut Exchange<'_, '_>) -> Result<(), Refusal>),
    /// A request that waits, or that has several answers.
    Streaming(for<'a, 's> fn(Exchange<'a, 's>) -> BoxFuture<'a, Result<(), Failure>>),
}

/// A request with what is needed to answer it.
pub(super) struct Exchange<'a, 's> {
    pub(super) frame: &'a Frame,
    pub(super) ctx: &'a PbContext,
    pub(super) session: &'a mut PbSession,
    pub(super) reader: &'a mut Reader<'s>,
    pub(super) writer: &'a mut Writer<'s>,
}

/// What every message says about itself to the gate.
pub(super) trait Request: Message + Name + Default {
    /// What the request does, and to which bucket; `None` if it needs no permission.
    fn access(&self) -> Option<Access<'_>>;
}

/// A message that is answered without waiting.
pub(super) trait Immediate: Request {
    /// Writes the answer.
    fn serve(self, exchange: &mut Exchange<'_, '_>) -> Result<(), Refusal>;
}

/// A message whose answer takes time, or consists of several frames.
pub(super) trait Streaming: Request {
    /// Writes the answers.
    fn serve(self, exchange: Exchange<'_, '_>) -> impl Future<Output = Result<(), Failure>> + Send;
}

impl Handler {
    const fn new(code: u8, serve: Serve) -> Self {
        Self { code, may_be_large: false, is_of_search: false, serve }
    }

    /// A handler for requests for one key.
    pub(super) const fn one_key(code: u8, parse: fn(&Bytes) -> Result<Operation, Refusal>) -> Self {
        Self::new(code, Serve::OneKey(parse))
    }

    /// A handler for a message that is answered without waiting.
    pub(super) const fn immediate<M: Immediate>(code: u8) -> Self {
        Self::new(code, Serve::Immediate(serve_immediate::<M>))
    }

    /// A handler for a message whose answer takes time, or consists of several frames.
    pub(super) const fn streaming<M: Streaming + 'static>(code: u8) -> Self {
        Self::new(code, Serve::Streaming(serve_streaming::<M>))
    }

    /// A handler for a message that needs no permission and whose body has no meaning.
    pub(super) const fn bare(code: u8, serve: fn(&mut Exchange<'_, '_>) -> Result<(), Refusal>) -> Self {
        Self::new(code, Serve::Immediate(serve))
    }

    /// The same handler for messages of any size that fits into a frame.
    pub(super) const fn of_any_size(self) -> Self {
        Self { may_be_large: true, ..self }
    }

    /// The same handler, on nodes with search only.
    pub(super) const fn of_search(self) -> Self {
        Self { is_of_search: true, ..self }
    }

    /// Whether a message is not too large for this handler.
    #[inline]
    pub(super) fn takes(&self, frame: &Frame) -> bool {
        frame.body.len() <= MESSAGE_BYTES_MAX || self.may_be_large
    }
}

/// Decodes a request for one key and asks the gate. Hot.
#[inline]
pub(super) fn open_operation(
    parse: fn(&Bytes) -> Result<Operation, Refusal>,
    frame: &Frame,
    ctx: &PbContext,
    client: &Session,
) -> Result<Operation, Refusal> {
    let operation = parse(&frame.body)?;
    gate::permit(ctx, client, operation.access())?;
    Ok(operation)
}

/// Decodes a message that may take more memory than usual, which the lease has afterwards, and asks
/// the gate.
async fn open_large<M: Request + 'static>(
    ctx: &PbContext,
    client: &Session,
    frame: &Frame,
    lease: &mut Lease<'_>,
) -> Result<M, Failure> {
    let body = &frame.body;
    let (bytes, bytes_max) = (decoded_bytes::<M>(body), DecodeBudget::bytes_for(body.len()));
    if bytes > bytes_max {
        return Err(message::too_much_memory(frame, bytes_max).into());
    }
    lease.resize(bytes as u64).await?;
    if body.len() <= IN_PLACE_BYTES_MAX {
        return Ok(open(ctx, client, frame)?);
    }
    let body = body.clone();
    let request: M = ctx.kv.offload(move || message::decode(&body)).await??;
    gate::permit(ctx, client, request.access())?;
    Ok(request)
}

/// Decodes a message and asks the gate.
fn open<M: Request>(ctx: &PbContext, client: &Session, frame: &Frame) -> Result<M, Refusal> {
    let request: M = message::decode(&frame.body)?;
    gate::permit(ctx, client, request.access())?;
    Ok(request)
}

fn serve_immediate<M: Immediate>(exchange: &mut Exchange<'_, '_>) -> Result<(), Refusal> {
    open::<M>(exchange.ctx, &exchange.session.client, exchange.frame)?.serve(exchange)
}

fn serve_streaming<'a, M: Streaming + 'static>(exchange: Exchange<'a, '_>) -> BoxFuture<'a, Result<(), Failure>> {
    if exchange.frame.body.len() > SMALL_MESSAGE_BYTES {
        return Box::pin(async move {
            let mut lease = exchange.writer.lease();
            let client = &exchange.session.client;
            let request = open_large::<M>(exchange.ctx, client, exchange.frame, &mut lease).await?;
            request.serve(exchange).await
        });
    }
    match open::<M>(exchange.ctx, &exchange.session.client, exchange.frame) {
        Ok(request) => Box::pin(request.serve(exchange)),
        Err(refusal) => ready(Err(Failure::Refused(refusal))).boxed(),
    }
}
