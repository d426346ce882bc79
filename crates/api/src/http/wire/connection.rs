//! Serves one connection from its first byte to its last. Hot.
//!
//! Requests are answered one after the other. Requests that were already received are answered
//! before more bytes are read, and their answers are sent together.

use super::answer::{self, CONTINUE, Extent, Frame, LAST_CHUNK};
use super::body::{self, BodyFailure};
use super::client_end::ClientEnd;
use super::close_reason::CloseReason;
use super::deadline::Deadline;
use super::framing::Framing;
use super::head::{Head, HeadError, HeadParser};
use super::headers::{Headers, name};
use super::input::Input;
use super::output::Output;
use crate::access::Session;
use crate::bulk::{give_way, in_turns};
use crate::client_stream::ClientStream;
use crate::http::context::HttpContext;
use crate::http::login::{self, LastLogin};
use crate::http::reply::{Reply, ReplyBody, Stream};
use crate::http::request::Request;
use crate::http::service;
use crate::memory::{ALLOWANCE_BYTES, Account, Lease};
use crate::security::NodeSecurity;
use crate::stop::Stop;
use crate::turn::Turn;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{Either, poll_immediate, select};
use http::{Method, StatusCode};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep_until, timeout};

/// How long the server keeps reading after its last answer, so that the client can receive the
/// answer.
const LINGER: Duration = Duration::from_secs(2);

/// Serves a connection until one side ends it.
pub async fn serve(mut stream: ClientStream, client: Session, ctx: Arc<HttpContext>, stop: Stop) {
    let peer = client.peer;
    let account = Arc::new(ctx.memory.open_account().of_address(peer.ip()));
    let (end, is_stopping) = {
        let limits = &ctx.limits;
        let (read, write) = stream.split();
        let mut connection = Connection {
            ctx: &ctx,
            account: &account,
            client: Arc::new(client),
            last_login: None,
            input: Input::new(read),
            output: Output::new(write, &account, limits.write_timeout, stop.again()),
            head_lease: account.lease(),
            parser: HeadParser::new(limits.head_bytes_max, limits.headers_max),
            patience: Deadline::default(),
            stop,
        };
        let end = connection.run().await;
        (end, connection.stop.is_set())
    };
    tracing::debug!(%peer, %end, "HTTP connection ended");
    match end {
        CloseReason::SlowReader | CloseReason::Evicted | CloseReason::Io(_) => {}
        CloseReason::Closed | CloseReason::Stopping => stream.say_goodbye().await,
        _ if is_stopping => stream.say_goodbye().await,
        _ => linger(stream).await,
    }
}

/// Ends the connection so that the last answer arrives. If the connection were closed while the
/// client still sends, the client's kernel would discard the bytes that the client has not read
/// yet. Until the client closes the connection or the time is over, received bytes are dropped.
pub async fn linger(mut stream: ClientStream) {
    let (mut read, mut write) = stream.split();
    let drain = async {
        write.shutdown().await?;
        let mut dropped = [0; 4096];
        while read.read(&mut dropped).await? > 0 {}
        io::Result::Ok(())
    };
    // The outcome does not matter, because nothing more is sent to this client.
    let _ = timeout(LINGER, drain).await;
}

struct Connection<'s> {
    ctx: &'s Arc<HttpContext>,
    account: &'s Arc<Account>,
    /// Who the client is, for the policy.
    client: Arc<Session>,
    /// As whom its last request was sent, while security is on.
    last_login: Option<LastLogin>,
    input: Input<'s>,
    output: Output<'s>,
    /// The lease on the memory of a large head.
    head_lease: Lease<'s>,
    parser: HeadParser,
    patience: Deadline,
    stop: Stop,
}

impl Connection<'_> {
    async fn run(&mut self) -> CloseReason {
        let mut turn = Turn::default();
        loop {
            if let Err(end) = self.exchange().await {
                return end;
            }
            turn.request_ended().await;
        }
    }

    /// Reads one request and answers it. The answer need not have been sent when this returns.
    async fn exchange(&mut self) -> Result<(), CloseReason> {
        let head = self.next_head().await?;
        let (is_http_11, keep_alive, is_head) = (head.is_http_11, head.keep_alive, head.method == Method::HEAD);
        let reply = self.reply_to(head).await?;
        let keep_alive = keep_alive && !reply.close_connection && !self.stop.is_set();
        let sent = self.send(reply, is_http_11, keep_alive, is_head).await;
        self.account.release_answer();
        sent
    }

    /// Reads the head of the next request. Before it waits, it sends all collected answers.
    async fn next_head(&mut self) -> Result<Head, CloseReason> {
        let mut deadline = None;
        // The previous request has been answered.
        self.head_lease.clear();
        loop {
            match self.parser.next(&mut self.input.bytes) {
                Ok(Some(head)) => return Ok(head),
                Ok(None) => {}
                Err(error) => return Err(self.refuse_head(error).await),
            }
            self.output.flush().await?;
            let limit = self.ctx.limits.head_timeout;
            if self.input.bytes.len() >= ALLOWANCE_BYTES / 2 {
                self.fill_large_head(*deadline.get_or_insert_with(|| Instant::now() + limit)).await?;
                continue;
            }
            // The rest of a request that has begun is read even if the node is stopping.
            let is_idle = self.input.bytes.is_empty();
            poll_fn(|cx| {
                match self.input.poll_fill(cx) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(CloseReason::Closed)),
                    Poll::Ready(Ok(_)) => return Poll::Ready(Ok(())),
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(CloseReason::Io(error))),
                    Poll::Pending => {}
                }
                if is_idle && Pin::new(&mut self.stop).poll(cx).is_ready() {
                    return Poll::Ready(Err(CloseReason::Stopping));
                }
                let now = Instant::now();
                let deadline = *deadline.get_or_insert(now + limit);
                self.patience.poll_passed(deadline, now, cx).map(|()| Err(CloseReason::SlowHead))
            })
            .await?;
        }
    }

    /// Reads more of a head that needs more memory than the allowance of a connection.
    async fn fill_large_head(&mut self, deadline: Instant) -> Result<(), CloseReason> {
        // This counts the present buffer, the same again for its growth, and once more for the
        // parsed lines.
        let bytes = 3 * self.input.bytes.capacity() as u64;
        self.head_lease.resize(bytes).await.map_err(|_| CloseReason::Evicted)?;
        self.account.waits_for_peer();
        let read = tokio::select! {
            biased;
            read = poll_fn(|cx| self.input.poll_fill(cx)) => read?,
            () = self.account.evicted() => return Err(CloseReason::Evicted),
            () = sleep_until(deadline) => return Err(CloseReason::SlowHead),
        };
        self.account.peer_moved(read);
        self.account.serves_peer();
        if read == 0 { Err(CloseReason::Closed) } else { Ok(()) }
    }

    async fn refuse_head(&mut self, error: HeadError) -> CloseReason {
        let limits = &self.ctx.limits;
        let text = match error {
            HeadError::Malformed => "The request head is malformed, or it says in more than one way which host it is \
                                     for or where its body ends\n"
                .to_owned(),
            HeadError::TooLarge => format!(
                "The request head has more than {} bytes or {} header lines\n",
                limits.head_bytes_max, limits.headers_max
            ),
            HeadError::UriTooLong => "The address in the request is too long\n".to_owned(),
            HeadError::UnknownCoding => "The only transfer coding of a body that is taken is chunked\n".to_owned(),
        };
        let mut headers = Headers::default();
        headers.set(name::CONTENT_TYPE, "text/plain");
        let extent = Extent::Length(text.len());
        let frame = Frame { status: error.status(), is_http_11: true, keep_alive: false, extent };
        answer::write_head(self.output.buffer(), &frame, &headers);
        self.output.buffer().extend_from_slice(text.as_bytes());
        self.output.flush().await.err().unwrap_or(CloseReason::Refused(error))
    }

    /// Reads the body of a request and returns the answer to the request.
    async fn reply_to(&mut self, head: Head) -> Result<Reply, CloseReason> {
        let limits = &self.ctx.limits;
        let framing = head.framing;
        let client = match &self.ctx.security {
            Some(security) if security.is_on() => match self.identify(security, &head).await? {
                Ok(client) => client,
                // The body is not read.
                Err(refusal) => return Ok(Reply { close_connection: framing != Framing::Empty, ..refusal }),
            },
            _ => Arc::clone(&self.client),
        };
        if head.expects_continue && framing != Framing::Empty && !body::is_too_large(framing, limits) {
            self.output.buffer().extend_from_slice(CONTINUE);
            self.output.flush().await?;
        }
        let (body, _lease) = match body::read(framing, &mut self.input, limits, self.account).await {
            Ok(read) => read,
            Err(BodyFailure::Refused(status)) => return Ok(service::refuse_body(status, limits.body_bytes_max)),
            Err(BodyFailure::Ended(end)) => return Err(end),
        };
        let request = Request::new(head, body, Arc::clone(self.account), client);
        let end = ClientEnd::new(&self.input.half, limits.half_closed_timeout);
        let mut running = pin!(service::respond(self.ctx, end, &request));
        if let Some(reply) = poll_immediate(running.as_mut()).await {
            return Ok(reply);
        }
        // The answers before this one are sent, so that the client need not wait for them. Both are
        // polled: a listing that has been given its turn must not wait until this client reads.
        let flush = pin!(self.output.flush());
        match select(running, flush).await {
            Either::Left((reply, flush)) => {
                flush.await?;
                Ok(reply)
            }
            Either::Right((flushed, running)) => {
                flushed?;
                Ok(running.await)
            }
        }
    }

    /// Says who has sent a request, or refuses it. While a password is checked, the answers before
    /// this one are sent, and if the client goes, its guess makes room for others.
    async fn identify(
        &mut self,
        security: &NodeSecurity,
        head: &Head,
    ) -> Result<Result<Arc<Session>, Reply>, CloseReason> {
        let Self { ctx, client, last_login, input, output, .. } = self;
        // The futures are boxed, so that they do not enlarge every connection.
        let mut running = Box::pin(login::identify(ctx, security, last_login, client, head));
        if let Some(identified) = poll_immediate(running.as_mut()).await {
            return Ok(identified);
        }
        let waits = async {
            // Both are polled: a guess that has been given its turn must not wait until this client
            // reads.
            let running = match select(running, pin!(output.flush())).await {
                Either::Left((identified, flush)) => {
                    flush.await?;
                    return Ok(identified);
                }
                Either::Right((flushed, running)) => {
                    flushed?;
                    running
                }
            };
            let end = ClientEnd::new(&input.half, ctx.limits.half_closed_timeout);
            tokio::select! {
                biased;
                identified = running => Ok(identified),
                () = end.reached() => Err(CloseReason::Closed),
            }
        };
        Box::pin(waits).await
    }

    async fn send(
        &mut self,
        reply: Reply,
        is_http_11: bool,
        keep_alive: bool,
        is_head: bool,
    ) -> Result<(), CloseReason> {
        let Reply { status, headers, body, .. } = reply;
        let may_have_body = !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let (extent, keep_alive) = match &body {
            _ if !may_have_body => (Extent::Unsaid, keep_alive),
            ReplyBody::Whole(bytes) => (Extent::Length(bytes.len()), keep_alive),
            ReplyBody::Stream(_) if is_head => (Extent::Unsaid, keep_alive),
            ReplyBody::Stream(_) if is_http_11 => (Extent::Chunked, keep_alive),
            ReplyBody::Stream(_) => (Extent::Unsaid, false),
        };
        let frame = Frame { status, is_http_11, keep_alive, extent };
        answer::write_head(self.output.buffer(), &frame, &headers);
        if may_have_body && !is_head {
            match body {
                ReplyBody::Whole(bytes) => self.output.add(bytes).await?,
                ReplyBody::Stream(parts) => {
                    in_turns(self.account.tenant(), self.send_parts(parts, extent == Extent::Chunked)).await?;
                }
            }
        } else {
            self.output.flush_if_full().await?;
        }
        if keep_alive {
            return Ok(());
        }
        self.output.flush().await?;
        Err(CloseReason::Answered)
    }

    /// Sends a body that is produced while it is sent, as fast as the client reads it.
    async fn send_parts(&mut self, mut parts: Stream, chunked: bool) -> Result<(), CloseReason> {
        while let Some(part) = self.next_part(&mut parts).await? {
            give_way().await;
            self.send_part(part, chunked).await?;
        }
        if chunked {
            self.output.buffer().extend_from_slice(LAST_CHUNK);
        }
        Ok(())
    }

    async fn send_part(&mut self, bytes: Bytes, chunked: bool) -> Result<(), CloseReason> {
        // An empty chunk would end the body.
        if bytes.is_empty() {
            return Ok(());
        }
        if chunked {
            answer::write_chunk_size(self.output.buffer(), bytes.len());
        }
        self.output.add(bytes).await?;
        if chunked {
            self.output.buffer().extend_from_slice(b"\r\n");
        }
        Ok(())
    }

    /// Waits for the next part of a body; `None` after the last one. The parts before it are sent
    /// first. If the client leaves while there is nothing to send, the rest is abandoned.
    async fn next_part(&mut self, parts: &mut Stream) -> Result<Option<Bytes>, CloseReason> {
        if let Some(part) = poll_immediate(parts.next()).await {
            return Ok(part);
        }
        self.output.flush().await?;
        let client = ClientEnd::new(&self.input.half, self.ctx.limits.half_closed_timeout);
        tokio::select! {
            biased;
            part = parts.next() => Ok(part),
            () = client.reached() => Err(CloseReason::Closed),
        }
    }
}
