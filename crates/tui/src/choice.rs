//! Choices of a few, each with its word; a key goes round them.

/// Gives an enumeration the list of its values with their words, a value's word, and the value after it.
macro_rules! choices {
    ($Name:ident: $($Value:ident $word:literal)*) => {
        impl $Name {
            /// All of them with their words.
            pub const ALL: [(Self, &'static str); [$($word),*].len()] = [$((Self::$Value, $word)),*];

            /// Its word.
            pub fn word(self) -> &'static str {
                Self::ALL
                    .iter()
                    .find(|known| known.0 == self)
                    .map_or("", |known| known.1)
            }

            /// The one after it, the first one after the last.
            #[must_use]
            pub fn next(self) -> Self {
                let at = Self::ALL.iter().position(|known| known.0 == self).unwrap_or(0);
                Self::ALL[(at + 1) % Self::ALL.len()].0
            }
        }
    };
}

pub(crate) use choices;
