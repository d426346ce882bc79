//! The floor: a server that reads frames and answers frames of the size of Ombak's answers, and does nothing else.
//!
//! Its connections are built as Ombak's are: one task each, everything that was read is answered by one write. Its
//! runtime is the one that a tokio program has without further thought, with threads that take work from each other;
//! `TOKIO_WORKER_THREADS` sets their number.

use crate::workload::{GET_REPLY_BYTES, PUT_REPLY_BYTES};
use bytes::BytesMut;
use ombak_proto::code;
use ombak_proto::frame::{FRAME_BYTES_MAX_DEFAULT, make_room, next_frame};
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub fn run(port: u16) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|e| format!("cannot start threads: {e}"))?;
    runtime.block_on(serve(port)).map_err(|e| format!("echo server on port {port}: {e}"))
}

async fn serve(port: u16) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            if let Err(error) = echo(stream).await {
                eprintln!("echo: {error}");
            }
        });
    }
}

async fn echo(mut stream: TcpStream) -> io::Result<()> {
    let (mut inbox, mut outbox) = (BytesMut::new(), Vec::new());
    loop {
        while let Some(frame) = next_frame(&mut inbox, FRAME_BYTES_MAX_DEFAULT).map_err(io::Error::other)? {
            match frame.code {
                code::GET_REQ => answer(code::GET_RESP, GET_REPLY_BYTES, &mut outbox),
                _ => answer(code::PUT_RESP, PUT_REPLY_BYTES, &mut outbox),
            }
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

fn answer(code: u8, frame_bytes: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(frame_bytes as u32 - 4).to_be_bytes());
    out.push(code);
    out.resize(out.len() + frame_bytes - 5, b'e');
}
