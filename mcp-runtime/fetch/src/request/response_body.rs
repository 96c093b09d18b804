//! Bodies of responses. Those that were compressed with gzip are decompressed as they are read: in pieces of a limited size,
//! however much one byte of the body stands for.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;
use http::{HeaderMap, header};
use hyper::body::{Body as _, Bytes, Incoming};

use super::http_client::{ExchangeError, receive};

/// The largest piece.
const PIECE: usize = 64 << 10;

/// Pieces that are decompressed at a time.
const TURN: usize = 16;

/// The body of a response.
pub(super) struct ResponseBody {
    incoming: Incoming,
    /// The decoder of a compressed body.
    decoder: Option<Box<BodyDecoder>>,
}

impl ResponseBody {
    pub(super) fn new(headers: &HeaderMap, incoming: Incoming) -> Self {
        Self { incoming, decoder: is_gzip(headers).then(|| Box::new(BodyDecoder::new())) }
    }

    /// Its length, if the head says it. That of a compressed one is not known.
    pub(super) fn length(&self) -> Option<u64> {
        if self.decoder.is_some() { None } else { self.incoming.size_hint().exact() }
    }

    /// The next part; `None` at the end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, ExchangeError> {
        let Some(mut decoder) = self.decoder.take() else { return receive(&mut self.incoming).await };
        let piece = loop {
            match decoder.next() {
                Ok(DecodedPiece::Bytes(piece)) => break Ok(Some(piece)),
                Ok(DecodedPiece::End) => break Ok(None),
                Ok(DecodedPiece::Incomplete) => match receive(&mut self.incoming).await {
                    Ok(chunk) => decoder.receive(chunk),
                    Err(error) => break Err(error),
                },
                Err(_) => break Err(ExchangeError::text("the compressed body is broken")),
            }
        };
        if decoder.is_long() {
            // one chunk may stand for a thousand times as much
            tokio::task::yield_now().await;
        }
        self.decoder = Some(decoder);
        piece
    }
}

fn is_gzip(headers: &HeaderMap) -> bool {
    let coding =
        headers.get(header::CONTENT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    ["gzip", "x-gzip"].iter().any(|gzip| coding.trim().eq_ignore_ascii_case(gzip))
}

/// Decompresses the chunks of one body.
struct BodyDecoder {
    decoder: GzDecoder<ReceivedChunks>,
    piece: Vec<u8>,
    /// Pieces since the last chunk.
    pieces: usize,
}

/// The next step of the reader.
enum DecodedPiece {
    Bytes(Bytes),
    /// The next chunk must be received.
    Incomplete,
    End,
}

/// The chunk that is decompressed, and whether there are more to come.
#[derive(Default)]
struct ReceivedChunks {
    chunk: Bytes,
    has_ended: bool,
}

impl Read for ReceivedChunks {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut available = self.fill_buf()?;
        let read = available.read(out)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for ReceivedChunks {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.chunk.is_empty() && !self.has_ended {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(&self.chunk)
    }

    fn consume(&mut self, bytes: usize) {
        drop(self.chunk.split_to(bytes.min(self.chunk.len())));
    }
}

impl BodyDecoder {
    fn new() -> Self {
        Self { decoder: GzDecoder::new(ReceivedChunks::default()), piece: vec![0; PIECE], pieces: 0 }
    }

    /// Whether the last chunk takes so long that other tasks must get their turn; true once per fixed number of pieces.
    fn is_long(&self) -> bool {
        self.pieces % TURN == TURN - 1
    }

    /// Takes the next chunk of the body; `None` is its end.
    fn receive(&mut self, chunk: Option<Bytes>) {
        self.pieces = 0;
        let chunks = self.decoder.get_mut();
        match chunk {
            Some(chunk) => chunks.chunk = chunk,
            None => chunks.has_ended = true,
        }
    }

    /// The next piece.
    ///
    /// # Errors
    /// It is not gzip, or was cut off.
    fn next(&mut self) -> io::Result<DecodedPiece> {
        self.pieces += 1;
        match self.decoder.read(&mut self.piece) {
            Ok(0) => Ok(DecodedPiece::End),
            Ok(read) => {
                Ok(DecodedPiece::Bytes(Bytes::copy_from_slice(self.piece.get(..read).unwrap_or_default())))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(DecodedPiece::Incomplete),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn decoded(body: &[u8], step: usize) -> io::Result<(Vec<u8>, usize)> {
        let (mut decoder, mut out, mut largest) = (BodyDecoder::new(), Vec::new(), 0);
        let mut chunks = body.chunks(step);
        loop {
            match decoder.next()? {
                DecodedPiece::Bytes(piece) => {
                    largest = largest.max(piece.len());
                    out.extend_from_slice(&piece);
                }
                DecodedPiece::Incomplete => decoder.receive(chunks.next().map(Bytes::copy_from_slice)),
                DecodedPiece::End => return Ok((out, largest)),
            }
        }
    }

    #[test]
    fn bodies_are_decompressed_however_they_are_cut_and_in_small_pieces() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&vec![b'x'; 10 << 20]).unwrap();
        let body = encoder.finish().unwrap();
        assert!(body.len() < 20_000, "{}", body.len());
        for step in [1, 7, 1000, body.len()] {
            let (out, largest) = decoded(&body, step).unwrap();
            assert!(out.len() == 10 << 20 && out.iter().all(|byte| *byte == b'x'));
            assert!(largest <= PIECE, "{largest}");
        }
        assert!(decoded(&body[..body.len() - 10], 1000).is_err(), "it was cut off");
        assert!(decoded(b"not gzip, but long enough", 5).is_err());
    }
}
