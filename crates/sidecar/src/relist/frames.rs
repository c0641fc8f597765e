//! Where an event of a watch ends, and the event that says that its version has expired.

use bytes::Bytes;
use serde_json::json;

/// At most 70 characters; see [`protobuf`].
const MESSAGE: &str = "this replica begins to lead, so the program lists again";

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
                    "message": MESSAGE, "reason": "Expired", "code": 410 });
                format!("{}\n", json!({ "type": "ERROR", "object": status })).into()
            }
            Self::Protobuf { .. } => protobuf(MESSAGE),
        }
    }
}

/// The event in protobuf: a `WatchEvent` with a `v1.Status` in the envelope of Kubernetes (`metav1.WatchEvent`, `metav1.Status`
/// and `runtime.Unknown` in the files `generated.proto` of `k8s.io/apimachinery`). Each length in it is less than 128, so it is
/// one byte.
fn protobuf(message: &str) -> Bytes {
    let length = u8::try_from(message.len()).unwrap_or_default();
    let frame = [
        &[0, 0, 0, length + 66] as &[u8],
        b"\x0a\x05ERROR\x12",
        &[length + 57, 0x0a, length + 55],
        b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Status\x12",
        &[length + 31],
        b"\x0a\x06\x0a\0\x12\0\x1a\0\x12\x07Failure\x1a",
        &[length],
        message.as_bytes(),
        b"\x22\x07Expired\x30\x9a\x03\x1a\0\x22\0",
    ];
    frame.concat().into()
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
            assert!(
                MESSAGE.len() <= 70 && event.windows(MESSAGE.len()).any(|part| part == MESSAGE.as_bytes())
            );
            assert_eq!(frames.clone().read(&event, true), event.len());
        }
    }
}
