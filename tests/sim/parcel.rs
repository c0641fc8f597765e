//! What travels on the network.

use bytes::Bytes;
use http::{Request, response::Parts};

#[derive(Debug)]
pub struct Parcel {
    pub connection: u64,
    pub content: Content,
}

#[derive(Debug)]
pub enum Content {
    Request(Box<Request<Bytes>>),
    HangUp,
    Answer(Answer),
}

/// What a client receives.
#[derive(Debug)]
pub enum Answer {
    /// The whole answer, or the beginning of a stream.
    Head(Box<Parts>, Option<Bytes>),
    Chunk(Bytes),
    End,
    Reset,
}
