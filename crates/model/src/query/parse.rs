//! The parser: recursive descent over characters, since what an operator is depends on what stands before it.

use regex::RegexBuilder;

use super::field::{Field, Kind};
use super::{Bounds, Error, Expr, Text};
use roctop_trace::units;

const DEEPEST: usize = 64;

/// Reads a filter; none for one that says nothing.
pub(super) fn parse(source: &str) -> Result<Option<Expr>, Error> {
    let mut parser = Parser {
        chars: source.chars().collect(),
        at: 0,
        depth: 0,
    };
    parser.space();
    if parser.peek().is_none() {
        return Ok(None);
    }
    let expr = parser.or()?;
    match parser.peek() {
        None => Ok(Some(expr)),
        Some(')') => Err(parser.error("no ( before this )")),
        Some(_) => Err(parser.error("expected & or |")),
    }
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn after(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn error(&self, message: impl Into<String>) -> Error {
        error_at(self.at, message)
    }

    fn or(&mut self) -> Result<Expr, Error> {
        let mut parts = vec![self.and()?];
        while self.peek() == Some('|') {
            self.at += 1;
            parts.push(self.and()?);
        }
        Ok(if parts.len() == 1 {
            parts.remove(0)
        } else {
            Expr::Or(parts)
        })
    }

    fn and(&mut self) -> Result<Expr, Error> {
        self.space();
        let mut parts = vec![self.unary()?];
        loop {
            self.space();
            match self.peek() {
                None | Some('|' | ')') => break,
                Some('&') => self.at += 1,
                Some(_) => {}
            }
            self.space();
            parts.push(self.unary()?);
        }
        Ok(if parts.len() == 1 {
            parts.remove(0)
        } else {
            Expr::And(parts)
        })
    }

    fn unary(&mut self) -> Result<Expr, Error> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error("nested too deeply"));
        }
        let expr = self.unary_within();
        self.depth -= 1;
        expr
    }

    fn unary_within(&mut self) -> Result<Expr, Error> {
        match self.peek() {
            None => Err(self.error("expected a word, /regex/ or field, as in dur>1ms")),
            Some('!') if self.after(1) == Some('~') => {
                self.at += 2;
                self.space();
                let text = self.bare_regex()?;
                Ok(Expr::Not(Box::new(Expr::Name(text))))
            }
            Some('!') => {
                self.at += 1;
                self.space();
                Ok(Expr::Not(Box::new(self.unary()?)))
            }
            Some('(') => {
                self.at += 1;
                let inner = self.or()?;
                if self.peek() != Some(')') {
                    return Err(self.error("expected )"));
                }
                self.at += 1;
                Ok(inner)
            }
            Some('"') => Ok(Expr::Name(Text::Exact(self.quoted('"')?))),
            Some('/') => Ok(Expr::Name(self.slashed()?)),
            Some('~') => {
                self.at += 1;
                self.space();
                Ok(Expr::Name(self.bare_regex()?))
            }
            Some('?') => {
                self.at += 1;
                let letters = self.run();
                Ok(Expr::Name(Text::Fuzzy(letters.to_lowercase().chars().collect())))
            }
            Some('&' | '|' | ')') => Err(self.error("expected a word, /regex/ or field before this")),
            Some(_) => self.term(),
        }
    }

    /// A field with its comparison, or a word.
    fn term(&mut self) -> Result<Expr, Error> {
        let begin = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_alphanumeric()) {
            self.at += 1;
        }
        let word: String = self.chars[begin..self.at].iter().collect();
        if let Some(field) = Field::of(&word)
            && let Some(operator) = self.operator_of(field)
        {
            return self.comparison(field, operator);
        }
        self.at = begin;
        if let Some(counter) = self.counter() {
            return Ok(counter);
        }
        self.at = begin;
        let word = self.run();
        if word.is_empty() {
            return Err(self.error("expected a word"));
        }
        Ok(Expr::Name(Text::Word(word)))
    }

    /// A hardware counter with its comparison: a name that begins with a capital, an operator, numbers. None when it is
    /// something else, as the word `Cijk<float>`.
    fn counter(&mut self) -> Option<Expr> {
        let begin = self.at;
        if !self.peek()?.is_ascii_uppercase() {
            return None;
        }
        while self
            .peek()
            .is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '[' | ']'))
        {
            self.at += 1;
        }
        let name: String = self.chars[begin..self.at].iter().collect();
        self.space();
        let operator = self.operator().filter(|operator| !operator.ends_with('~'))?;
        self.space();
        let bounds: Option<Vec<Bounds>> = self.run().split(',').map(|part| counted(operator, part)).collect();
        Some(Expr::Counter(name, bounds?, operator == "!="))
    }

    /// The operator behind a field, with or without blanks around it. `~` and `!~` behind a number and a blank begin a term of
    /// their own.
    fn operator_of(&mut self, field: Field) -> Option<&'static str> {
        let begin = self.at;
        self.space();
        let is_apart = self.at > begin;
        let operator = self.operator()?;
        if is_apart && operator.ends_with('~') && field.kind() != Kind::Text {
            return None;
        }
        self.space();
        Some(operator)
    }

    fn operator(&mut self) -> Option<&'static str> {
        let pair = (self.peek()?, self.after(1).unwrap_or(' '));
        let operator = match pair {
            ('!', '=') => "!=",
            ('!', '~') => "!~",
            ('>', '=') => ">=",
            ('<', '=') => "<=",
            ('=', _) => "=",
            ('>', _) => ">",
            ('<', _) => "<",
            ('~', _) => "~",
            _ => return None,
        };
        self.at += operator.len();
        Some(operator)
    }

    fn comparison(&mut self, field: Field, operator: &str) -> Result<Expr, Error> {
        let operator_at = (0..self.at).rfind(|&at| !self.chars[at].is_whitespace());
        let operator_at = (operator_at.unwrap_or(0) + 1).saturating_sub(operator.len());
        let negated = operator.starts_with('!');
        if field.kind() == Kind::Text {
            return match operator {
                "~" | "!~" => Ok(Expr::Text(field, vec![self.bare_regex()?], negated)),
                "=" | "!=" => Ok(Expr::Text(field, self.texts()?, negated)),
                _ => Err(error_at(
                    operator_at,
                    format!("{} is a text: use = != ~ !~", field.word()),
                )),
            };
        }
        if operator.ends_with('~') {
            return Err(error_at(
                operator_at,
                format!("{} is a number: use = != < > <= >=", field.word()),
            ));
        }
        let begin = self.at;
        let value = self.run();
        if value.is_empty() {
            return Err(self.error(format!("expected {}", expected(field))));
        }
        let mut share = false;
        let mut bounds = Vec::new();
        let mut offset = begin;
        for part in value.split(',') {
            let (bound, percent) = range(field, operator, part, offset)?;
            share |= percent;
            bounds.push(bound);
            offset += part.chars().count() + 1;
        }
        Ok(Expr::Number(if share { Field::Share } else { field }, bounds, negated))
    }

    fn texts(&mut self) -> Result<Vec<Text>, Error> {
        if self.peek() == Some('"') {
            return Ok(vec![Text::Exact(self.quoted('"')?)]);
        }
        if self.peek() == Some('/') {
            return Ok(vec![self.slashed()?]);
        }
        let value = self.run();
        if value.is_empty() {
            return Err(self.error("expected a text"));
        }
        Ok(value.split(',').map(|part| Text::Glob(part.to_lowercase())).collect())
    }

    /// Characters to the next blank or operator between terms.
    fn run(&mut self) -> String {
        let begin = self.at;
        while self
            .peek()
            .is_some_and(|c| !c.is_whitespace() && !matches!(c, '&' | '|' | '(' | ')'))
        {
            self.at += 1;
        }
        self.chars[begin..self.at].iter().collect()
    }

    fn quoted(&mut self, quote: char) -> Result<String, Error> {
        let begin = self.at;
        self.at += 1;
        let mut out = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                '\\' if self.peek() == Some(quote) => {
                    self.at += 1;
                    out.push(quote);
                }
                c if c == quote => return Ok(out),
                c => out.push(c),
            }
        }
        self.at = begin;
        Err(self.error(format!("no closing {quote}")))
    }

    fn slashed(&mut self) -> Result<Text, Error> {
        let begin = self.at;
        let source = self.quoted('/')?;
        let caseless = self.peek() == Some('i');
        self.at += usize::from(caseless);
        regex(&source, caseless, begin + 1)
    }

    /// A regular expression without delimiters: to the next blank, with its brackets balanced.
    fn bare_regex(&mut self) -> Result<Text, Error> {
        let begin = self.at;
        let mut depth = 0usize;
        while let Some(c) = self.peek() {
            match c {
                c if c.is_whitespace() => break,
                '\\' => self.at += 1,
                '(' => depth += 1,
                '&' => break,
                ')' | '|' if depth == 0 => break,
                ')' => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
        self.at = self.at.min(self.chars.len());
        if self.at == begin {
            return Err(self.error("expected a regular expression"));
        }
        let source: String = self.chars[begin..self.at].iter().collect();
        regex(&source, false, begin)
    }
}

fn error_at(column: usize, message: impl Into<String>) -> Error {
    Error {
        column,
        message: message.into(),
    }
}

fn regex(source: &str, caseless: bool, column: usize) -> Result<Text, Error> {
    let built = RegexBuilder::new(source)
        .case_insensitive(caseless)
        .size_limit(1 << 20)
        .build();
    built.map(Text::Regex).map_err(|error| {
        let text = error.to_string();
        let last = text.lines().last().unwrap_or("").trim().trim_start_matches("error: ");
        error_at(column, format!("regex: {last}"))
    })
}

fn expected(field: Field) -> &'static str {
    match field.kind() {
        Kind::Time => "a time, as 1ms or 20us",
        Kind::Bytes => "a size, as 64KiB or 1MB",
        Kind::Bandwidth => "a bandwidth, as 5GB/s",
        Kind::Plain => "a number",
        Kind::Text => "a text",
    }
}

/// One number or range of a counter's comparison.
fn counted(operator: &str, part: &str) -> Option<Bounds> {
    let number = |text: &str| -> Option<f64> {
        let (digits, factor) = match text.chars().next_back()? {
            'k' => (&text[..text.len() - 1], 1e3),
            'M' => (&text[..text.len() - 1], 1e6),
            'G' => (&text[..text.len() - 1], 1e9),
            '%' => (&text[..text.len() - 1], 1.0),
            _ => (text, 1.0),
        };
        digits
            .parse::<f64>()
            .ok()
            .filter(|value| value.is_finite())
            .map(|value| value * factor)
    };
    let strict = operator == "<" || operator == ">";
    let (low, high) = match (operator, part.split_once("..")) {
        ("=" | "!=", Some((low, high))) => (number(low)?, number(high)?),
        (">" | ">=", _) => (number(part)?, f64::INFINITY),
        ("<" | "<=", _) => (f64::NEG_INFINITY, number(part)?),
        _ => (number(part)?, number(part)?),
    };
    Some(Bounds {
        low,
        low_included: !strict,
        high,
        high_included: !strict,
    })
}

/// One number or range of a comparison, and whether it was in per cent.
fn range(field: Field, operator: &str, part: &str, column: usize) -> Result<(Bounds, bool), Error> {
    let equal = operator == "=" || operator == "!=";
    let (low, high, percent) = if let Some(at) = part.find("..").filter(|_| equal) {
        let (left, right) = (&part[..at], &part[at + 2..]);
        let low = if left.is_empty() {
            (f64::NEG_INFINITY, false)
        } else {
            number(field, left, column)?
        };
        let right_column = column + left.chars().count() + 2;
        let high = if right.is_empty() {
            (f64::INFINITY, false)
        } else {
            number(field, right, right_column)?
        };
        (low.0, high.0, low.1 || high.1)
    } else {
        let (value, percent) = number(field, part, column)?;
        match operator {
            ">" | ">=" => (value, f64::INFINITY, percent),
            "<" | "<=" => (f64::NEG_INFINITY, value, percent),
            _ => (value, value, percent),
        }
    };
    let strict = operator == "<" || operator == ">";
    Ok((
        Bounds {
            low,
            low_included: !strict,
            high,
            high_included: !strict,
        },
        percent,
    ))
}

/// A number with its unit, in base units, and whether that unit was per cent.
pub(super) fn number(field: Field, text: &str, column: usize) -> Result<(f64, bool), Error> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-')
        .unwrap_or(text.len());
    let value: f64 = text[..digits]
        .parse()
        .map_err(|_| error_at(column, format!("expected {}", expected(field))))?;
    let unit = &text[digits..];
    let wrong = || error_at(column + digits, format!("unit {unit:?}: expected {}", expected(field)));
    if unit == "%" && matches!(field, Field::Total) {
        return Ok((value / 100.0, true));
    }
    let factor = match field.kind() {
        Kind::Time => match unit {
            "" => 1.0,
            unit => units::unit_of_time(unit).ok_or_else(wrong)?,
        },
        Kind::Bytes => size(unit).ok_or_else(wrong)?,
        Kind::Bandwidth => match unit.strip_suffix("/s") {
            Some(unit) => size(unit).ok_or_else(wrong)?,
            None if unit.is_empty() => 1.0,
            None => return Err(wrong()),
        },
        Kind::Plain | Kind::Text => match unit {
            "" => 1.0,
            "k" => 1e3,
            "M" => 1e6,
            "G" => 1e9,
            _ => return Err(wrong()),
        },
    };
    Ok((value * factor, false))
}

fn size(unit: &str) -> Option<f64> {
    let letter = match unit.trim_end_matches('B').trim_end_matches('i') {
        "" => return (!unit.contains('i')).then_some(1.0),
        "K" | "k" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    Some(if unit.contains('i') {
        1024f64.powi(letter)
    } else {
        1000f64.powi(letter)
    })
}
