//! Where an event of a watch ends, and the event that says that its version has expired.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::json;

const MESSAGE: &str = "too old resource version: this replica begins to lead, and the program lists again";
const EXPIRED: &str = "Expired";
const GONE: u16 = 410;

/// How far the events of a watch have been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frames {
    /// Each event is a line.
    Json { is_between: bool },
    /// Each event has its length in front, as four bytes.
    Protobuf {
        /// How many bytes of the present length have been read.
        read: u8,
        /// This length, or how many bytes of the event are still to come.
        left: u32,
    },
}

// === impl Frames ===

impl Frames {
    /// The encoding that a `Content-Type` names. None if it is not known.
    pub(super) fn of(content_type: &str) -> Option<Self> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json" => Some(Self::Json { is_between: true }),
            "application/vnd.kubernetes.protobuf" => Some(Self::Protobuf { read: 0, left: 0 }),
            _ => None,
        }
    }

    /// Whether no event is under way.
    pub(super) const fn is_between_events(&self) -> bool {
        matches!(self, Self::Json { is_between: true } | Self::Protobuf { read: 0, left: 0 })
    }

    /// Reads bytes of the watch. Stops at the end of an event if it `may_stop`. Returns how many bytes it has read.
    pub(super) fn read(&mut self, bytes: &[u8], may_stop: bool) -> usize {
        for (at, byte) in bytes.iter().enumerate() {
            self.read_byte(*byte);
            if may_stop && self.is_between_events() {
                return at + 1;
            }
        }
        bytes.len()
    }

    fn read_byte(&mut self, byte: u8) {
        match self {
            Self::Json { is_between } => *is_between = byte == b'\n',
            Self::Protobuf { read: read @ 0..=3, left } => {
                *left = *left << 8 | u32::from(byte);
                *read += 1;
                if *read == 4 && *left == 0 {
                    *read = 0; // an event without bytes
                }
            }
            Self::Protobuf { read, left } => {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    *read = 0;
                }
            }
        }
    }

    /// The event that the API server sends if the version of a watch has expired.
    pub(super) fn expired(&self) -> Bytes {
        match self {
            Self::Json { .. } => {
                let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": MESSAGE, "reason": EXPIRED, "code": GONE });
                format!("{}\n", json!({ "type": "ERROR", "object": status })).into()
            }
            Self::Protobuf { .. } => protobuf(MESSAGE),
        }
    }
}

/// The event in protobuf: a `WatchEvent` with a `v1.Status` in the envelope of Kubernetes (`metav1.WatchEvent`, `metav1.Status`
/// and `runtime.Unknown` in the files `generated.proto` of `k8s.io/apimachinery`).
fn protobuf(words: &str) -> Bytes {
    let metadata = message(&[(1, b""), (2, b""), (3, b"")]);
    let mut status =
        message(&[(1, &metadata), (2, b"Failure"), (3, words.as_bytes()), (4, EXPIRED.as_bytes())]);
    status.push(6 << 3); // the code, which is a number
    varint(&mut status, GONE.into());
    let kind = message(&[(1, b"v1"), (2, b"Status")]);
    let unknown = [b"k8s\0", &*message(&[(1, &kind), (2, &status), (3, b""), (4, b"")])].concat();
    let event = message(&[(1, b"ERROR"), (2, &message(&[(1, &unknown)]))]);
    let mut frame = BytesMut::with_capacity(event.len() + 4);
    frame.put_u32(u32::try_from(event.len()).unwrap_or_default());
    frame.put_slice(&event);
    frame.freeze()
}

/// A message of protobuf with these fields, each of which is text or a message.
fn message(fields: &[(u8, &[u8])]) -> Vec<u8> {
    let mut message = Vec::new();
    for (number, field) in fields {
        message.push(number << 3 | 2);
        varint(&mut message, field.len());
        message.extend_from_slice(field);
    }
    message
}

fn varint(out: &mut Vec<u8>, mut number: usize) {
    while let Some(low) = u8::try_from(number & 0x7f).ok().filter(|_| number > 0x7f) {
        out.push(low | 0x80);
        number >>= 7;
    }
    out.extend(u8::try_from(number));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{prelude::*, sample::Index};

    /// Three events in the encoding of `frames`, and the ends of them.
    fn events(frames: &Frames, texts: [&[u8]; 3]) -> (Vec<u8>, Vec<usize>) {
        let (mut all, mut ends) = (Vec::new(), vec![]);
        for text in texts {
            match frames {
                Frames::Json { .. } => all.extend([text, b"\n"].concat()),
                Frames::Protobuf { .. } => {
                    all.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
                    all.extend(text);
                }
            }
            ends.push(all.len());
        }
        (all, ends)
    }

    proptest! {
        /// Wherever the stream is cut, and whenever the gain comes, the reader stops at the end of an event.
        #[test]
        fn reader_stops_at_the_end_of_an_event(cut in any::<Index>(), length in 0_usize..300, json in any::<bool>()) {
            let frames = if json { Frames::Json { is_between: true } } else { Frames::Protobuf { read: 0, left: 0 } };
            let (all, ends) = events(&frames, [&b"x".repeat(length + 1), b"yy", b"z"]);
            let cut = cut.index(all.len());
            let mut reader = frames;
            prop_assert_eq!(reader.read(&all[..cut], false), cut);
            prop_assert_eq!(reader.is_between_events(), cut == 0 || ends.contains(&cut));
            let stopped = cut + reader.read(&all[cut..], true);
            prop_assert!(reader.is_between_events());
            prop_assert_eq!(Some(&stopped), ends.iter().find(|end| cut < **end));
        }
    }

    #[test]
    fn encodings_are_found_by_their_content_type() {
        let json = Some(Frames::Json { is_between: true });
        let protobuf = Some(Frames::Protobuf { read: 0, left: 0 });
        assert_eq!(Frames::of("application/json"), json);
        assert_eq!(Frames::of("application/json;stream=watch"), json);
        assert_eq!(Frames::of("application/vnd.kubernetes.protobuf;stream=watch"), protobuf);
        assert_eq!(Frames::of("application/cbor-seq"), None);
        assert_eq!(Frames::of("application/jsonl"), None);
    }

    /// The answer of kube-apiserver 1.36.3 to a watch from version 41.
    #[test]
    fn event_in_protobuf_is_that_of_the_api_server() {
        let real = b"\0\0\0\x64\x0a\x05ERROR\x12\x5b\x0a\x59k8s\0\x0a\x0c\x0a\x02v1\x12\x06Status\x12\x41\
            \x0a\x06\x0a\x00\x12\x00\x1a\x00\x12\x07Failure\x1a\x22too old resource version: 41 (336)\
            \x22\x07Expired\x30\x9a\x03\x1a\x00\x22\x00";
        assert_eq!(protobuf("too old resource version: 41 (336)"), real[..]);
    }

    #[test]
    fn each_encoding_reads_its_own_event_as_one() {
        for frames in [Frames::Json { is_between: true }, Frames::Protobuf { read: 0, left: 0 }] {
            let event = frames.expired();
            assert_eq!(frames.clone().read(&event, true), event.len());
        }
    }
}
