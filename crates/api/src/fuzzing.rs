//! The properties of the decoders of client bytes, for the fuzz targets and for the tests of this
//! crate.

/// Checks the decoders with the bytes of an HTTP connection, without a server.
pub fn http_requests(bytes: &[u8]) {
    crate::http::wire::check::requests(bytes);
}
