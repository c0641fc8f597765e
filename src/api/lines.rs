//! The lines of a streamed body, each with a size limit.

use super::error::{CallError, Failure};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use http_body_util::BodyExt;
use kube_client::client::Body;

/// The longest line, in bytes. It is longer than any object in etcd.
pub(crate) const LONGEST: usize = 3 * 1024 * 1024;

/// Splits `body` at line feeds. A line of more than [`LONGEST`] bytes is an error and ends the stream. A body that
/// breaks off does the same. A last line without a line feed is dropped.
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
