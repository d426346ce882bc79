//! Serves one connection from its first byte to its last.

use super::close_reason::CloseReason;
use super::context::PbContext;
use super::failure::Failure;
use super::handler::{Exchange, Serve, open_operation};
use super::login;
use super::operation::Operation;
use super::pipeline::Pipeline;
use super::reader::Reader;
use super::registry;
use super::session::PbSession;
use super::writer::Writer;
use crate::access::Session;
use crate::bulk::in_turns;
use crate::client_stream::ClientStream;
use crate::memory::{Account, OutOfMemory};
use crate::security::SessionEnd;
use crate::stop::Stop;
use crate::turn::Turn;
use futures_util::future::poll_immediate;
use ombak_proto::reply::write_error;
use ombak_proto::{Frame, FrameError};
use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::timeout;

/// After a refusal, the connection stays open for this long and for this many received bytes. If it
/// were closed while the peer still sends, the peer's kernel would discard the answer before the
/// peer has read it.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: usize = 1 << 20;

/// Serves a connection until one side ends it, or until `ending` does.
pub(super) async fn serve(mut stream: ClientStream, client: Session, ctx: &PbContext, mut ending: SessionEnd) {
    let peer = client.peer;
    let account = ctx.memory.open_account().of_address(peer.ip());
    let mut session = PbSession::new(client);
    let end = loop {
        let exchanged = exchange(&mut stream, &mut session, &account, ctx, ending.signal());
        let end = ending.serve(exchanged).await.unwrap_or(CloseReason::NotSecured);
        let (CloseReason::BeginsTls, Some(tls)) = (&end, &ctx.config.start_tls) else { break end };
        ending.goes_on_with_tls();
        match tls.secure(stream, &session.client, ending.signal()).await {
            Ok((secured, client)) => {
                stream = secured;
                session.goes_on_as(client);
            }
            Err(error) => return tracing::debug!(%peer, %error, "a Protocol Buffers connection did not begin TLS"),
        }
    };
    match end {
        CloseReason::Closed | CloseReason::Stopping => stream.say_goodbye().await,
        CloseReason::Frame(FrameError::TooLarge { .. }) => {
            tracing::info!(%peer, %end, "a Protocol Buffers connection was closed");
            linger(&mut stream).await;
        }
        // The memory of the connection has been released by now.
        CloseReason::OutOfMemory => {
            tracing::debug!(%peer, %end, "a Protocol Buffers connection was closed");
            tell(stream, OutOfMemory.to_string()).await;
        }
        end => tracing::debug!(%peer, %end, "a Protocol Buffers connection ended"),
    }
}

/// Serves a connection until it ends or goes on with TLS.
async fn exchange(
    stream: &mut ClientStream,
    session: &mut PbSession,
    account: &Account,
    ctx: &PbContext,
    shutdown: &watch::Receiver<bool>,
) -> CloseReason {
    let (read, write) = stream.split();
    let mut connection = Connection {
        ctx,
        account,
        reader: Reader::new(read, &ctx.config, account),
        writer: Writer::new(write, &ctx.config, account, Stop::new(shutdown)),
        session,
        turn: Turn::default(),
    };
    connection.run(pin!(Stop::new(shutdown))).await
}

/// Answers that there are too many connections.
pub(super) async fn refuse_connection(stream: ClientStream, connections_max: usize) {
    let text = format!("overload: this node serves {connections_max} connections and has no room for more");
    tell(stream, text).await;
}

/// Sends an error and closes the connection.
async fn tell(mut stream: ClientStream, text: String) {
    let mut out = Vec::new();
    write_error(text, &mut out);
    let told = async {
        let (_, mut write) = stream.split();
        write.write_all(&out).await?;
        write.shutdown().await
    };
    if let Ok(Ok(())) = timeout(LINGER, told).await {
        linger(&mut stream).await;
    }
}

async fn linger(stream: &mut ClientStream) {
    let (mut stream, _) = stream.split();
    let drained = async {
        let (mut left, mut scratch) = (LINGER_BYTES_MAX, [0; 4096]);
        while let Ok(read @ 1..) = stream.read(&mut scratch).await {
            left = left.saturating_sub(read);
            if left == 0 {
                break;
            }
        }
    };
    // The connection is closed now, even if the time was not enough.
    drop(timeout(LINGER, drained).await);
}

struct Connection<'c> {
    ctx: &'c PbContext,
    account: &'c Account,
    reader: Reader<'c>,
    writer: Writer<'c>,
    session: &'c mut PbSession,
    turn: Turn,
}

impl Connection<'_> {
    async fn run(&mut self, mut stop: Pin<&mut impl Future<Output = ()>>) -> CloseReason {
        loop {
            let round = async {
                self.answer_what_was_read().await?;
                self.writer.flush().await?;
                self.reader.fill(stop.as_mut()).await
            };
            match round.await {
                Ok(()) => {}
                Err(CloseReason::Frame(refused @ FrameError::TooLarge { .. })) => return self.give_up(refused).await,
                Err(end) => return end,
            }
        }
    }

    /// Answers every complete frame that was read, in order.
    async fn answer_what_was_read(&mut self) -> Result<(), CloseReason> {
        let mut pipeline = Pipeline::new(&self.ctx.kv, self.account, self.ctx.config.in_flight_max);
        loop {
            let frame = match self.reader.next_frame() {
                Ok(Some(frame)) => {
                    self.writer.begin();
                    frame
                }
                Ok(None) => return pipeline.finish(&mut self.writer).await,
                Err(error) => {
                    pipeline.finish(&mut self.writer).await?;
                    return Err(error.into());
                }
            };
            let admitted = login::admit(self.ctx, self.session, &frame);
            let found = admitted.and_then(|()| registry::find(&frame, self.ctx.search.is_some()));
            let operation = match found.map(|handler| handler.serve) {
                Ok(Serve::OneKey(parse)) => open_operation(parse, &frame, self.ctx, &self.session.client),
                Ok(serve) => {
                    pipeline.finish(&mut self.writer).await?;
                    self.answer_in_turn(serve, &frame).await?;
                    self.request_ended().await?;
                    continue;
                }
                Err(refusal) => Err(refusal),
            };
            match operation {
                Ok(operation) if pipeline.is_empty() && !self.reader.has_frame() => {
                    self.answer_alone(operation).await?;
                }
                Ok(operation) => pipeline.push(operation, &mut self.writer).await?,
                Err(refusal) => {
                    pipeline.finish(&mut self.writer).await?;
                    write_error(refusal.into_text(), &mut self.writer.buffer);
                }
            }
            self.request_ended().await?;
        }
    }

    async fn request_ended(&mut self) -> Result<(), CloseReason> {
        self.writer.flush_if_full().await?;
        self.turn.request_ended().await;
        Ok(())
    }

    /// Answers a request that must neither overtake others nor be overtaken.
    async fn answer_in_turn(&mut self, serve: Serve, frame: &Frame) -> Result<(), CloseReason> {
        let Self { ctx, reader, writer, session, .. } = self;
        let mut exchange = Exchange { frame, ctx, session, reader, writer };
        let answered = match serve {
            Serve::Immediate(serve) => serve(&mut exchange).map_err(Failure::Refused),
            Serve::Streaming(serve) => in_turns(self.account.tenant(), serve(exchange)).await,
            // Requests for one key are answered by the pipeline.
            Serve::OneKey(_) => Ok(()),
        };
        match answered {
            Ok(()) if self.session.begins_tls => self.begin_tls().await,
            Ok(()) => Ok(()),
            Err(Failure::Refused(refusal)) => {
                write_error(refusal.into_text(), &mut self.writer.buffer);
                Ok(())
            }
            Err(Failure::Closed(reason)) => Err(reason),
        }
    }

    /// Answers a request that no other one follows, which is the usual case. It runs in place, so
    /// that its future is not allocated.
    async fn answer_alone(&mut self, operation: Operation) -> Result<(), CloseReason> {
        let mut running = pin!(operation.run(&self.ctx.kv, self.account.lease()));
        let answer = match poll_immediate(running.as_mut()).await {
            Some(answer) => answer,
            None => {
                self.writer.flush().await?;
                running.await
            }
        };
        answer.write(&mut self.writer);
        Ok(())
    }

    /// Sends the last answer without TLS. What was received behind the request may have been put
    /// there by somebody between the client and the node, so nothing of it is served.
    async fn begin_tls(&mut self) -> Result<(), CloseReason> {
        self.writer.flush().await?;
        Err(if self.reader.has_bytes() { CloseReason::PlainBytesBeforeTls } else { CloseReason::BeginsTls })
    }

    async fn give_up(&mut self, refused: FrameError) -> CloseReason {
        write_error(format!("Error processing incoming message: {refused}"), &mut self.writer.buffer);
        match self.writer.flush().await {
            Ok(()) => self.writer.shutdown().await.map_or_else(CloseReason::Io, |()| CloseReason::Frame(refused)),
            Err(end) => end,
        }
    }
}
