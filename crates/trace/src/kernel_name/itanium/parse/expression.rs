//! Grammar of expressions, as in `decltype` and template arguments.

use super::super::tree::{Id, Kind};
use super::Parser;

impl Parser<'_> {
    /// Parses an expression inside a type or name.
    pub(super) fn expression(&mut self) -> Option<Id> {
        let was = self.is_expression;
        self.is_expression = true;
        let found = self.operand();
        self.is_expression = was;
        found
    }

    fn operand(&mut self) -> Option<Id> {
        self.deeper(Self::operand_here)
    }

    fn operand_here(&mut self) -> Option<Id> {
        match (self.peek(), self.peek_next()) {
            (b'L', _) => self.primary(),
            (b'T', _) => self.template_parameter(),
            (b's', b'r') => self.unresolved_name(),
            (b's', b'p') => {
                self.at += 2;
                let pattern = self.operand()?;
                self.around(Kind::Expansion, pattern)
            }
            (b'f', b'p') => self.function_parameter(),
            (b'0'..=b'9', _) => self.name_with_arguments(),
            (b'o', b'n') => {
                self.at += 2;
                self.name_with_arguments()
            }
            (first @ (b'i' | b't'), b'l') => {
                self.at += 2;
                let of = if first == b't' { Some(self.a_type()?) } else { None };
                if self.peek() == 0 || self.peek_next() == 0 {
                    return None;
                }
                let list = self.expressions(b'E')?;
                self.add(Kind::Braces, of, Some(list))
            }
            (b'u', _) => {
                self.at += 1;
                let name = self.source_name()?;
                let arguments = self.template_arguments_here()?;
                self.join(Kind::VendorExpression, name, arguments)
            }
            _ => self.operation(),
        }
    }

    fn name_with_arguments(&mut self) -> Option<Id> {
        let name = self.unqualified_name(None)?;
        self.with_arguments(name)
    }

    fn with_arguments(&mut self, name: Id) -> Option<Id> {
        if self.peek() != b'I' {
            return Some(name);
        }
        let arguments = self.template_arguments()?;
        self.join(Kind::Template, name, arguments)
    }

    fn function_parameter(&mut self) -> Option<Id> {
        self.at += 2;
        let number = if self.takes(b'T') {
            0
        } else {
            self.compact_number()?.checked_add(1)?
        };
        self.add(Kind::FunctionParameter(number), None, None)
    }

    /// A name in a scope that depends on a template parameter.
    fn unresolved_name(&mut self) -> Option<Id> {
        self.at += 2;
        let begins_scope = matches!(self.peek(), b'0'..=b'9' | b'a'..=b'z' | b'C' | b'U' | b'L');
        let scope = if begins_scope && !self.is_old {
            self.is_ambiguous = true;
            let scope = self.prefix(false)?;
            self.takes(b'E');
            scope
        } else {
            self.a_type()?
        };
        let name = self.unqualified_name(Some(scope))?;
        self.with_arguments(name)
    }

    /// Expressions up to the byte `end`.
    fn expressions(&mut self, end: u8) -> Option<Id> {
        if self.takes(end) {
            return self.add(Kind::List, None, None);
        }
        let mut found = Vec::new();
        while !self.takes(end) {
            found.push(self.expression()?);
        }
        self.list(Kind::List, &found)
    }

    /// An operator and its operands.
    fn operation(&mut self) -> Option<Id> {
        let operator = self.operator()?;
        let (code, operands) = match self.tree.kind(operator) {
            Kind::Operator(known) => (known.code, known.operands),
            Kind::VendorOperator(operands) => ("", operands),
            Kind::Cast => ("", 1),
            _ => return None,
        };
        match operands {
            0 => self.around(Kind::Nullary, operator),
            1 => self.unary(operator, code),
            2 => self.binary(operator, code),
            3 => self.ternary(operator, code),
            _ => None,
        }
    }

    fn unary(&mut self, operator: Id, code: &str) -> Option<Id> {
        let is_cast = self.tree.kind(operator) == Kind::Cast;
        // A `_` marks the prefix operator.
        let is_suffix = matches!(code, "pp" | "mm") && !self.takes(b'_');
        let mut operand = match code {
            "st" => self.a_type()?,
            "sP" => self.template_arguments_here()?,
            _ if is_cast && self.takes(b'_') => self.expressions(b'E')?,
            _ => self.operand()?,
        };
        if is_suffix {
            operand = self.join(Kind::Operands, operand, operand)?;
        }
        self.join(Kind::Unary, operator, operand)
    }

    fn binary(&mut self, operator: Id, code: &str) -> Option<Id> {
        let left = match code {
            "" => return None,
            "cc" | "dc" | "rc" | "sc" => self.a_type()?,
            "di" => self.unqualified_name(None)?,
            _ if code.starts_with('f') => self.operator()?,
            _ => self.operand()?,
        };
        let right = match code {
            "cl" => self.expressions(b'E')?,
            "dt" | "pt" if !matches!((self.peek(), self.peek_next()), (b'g', b's') | (b's', b'r')) => {
                self.name_with_arguments()?
            }
            _ => self.operand()?,
        };
        let operands = self.join(Kind::Operands, left, right)?;
        self.join(Kind::Binary, operator, operands)
    }

    fn ternary(&mut self, operator: Id, code: &str) -> Option<Id> {
        let (first, second, third) = match code {
            "qu" | "dX" => (self.operand()?, self.operand()?, Some(self.operand()?)),
            "nw" | "na" => {
                let (placement, of) = (self.expressions(b'_')?, self.a_type()?);
                (placement, of, self.initializer()?)
            }
            _ if code.starts_with('f') => (self.operator()?, self.operand()?, Some(self.operand()?)),
            _ => return None,
        };
        let last = self.add(Kind::Operands, Some(second), third)?;
        let operands = self.join(Kind::Operands, first, last)?;
        self.join(Kind::Ternary, operator, operands)
    }

    /// Initializer of `new`.
    #[expect(clippy::option_option, reason = "an error, none, or one")]
    fn initializer(&mut self) -> Option<Option<Id>> {
        match (self.peek(), self.peek_next()) {
            (b'E', _) => {
                self.at += 1;
                Some(None)
            }
            (b'p', b'i') => {
                self.at += 2;
                Some(Some(self.expressions(b'E')?))
            }
            (b'i', b'l') => Some(Some(self.operand()?)),
            _ => None,
        }
    }
}
