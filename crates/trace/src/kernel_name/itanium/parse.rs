//! Grammar of symbols, encodings and special names. Types, names and expressions are in their own files.

mod expression;
mod name;
mod types;

use super::table::OF_TYPES;
use super::tree::{Id, Kind, Node, Tree};

/// Maximum nesting of types, expressions and encodings.
const MAX_DEPTH: u32 = 256;

/// State of the parser.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a state of the grammar that rules set and restore"
)]
struct Parser<'a> {
    text: &'a str,
    at: usize,
    tree: Tree<'a>,
    substitutions: Vec<Id>,
    /// Class name for a following constructor or destructor.
    last_name: Option<Id>,
    is_expression: bool,
    is_conversion: bool,
    /// Whether scopes of unresolved names are parsed in the old form, which has no end mark.
    is_old: bool,
    /// Whether such a scope was found.
    is_ambiguous: bool,
    depth: u32,
}

/// Parses a symbol: its nodes and the root.
pub(super) fn symbol(text: &str) -> Option<(Tree<'_>, Id)> {
    let mut parser = Parser::new(text, false);
    if let Some(root) = parser.symbol() {
        return Some((parser.tree, root));
    }
    // Scopes of unresolved names have two forms; only the end of the symbol shows which was used.
    if !parser.is_ambiguous {
        return None;
    }
    let mut parser = Parser::new(text, true);
    let root = parser.symbol()?;
    Some((parser.tree, root))
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, is_old: bool) -> Self {
        Self {
            text,
            at: 0,
            tree: Tree(Vec::with_capacity(text.len())),
            substitutions: Vec::new(),
            last_name: None,
            is_expression: false,
            is_conversion: false,
            is_old,
            is_ambiguous: false,
            depth: 0,
        }
    }

    /// Next byte, 0 at the end.
    fn peek(&self) -> u8 {
        self.ahead(0)
    }

    /// Byte after the next.
    fn peek_next(&self) -> u8 {
        self.ahead(1)
    }

    fn ahead(&self, far: usize) -> u8 {
        self.text.as_bytes().get(self.at + far).copied().unwrap_or(0)
    }

    /// Consumes a byte if it equals `byte`.
    fn takes(&mut self, byte: u8) -> bool {
        let is_it = self.peek() == byte;
        self.at += usize::from(is_it);
        is_it
    }

    /// Consumes a byte; any other is an error.
    fn take(&mut self, byte: u8) -> Option<()> {
        self.takes(byte).then_some(())
    }

    /// Consumes and returns a byte, 0 at the end.
    fn next(&mut self) -> u8 {
        let byte = self.peek();
        self.at += usize::from(byte != 0);
        byte
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "rules of the grammar end with it and return an option"
    )]
    fn add(&mut self, kind: Kind<'a>, left: Option<Id>, right: Option<Id>) -> Option<Id> {
        Some(self.tree.add(kind, left, right))
    }

    /// Adds a node with one child.
    fn around(&mut self, kind: Kind<'a>, left: Id) -> Option<Id> {
        self.add(kind, Some(left), None)
    }

    /// Adds a node with two children.
    fn join(&mut self, kind: Kind<'a>, left: Id, right: Id) -> Option<Id> {
        self.add(kind, Some(left), Some(right))
    }

    /// A name from `start` to the current position; an empty one is an error.
    fn name_from(&mut self, start: usize) -> Option<Id> {
        let name = self.text.get(start..self.at).filter(|name| !name.is_empty())?;
        self.add(Kind::Name(name), None, None)
    }

    /// Runs a recursive part of the grammar, up to the maximum depth.
    fn deeper(&mut self, part: impl FnOnce(&mut Self) -> Option<Id>) -> Option<Id> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let found = part(self);
        self.depth -= 1;
        found
    }

    fn symbol(&mut self) -> Option<Id> {
        let bytes = self.text.as_bytes();
        let key = match bytes {
            [
                b'_',
                b'G',
                b'L',
                b'O',
                b'B',
                b'A',
                b'L',
                b'_',
                b'.' | b'_' | b'$',
                key @ (b'I' | b'D'),
                b'_',
                ..,
            ] => *key,
            _ => 0,
        };
        let root = if key == 0 {
            self.mangled_name(true)?
        } else {
            self.of_globals(key)?
        };
        (self.at == self.text.len()).then_some(root)
    }

    /// Compiler-generated functions for the globals of a file.
    fn of_globals(&mut self, key: u8) -> Option<Id> {
        self.at = 11;
        let (rest, begin) = (self.text.len(), self.at);
        let inner = if self.peek() == b'_' && self.peek_next() == b'Z' {
            self.mangled_name(false)?
        } else {
            self.at = rest;
            self.name_from(begin)?
        };
        self.at = rest;
        let what = if key == b'I' {
            "global constructors keyed to "
        } else {
            "global destructors keyed to "
        };
        self.around(Kind::Special(what), inner)
    }

    /// `_Z` and an encoding, with suffixes if it is the whole symbol.
    fn mangled_name(&mut self, is_whole: bool) -> Option<Id> {
        if !self.takes(b'_') && is_whole {
            return None;
        }
        self.take(b'Z')?;
        let mut name = self.encoding(is_whole)?;
        while is_whole && self.peek() == b'.' && is_of_suffix(self.peek_next()) {
            name = self.suffix(name)?;
        }
        Some(name)
    }

    /// `.part.0` and similar suffixes.
    fn suffix(&mut self, name: Id) -> Option<Id> {
        let start = self.at;
        self.at += 2;
        while is_of_suffix(self.peek()) {
            self.at += 1;
        }
        while self.peek() == b'.' && self.peek_next().is_ascii_digit() {
            self.at += 2;
            while self.peek().is_ascii_digit() {
                self.at += 1;
            }
        }
        let suffix = self.name_from(start)?;
        self.join(Kind::Clone, name, suffix)
    }

    /// A function with its type, a variable, or a special name.
    fn encoding(&mut self, is_whole: bool) -> Option<Id> {
        self.deeper(|parser| {
            if matches!(parser.peek(), b'G' | b'T') {
                return parser.special_name();
            }
            let name = parser.name(false)?;
            if matches!(parser.peek(), 0 | b'E') {
                return Some(name);
            }
            let has_return_type = parser.has_return_type(name);
            let function = parser.bare_function(has_return_type)?;
            if !is_whole && parser.tree.kind(name) == Kind::Local {
                parser.tree.node_mut(function).left = None;
            }
            parser.join(Kind::Typed, name, function)
        })
    }

    /// Whether the symbol contains the return type, as it does for templates.
    fn has_return_type(&self, name: Id) -> bool {
        let Node { kind, left, right } = *self.tree.node(name);
        match kind {
            Kind::Local => right.is_some_and(|id| self.has_return_type(id)),
            Kind::Template => left.is_some_and(|id| !self.has_no_return_type(id)),
            _ if kind.is_of_function() => left.is_some_and(|id| self.has_return_type(id)),
            _ => false,
        }
    }

    /// Constructors, destructors and conversions.
    fn has_no_return_type(&self, name: Id) -> bool {
        match self.tree.kind(name) {
            Kind::Qualified | Kind::Local => self.tree.right(name).is_some_and(|id| self.has_no_return_type(id)),
            kind => matches!(kind, Kind::Constructor | Kind::Destructor | Kind::Conversion),
        }
    }

    /// Compiler-generated objects: tables, thunks, guards.
    fn special_name(&mut self) -> Option<Id> {
        match (self.next(), self.next()) {
            (b'T', b'h') => {
                self.call_offset(b'h')?;
                self.of_encoding("non-virtual thunk to ")
            }
            (b'T', b'v') => {
                self.call_offset(b'v')?;
                self.of_encoding("virtual thunk to ")
            }
            (b'T', b'c') => {
                for _ in 0..2 {
                    let offset = self.next();
                    self.call_offset(offset)?;
                }
                self.of_encoding("covariant return thunk to ")
            }
            (b'T', b'C') => {
                let derived = self.a_type()?;
                (self.number() >= 0).then_some(())?;
                self.take(b'_')?;
                let base = self.a_type()?;
                self.join(Kind::ConstructionVtable, base, derived)
            }
            (b'T', b'H') => self.of_name("TLS init function for "),
            (b'T', b'W') => self.of_name("TLS wrapper function for "),
            (b'T', b'A') => {
                let argument = self.template_argument()?;
                self.around(Kind::Special("template parameter object for "), argument)
            }
            (b'T', letter) => {
                let (_, what) = OF_TYPES.iter().find(|known| known.0 == letter)?;
                let of = self.a_type()?;
                self.around(Kind::Special(what), of)
            }
            (_, b'V') => self.of_name("guard variable for "),
            (_, b'R') => {
                let name = self.name(false)?;
                let number = self.number();
                let number = self.add(Kind::Number(number), None, None)?;
                self.join(Kind::ReferenceTemporary, name, number)
            }
            (_, b'A') => self.of_encoding("hidden alias for "),
            (_, b'T') => match self.next() {
                b'n' => self.of_encoding("non-transaction clone for "),
                _ => self.of_encoding("transaction clone for "),
            },
            _ => None,
        }
    }

    fn of_encoding(&mut self, what: &'static str) -> Option<Id> {
        let encoding = self.encoding(false)?;
        self.around(Kind::Special(what), encoding)
    }

    fn of_name(&mut self, what: &'static str) -> Option<Id> {
        let name = self.name(false)?;
        self.around(Kind::Special(what), name)
    }

    /// Adjustment of `this` in a thunk; not shown.
    fn call_offset(&mut self, kind: u8) -> Option<()> {
        self.number();
        if kind == b'v' {
            self.take(b'_')?;
            self.number();
        } else if kind != b'h' {
            return None;
        }
        self.take(b'_')
    }

    /// Decimal digits, `n` for minus; -1 on overflow, 0 without digits.
    fn number(&mut self) -> i32 {
        let is_negative = self.takes(b'n');
        let mut number = 0i32;
        while self.peek().is_ascii_digit() {
            let digit = i32::from(self.peek() - b'0');
            let Some(more) = number.checked_mul(10).and_then(|tens| tens.checked_add(digit)) else {
                return -1;
            };
            number = more;
            self.at += 1;
        }
        if is_negative { -number } else { number }
    }

    /// Compact number: `_` is 0, `0_` is 1, and so on.
    fn compact_number(&mut self) -> Option<i32> {
        let number = match self.peek() {
            b'_' => 0,
            b'n' => return None,
            _ => self.number().checked_add(1)?,
        };
        self.take(b'_')?;
        (number >= 0).then_some(number)
    }

    fn substitute(&mut self, id: Id) {
        self.substitutions.push(id);
    }
}

const fn is_of_suffix(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'
}
