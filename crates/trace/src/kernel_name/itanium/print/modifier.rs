//! Prints pointers, references, qualifiers, functions and arrays around a type.

use super::super::tree::{Id, Kind};
use super::{Modifier, Printer};

/// Maximum number of qualifiers of one function or array; `__cxa_demangle` rejects more.
const MAX_QUALIFIERS: usize = 4;

impl Printer<'_, '_> {
    /// Pushes a node onto the list of modifiers.
    fn push(&mut self, node: Id) -> usize {
        self.modifiers.push(Modifier {
            outer: self.modifier,
            node,
            is_written: false,
            scope: self.scope,
        });
        let at = self.modifiers.len() - 1;
        self.modifier = Some(at);
        at
    }

    /// Prints a type with a modifier around it.
    pub(super) fn modified(&mut self, id: Id, inner: Option<Id>) -> Option<()> {
        let outer = self.modifier;
        let at = self.push(id);
        self.node(inner)?;
        if !self.modifiers[at].is_written {
            self.one_modifier(id)?;
        }
        self.modifiers.truncate(at);
        self.modifier = outer;
        Some(())
    }

    /// `const` and similar, once: the qualifiers of an array are those of its elements.
    pub(super) fn type_qualifier(&mut self, id: Id, kind: Kind<'_>) -> Option<()> {
        let mut at = self.modifier;
        while let Some(modifier) = at.map(|at| self.modifiers[at]) {
            if !modifier.is_written {
                let waiting = self.tree.kind(modifier.node);
                if !waiting.is_of_type() {
                    break;
                }
                if waiting == kind {
                    return self.node(self.tree.left(id));
                }
            }
            at = modifier.outer;
        }
        self.modified(id, self.tree.left(id))
    }

    /// Reference; references to references collapse.
    pub(super) fn reference(&mut self, id: Id, kind: Kind<'_>) -> Option<()> {
        let scope = self.scope;
        let mut to = self.tree.left(id)?;
        if let (0, Kind::Parameter(number)) = (self.lambda_parameters, self.tree.kind(to)) {
            match self.first_scopes.iter().find(|known| known.0 == to) {
                None => self.first_scopes.push((to, scope)),
                // A substitution: the parameter has the meaning of its first use.
                Some((_, first)) if !self.is_within(id, to) => self.scope = *first,
                Some(_) => {}
            }
            to = self.argument(number)?;
        }
        let found = self.tree.kind(to);
        if found == Kind::Reference || found == kind {
            self.modified(to, self.tree.left(to))?;
        } else if found == Kind::RvalueReference {
            self.modified(id, self.tree.left(to))?;
        } else {
            self.modified(id, self.tree.left(id))?;
        }
        self.scope = scope;
        Some(())
    }

    /// Whether a parameter, or the reference around it, is being printed.
    fn is_within(&self, reference: Id, parameter: Id) -> bool {
        let outer = self.path.len().saturating_sub(1);
        self.path.contains(&parameter) || self.path[..outer].contains(&reference)
    }

    /// A name with its type: the type determines where the name is printed.
    pub(super) fn typed(&mut self, name: Option<Id>, of: Option<Id>) -> Option<()> {
        let (outer, base) = (self.modifier.take(), self.modifiers.len());
        let mut name = name?;
        loop {
            self.push_bounded(name, base)?;
            if !self.tree.kind(name).is_of_function() {
                break;
            }
            name = self.tree.left(name)?;
        }
        if self.tree.kind(name) == Kind::Local {
            name = self.local_qualifiers(self.tree.right(name)?, base)?;
        }
        let scope = self.scope;
        if self.tree.kind(name) == Kind::Template {
            self.enter(Some(name));
        }
        self.node(of)?;
        self.scope = scope;
        for at in (base..self.modifiers.len()).rev() {
            if !self.modifiers[at].is_written {
                self.text(" ")?;
                self.one_modifier(self.modifiers[at].node)?;
            }
        }
        self.modifiers.truncate(base);
        self.modifier = outer;
        Some(())
    }

    fn push_bounded(&mut self, node: Id, base: usize) -> Option<usize> {
        (self.modifiers.len() - base < MAX_QUALIFIERS).then(|| self.push(node))
    }

    /// Pushes the qualifiers of a local function; returns the function without them.
    fn local_qualifiers(&mut self, name: Id, base: usize) -> Option<Id> {
        let mut name = name;
        if let Kind::DefaultArgument(_) = self.tree.kind(name) {
            name = self.tree.left(name)?;
        }
        while self.tree.kind(name).is_of_function() {
            // The function stays innermost; its qualifiers go below it.
            let function = self.modifiers.last()?.node;
            self.modifiers.last_mut()?.node = name;
            self.push_bounded(function, base)?;
            name = self.tree.left(name)?;
        }
        Some(name)
    }

    /// Function type: return type, pending modifiers, parameters.
    pub(super) fn function(&mut self, id: Id) -> Option<()> {
        if let Some(result) = self.tree.left(id) {
            let outer = self.modifier;
            let at = self.push(id);
            self.node(Some(result))?;
            let is_written = self.modifiers[at].is_written;
            self.modifiers.truncate(at);
            self.modifier = outer;
            if is_written {
                return Some(());
            }
            self.text(" ")?;
        }
        self.function_around(id, self.modifier)
    }

    /// Function type without the return type.
    fn function_around(&mut self, id: Id, around: Option<usize>) -> Option<()> {
        let (is_in_brackets, needs_space) = self.brackets(around);
        if is_in_brackets {
            if (needs_space || !matches!(self.last, b'(' | b'*')) && self.last != b' ' {
                self.text(" ")?;
            }
            self.text("(")?;
        }
        let outer = self.modifier.take();
        self.all_modifiers(around, false)?;
        self.text(if is_in_brackets { ")(" } else { "(" })?;
        if let Some(parameters) = self.tree.right(id) {
            self.node(Some(parameters))?;
        }
        self.text(")")?;
        self.all_modifiers(around, true)?;
        self.modifier = outer;
        Some(())
    }

    /// Whether modifiers of a function type need parentheses, and a space before them.
    fn brackets(&self, around: Option<usize>) -> (bool, bool) {
        let mut at = around;
        while let Some(modifier) = at.map(|at| self.modifiers[at]) {
            if modifier.is_written {
                break;
            }
            match self.tree.kind(modifier.node) {
                Kind::Pointer | Kind::Reference | Kind::RvalueReference => return (true, false),
                Kind::Restrict
                | Kind::Volatile
                | Kind::Const
                | Kind::VendorQualifier
                | Kind::Complex
                | Kind::Imaginary
                | Kind::MemberPointer => return (true, true),
                _ => at = modifier.outer,
            }
        }
        (false, false)
    }

    /// Array type; its qualifiers belong to its elements.
    pub(super) fn array(&mut self, id: Id) -> Option<()> {
        let outer = self.modifier;
        let base = self.push(id);
        let mut at = outer;
        while let Some((place, modifier)) = at.map(|at| (at, self.modifiers[at])) {
            if !self.tree.kind(modifier.node).is_of_type() {
                break;
            }
            if !modifier.is_written {
                let copy = self.push_bounded(modifier.node, base)?;
                self.modifiers[copy].scope = modifier.scope;
                self.modifiers[place].is_written = true;
            }
            at = modifier.outer;
        }
        self.node(self.tree.right(id))?;
        self.modifier = outer;
        if !self.modifiers[base].is_written {
            for at in (base + 1..self.modifiers.len()).rev() {
                self.one_modifier(self.modifiers[at].node)?;
            }
            self.array_around(id, outer)?;
        }
        self.modifiers.truncate(base);
        Some(())
    }

    /// Array type without the element type.
    fn array_around(&mut self, id: Id, around: Option<usize>) -> Option<()> {
        let mut at = around;
        let mut waiting = None;
        while let Some(modifier) = at.map(|at| self.modifiers[at]) {
            if !modifier.is_written {
                waiting = Some(self.tree.kind(modifier.node));
                break;
            }
            at = modifier.outer;
        }
        let is_in_brackets = waiting.is_some_and(|kind| kind != Kind::Array);
        if is_in_brackets {
            self.text(" (")?;
        }
        self.all_modifiers(around, false)?;
        if is_in_brackets {
            self.text(")")?;
        }
        self.text(if waiting == Some(Kind::Array) { "[" } else { " [" })?;
        if let Some(size) = self.tree.left(id) {
            self.node(Some(size))?;
        }
        self.text("]")
    }

    /// Prints all pending modifiers; `is_after` includes those of functions.
    fn all_modifiers(&mut self, first: Option<usize>, is_after: bool) -> Option<()> {
        let mut next = first;
        while let Some(at) = next {
            let Modifier {
                outer,
                node,
                is_written,
                scope,
            } = self.modifiers[at];
            next = outer;
            let kind = self.tree.kind(node);
            if is_written || (!is_after && kind.is_of_function()) {
                continue;
            }
            self.modifiers[at].is_written = true;
            let before = std::mem::replace(&mut self.scope, scope);
            match kind {
                // These print the rest of the list themselves.
                Kind::Function => {
                    self.function_around(node, outer)?;
                    next = None;
                }
                Kind::Array => {
                    self.array_around(node, outer)?;
                    next = None;
                }
                Kind::Local => {
                    self.local(node)?;
                    next = None;
                }
                _ => self.one_modifier(node)?,
            }
            self.scope = before;
        }
        Some(())
    }

    /// Local name whose qualifiers are already on the list.
    fn local(&mut self, id: Id) -> Option<()> {
        let modifier = self.modifier.take();
        self.node(self.tree.left(id))?;
        self.modifier = modifier;
        self.text("::")?;
        let mut name = self.default_argument(self.tree.right(id))?;
        while self.tree.kind(name).is_of_function() {
            name = self.tree.left(name)?;
        }
        self.node(Some(name))
    }

    /// Prints one modifier.
    fn one_modifier(&mut self, id: Id) -> Option<()> {
        let (left, right) = (self.tree.left(id), self.tree.right(id));
        match self.tree.kind(id) {
            Kind::Restrict | Kind::RestrictThis => self.text(" restrict"),
            Kind::Volatile | Kind::VolatileThis => self.text(" volatile"),
            Kind::Const | Kind::ConstThis => self.text(" const"),
            Kind::TransactionSafe => self.text(" transaction_safe"),
            Kind::Noexcept => self.exception(" noexcept", right),
            Kind::Throw => self.exception(" throw", right),
            Kind::VendorQualifier => {
                self.text(" ")?;
                self.node(right)
            }
            Kind::Pointer => self.text("*"),
            Kind::Reference => self.text("&"),
            Kind::ReferenceThis => self.text(" &"),
            Kind::RvalueReference => self.text("&&"),
            Kind::RvalueThis => self.text(" &&"),
            Kind::Complex => self.text(" _Complex"),
            Kind::Imaginary => self.text(" _Imaginary"),
            Kind::MemberPointer => {
                self.text(if self.last == b'(' { "" } else { " " })?;
                self.node(left)?;
                self.text("::*")
            }
            Kind::Typed => self.node(left),
            Kind::Vector => {
                self.text(" __vector(")?;
                self.node(left)?;
                self.text(")")
            }
            _ => self.node(Some(id)),
        }
    }

    fn exception(&mut self, word: &str, more: Option<Id>) -> Option<()> {
        self.text(word)?;
        if more.is_some() {
            self.text("(")?;
            self.node(more)?;
            self.text(")")?;
        }
        Some(())
    }
}
