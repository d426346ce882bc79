//! The echo front: the floor for a cluster. For each request it does what a replicated database
//! cannot do without, and nothing else: it asks two echo peers, and answers when both have
//! answered.
//!
//! A put travels to both peers as it is, and a get asks both peers with its own frame. The peers
//! answer with a short frame, as replicas do that only confirm a write or only tell their version.
//! The front has one connection to each peer for all clients, and what waits for it leaves in one
//! write. An echo peer answers in order, so requests need no numbers.

use crate::workload::{get_reply, put_reply};
use bytes::{Bytes, BytesMut};
use ombak_proto::code;
use ombak_proto::frame::{FRAME_BYTES_MAX_DEFAULT, make_room, next_frame, total_length};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

/// How many requests wait for one peer at most.
const WAITING_MAX: usize = 4096;

/// A request to a peer, and where its answer goes.
type Question = (Bytes, oneshot::Sender<()>);

pub fn run(port: u16, peers: &[SocketAddr]) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|e| format!("cannot start threads: {e}"))?;
    runtime.block_on(serve(port, peers)).map_err(|e| format!("echo front on port {port}: {e}"))
}

async fn serve(port: u16, peers: &[SocketAddr]) -> io::Result<()> {
    let mut links = Vec::new();
    for &peer in peers {
        links.push(link(peer).await?);
    }
    let links: Arc<[mpsc::Sender<Question>]> = links.into();
    let answers = Arc::new((get_reply(), put_reply()));
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (links, answers) = (links.clone(), answers.clone());
        tokio::spawn(async move {
            if let Err(error) = answer(stream, &links, &answers.0, &answers.1).await {
                eprintln!("echo front: {error}");
            }
        });
    }
}

/// Serves one client.
async fn answer(mut stream: TcpStream, links: &[mpsc::Sender<Question>], get: &[u8], put: &[u8]) -> io::Result<()> {
    let mut inbox = BytesMut::new();
    loop {
        while let Some(length) = total_length(&inbox, FRAME_BYTES_MAX_DEFAULT).map_err(io::Error::other)? {
            if inbox.len() < length {
                break;
            }
            let frame = inbox.split_to(length).freeze();
            ask(links, &frame).await?;
            stream.write_all(if frame[4] == code::GET_REQ { get } else { put }).await?;
        }
        make_room(&mut inbox, 16 << 10);
        if stream.read_buf(&mut inbox).await? == 0 {
            return Ok(());
        }
    }
}

/// Asks all peers at the same time, and waits for all of them.
async fn ask(links: &[mpsc::Sender<Question>], frame: &Bytes) -> io::Result<()> {
    let mut waiting = Vec::with_capacity(links.len());
    for link in links {
        let (answered, answer) = oneshot::channel();
        link.send((frame.clone(), answered)).await.map_err(|_| gone())?;
        waiting.push(answer);
    }
    for answer in waiting {
        answer.await.map_err(|_| gone())?;
    }
    Ok(())
}

fn gone() -> io::Error {
    io::Error::other("a peer is gone")
}

/// Connects to a peer. Two tasks write questions and read answers until one of them fails.
async fn link(peer: SocketAddr) -> io::Result<mpsc::Sender<Question>> {
    let stream = TcpStream::connect(peer).await?;
    stream.set_nodelay(true)?;
    let (reader, writer) = stream.into_split();
    let (questions, asked) = mpsc::channel(WAITING_MAX);
    let (waiters, waiting) = mpsc::channel(2 * WAITING_MAX);
    tokio::spawn(async move {
        if let Err(error) = write(writer, asked, waiters).await {
            eprintln!("echo front, to {peer}: {error}");
        }
    });
    tokio::spawn(async move {
        if let Err(error) = read(reader, waiting).await {
            eprintln!("echo front, from {peer}: {error}");
        }
    });
    Ok(questions)
}

/// Writes all questions that wait in one write. The clients' connections bound the unanswered ones.
async fn write(
    mut stream: OwnedWriteHalf,
    mut asked: mpsc::Receiver<Question>,
    waiters: mpsc::Sender<oneshot::Sender<()>>,
) -> io::Result<()> {
    let (mut questions, mut outbox) = (Vec::new(), Vec::new());
    while asked.recv_many(&mut questions, WAITING_MAX).await > 0 {
        outbox.clear();
        for (frame, waiter) in questions.drain(..) {
            outbox.extend_from_slice(&frame);
            waiters.send(waiter).await.map_err(|_| gone())?;
        }
        stream.write_all(&outbox).await?;
    }
    Ok(())
}

async fn read(mut stream: OwnedReadHalf, mut waiting: mpsc::Receiver<oneshot::Sender<()>>) -> io::Result<()> {
    let mut inbox = BytesMut::new();
    loop {
        while next_frame(&mut inbox, FRAME_BYTES_MAX_DEFAULT).map_err(io::Error::other)?.is_some() {
            let Some(waiter) = waiting.recv().await else { return Err(gone()) };
            // A client that went away needs no answer.
            let _ = waiter.send(());
        }
        make_room(&mut inbox, 16 << 10);
        if stream.read_buf(&mut inbox).await? == 0 {
            return Err(gone());
        }
    }
}
