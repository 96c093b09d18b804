//! What belongs to no single kind of item: the handshake, discovery, the frame of results.

mod cursors;
mod eras;
