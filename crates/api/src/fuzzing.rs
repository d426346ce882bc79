//! What must hold of the decoders of bytes that clients send: for the fuzz targets, and for the tests of this crate.

/// The bytes of an HTTP connection, without a server behind it.
pub fn http_requests(bytes: &[u8]) {
    crate::http::wire::check::requests(bytes);
}
