//! Grammar of names: nested, local, operators, constructors and lambdas.

use super::super::table::{by_abbreviation, by_code};
use super::super::tree::{Id, Kind};
use super::Parser;

const ANONYMOUS: &str = "(anonymous namespace)";

impl Parser<'_> {
    /// Any name; as a type it becomes a substitution candidate.
    pub(super) fn name(&mut self, is_type: bool) -> Option<Id> {
        let mut is_substitution = false;
        let name = match self.peek() {
            b'N' => self.nested_name()?,
            b'Z' => self.local_name()?,
            b'U' => self.unqualified_name(None)?,
            _ => {
                let mut name = None;
                if self.peek() == b'S' {
                    if self.peek_next() == b't' {
                        self.at += 2;
                        name = self.add(Kind::Name("std"), None, None);
                    }
                    if self.peek() == b'S' {
                        if name.is_some() {
                            return None;
                        }
                        name = Some(self.substitution(false)?);
                        is_substitution = true;
                    }
                }
                let mut name = match name {
                    Some(name) if is_substitution => name,
                    scope => self.unqualified_name(scope)?,
                };
                if self.peek() == b'I' {
                    if !is_substitution {
                        self.substitute(name);
                    }
                    let arguments = self.template_arguments()?;
                    name = self.join(Kind::Template, name, arguments)?;
                    is_substitution = false;
                }
                name
            }
        };
        if is_type && !is_substitution {
            self.substitute(name);
        }
        Some(name)
    }

    /// `N…E`, with the qualifiers of a member function.
    fn nested_name(&mut self) -> Option<Id> {
        self.take(b'N')?;
        let qualifiers = self.qualifiers(true)?;
        let reference = self.reference_qualifier();
        let inner = self.prefix(true)?;
        let mut name = self.link(&qualifiers, inner);
        if let Some(reference) = reference {
            name = self.around(reference, name)?;
        }
        self.take(b'E')?;
        Some(name)
    }

    /// Scopes and the name in them, up to `E`.
    pub(super) fn prefix(&mut self, is_substituted: bool) -> Option<Id> {
        let mut found: Option<Id> = None;
        loop {
            let name = match (self.peek(), self.peek_next(), found) {
                (b'D', b'T' | b't', None) => self.a_type()?,
                (b'D', b'T' | b't', _) | (b'T' | b'S', _, Some(_)) | (b'I', _, None) => return None,
                (b'I', _, Some(template)) => {
                    let arguments = self.template_arguments()?;
                    self.join(Kind::Template, template, arguments)?
                }
                (b'T', _, None) => self.template_parameter()?,
                (b'S', _, None) => {
                    found = Some(self.substitution(true)?);
                    continue;
                }
                (b'M', ..) => {
                    // The member whose initializer contains a lambda is already a candidate.
                    self.at += 1;
                    continue;
                }
                (_, _, scope) => self.unqualified_name(scope)?,
            };
            found = Some(name);
            if self.peek() == b'E' {
                return found;
            }
            if is_substituted {
                self.substitute(name);
            }
        }
    }

    /// One name component in its scope.
    pub(super) fn unqualified_name(&mut self, scope: Option<Id>) -> Option<Id> {
        let is_friend = self.takes(b'F');
        let mut name = match (self.peek(), self.peek_next()) {
            (b'0'..=b'9', _) => self.source_name()?,
            (b'a'..=b'z', _) => self.operator_as_name()?,
            (b'D', b'C') => self.bindings()?,
            (b'C' | b'D', _) => self.constructor_or_destructor()?,
            (b'L', _) => {
                self.at += 1;
                let name = self.source_name()?;
                self.discriminator()?;
                name
            }
            (b'U', b'l') => self.lambda()?,
            (b'U', b't') => {
                self.at += 2;
                let number = self.compact_number()?;
                let unnamed = self.add(Kind::Unnamed(number), None, None)?;
                self.substitute(unnamed);
                unnamed
            }
            _ => return None,
        };
        name = self.tags(name)?;
        if is_friend {
            name = self.around(Kind::Friend, name)?;
        }
        match scope {
            Some(scope) => self.join(Kind::Qualified, scope, name),
            None => Some(name),
        }
    }

    /// ABI tags; a constructor after them is that of the class before them.
    fn tags(&mut self, name: Id) -> Option<Id> {
        let (mut name, last) = (name, self.last_name);
        while self.takes(b'B') {
            let tag = self.source_name()?;
            name = self.join(Kind::Tagged, name, tag)?;
        }
        self.last_name = last;
        Some(name)
    }

    fn operator_as_name(&mut self) -> Option<Id> {
        let was = self.is_expression;
        if self.peek() == b'o' && self.peek_next() == b'n' {
            self.at += 2;
            self.is_expression = false;
        }
        let operator = self.operator()?;
        self.is_expression = was;
        match self.tree.kind(operator) {
            Kind::Operator(known) if known.code == "li" => {
                let suffix = self.source_name()?;
                self.join(Kind::Unary, operator, suffix)
            }
            _ => Some(operator),
        }
    }

    /// An operator by its code, a conversion or a cast.
    pub(super) fn operator(&mut self) -> Option<Id> {
        match [self.next(), self.next()] {
            [b'v', count @ b'0'..=b'9'] => {
                let name = self.source_name()?;
                self.around(Kind::VendorOperator(count - b'0'), name)
            }
            [b'c', b'v'] => {
                let was = self.is_conversion;
                self.is_conversion = !self.is_expression;
                let to = self.a_type()?;
                let kind = if self.is_conversion {
                    Kind::Conversion
                } else {
                    Kind::Cast
                };
                self.is_conversion = was;
                self.around(kind, to)
            }
            code => self.add(Kind::Operator(by_code(code)?), None, None),
        }
    }

    /// Structured bindings.
    fn bindings(&mut self) -> Option<Id> {
        self.at += 2;
        let mut names = Vec::new();
        while names.is_empty() || self.peek() != b'E' {
            names.push(self.source_name()?);
        }
        self.at += 1;
        let mut rest = None;
        for name in names.into_iter().rev() {
            rest = self.add(Kind::Bindings, Some(name), rest);
        }
        rest
    }

    fn constructor_or_destructor(&mut self) -> Option<Id> {
        let is_constructor = self.next() == b'C';
        let is_inheriting = is_constructor && self.takes(b'I');
        match (is_constructor, self.next()) {
            (true, b'1'..=b'5') | (false, b'0' | b'1' | b'2' | b'4' | b'5') => {}
            _ => return None,
        }
        if is_inheriting {
            self.a_type()?;
        }
        let class = self.last_name?;
        let kind = if is_constructor {
            Kind::Constructor
        } else {
            Kind::Destructor
        };
        self.around(kind, class)
    }

    /// Decimal length and a name of that many bytes.
    pub(super) fn source_name(&mut self) -> Option<Id> {
        let length = usize::try_from(self.number()).ok()?;
        let start = self.at;
        let name = self.text.get(start..start.checked_add(length)?)?;
        self.at += length;
        let mark = name.strip_prefix("_GLOBAL_").map_or(&[][..], str::as_bytes);
        let found = if matches!(mark, [b'.' | b'_' | b'$', b'N', ..]) {
            self.add(Kind::Name(ANONYMOUS), None, None)
        } else {
            self.name_from(start)
        };
        self.last_name = found;
        found
    }

    /// A name local to a function.
    fn local_name(&mut self) -> Option<Id> {
        self.take(b'Z')?;
        let function = self.encoding(false)?;
        self.take(b'E')?;
        let name = if self.takes(b's') {
            self.discriminator()?;
            self.add(Kind::Name("string literal"), None, None)?
        } else {
            let argument = if self.takes(b'd') {
                Some(self.compact_number()?)
            } else {
                None
            };
            let name = self.name(false)?;
            if !matches!(self.tree.kind(name), Kind::Lambda(_) | Kind::Unnamed(_)) {
                self.discriminator()?;
            }
            match argument {
                Some(number) => self.around(Kind::DefaultArgument(number), name)?,
                None => name,
            }
        };
        if self.tree.kind(function) == Kind::Typed
            && let Some(of) = self.tree.right(function)
            && self.tree.kind(of) == Kind::Function
        {
            // The output would read like the return type of the local function.
            self.tree.node_mut(of).left = None;
        }
        self.join(Kind::Local, function, name)
    }

    /// `_0` or `__10_`, which is not shown.
    fn discriminator(&mut self) -> Option<()> {
        if !self.takes(b'_') {
            return Some(());
        }
        let is_long = self.takes(b'_');
        let number = self.number();
        if number < 0 {
            return None;
        }
        if is_long && number >= 10 {
            self.take(b'_')
        } else {
            Some(())
        }
    }

    fn lambda(&mut self) -> Option<Id> {
        self.at += 2;
        let head = self.head()?;
        let mut parameters = self.parameters()?;
        if let Some(head) = head {
            self.tree.node_mut(head).right = Some(parameters);
            parameters = head;
        }
        self.take(b'E')?;
        let number = self.compact_number()?;
        self.around(Kind::Lambda(number), parameters)
    }

    /// Declared template parameters of a lambda, if any.
    #[expect(clippy::option_option, reason = "an error, no head, or a head")]
    fn head(&mut self) -> Option<Option<Id>> {
        let mut declared = Vec::new();
        while self.peek() == b'T' && matches!(self.peek_next(), b'y' | b'n' | b't' | b'p') {
            declared.push(self.deeper(Self::declared_parameter)?);
        }
        let mut next = None;
        for id in declared.into_iter().rev() {
            self.tree.node_mut(id).right = next;
            next = Some(id);
        }
        Some(match next {
            Some(first) => self.around(Kind::Head, first),
            None => None,
        })
    }

    fn declared_parameter(&mut self) -> Option<Id> {
        self.take(b'T')?;
        match self.next() {
            b'y' => self.add(Kind::TypeParameter, None, None),
            b'n' => {
                let of = self.a_type()?;
                self.around(Kind::ValueParameter, of)
            }
            b't' => {
                let head = self.head()?;
                self.take(b'E')?;
                self.add(Kind::TemplateParameter, head, None)
            }
            b'p' => {
                let of = self.deeper(Self::declared_parameter)?;
                self.around(Kind::PackParameter, of)
            }
            _ => None,
        }
    }

    /// A substitution or a standard abbreviation.
    fn substitution(&mut self, is_prefix: bool) -> Option<Id> {
        self.take(b'S')?;
        let letter = self.next();
        if letter == b'_' || letter.is_ascii_digit() || letter.is_ascii_uppercase() {
            return self.earlier(letter);
        }
        let known = by_abbreviation(letter)?;
        if let Some(last) = known.last {
            self.last_name = self.add(Kind::Standard(last), None, None);
        }
        let is_whole = is_prefix && matches!(self.peek(), b'C' | b'D');
        let name = if is_whole { known.whole } else { known.short };
        let found = self.add(Kind::Standard(name), None, None)?;
        if self.peek() != b'B' {
            return Some(found);
        }
        let tagged = self.tags(found)?;
        self.substitute(tagged);
        Some(tagged)
    }

    /// A substitution by its base-36 number.
    fn earlier(&mut self, first: u8) -> Option<Id> {
        let (mut letter, mut number) = (first, 0usize);
        if letter != b'_' {
            while letter != b'_' {
                let digit = match letter {
                    b'0'..=b'9' => letter - b'0',
                    b'A'..=b'Z' => letter - b'A' + 10,
                    _ => return None,
                };
                number = number.checked_mul(36)?.checked_add(usize::from(digit))?;
                letter = self.next();
            }
            number = number.checked_add(1)?;
        }
        self.substitutions.get(number).copied()
    }
}
