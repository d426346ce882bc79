//! Compressed bodies.

use bytes::{Buf, Bytes};
use flate2::Compression;
use flate2::bufread::GzEncoder;
use http_body_util::{BodyExt, Full};
use std::io::Read;

/// The gzip form of a body that is there already.
pub fn compress(body: Full<Bytes>) -> Full<Bytes> {
    let plain = whole(body);
    let mut packed = Vec::with_capacity(plain.len() / 2);
    match GzEncoder::new(plain.clone().reader(), Compression::fast()).read_to_end(&mut packed) {
        Ok(_) => Full::new(Bytes::from(packed)),
        Err(_) => Full::new(plain),
    }
}

fn whole(mut body: Full<Bytes>) -> Bytes {
    use futures_util::FutureExt;
    // A full body hands out its one frame at once.
    body.frame().now_or_never().flatten().and_then(|f| f.ok()?.into_data().ok()).unwrap_or_default()
}
