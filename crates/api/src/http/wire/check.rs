//! Properties of the decoders of requests that must hold for any input. The fuzz target and the
//! tests of this module use them.

use super::chunked::{ChunkDecoder, Progress};
use super::framing::Framing;
use super::head::{HeadError, HeadParser};
use bytes::{Bytes, BytesMut};

const HEAD_BYTES_MAX: usize = 4096;
const LINES_MAX: usize = 40;
const BODY_BYTES_MAX: usize = 4096;

/// The requests that a connection decodes from some bytes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    /// Method, path with query, and body of each complete request.
    requests: Vec<(String, String, Bytes)>,
    end: End,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum End {
    /// More bytes are needed.
    #[default]
    Wanting,
    /// A head was refused, so no further bytes are decoded.
    Head(HeadError),
    /// A body was refused, so no further bytes are decoded.
    Body,
}

/// Checks that no decoder panics or exceeds its bounds, and that a request is decoded in the same
/// way if it arrives in pieces.
pub fn requests(bytes: &[u8]) {
    let whole = read(bytes, usize::MAX);
    for piece in [1, 7, 100] {
        let pieces = read(bytes, piece);
        assert_eq!(whole.requests, pieces.requests);
        // A head is parsed again only if it may be complete or if it is too large. So an error may
        // be found earlier or later.
        let shows_later = |end: &End| matches!(end, End::Wanting | End::Head(_));
        assert!(whole.end == pieces.end || shows_later(&whole.end) && shows_later(&pieces.end));
    }
}

fn read(bytes: &[u8], piece: usize) -> Read {
    let mut reader = Reader::default();
    for piece in bytes.chunks(piece.min(bytes.len().max(1))) {
        reader.input.extend_from_slice(piece);
        while reader.step() {}
        if reader.read.end != End::Wanting {
            break;
        }
    }
    reader.read
}

struct Reader {
    parser: HeadParser,
    input: BytesMut,
    /// The request whose body is being read.
    begun: Option<Begun>,
    read: Read,
}

struct Begun {
    method: String,
    uri: String,
    framing: Framing,
    decoder: ChunkDecoder,
    body: BytesMut,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            parser: HeadParser::new(HEAD_BYTES_MAX, LINES_MAX),
            input: BytesMut::new(),
            begun: None,
            read: Read::default(),
        }
    }
}

impl Reader {
    /// Takes one step. Returns whether it made progress and should be called again.
    fn step(&mut self) -> bool {
        if self.read.end != End::Wanting {
            return false;
        }
        match self.begun.take() {
            None => self.begin(),
            Some(begun) => self.go_on(begun),
        }
    }

    fn begin(&mut self) -> bool {
        match self.parser.next(&mut self.input) {
            Ok(None) => return false,
            Err(error) => self.read.end = End::Head(error),
            Ok(Some(head)) => {
                assert!(head.lines.len() <= LINES_MAX);
                self.begun = Some(Begun {
                    method: head.method.to_string(),
                    uri: format!("{}{:?}", head.target.path(), head.target.query_bytes()),
                    framing: head.framing,
                    decoder: ChunkDecoder::new(BODY_BYTES_MAX),
                    body: BytesMut::new(),
                });
            }
        }
        true
    }

    fn go_on(&mut self, mut begun: Begun) -> bool {
        let is_whole = match begun.framing {
            Framing::Empty => true,
            Framing::Length(length) if length > BODY_BYTES_MAX as u64 => {
                self.read.end = End::Body;
                return false;
            }
            Framing::Length(length) => {
                let missing = length as usize - begun.body.len();
                let come = self.input.split_to(missing.min(self.input.len()));
                begun.body.extend_from_slice(&come);
                come.len() == missing
            }
            Framing::Chunked => match begun.decoder.decode(&mut self.input, &mut begun.body) {
                Ok(progress) => progress == Progress::Ended,
                Err(_) => {
                    self.read.end = End::Body;
                    return false;
                }
            },
        };
        assert!(begun.body.len() <= BODY_BYTES_MAX);
        if is_whole {
            self.read.requests.push((begun.method, begun.uri, begun.body.freeze()));
        } else {
            self.begun = Some(begun);
        }
        is_whole
    }
}

#[cfg(test)]
mod unit {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_are_cut_where_they_end() {
        let bytes =
            b"PUT /b HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcPUT /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
                      2\r\nde\r\n0\r\n\r\nGET /d HTTP/1.0\n\nGET";
        requests(bytes);
        let request = |method: &str, path: &str, body: &'static str| {
            (method.to_owned(), format!("{path}None"), Bytes::from(body))
        };
        let expected = [request("PUT", "/b", "abc"), request("PUT", "/c", "de"), request("GET", "/d", "")];
        assert_eq!(read(bytes, 3).requests, expected);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_in_one_way(words in proptest::collection::vec(word(), 0..30)) {
            requests(&words.concat());
        }
    }

    /// Bytes that look like a request in places.
    fn word() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            8 => proptest::sample::select(&[
                "GET ", "PUT ", "/b/k", "?r=1", " HTTP/1.1\r\n", " HTTP/1.0\r\n", "\r\n", "\r\n\r\n", "\n", "\n\n", "Host: x\r\n",
                "Content-Length: 3\r\n", "Content-Length: 9\r\n", "Transfer-Encoding: chunked\r\n", "Connection: close\r\n",
                "Expect: 100-continue\r\n", "3\r\nabc\r\n", "0\r\n\r\n", "abc", "1;x=y\r\n", " ", ": ",
                "PUT /b HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "GET / HTTP/1.1\r\n\r\n",
                "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            ][..]).prop_map(|word| word.as_bytes().to_vec()),
            1 => proptest::collection::vec(any::<u8>(), 0..12),
        ]
    }
}
