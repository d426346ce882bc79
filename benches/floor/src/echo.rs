//! The echo server, which is the floor for Ombak: it reads frames, answers with frames of the size
//! of Ombak's answers, and does nothing else.
//!
//! Its connections are built like Ombak's: one task for each connection, and one write for all
//! answers to one read. Its runtime is tokio's default, with threads that take work from each
//! other; `TOKIO_WORKER_THREADS` sets their number.
//!
//! With files, it also makes for each request the one system call that a store on files needs: it
//! appends the bytes of a put to one of 64 files, and reads as many bytes for a get. It has no
//! index, checks nothing, and does not remember what it wrote where. The rest of a database is what
//! other servers add to that.

use crate::files::Files;
use crate::workload::{get_reply, put_reply};
use bytes::BytesMut;
use ombak_proto::code;
use ombak_proto::frame::{FRAME_BYTES_MAX_DEFAULT, make_room, next_frame};
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// `short` answers gets as shortly as puts, as a peer of the echo front does.
pub fn run(port: u16, files: Option<&Path>, short: bool) -> Result<(), String> {
    let files =
        files.map(Files::create).transpose().map_err(|e| format!("files of the echo server: {e}"))?.map(Arc::new);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|e| format!("cannot start threads: {e}"))?;
    runtime.block_on(serve(port, files, short)).map_err(|e| format!("echo server on port {port}: {e}"))
}

async fn serve(port: u16, files: Option<Arc<Files>>, short: bool) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let answers = Arc::new(Answers { get: if short { put_reply() } else { get_reply() }, put: put_reply() });
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (files, answers) = (files.clone(), answers.clone());
        tokio::spawn(async move {
            if let Err(error) = echo(stream, files.as_deref(), &answers).await {
                eprintln!("echo: {error}");
            }
        });
    }
}

/// The frames that it answers with, whatever the request is.
struct Answers {
    get: Vec<u8>,
    put: Vec<u8>,
}

async fn echo(mut stream: TcpStream, files: Option<&Files>, answers: &Answers) -> io::Result<()> {
    let (mut inbox, mut outbox, mut turn) = (BytesMut::new(), Vec::new(), 0);
    loop {
        while let Some(frame) = next_frame(&mut inbox, FRAME_BYTES_MAX_DEFAULT).map_err(io::Error::other)? {
            turn += 1;
            match (frame.code, files) {
                (code::GET_REQ, Some(files)) => files.read(turn)?,
                (_, Some(files)) => files.append(turn, &frame.body)?,
                (_, None) => {}
            }
            outbox.extend_from_slice(if frame.code == code::GET_REQ { &answers.get } else { &answers.put });
        }
        if !outbox.is_empty() {
            stream.write_all(&outbox).await?;
            outbox.clear();
        }
        make_room(&mut inbox, 16 << 10);
        if stream.read_buf(&mut inbox).await? == 0 {
            return Ok(());
        }
    }
}
