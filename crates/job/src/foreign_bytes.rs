//! Bytes of others, for tests and fuzzers: what reads them must neither panic nor take memory or time by their word.

use crate::link::Receiver;
use crate::message::{Chunk, Down, Empty, Up, VERSION, chunk, down, up};
use crate::serve::parcel;
use crate::tree::Tree;
use crate::{Identity, Key, Name, Role, Transport};
use bytes::Bytes;
use prost::Message;
use std::path::PathBuf;
use std::sync::Arc;

/// A message of each kind.
#[doc(hidden)]
pub fn honest() -> Vec<Vec<u8>> {
    let payload = Bytes::from_static(b"sums");
    let node = || "n01".to_owned();
    let ups = [
        up::Kind::Hello(up::Hello {
            version: VERSION,
            node: node(),
            generation: 7,
            info: payload.clone(),
        }),
        up::Kind::Report(up::Report {
            node: node(),
            payload: payload.clone(),
        }),
        up::Kind::Gone(up::Gone {
            node: node(),
            reason: 2,
        }),
        up::Kind::Pong(up::Pong { sent: 1, received: 2 }),
        up::Kind::Clock(up::Clock {
            node: node(),
            offset_ns: -5,
            error_ns: 9,
        }),
        up::Kind::Refused(up::Refused {
            from: "10.0.0.9".to_owned(),
            reason: 3,
            count: 8,
        }),
        up::Kind::Goodbye(true),
    ];
    let question = down::Question {
        id: 3,
        node: node(),
        payload: payload.clone(),
    };
    let downs = [down::Kind::Question(question), down::Kind::Ping(5)];
    let chunks = [
        chunk::Kind::Data(payload),
        chunk::Kind::Failed("no".to_owned()),
        chunk::Kind::Complete(true),
    ];
    let ups = ups.map(|kind| Up::from(kind).encode_to_vec());
    let downs = downs.map(|kind| Down::from(kind).encode_to_vec());
    let chunks = chunks.map(|kind| {
        Chunk {
            id: 3,
            kind: Some(kind),
        }
        .encode_to_vec()
    });
    ups.into_iter().chain(downs).chain(chunks).collect()
}

/// Reads bytes as each message, and as a key's file; takes a message as if it came from a relay. How many could be read.
#[doc(hidden)]
pub fn read(bytes: &[u8]) -> usize {
    let tree = Arc::new(Tree::default());
    let name = Name::of_text("r");
    let identity = Identity {
        job: name.clone(),
        role: Role::Relay,
        name,
    };
    let (link, _questions) = tree.open(identity);
    let receiver = Receiver {
        tree: &tree,
        link,
        from: "10.0.0.1",
    };
    let up = Up::decode(bytes);
    let is_up = up.is_ok();
    if let Ok(Up { kind: Some(kind) }) = up {
        // Once for a node that is not known, once for one that is.
        let _ = receiver.take(kind.clone());
        let hello = up::Hello {
            version: VERSION,
            node: "n01".to_owned(),
            ..up::Hello::default()
        };
        let _ = receiver.take(up::Kind::Hello(hello));
        let _ = receiver.take(kind);
        let alive = crate::memory::Member::viewer(tree.clone()).alive();
        assert!(alive.len() <= 2);
    }
    let chunk = Chunk::decode(bytes);
    let is_chunk = chunk.is_ok();
    let _ = chunk.map(parcel);
    let is_key = Key::of_bytes(&PathBuf::new(), bytes).is_ok();
    let read = [
        is_up,
        is_chunk,
        is_key,
        Down::decode(bytes).is_ok(),
        Empty::decode(bytes).is_ok(),
    ];
    read.into_iter().filter(|is_read| *is_read).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// xorshift64.
    fn next(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn random_bytes_are_messages_or_errors() {
        let honest = honest();
        assert!(honest.iter().all(|bytes| read(bytes) > 0));
        let mut state = 0x9e37_79b9_7f4a_7c15;
        let mut count = 0;
        for round in 0..30_000 {
            let mut bytes = match round % 2 {
                0 => honest[round / 2 % honest.len()].clone(),
                _ => (0..next(&mut state) % 40).map(|_| next(&mut state) as u8).collect(),
            };
            for _ in 0..next(&mut state) % 3 {
                if !bytes.is_empty() {
                    let at = next(&mut state) as usize % bytes.len();
                    bytes[at] = next(&mut state) as u8;
                    bytes.truncate(1 + next(&mut state) as usize % bytes.len());
                }
            }
            count += read(&bytes);
        }
        // Some can be read, or the test would show nothing.
        assert!(count > 1000, "{count}");
    }
}
