//! The lines of a streamed body, each bounded.

use super::error::{CallError, Failure};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use http_body_util::BodyExt;
use kube_client::client::Body;

/// More than any object that etcd keeps.
pub(crate) const LONGEST: usize = 3 * 1024 * 1024;

/// Splits `body` at line feeds. A line of more than [`LONGEST`] bytes is an error that ends the stream, and so is a body
/// that breaks off; a last line without line feed is dropped with the stream.
pub(crate) fn lines(body: Body) -> impl Stream<Item = Result<Bytes, CallError>> + Send + Unpin {
    stream::unfold(Some((body, BytesMut::new(), 0)), |state| async move {
        let (mut body, mut read, mut searched) = state?;
        loop {
            if let Some(at) = read[searched..].iter().position(|byte| *byte == b'\n') {
                let line = read.split_to(searched + at + 1).freeze();
                return Some((Ok(line), Some((body, read, 0))));
            }
            searched = read.len();
            if read.len() > LONGEST {
                let message = format!("a line of the watch is longer than {LONGEST} bytes");
                return Some((Err(CallError::new(Failure::Garbage, message)), None));
            }
            match body.frame().await? {
                Ok(frame) => read.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
                Err(error) => {
                    let message = format!("the watch broke: {error}");
                    return Some((Err(CallError::new(Failure::Unreachable, message)), None));
                }
            }
        }
    })
    .boxed()
}
