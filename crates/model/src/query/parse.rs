//! The parser: recursive descent over characters, because an operator's meaning depends on the text before it.

use regex::RegexBuilder;

use super::field::{Field, Kind};
use super::{Bounds, Error, Expr, Text};
use roctop_trace::units::Quantity;
use roctop_trace::{spelling, units};

const DEEPEST: usize = 64;
/// Words that join terms in other filter languages.
const JOINING_WORDS: [(&str, &str); 3] = [("and", "a blank or &"), ("or", "|"), ("not", "!")];
/// Hint: how to search for a text that parses as something else.
const QUOTE_IT: &str = "quote it to search text";

/// A parsed filter.
pub(super) struct Parsed {
    pub(super) expr: Expr,
    /// The texts of the terms joined by `&`.
    pub(super) terms: Vec<String>,
    pub(super) understood: Vec<String>,
}

/// Parses a filter; `None` for an empty one.
pub(super) fn parse(source: &str) -> Result<Option<Parsed>, Error> {
    let mut parser = Parser {
        chars: source.chars().collect(),
        at: 0,
        depth: 0,
        terms: Vec::new(),
        understood: Vec::new(),
    };
    parser.space();
    if parser.peek().is_none() {
        return Ok(None);
    }
    let expr = parser.or()?;
    match parser.peek() {
        None => Ok(Some(Parsed {
            expr,
            terms: parser.terms,
            understood: parser.understood,
        })),
        Some(')') => Err(parser.error("no ( before this )")),
        Some(_) => Err(parser.error("expected & or |")),
    }
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    /// The outermost terms, as typed.
    terms: Vec<String>,
    /// Comparisons as they are understood, if their units leave doubt.
    understood: Vec<String>,
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
        let begin = self.at;
        let mut parts = vec![self.and()?];
        while self.peek() == Some('|') {
            self.at += 1;
            parts.push(self.and()?);
        }
        if self.depth == 0 && parts.len() > 1 {
            self.terms = vec![self.text(begin)];
        }
        Ok(if parts.len() == 1 {
            parts.remove(0)
        } else {
            Expr::Or(parts)
        })
    }

    fn and(&mut self) -> Result<Expr, Error> {
        self.space();
        let mut parts = vec![self.outer_term()?];
        loop {
            self.space();
            match self.peek() {
                None | Some('|' | ')') => break,
                Some('&') => self.at += 1,
                Some(_) => {}
            }
            self.space();
            parts.push(self.outer_term()?);
        }
        Ok(if parts.len() == 1 {
            parts.remove(0)
        } else {
            Expr::And(parts)
        })
    }

    /// The text from `begin` to here.
    fn text(&self, begin: usize) -> String {
        let text: String = self.chars[begin..self.at].iter().collect();
        text.trim().to_string()
    }

    /// Parses a term; keeps its text if it is an outermost one.
    fn outer_term(&mut self) -> Result<Expr, Error> {
        let begin = self.at;
        let expr = self.unary()?;
        if self.depth == 0 {
            self.terms.push(self.text(begin));
        }
        Ok(expr)
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

    /// Parses a field with its comparison, or a word.
    fn term(&mut self) -> Result<Expr, Error> {
        let begin = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_alphanumeric()) {
            self.at += 1;
        }
        let word: String = self.chars[begin..self.at].iter().collect();
        if let Some(field) = Field::of(&word)
            && !self.is_template()
            && let Some(operator) = self.operator_of(field)
        {
            return self.comparison(field, operator);
        }
        self.at = begin;
        if Field::of(&word.to_lowercase()).is_none()
            && let Some(counter) = self.counter()
        {
            return Ok(counter);
        }
        self.at = begin;
        self.refuse_unknown_field()?;
        self.at = begin;
        let word = self.run();
        if word.is_empty() {
            return Err(self.error("expected a word"));
        }
        if let Some(name) = word.strip_prefix('@') {
            return Err(error_at(begin, format!("no saved filter {name:?}; {QUOTE_IT}")));
        }
        if let Some((_, sign)) = JOINING_WORDS.iter().find(|known| known.0 == word) {
            return Err(error_at(begin, format!("{word} is written {sign}; {QUOTE_IT}")));
        }
        Ok(Expr::Name(Text::Word(word)))
    }

    /// Whether template arguments follow, as in `vec<float>` and `Cijk<3>`.
    fn is_template(&self) -> bool {
        let rest = self.chars[self.at..].iter().take_while(|c| !c.is_whitespace());
        self.peek() == Some('<') && rest.skip(1).any(|c| *c == '>')
    }

    /// An error if a comparison with an unknown field follows.
    fn refuse_unknown_field(&mut self) -> Result<(), Error> {
        let begin = self.at;
        while self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_') {
            self.at += 1;
        }
        let word: String = self.chars[begin..self.at].iter().collect();
        let (end, is_template) = (self.at, self.is_template());
        self.space();
        let is_apart = self.at > end;
        let Some(operator) = self.operator().filter(|_| !word.is_empty() && !is_template) else {
            return Ok(());
        };
        // After a blank these begin a regular expression.
        if operator.ends_with('~') && is_apart {
            return Ok(());
        }
        if operator == "=" && self.peek() == Some('=') {
            let hint = format!("== is no operator: compare with one =, as in dev=0; {QUOTE_IT}");
            return Err(error_at(self.at - 1, hint));
        }
        self.space();
        let value = self.run();
        let digits = value.trim_start_matches('-');
        // No name has a tilde right behind a word: that of a destructor is behind colons.
        let is_comparison = operator.ends_with('~') || digits.starts_with(|c: char| c.is_ascii_digit());
        let meant = spelling::nearest(&word, Field::ALL.iter().map(|field| field.1));
        match meant {
            Some(meant) => Err(error_at(
                begin,
                format!("no field {word:?}; did you mean {meant}? ({QUOTE_IT})"),
            )),
            None if is_comparison => Err(error_at(begin, format!("no field {word:?} ({QUOTE_IT})"))),
            None => Ok(()),
        }
    }

    /// Parses a hardware counter with its comparison: a name with a capital initial, an operator, numbers. `None` for
    /// other text, such as the word `Cijk<float>`.
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

    /// Parses the operator after a field, with or without blanks around it. After a number and a blank, `~` and `!~` begin a
    /// new term.
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
        if operator == "=" && self.peek() == Some('=') {
            let hint = format!("== is no operator: compare with one =, as in {}=…", field.word());
            return Err(error_at(self.at - 1, hint));
        }
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
        if value.contains(',') && !matches!(operator, "=" | "!=") {
            let comma = begin + value.chars().take_while(|c| *c != ',').count();
            let hint = "a list goes with = and != alone; decimals have a point, as in 1.5ms";
            return Err(error_at(comma, hint));
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
        self.understood.extend(understood(field, operator, &value));
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

    /// The text up to the next blank, or operator between terms.
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

    /// Parses a regular expression without delimiters: up to the next blank outside brackets.
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

/// Parses a number or range of a counter's comparison.
fn counted(operator: &str, part: &str) -> Option<Bounds> {
    let number = |text: &str| -> Option<f64> {
        let (digits, unit) = match text.char_indices().next_back()? {
            (at, 'k' | 'M' | 'G' | '%') => text.split_at(at),
            _ => (text, ""),
        };
        let factor = Quantity::Count.factor(unit.trim_start_matches('%'))?;
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

/// Parses a number or range of a comparison, and whether it is a percentage.
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

/// Parses a number with its unit into base units, and whether it is a percentage.
pub(super) fn number(field: Field, text: &str, column: usize) -> Result<(f64, bool), Error> {
    let (digits, unit) = units::split(text);
    let value: f64 = digits
        .parse()
        .map_err(|_| error_at(column, format!("expected {}", expected(field))))?;
    if unit == "%" && matches!(field, Field::Total) {
        return Ok((value / 100.0, true));
    }
    if unit == "%" && matches!(field, Field::Occ | Field::Fill) {
        return Ok((value, false));
    }
    let factor = quantity(field).factor(unit);
    let wrong = || {
        error_at(
            column + digits.len(),
            format!("unit {unit:?}: expected {}", expected(field)),
        )
    };
    Ok((value * factor.ok_or_else(wrong)?, false))
}

const fn quantity(field: Field) -> Quantity {
    match field.kind() {
        Kind::Time => Quantity::NANOS,
        Kind::Bytes => Quantity::BYTES,
        Kind::Bandwidth => Quantity::Bandwidth,
        Kind::Plain | Kind::Text => Quantity::Count,
    }
}

/// A comparison with its numbers as they are understood, as `dur > 2 ns`; none if their units leave no doubt.
fn understood(field: Field, operator: &str, value: &str) -> Option<String> {
    let numbers = || value.split(',').flat_map(|part| part.split(".."));
    let is_doubtful = |text: &str| {
        let (digits, unit) = units::split(text);
        let is_zero = digits.parse() == Ok(0.0);
        !digits.is_empty() && !is_zero && (unit.is_empty() || field.kind() == Kind::Bytes && unit.len() == 1)
    };
    if matches!(field.kind(), Kind::Plain | Kind::Text) || !numbers().any(is_doubtful) {
        return None;
    }
    let shown = |text: &str| match (number(field, text, 0), field.kind()) {
        (Ok((_, true)) | Err(_), _) => text.to_owned(),
        (Ok((nanos, _)), Kind::Time) => units::duration(nanos as u64),
        (Ok((bytes, _)), Kind::Bytes) => units::decimal_bytes(bytes),
        (Ok((speed, _)), _) => units::bandwidth(speed),
    };
    let parts = value.split(',').map(|part| {
        let ends: Vec<String> = part.split("..").map(shown).collect();
        ends.join("..")
    });
    let parts: Vec<String> = parts.collect();
    Some(format!("{} {operator} {}", field.word(), parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use crate::query::Filter;

    /// Each input, with its number of terms, or with a part of the error's message.
    const INPUTS: [(&str, Result<usize, &str>); 52] = [
        ("gemm", Ok(1)),
        ("gemm dur>700us dev=0", Ok(3)),
        ("gemm & (dur>1ms | stream=3)", Ok(2)),
        ("gemm | memset", Ok(1)),
        ("vec<float>", Ok(1)),
        ("Cijk<3>", Ok(1)),
        ("std::vec<3>", Ok(1)),
        ("max<float>", Ok(1)),
        ("dev<int>", Ok(1)),
        ("reduce<4> dur>1us", Ok(2)),
        ("operator->", Ok(1)),
        ("a=b", Ok(1)),
        ("\"foo=3\"", Ok(1)),
        ("\"a == b\"", Ok(1)),
        ("SQ_WAVES>50k", Ok(1)),
        ("TCC_HIT[1]=40..60", Ok(1)),
        ("dur > 1ms", Ok(1)),
        ("gemm !~memset", Ok(2)),
        ("dur=1ms,5ms", Ok(1)),
        ("stream=..3 queue=2..4", Ok(2)),
        ("thread~worker total>1%", Ok(2)),
        ("~Foo", Ok(1)),
        ("/a=3/", Ok(1)),
        ("", Ok(0)),
        ("dru>600us", Err("no field \"dru\"; did you mean dur?")),
        ("dru > 600us", Err("did you mean dur?")),
        ("Dur>600us", Err("did you mean dur?")),
        ("DEV=0", Err("did you mean dev?")),
        ("duration>3", Err("no field \"duration\"")),
        ("strem=0", Err("did you mean stream?")),
        ("byte>=1MiB", Err("did you mean bytes?")),
        ("nmae~gemm", Err("did you mean name?")),
        ("kernel~gemm", Err("no field \"kernel\" (quote it to search text)")),
        ("Node::~Node", Ok(1)),
        ("gemm dru>600us", Err("did you mean dur?")),
        ("(gemm | dru>600us)", Err("did you mean dur?")),
        ("foo=3", Err("no field \"foo\" (quote it to search text)")),
        ("foo>3us", Err("no field \"foo\"")),
        ("latency < 1.5ms", Err("no field \"latency\"")),
        ("gemm_x>=64KiB", Err("no field \"gemm_x\"")),
        ("vec<3", Err("did you mean dev?")),
        ("dev==0", Err("== is no operator: compare with one =, as in dev=")),
        ("foo==3", Err("== is no operator")),
        ("operator==", Err("quote it to search text")),
        ("dur == 1ms", Err("== is no operator")),
        ("dur>1,5ms", Err("decimals have a point, as in 1.5ms")),
        ("dur<=1ms,2ms", Err("a list goes with = and != alone")),
        ("dur<1ms and bytes>2", Err("and is written a blank or &")),
        ("gemm or memset", Err("or is written |")),
        ("not gemm", Err("not is written !")),
        ("@nope", Err("no saved filter \"nope\"")),
        ("dev=abc", Err("expected a number")),
    ];

    #[test]
    fn misspelt_filters_are_errors_with_a_suggestion() {
        for (source, expected) in INPUTS {
            let found = Filter::parse(source).map(|filter| filter.terms.len());
            match (found, expected) {
                (Ok(terms), Ok(expected)) => assert_eq!(terms, expected, "{source}"),
                (Err(error), Err(part)) => assert!(error.message.contains(part), "{source}: {}", error.message),
                (found, expected) => panic!("{source}: {found:?}, not {expected:?}"),
            }
        }
    }

    #[test]
    fn terms_are_kept_as_typed() {
        let terms = |source: &str| Filter::parse(source).unwrap().terms;
        assert_eq!(terms(" gemm &dur > 1ms  !(a | b) "), ["gemm", "dur > 1ms", "!(a | b)"]);
        assert_eq!(terms("a b | c"), ["a b | c"]);
        assert_eq!(terms("(a b)"), ["(a b)"]);
    }
}
