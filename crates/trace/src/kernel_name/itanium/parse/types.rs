//! Grammar of types, qualifiers, parameters and template arguments.

use super::super::table::{BFLOAT16, NULLPTR, by_extended_letter, by_letter};
use super::super::tree::{Id, Kind};
use super::Parser;

impl<'a> Parser<'a> {
    pub(super) fn a_type(&mut self) -> Option<Id> {
        self.deeper(Self::type_here)
    }

    fn type_here(&mut self) -> Option<Id> {
        if self.is_at_qualifier() {
            return self.qualified_type();
        }
        let letter = self.peek();
        if let Some(known) = by_letter(letter) {
            self.at += 1;
            return self.add(Kind::Builtin(known), None, None);
        }
        let found = match letter {
            b'u' => {
                self.at += 1;
                let name = self.source_name()?;
                self.around(Kind::Vendor, name)?
            }
            b'F' => self.function()?,
            b'A' => self.array()?,
            b'M' => {
                self.at += 1;
                let (class, member) = (self.a_type()?, self.a_type()?);
                self.join(Kind::MemberPointer, class, member)?
            }
            b'T' => self.type_of_parameter()?,
            b'P' => self.of_type(Kind::Pointer)?,
            b'R' => self.of_type(Kind::Reference)?,
            b'O' => self.of_type(Kind::RvalueReference)?,
            b'C' => self.of_type(Kind::Complex)?,
            b'G' => self.of_type(Kind::Imaginary)?,
            b'U' => self.vendor_qualified()?,
            b'D' => return self.extended_type(),
            _ => return self.name(true),
        };
        self.substitute(found);
        Some(found)
    }

    fn of_type(&mut self, kind: Kind<'a>) -> Option<Id> {
        self.at += 1;
        let inner = self.a_type()?;
        self.around(kind, inner)
    }

    /// A template parameter, which may be a template template parameter.
    fn type_of_parameter(&mut self) -> Option<Id> {
        let parameter = self.template_parameter()?;
        if self.peek() != b'I' {
            return Some(parameter);
        }
        let (at, known) = (self.at, self.substitutions.len());
        if !self.is_conversion {
            self.substitute(parameter);
            let arguments = self.template_arguments()?;
            return self.join(Kind::Template, parameter, arguments);
        }
        // In the name of a conversion operator, the arguments are the operator's unless more follow.
        let arguments = self.template_arguments();
        if self.peek() == b'I' {
            self.substitute(parameter);
            return self.join(Kind::Template, parameter, arguments?);
        }
        self.at = at;
        self.substitutions.truncate(known);
        Some(parameter)
    }

    fn vendor_qualified(&mut self) -> Option<Id> {
        self.at += 1;
        let mut qualifier = self.source_name()?;
        if self.peek() == b'I' {
            let arguments = self.template_arguments()?;
            qualifier = self.join(Kind::Template, qualifier, arguments)?;
        }
        let inner = self.a_type()?;
        self.join(Kind::VendorQualifier, inner, qualifier)
    }

    /// Types that begin with `D`.
    fn extended_type(&mut self) -> Option<Id> {
        self.at += 1;
        let found = match self.next() {
            b'T' | b't' => {
                let expression = self.expression()?;
                self.take(b'E')?;
                self.around(Kind::Decltype, expression)?
            }
            b'p' => {
                let pattern = self.a_type()?;
                self.around(Kind::Expansion, pattern)?
            }
            b'v' => self.vector()?,
            b'a' => return self.add(Kind::Name("auto"), None, None),
            b'c' => return self.add(Kind::Name("decltype(auto)"), None, None),
            b'F' => return self.float(),
            letter => return self.add(Kind::Builtin(by_extended_letter(letter)?), None, None),
        };
        self.substitute(found);
        Some(found)
    }

    fn float(&mut self) -> Option<Id> {
        let bits = self.number();
        match self.next() {
            b'b' if bits == 16 => self.add(Kind::Builtin(&BFLOAT16), None, None),
            b'x' => self.add(Kind::Float(bits, true), None, None),
            b'_' => self.add(Kind::Float(bits, false), None, None),
            _ => None,
        }
    }

    fn array(&mut self) -> Option<Id> {
        self.at += 1;
        let start = self.at;
        let size = match self.peek() {
            b'_' => None,
            b'0'..=b'9' => {
                while self.peek().is_ascii_digit() {
                    self.at += 1;
                }
                Some(self.name_from(start)?)
            }
            _ => Some(self.expression()?),
        };
        self.take(b'_')?;
        let element = self.a_type()?;
        self.add(Kind::Array, size, Some(element))
    }

    fn vector(&mut self) -> Option<Id> {
        let size = if self.takes(b'_') {
            self.expression()?
        } else {
            let number = self.number();
            self.add(Kind::Number(number), None, None)?
        };
        self.take(b'_')?;
        let element = self.a_type()?;
        self.join(Kind::Vector, size, element)
    }

    fn is_at_qualifier(&self) -> bool {
        match self.peek() {
            b'r' | b'V' | b'K' => true,
            b'D' => matches!(self.peek_next(), b'x' | b'o' | b'O' | b'w'),
            _ => false,
        }
    }

    /// Qualifiers, outermost first.
    pub(super) fn qualifiers(&mut self, is_member: bool) -> Option<Vec<Id>> {
        let mut found = Vec::new();
        while self.is_at_qualifier() {
            let (kind, more) = match self.next() {
                b'r' if is_member => (Kind::RestrictThis, None),
                b'V' if is_member => (Kind::VolatileThis, None),
                b'K' if is_member => (Kind::ConstThis, None),
                b'r' => (Kind::Restrict, None),
                b'V' => (Kind::Volatile, None),
                b'K' => (Kind::Const, None),
                _ => self.exception_qualifier()?,
            };
            found.push(self.add(kind, None, more)?);
        }
        if !is_member && self.peek() == b'F' {
            for id in &found {
                let kind = &mut self.tree.node_mut(*id).kind;
                *kind = match *kind {
                    Kind::Restrict => Kind::RestrictThis,
                    Kind::Volatile => Kind::VolatileThis,
                    Kind::Const => Kind::ConstThis,
                    other => other,
                };
            }
        }
        Some(found)
    }

    fn exception_qualifier(&mut self) -> Option<(Kind<'a>, Option<Id>)> {
        let (kind, more) = match self.next() {
            b'x' => return Some((Kind::TransactionSafe, None)),
            b'o' => return Some((Kind::Noexcept, None)),
            b'O' => (Kind::Noexcept, self.expression()?),
            _ => (Kind::Throw, self.parameters()?),
        };
        self.take(b'E')?;
        Some((kind, Some(more)))
    }

    /// Wraps a node in qualifiers.
    pub(super) fn link(&mut self, qualifiers: &[Id], inner: Id) -> Id {
        let mut outer = inner;
        for id in qualifiers.iter().rev() {
            self.tree.node_mut(*id).left = Some(outer);
            outer = *id;
        }
        outer
    }

    fn qualified_type(&mut self) -> Option<Id> {
        let qualifiers = self.qualifiers(false)?;
        let inner = if self.peek() == b'F' {
            self.function()?
        } else {
            self.a_type()?
        };
        let found = match self.tree.kind(inner) {
            // The reference qualifier is printed after the others.
            Kind::ReferenceThis | Kind::RvalueThis => {
                let function = self.tree.left(inner)?;
                let linked = self.link(&qualifiers, function);
                self.tree.node_mut(inner).left = Some(linked);
                inner
            }
            _ => self.link(&qualifiers, inner),
        };
        self.substitute(found);
        Some(found)
    }

    /// `&` or `&&` of a member function.
    pub(super) fn reference_qualifier(&mut self) -> Option<Kind<'a>> {
        let kind = match self.peek() {
            b'R' => Kind::ReferenceThis,
            b'O' => Kind::RvalueThis,
            _ => return None,
        };
        self.at += 1;
        Some(kind)
    }

    fn function(&mut self) -> Option<Id> {
        self.take(b'F')?;
        self.takes(b'Y');
        let mut found = self.bare_function(true)?;
        if let Some(kind) = self.reference_qualifier() {
            found = self.around(kind, found)?;
        }
        self.take(b'E')?;
        Some(found)
    }

    /// Parameter types of a function, with its return type if present.
    pub(super) fn bare_function(&mut self, has_return_type: bool) -> Option<Id> {
        let has_return_type = self.takes(b'J') || has_return_type;
        let result = if has_return_type { Some(self.a_type()?) } else { None };
        let parameters = self.parameters()?;
        self.add(Kind::Function, result, Some(parameters))
    }

    /// One or more types; a single `void` means none.
    pub(super) fn parameters(&mut self) -> Option<Id> {
        let mut found = Vec::new();
        loop {
            match (self.peek(), self.peek_next()) {
                (0 | b'E' | b'.', _) | (b'R' | b'O', b'E') => break,
                _ => found.push(self.a_type()?),
            }
        }
        if let [only] = found[..]
            && let Kind::Builtin(known) = self.tree.kind(only)
            && known.name == "void"
        {
            return self.add(Kind::List, None, None);
        }
        self.list(Kind::List, &found)
    }

    /// A list of at least one element.
    pub(super) fn list(&mut self, kind: Kind<'a>, of: &[Id]) -> Option<Id> {
        let mut rest = None;
        for id in of.iter().rev() {
            rest = self.add(kind, Some(*id), rest);
        }
        rest
    }

    pub(super) fn template_parameter(&mut self) -> Option<Id> {
        self.take(b'T')?;
        let number = self.compact_number()?;
        self.add(Kind::Parameter(number), None, None)
    }

    pub(super) fn template_arguments(&mut self) -> Option<Id> {
        matches!(self.next(), b'I' | b'J').then_some(())?;
        self.deeper(Self::template_arguments_here)
    }

    /// Template arguments after their letter.
    pub(super) fn template_arguments_here(&mut self) -> Option<Id> {
        if self.takes(b'E') {
            return self.add(Kind::TemplateList, None, None);
        }
        let last = self.last_name;
        let mut found = Vec::new();
        while !self.takes(b'E') {
            found.push(self.template_argument()?);
        }
        self.last_name = last;
        self.list(Kind::TemplateList, &found)
    }

    pub(super) fn template_argument(&mut self) -> Option<Id> {
        match self.peek() {
            b'X' => {
                self.at += 1;
                let expression = self.expression()?;
                self.take(b'E')?;
                Some(expression)
            }
            b'L' => self.primary(),
            b'I' | b'J' => self.template_arguments(),
            _ => self.a_type(),
        }
    }

    /// A literal, or the address of an entity.
    pub(super) fn primary(&mut self) -> Option<Id> {
        self.take(b'L')?;
        if matches!(self.peek(), b'_' | b'Z') {
            let name = self.mangled_name(false)?;
            self.take(b'E')?;
            return Some(name);
        }
        let of = self.a_type()?;
        if let Kind::Builtin(known) = self.tree.kind(of)
            && known.name == NULLPTR
            && self.takes(b'E')
        {
            return Some(of);
        }
        let kind = if self.takes(b'n') {
            Kind::NegativeLiteral
        } else {
            Kind::Literal
        };
        let start = self.at;
        while !matches!(self.peek(), 0 | b'E') {
            self.at += 1;
        }
        let digits = self.name_from(start)?;
        self.take(b'E')?;
        self.join(kind, of, digits)
    }
}
