//! Ids of rows: what `roctop open REC --at ID` goes to. They are made from names and times, so that a recording of a session
//! has the same ones as the session.

use roctop_trace::item::{Nanos, Span};
use std::fmt;
use std::str::FromStr;

/// What kind of work a time belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A launch of a kernel.
    Launch,
    /// An API call.
    Call,
    /// A copy.
    Copy,
    /// A ROC-TX range or mark.
    Range,
}

impl Kind {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Launch, "launch"),
        (Self::Call, "call"),
        (Self::Copy, "copy"),
        (Self::Range, "range"),
    ];
}

/// An id. Files have its text.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Id {
    /// A row of a list of the screen, by what it is called: `kernels:3fa9c2d17b`.
    Row(String, u64),
    /// A piece of work, by its begin: `launch:1000012345678`.
    Work(Kind, Nanos),
    /// A stretch of time: `span:1000012345678-1000012999999`.
    Stretch(Span),
}

/// The text is no id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no id; an answer of 'roctop ask' has one for each row, as kernels:3fa9c2d17b")]
pub struct IdError(String);

/// Bits of a name's hash.
const HASH_BITS: u64 = (1 << 40) - 1;

impl Id {
    /// Of a row that is called so, in a list; `number` is its place among those of the same name.
    pub fn of_row(list: &str, name: &str, number: usize) -> Self {
        // FNV-1a: the same in every release of roctop and of Rust.
        let number = number.to_le_bytes();
        let bytes = name.bytes().chain(number);
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self::Row(list.to_owned(), (hash ^ hash >> 40) & HASH_BITS)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row(list, hash) => write!(out, "{list}:{hash:010x}"),
            Self::Work(kind, at) => {
                let word = Kind::ALL
                    .iter()
                    .find(|known| known.0 == *kind)
                    .map_or("", |known| known.1);
                write!(out, "{word}:{at}")
            }
            Self::Stretch(span) => write!(out, "span:{}-{}", span.begin, span.end),
        }
    }
}

impl From<Id> for String {
    fn from(id: Id) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for Id {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl FromStr for Id {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let wrong = || IdError(text.to_owned());
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        let (word, rest) = text.split_once(':').ok_or_else(wrong)?;
        if word == "span" {
            let (begin, end) = rest.split_once('-').ok_or_else(wrong)?;
            let (begin, end) = (number(begin)?, number(end)?);
            return if begin <= end {
                Ok(Self::Stretch(Span { begin, end }))
            } else {
                Err(wrong())
            };
        }
        if let Some((kind, _)) = Kind::ALL.iter().find(|known| known.1 == word) {
            return Ok(Self::Work(*kind, number(rest)?));
        }
        let is_hash = rest.len() == 10 && rest.bytes().all(|byte| byte.is_ascii_hexdigit());
        let hash = u64::from_str_radix(rest, 16)
            .ok()
            .filter(|_| is_hash && !word.is_empty());
        Ok(Self::Row(word.to_owned(), hash.ok_or_else(wrong)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written() {
        let span = Span { begin: 5, end: 9 };
        for id in [
            Id::of_row("kernels", "gemm<4>", 0),
            Id::of_row("copies", "", 3),
            Id::Work(Kind::Launch, 1_000_012_345_678),
            Id::Work(Kind::Range, 0),
            Id::Stretch(span),
        ] {
            assert_eq!(id.to_string().parse(), Ok(id.clone()), "{id}");
        }
        for wrong in [
            "",
            "kernels",
            "kernels:xyz",
            "kernels:+123456789",
            ":3fa9c2d17b",
            "launch:-1",
            "span:9-5",
            "span:5",
        ] {
            assert!(wrong.parse::<Id>().is_err(), "{wrong}");
        }
        assert_ne!(Id::of_row("kernels", "a", 0), Id::of_row("kernels", "a", 1));
        // Ids stand in notes of users: they stay.
        assert_eq!(Id::of_row("kernels", "gemm", 0).to_string(), "kernels:e637d551b5");
    }
}
