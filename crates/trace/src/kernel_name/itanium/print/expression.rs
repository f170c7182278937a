//! Prints expressions: operators with operands, literals, packs.

use super::super::tree::{Id, Kind, Node};
use super::{Printer, Style};

impl Printer<'_, '_> {
    pub(super) fn expression(&mut self, kind: Kind<'_>, left: Option<Id>, right: Option<Id>) -> Option<()> {
        match kind {
            Kind::Operator(known) => {
                let is_word = known.name.starts_with(|c: char| c.is_ascii_lowercase());
                self.text(if is_word { "operator " } else { "operator" })?;
                self.text(known.name.strip_suffix(' ').unwrap_or(known.name))
            }
            Kind::Nullary => self.sign(left?),
            Kind::Unary => self.unary(left?, right?),
            Kind::Binary => self.binary(left?, right?),
            Kind::Ternary => self.ternary(left?, right?),
            Kind::Literal => self.literal(left?, right?, false),
            Kind::NegativeLiteral => self.literal(left?, right?, true),
            Kind::Expansion => self.expansion(left?),
            Kind::Braces => {
                if left.is_some() {
                    self.node(left)?;
                }
                self.text("{")?;
                self.node(right)?;
                self.text("}")
            }
            _ => None,
        }
    }

    /// Operator symbol within an expression.
    fn sign(&mut self, operator: Id) -> Option<()> {
        match self.tree.kind(operator) {
            Kind::Operator(known) => self.text(known.name),
            _ => self.node(Some(operator)),
        }
    }

    /// Two-letter code; empty for casts and vendor operators.
    fn code(&self, operator: Id) -> &'static str {
        match self.tree.kind(operator) {
            Kind::Operator(known) => known.code,
            _ => "",
        }
    }

    /// Operand, in parentheses unless it is a name or a list.
    fn operand(&mut self, id: Id) -> Option<()> {
        let is_simple = matches!(
            self.tree.kind(id),
            Kind::Name(_) | Kind::Qualified | Kind::Braces | Kind::FunctionParameter(_)
        );
        if is_simple {
            self.node(Some(id))
        } else {
            self.in_brackets(id)
        }
    }

    fn in_brackets(&mut self, id: Id) -> Option<()> {
        self.text("(")?;
        self.node(Some(id))?;
        self.text(")")
    }

    fn unary(&mut self, operator: Id, operand: Id) -> Option<()> {
        let code = self.code(operator);
        let Node { kind, left, right } = *self.tree.node(operand);
        if code == "sZ" || code == "sP" {
            let count = if code == "sZ" {
                self.pack_length(operand)?
            } else {
                self.arguments_length(operand)?
            };
            return self.number(count);
        }
        if kind == Kind::Operands && !code.is_empty() {
            self.operand(left?)?;
            return self.sign(operator);
        }
        if let (Kind::Cast, to) = (self.tree.kind(operator), self.tree.left(operator)) {
            self.in_brackets(to?)?;
            return self.operand(operand);
        }
        self.sign(operator)?;
        match code {
            "gs" => self.node(Some(operand)),
            "st" | "nx" => self.in_brackets(operand),
            // The address of a scoped function is printed without parameters.
            "ad" if kind == Kind::Typed
                && left.is_some_and(|id| self.tree.kind(id) == Kind::Qualified)
                && right.is_some_and(|id| self.tree.kind(id) == Kind::Function) =>
            {
                self.operand(left?)
            }
            _ => self.operand(operand),
        }
    }

    fn binary(&mut self, operator: Id, operands: Id) -> Option<()> {
        let (left, right) = (self.tree.left(operands)?, self.tree.right(operands)?);
        let code = self.code(operator);
        match code {
            "cc" | "dc" | "rc" | "sc" => {
                self.sign(operator)?;
                self.text("<")?;
                self.node(Some(left))?;
                self.text(">")?;
                return self.in_brackets(right);
            }
            "fl" | "fr" => return self.fold(code, left, right, None),
            "di" | "dx" => return self.designated(code, operands),
            _ => {}
        }
        // A bare `>` would end the template arguments.
        let is_greater = code == "gt";
        self.text(if is_greater { "(" } else { "" })?;
        match code {
            "cl" if self.tree.kind(left) == Kind::Typed => self.operand(self.tree.left(left)?)?,
            _ => self.operand(left)?,
        }
        match code {
            "ix" => {
                self.text("[")?;
                self.node(Some(right))?;
                self.text("]")?;
            }
            "cl" => self.operand(right)?,
            _ => {
                self.sign(operator)?;
                self.operand(right)?;
            }
        }
        self.text(if is_greater { ")" } else { "" })
    }

    fn ternary(&mut self, operator: Id, operands: Id) -> Option<()> {
        let (first, last) = (self.tree.left(operands)?, self.tree.right(operands)?);
        let (second, third) = (self.tree.left(last)?, self.tree.right(last));
        match self.code(operator) {
            code @ ("fL" | "fR") => self.fold(code, first, second, third),
            "dX" => self.designated("dX", operands),
            "qu" => {
                self.operand(first)?;
                self.sign(operator)?;
                self.operand(second)?;
                self.text(" : ")?;
                self.operand(third?)
            }
            _ => {
                self.text("new ")?;
                if self.tree.left(first).is_some() {
                    self.operand(first)?;
                    self.text(" ")?;
                }
                self.node(Some(second))?;
                third.map_or(Some(()), |third| self.operand(third))
            }
        }
    }

    /// Fold expression over the whole pack.
    fn fold(&mut self, code: &str, operator: Id, first: Id, second: Option<Id>) -> Option<()> {
        let index = std::mem::replace(&mut self.pack_index, -1);
        self.text("(")?;
        if code != "fl" {
            self.operand(first)?;
            self.sign(operator)?;
        }
        self.text("...")?;
        if code != "fr" {
            self.sign(operator)?;
            self.operand(if code == "fl" { first } else { second? })?;
        }
        self.text(")")?;
        self.pack_index = index;
        Some(())
    }

    /// Designated initializer: `.name=value`, `[index]=value`, `[first ... last]=value`.
    fn designated(&mut self, code: &str, operands: Id) -> Option<()> {
        let (first, mut value) = (self.tree.left(operands)?, self.tree.right(operands)?);
        self.text(if code == "di" { "." } else { "[" })?;
        self.node(Some(first))?;
        if code == "dX" {
            self.text(" ... ")?;
            self.node(self.tree.left(value))?;
            value = self.tree.right(value)?;
        }
        self.text(if code == "di" { "" } else { "]" })?;
        let is_chained = matches!(self.tree.kind(value), Kind::Binary | Kind::Ternary)
            && matches!(self.code(self.tree.left(value)?), "di" | "dx" | "dX");
        if is_chained {
            return self.node(Some(value));
        }
        self.text("=")?;
        self.operand(value)
    }

    fn literal(&mut self, of: Id, digits: Id, is_negative: bool) -> Option<()> {
        let style = match self.tree.kind(of) {
            Kind::Builtin(known) => known.style,
            _ => Style::Plain,
        };
        let sign = if is_negative { "-" } else { "" };
        match (style, self.tree.kind(digits)) {
            (Style::Suffix(suffix), _) => {
                self.text(sign)?;
                self.node(Some(digits))?;
                return self.text(suffix);
            }
            (Style::Bool, Kind::Name("0")) if !is_negative => return self.text("false"),
            (Style::Bool, Kind::Name("1")) if !is_negative => return self.text("true"),
            _ => {}
        }
        self.in_brackets(of)?;
        self.text(sign)?;
        if style == Style::Float {
            self.text("[")?;
            self.node(Some(digits))?;
            return self.text("]");
        }
        self.node(Some(digits))
    }

    /// Pack expansion: the pattern for each element of its pack.
    fn expansion(&mut self, pattern: Id) -> Option<()> {
        let pack = if self.lambda_parameters > 0 {
            None
        } else {
            self.pack(pattern)?
        };
        let Some(pack) = pack else {
            // Function parameter packs are printed as they are.
            self.operand(pattern)?;
            return self.text("...");
        };
        for index in 0..self.length(pack)? {
            if index > 0 {
                self.text(", ")?;
            }
            self.pack_index = index;
            self.node(Some(pattern))?;
        }
        Some(())
    }

    /// Template argument pack that a node refers to.
    #[expect(clippy::option_option, reason = "an error, none, or one")]
    fn pack(&mut self, within: Id) -> Option<Option<Id>> {
        self.step()?;
        match self.tree.kind(within) {
            Kind::Parameter(number) => {
                self.scope?;
                let found = self.argument_or_pack(number);
                Some(found.filter(|id| self.tree.kind(*id) == Kind::TemplateList))
            }
            Kind::Expansion
            | Kind::Lambda(_)
            | Kind::Name(_)
            | Kind::Tagged
            | Kind::Operator(_)
            | Kind::Builtin(_)
            | Kind::DefaultArgument(_) => Some(None),
            _ => {
                let Node { left, right, .. } = *self.tree.node(within);
                for child in [left, right].into_iter().flatten() {
                    if let Some(found) = self.pack(child)? {
                        return Some(Some(found));
                    }
                }
                Some(None)
            }
        }
    }

    /// Number of elements of a pack.
    fn length(&mut self, pack: Id) -> Option<i32> {
        let (mut count, mut at) = (0, Some(pack));
        while let Some(id) = at {
            self.step()?;
            if self.tree.kind(id) != Kind::TemplateList || self.tree.left(id).is_none() {
                break;
            }
            count += 1;
            at = self.tree.right(id);
        }
        Some(count)
    }

    fn pack_length(&mut self, within: Id) -> Option<i32> {
        self.pack(within)?.map_or(Some(0), |pack| self.length(pack))
    }

    /// Number of template arguments, with packs expanded.
    fn arguments_length(&mut self, list: Id) -> Option<i32> {
        let (mut count, mut at) = (0, Some(list));
        while let Some(id) = at {
            self.step()?;
            let Some(argument) = self.tree.left(id) else { break };
            count += match self.tree.kind(argument) {
                Kind::Expansion => self.pack_length(self.tree.left(argument)?)?,
                _ => 1,
            };
            at = self.tree.right(id);
        }
        Some(count)
    }
}
