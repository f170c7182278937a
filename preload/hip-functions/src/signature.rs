//! Reads a C signature, `hipError_t(out void** ptr, size_t size)`: types, names, and where the System V calling
//! convention of x86-64 puts each argument.
//!
//! Functions are `const`, so that the collector's tables are computed when it is compiled and no text stays in it.

/// Where an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentLocation {
    /// In this integer register, and the next one if it has two words.
    Register(u8),
    /// On the stack, in words after the return address.
    Stack(u8),
    /// In a vector register.
    Vector,
}

/// A parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter<'a> {
    /// Its C type.
    pub kind: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Where its argument is.
    pub place: ArgumentLocation,
    /// The function returns a handle or an address through it.
    pub is_result: bool,
}

/// The parameters from some position on.
#[derive(Clone, Debug)]
pub struct Parameters<'a> {
    rest: &'a str,
    registers: u8,
    stack: u8,
}

/// Integer registers of the calling convention.
const REGISTERS: u8 = 6;

/// Types that are passed by value and have more than one word, with their words. Types of one or two words go into
/// registers.
const WIDE: [(&str, u8); 7] = [
    ("dim3", 2),
    ("hipExtent", 3),
    ("hipChannelFormatDesc", 3),
    ("hipPitchedPtr", 4),
    ("hipIpcEventHandle_t", 8),
    ("hipIpcMemHandle_t", 8),
    ("ncclUniqueId", 16),
];

/// The parameters of a signature.
pub const fn parameters(signature: &str) -> Parameters<'_> {
    let rest = match split(signature, b'(') {
        Some((_, rest)) => rest,
        None => "",
    };
    Parameters {
        rest: match split(rest, b')') {
            Some((parameters, _)) => parameters,
            None => rest,
        },
        registers: 0,
        stack: 0,
    }
}

/// The return type of a signature.
pub const fn returned(signature: &str) -> &str {
    match split(signature, b'(') {
        Some((kind, _)) => kind,
        None => signature,
    }
}

/// The parameter of this name.
pub const fn named<'a>(signature: &'a str, name: &str) -> Option<Parameter<'a>> {
    let mut parameters = parameters(signature);
    while let Some((parameter, rest)) = parameters.first() {
        if is_same(parameter.name, name) {
            return Some(parameter);
        }
        parameters = rest;
    }
    None
}

impl<'a> Parameters<'a> {
    /// The first parameter and the others.
    pub const fn first(&self) -> Option<(Parameter<'a>, Self)> {
        if self.rest.is_empty() {
            return None;
        }
        let (text, rest) = match split(self.rest, b',') {
            Some((text, rest)) => (text, trim(rest)),
            None => (self.rest, ""),
        };
        let (text, is_result) = match text.split_at_checked(4) {
            Some((begin, end)) if is_same(begin, "out ") => (end, true),
            _ => (text, false),
        };
        let (kind, name) = match last_blank(text) {
            Some(at) => (text.split_at(at).0, text.split_at(at + 1).1),
            None => (text, ""),
        };
        let (place, registers, stack) = self.place(kind);
        let parameter = Parameter {
            kind,
            name,
            place,
            is_result,
        };
        Some((parameter, Parameters { rest, registers, stack }))
    }

    /// Words of the stack that the parameters before these take.
    pub const fn stack_words(&self) -> u8 {
        self.stack
    }

    /// The place of an argument of this type, and the registers and stack words used after it.
    const fn place(&self, kind: &str) -> (ArgumentLocation, u8, u8) {
        if is_same(kind, "float") || is_same(kind, "double") {
            return (ArgumentLocation::Vector, self.registers, self.stack);
        }
        let words = words(kind);
        if words <= 2 && self.registers + words <= REGISTERS {
            (
                ArgumentLocation::Register(self.registers),
                self.registers + words,
                self.stack,
            )
        } else {
            (ArgumentLocation::Stack(self.stack), self.registers, self.stack + words)
        }
    }
}

impl<'a> Iterator for Parameters<'a> {
    type Item = Parameter<'a>;

    fn next(&mut self) -> Option<Parameter<'a>> {
        let (parameter, rest) = self.first()?;
        *self = rest;
        Some(parameter)
    }
}

/// Words of an argument of this type.
pub const fn words(kind: &str) -> u8 {
    let mut at = 0;
    while at < WIDE.len() {
        if is_same(kind, WIDE[at].0) {
            return WIDE[at].1;
        }
        at += 1;
    }
    1
}

/// The text before and after the first byte of this value.
const fn split(text: &str, byte: u8) -> Option<(&str, &str)> {
    // In constants, calls in a loop take most of the time.
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == byte {
            return Some((text.split_at(at).0, text.split_at(at + 1).1));
        }
        at += 1;
    }
    None
}

const fn last_blank(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = bytes.len();
    while at > 0 {
        at -= 1;
        if bytes[at] == b' ' {
            return Some(at);
        }
    }
    None
}

const fn trim(text: &str) -> &str {
    match text.as_bytes() {
        [b' ', ..] => text.split_at(1).1,
        _ => text,
    }
}

/// Whether two texts are equal. For constants, where `==` cannot be used.
pub const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack_words(signature: &str) -> u8 {
        let mut all = parameters(signature);
        while all.next().is_some() {}
        all.stack_words()
    }

    #[test]
    fn a_signature_gives_types_names_and_places() {
        let launch = "hipError_t(const void* function, dim3 blocks, dim3 threads, void** args, size_t shared, hipStream_t stream)";
        let found: Vec<_> = parameters(launch).map(|one| (one.kind, one.name, one.place)).collect();
        let wanted = [
            ("const void*", "function", ArgumentLocation::Register(0)),
            ("dim3", "blocks", ArgumentLocation::Register(1)),
            ("dim3", "threads", ArgumentLocation::Register(3)),
            ("void**", "args", ArgumentLocation::Register(5)),
            ("size_t", "shared", ArgumentLocation::Stack(0)),
            ("hipStream_t", "stream", ArgumentLocation::Stack(1)),
        ];
        assert_eq!(found, wanted);
        assert_eq!((returned(launch), stack_words(launch)), ("hipError_t", 2));
    }

    #[test]
    fn two_words_go_to_the_stack_when_one_register_is_left() {
        let text = "void(int a, int b, int c, int d, int e, dim3 f, int g, float h)";
        assert_eq!(named(text, "f").map(|one| one.place), Some(ArgumentLocation::Stack(0)));
        assert_eq!(
            named(text, "g").map(|one| one.place),
            Some(ArgumentLocation::Register(5))
        );
        assert_eq!(named(text, "h").map(|one| one.place), Some(ArgumentLocation::Vector));
        assert_eq!(stack_words(text), 2);
    }

    #[test]
    fn a_result_is_marked() {
        let is_result = |text| parameters(text).next().map(|first| first.is_result);
        assert_eq!(is_result("hipError_t(out void** ptr, size_t size)"), Some(true));
        assert_eq!(is_result("hipError_t(void** ptr, size_t size)"), Some(false));
        assert_eq!(parameters("hipError_t()").count(), 0);
    }
}
