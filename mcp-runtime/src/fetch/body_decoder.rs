//! Bodies that were compressed with gzip, decompressed as they are read: in pieces of a limited size, however much one byte
//! of the body stands for.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;
use hyper::body::Bytes;

/// The largest piece.
const PIECE: usize = 64 << 10;

/// Pieces that are decompressed at a time.
const TURN: usize = 16;

/// Decompresses the chunks of one body.
pub(super) struct BodyDecoder {
    decoder: GzDecoder<ReceivedChunks>,
    piece: Vec<u8>,
    /// Pieces since the last chunk.
    pieces: usize,
}

/// The next step of the reader.
pub(super) enum DecodedPiece {
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
    pub(super) fn new() -> Self {
        Self { decoder: GzDecoder::new(ReceivedChunks::default()), piece: vec![0; PIECE], pieces: 0 }
    }

    /// Whether the last chunk takes so long that other tasks must get their turn; true once per fixed number of pieces.
    pub(super) fn is_long(&self) -> bool {
        self.pieces % TURN == TURN - 1
    }

    /// Takes the next chunk of the body; `None` is its end.
    pub(super) fn receive(&mut self, chunk: Option<Bytes>) {
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
    pub(super) fn next(&mut self) -> io::Result<DecodedPiece> {
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
