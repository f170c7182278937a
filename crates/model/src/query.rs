//! The filter language: words, regular expressions and comparisons, joined by and, or, not.
//!
//! `gemm & dur>1ms & stream=3 !~memset` is a valid filter. The parser is total: any text gives a filter or an error
//! with its column and what was expected. A term does not apply to an item that lacks its field.

pub mod complete;
mod field;
mod launches;
mod many;
mod parse;

use regex::Regex;

pub use self::field::{Field, Kind};
pub use self::launches::Launches;

/// A parsed filter.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// The filter as typed.
    pub source: String,
    /// Terms joined by `&`, as typed; terms joined by `|` count as one.
    pub terms: Vec<String>,
    /// Comparisons with numbers whose units leave doubt, as they are understood: `dur > 2 ns` for `dur>2`.
    pub understood: Vec<String>,
    expr: Option<Expr>,
}

/// A parse error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Column of the error, in characters from 0.
    pub column: usize,
    /// The error, and what the parser expected.
    pub message: String,
}

/// A filter's text with each `@name` replaced by the preset of that name, if it exists.
pub fn with_presets(source: &str, presets: &[(String, String)]) -> String {
    let mut out = String::new();
    let mut rest = source;
    while let Some(at) = rest.find('@') {
        let (before, after) = rest.split_at(at);
        let end = after[1..].find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
        let end = end.map_or(after.len(), |end| end + 1);
        out += before;
        let is_word = before
            .chars()
            .next_back()
            .is_none_or(|c| c.is_whitespace() || "&|!(".contains(c));
        match presets.iter().find(|preset| is_word && preset.0 == after[1..end]) {
            Some(preset) => out.extend(["(", preset.1.as_str(), ")"]),
            None => out += &after[..end],
        }
        rest = &after[end..];
    }
    out + rest
}

#[derive(Clone, Debug)]
enum Expr {
    Or(Vec<Expr>),
    And(Vec<Expr>),
    Not(Box<Expr>),
    Name(Text),
    Number(Field, Vec<Bounds>, bool),
    Text(Field, Vec<Text>, bool),
    /// A hardware counter, or a metric computed from counters, by its name.
    Counter(String, Vec<Bounds>, bool),
    /// Decided by the row that a launch belongs to.
    Known(bool),
}

/// A range of numbers; each end is included or excluded.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bounds {
    low: f64,
    low_included: bool,
    high: f64,
    high_included: bool,
}

impl Bounds {
    /// Whether the range contains any number between `from` and `to`.
    fn meets(self, from: f64, to: f64) -> bool {
        let above = to > self.low || (self.low_included && to >= self.low);
        let below = from < self.high || (self.high_included && from <= self.high);
        above && below
    }
}

#[derive(Clone, Debug)]
enum Text {
    /// Contains the word; case is ignored if the word has no capital.
    Word(String),
    /// Contains the text, with its case.
    Exact(String),
    Regex(Regex),
    /// Contains these letters in this order (fuzzy).
    Fuzzy(Vec<char>),
    /// Matches the whole text; `*` matches any part; case is ignored.
    Glob(String),
}

impl Text {
    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Word(word) if word.chars().any(char::is_uppercase) => text.contains(word.as_str()),
            Self::Word(word) => contains_caseless(text, word),
            Self::Exact(exact) => text.contains(exact.as_str()),
            Self::Regex(regex) => regex.is_match(text),
            Self::Fuzzy(letters) => {
                let mut text = text.chars().flat_map(char::to_lowercase);
                letters.iter().all(|letter| text.any(|c| c == *letter))
            }
            Self::Glob(glob) => matches_glob(glob, &text.to_lowercase()),
        }
    }
}

fn contains_caseless(text: &str, lower: &str) -> bool {
    if text.is_ascii() && lower.is_ascii() {
        let mut windows = text.as_bytes().windows(lower.len().max(1));
        return lower.is_empty() || windows.any(|window| window.eq_ignore_ascii_case(lower.as_bytes()));
    }
    text.to_lowercase().contains(lower)
}

fn matches_glob(glob: &str, text: &str) -> bool {
    let mut parts = glob.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or("")) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// An item's value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// The item has no such field.
    None,
    /// A number in base units.
    Number(f64),
    /// Any number between these two.
    Between(f64, f64),
    /// A text.
    Text(&'a str),
    /// A different value for each launch of the item.
    Varies,
}

impl Value<'_> {
    /// A whole number.
    pub const fn whole(value: u64) -> Self {
        Self::Number(value as f64)
    }
    /// A number, if known.
    pub fn maybe(value: Option<u64>) -> Self {
        value.map_or(Self::None, Self::whole)
    }
}

/// An item's value of a hardware counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Counted {
    /// Items of this kind have no counters.
    Never,
    /// The counter was not collected for this item.
    Not,
    /// The mean.
    Value(f64),
}

/// An item that a filter can test.
pub trait Subject {
    /// Whether any name of the item passes the test.
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool;
    /// Whether the item has names to compare.
    fn is_named(&self) -> bool {
        true
    }
    /// The item's value of a field.
    fn value(&self, field: Field) -> Value<'_>;
    /// The item's mean of a hardware counter, or its value of a metric computed from counters.
    fn counter(&self, _name: &str) -> Counted {
        Counted::Never
    }
}

/// Parses a number with a field's unit (`1ms`, `5GB/s`) into base units.
pub fn amount(field: Field, text: &str) -> Result<f64, Error> {
    parse::number(field, text.trim(), 0).map(|number| number.0)
}

impl Filter {
    /// Parses a filter; an empty one passes every item.
    pub fn parse(source: &str) -> Result<Self, Error> {
        let source_text = source.trim().to_string();
        Ok(match parse::parse(source)? {
            Some(parsed) => Self {
                source: source_text,
                terms: parsed.terms,
                understood: parsed.understood,
                expr: Some(parsed.expr),
            },
            None => Self {
                source: source_text,
                ..Self::default()
            },
        })
    }

    /// The filter without one of its terms.
    #[must_use]
    pub fn without(&self, term: usize) -> Self {
        let left = self.terms.iter().enumerate().filter(|(at, _)| *at != term);
        let left: Vec<&str> = left.map(|(_, term)| term.as_str()).collect();
        // Each part of a filter is itself a filter.
        Self::parse(&left.join(" ")).unwrap_or_default()
    }

    /// Whether every item passes.
    pub fn is_empty(&self) -> bool {
        self.expr.is_none()
    }

    /// Whether an item passes.
    pub fn accepts(&self, subject: &dyn Subject) -> bool {
        self.expr.as_ref().and_then(|expr| expr.test(subject)).unwrap_or(true)
    }

    /// Whether an item is what the filter asks for. Unlike in a list, which shows what the filter says nothing about, a term
    /// that does not apply to the item is not true, nor is its opposite.
    pub fn selects(&self, subject: &dyn Subject) -> bool {
        self.expr.as_ref().is_none_or(|expr| expr.holds(subject) == Some(true))
    }

    /// Whether [`Self::selects`] may be true of an item that has only these fields, and no counters.
    pub fn may_select(&self, has: impl Fn(Field) -> bool + Copy) -> bool {
        self.expr.as_ref().is_none_or(|expr| expr.outcomes(has).0)
    }

    /// Whether any term compares names.
    pub fn has_names(&self) -> bool {
        self.expr.as_ref().is_some_and(Expr::has_names)
    }

    /// Whether all terms compare names.
    pub fn names_only(&self) -> bool {
        self.expr.as_ref().is_none_or(Expr::names_only)
    }

    /// Whether any term compares a number of whole rows, or a counter's mean over a row.
    pub fn asks_for_rows(&self) -> bool {
        self.expr.as_ref().is_some_and(Expr::asks_for_rows)
    }

    /// Whether an item that is only a text passes.
    pub fn accepts_text(&self, text: &str) -> bool {
        self.accepts(&text)
    }
}

impl Subject for &str {
    fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
        test(self)
    }
    fn value(&self, field: Field) -> Value<'_> {
        if field == Field::Name {
            Value::Text(self)
        } else {
            Value::None
        }
    }
}

impl Expr {
    fn has_names(&self) -> bool {
        match self {
            Self::Or(parts) | Self::And(parts) => parts.iter().any(Self::has_names),
            Self::Not(inner) => inner.has_names(),
            Self::Name(_) => true,
            Self::Known(_) | Self::Number(..) | Self::Counter(..) => false,
            Self::Text(field, ..) => matches!(field, Field::Name | Field::Mangled),
        }
    }

    fn asks_for_rows(&self) -> bool {
        match self {
            Self::Or(parts) | Self::And(parts) => parts.iter().any(Self::asks_for_rows),
            Self::Not(inner) => inner.asks_for_rows(),
            Self::Counter(..) => true,
            Self::Number(field, ..) | Self::Text(field, ..) => field.is_of_row(),
            Self::Name(_) | Self::Known(_) => false,
        }
    }

    fn names_only(&self) -> bool {
        match self {
            Self::Or(parts) | Self::And(parts) => parts.iter().all(Self::names_only),
            Self::Not(inner) => inner.names_only(),
            Self::Name(_) => true,
            Self::Known(_) | Self::Number(..) | Self::Counter(..) => false,
            Self::Text(field, ..) => *field == Field::Name,
        }
    }

    /// The same as [`Self::test`], but a term that does not apply leaves open what it is joined with by "and".
    fn holds(&self, subject: &dyn Subject) -> Option<bool> {
        match self {
            Self::Or(parts) => join_strictly(parts.iter().map(|part| part.holds(subject)), true),
            Self::And(parts) => join_strictly(parts.iter().map(|part| part.holds(subject)), false),
            Self::Not(inner) => inner.holds(subject).map(|yes| !yes),
            _ => self.test(subject),
        }
    }

    /// Whether it may hold, and whether its opposite may, for an item with these fields.
    fn outcomes(&self, has: impl Fn(Field) -> bool + Copy) -> (bool, bool) {
        let both = |applies: bool| (applies, applies);
        match self {
            Self::And(parts) => {
                let each = parts.iter().map(|part| part.outcomes(has));
                each.fold((true, false), |(holds, fails), part| (holds && part.0, fails || part.1))
            }
            Self::Or(parts) => {
                let each = parts.iter().map(|part| part.outcomes(has));
                each.fold((false, true), |(holds, fails), part| (holds || part.0, fails && part.1))
            }
            Self::Not(inner) => {
                let (holds, fails) = inner.outcomes(has);
                (fails, holds)
            }
            Self::Known(yes) => (*yes, !*yes),
            Self::Name(_) => both(has(Field::Name)),
            Self::Number(field, ..) | Self::Text(field, ..) => both(has(*field)),
            Self::Counter(..) => both(false),
        }
    }

    /// Passes, fails, or `None` if no term applies to the item.
    fn test(&self, subject: &dyn Subject) -> Option<bool> {
        match self {
            Self::Or(parts) => join(parts.iter().map(|part| part.test(subject)), true),
            Self::And(parts) => join(parts.iter().map(|part| part.test(subject)), false),
            Self::Not(inner) => inner.test(subject).map(|yes| !yes),
            Self::Known(yes) => Some(*yes),
            Self::Name(text) => subject.is_named().then(|| subject.any_name(&|name| text.matches(name))),
            Self::Number(field, bounds, negated) => {
                let (from, to) = match subject.value(*field) {
                    Value::Number(value) => (value, value),
                    Value::Between(from, to) => (from, to),
                    Value::None | Value::Text(_) | Value::Varies => return None,
                };
                Some(bounds.iter().any(|bounds| bounds.meets(from, to)) != *negated)
            }
            Self::Counter(name, bounds, negated) => match subject.counter(name) {
                Counted::Never => None,
                Counted::Not => Some(false),
                Counted::Value(value) => Some(bounds.iter().any(|bounds| bounds.meets(value, value)) != *negated),
            },
            Self::Text(Field::Name, ..) if !subject.is_named() => None,
            Self::Text(Field::Name, texts, negated) => {
                let yes = subject.any_name(&|name| texts.iter().any(|text| text.matches(name)));
                Some(yes != *negated)
            }
            Self::Text(field, texts, negated) => match subject.value(*field) {
                Value::Text(value) => Some(texts.iter().any(|text| text.matches(value)) != *negated),
                _ => None,
            },
        }
    }
}

/// The first part equal to `decisive` decides; without one, a part that does not apply leaves it open.
fn join_strictly(parts: impl Iterator<Item = Option<bool>>, decisive: bool) -> Option<bool> {
    let mut found = Some(!decisive);
    for part in parts {
        match part {
            Some(part) if part == decisive => return Some(decisive),
            None => found = None,
            Some(_) => {}
        }
    }
    found
}

/// The first part equal to `decisive` decides; parts that do not apply are skipped.
fn join(parts: impl Iterator<Item = Option<bool>>, decisive: bool) -> Option<bool> {
    let mut said = None;
    for part in parts.flatten() {
        if part == decisive {
            return Some(decisive);
        }
        said = Some(part);
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Kernel;
    impl Subject for Kernel {
        fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
            test("void ns::Gemm<4>(int)") || test("_ZN2ns4GemmILi4EEEvi")
        }
        fn value(&self, field: Field) -> Value<'_> {
            match field {
                Field::Dur => Value::Between(1e6, 5e6),
                Field::Stream => Value::Number(3.0),
                Field::Calls => Value::Number(100.0),
                Field::Dir => Value::Text("H2D"),
                Field::Share => Value::Number(0.4),
                _ => Value::None,
            }
        }
    }

    fn passes(source: &str) -> bool {
        Filter::parse(source)
            .unwrap_or_else(|e| panic!("{source}: {e:?}"))
            .accepts(&Kernel)
    }

    #[test]
    fn what_the_help_says_is_true() {
        for yes in [
            "",
            "gemm",
            "Gemm",
            "gemm & dur>1ms & stream=3 !~memset",
            "gemm<4>",
            "\"::Gemm<4>(int)\"",
            "/gemm<\\d>/i",
            "~^_ZN2ns",
            "?gmm4",
            "stream=1,3",
            "dur > 1ms & stream = 3",
            "dur> 1ms stream =3",
            "name ~ Gemm !~ memset",
            "~ Gemm & dir = h2d",
            "!(dur !~memset)",
            "stream=2..4",
            "stream=..3 stream=3..",
            "stream!=4",
            "dur>=5ms",
            "dur<1.5ms",
            "dur=2ms..3ms",
            "calls>=100 calls<0.2k",
            "dir=h2d | dir=d2h",
            "dir=h*",
            "dir~^H",
            "dir!~D2D",
            "!(memset | stream=4)",
            "memset | gemm",
            "total>1%",
            "bw>1GB/s",
            "name=*gemm*",
            "memset | bytes>1GiB gemm",
        ] {
            assert!(passes(yes), "{yes}");
        }
        for no in [
            "GEMM",
            "memset",
            "!gemm",
            "stream=4",
            "dur>5ms",
            "dur<1ms",
            "!~Gemm",
            "dir=d*",
            "gemm & memset",
            "total<1%",
            "!dur>1ms",
            "stream!=3",
            "calls>100",
            "(gemm | memset) stream=2",
        ] {
            assert!(!passes(no), "{no}");
        }
    }

    #[test]
    fn numbers_whose_units_leave_doubt_are_shown_as_understood() {
        for (source, expected) in [
            ("dur>2", "dur > 2 ns"),
            ("dur>1500", "dur > 1.50 µs"),
            ("bytes>4M", "bytes > 4.00 MB"),
            ("bytes=1k..4MiB", "bytes = 1.00 kB..4.19 MB"),
            ("bw<5000", "bw < 5.00 kB/s"),
            ("gemm total!=3,4ms", "total != 3 ns, 4.00 ms"),
            ("dur>2ms bytes>4MiB total>1% calls>5 dur>0 dur=..3ms", ""),
        ] {
            assert_eq!(
                Filter::parse(source).unwrap().understood.join("; "),
                expected,
                "{source}"
            );
        }
    }

    #[test]
    fn what_is_selected_has_what_the_filter_asks_for() {
        let selects = |source: &str| Filter::parse(source).unwrap().selects(&Kernel);
        for yes in [
            "",
            "gemm",
            "gemm dur>1ms",
            "gemm | bytes>1",
            "!(memset & bytes>1)",
            "bytes>1 | dir=h2d",
        ] {
            assert!(selects(yes), "{yes}");
        }
        // They pass in a list.
        for no in ["bytes>1", "!(bytes>1)", "gemm bytes>1", "err=0 | bytes>1"] {
            assert!(!selects(no) && passes(no), "{no}");
        }
        assert!(!selects("!(gemm bytes>1)"));
    }

    #[test]
    fn errors_name_the_column() {
        let column = |source: &str| Filter::parse(source).map(|_| ()).unwrap_err().column;
        assert_eq!(column("gemm & "), 7);
        assert_eq!(column("(gemm"), 5);
        assert_eq!(column("gemm)"), 4);
        assert_eq!(column("dur>1parsec"), 5);
        assert_eq!(column("dur>"), 4);
        assert_eq!(column("ümlaut dur>x"), 11);
        assert_eq!(column("~["), 1);
        assert_eq!(column("/abc"), 0);
        assert_eq!(column("\"abc"), 0);
        assert_eq!(column("bytes>1ms"), 7);
        assert_eq!(column("| a"), 0);
        assert_eq!(column("dir>3"), 3);
        assert_eq!(column("dir > 3"), 4);
        assert_eq!(column("dur > 1parsec"), 7);
    }

    #[test]
    fn any_text_is_a_filter_or_an_error() {
        let alphabet: Vec<char> = "ab(&|!~/\"?=<>.,* dur1ms%é)".chars().collect();
        let mut seed = 1u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            let mut bits = seed;
            for _ in 0..(seed >> 60) + 3 {
                bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(7);
                text.push(alphabet[(bits >> 40) as usize % alphabet.len()]);
            }
            match Filter::parse(&text) {
                Ok(filter) => drop(filter.accepts(&Kernel)),
                Err(error) => assert!(error.column <= text.chars().count(), "{text}"),
            }
        }
        assert!(Filter::parse(&"(".repeat(10_000)).is_err());
        assert!(Filter::parse(&"!".repeat(10_000)).is_err());
    }

    struct Counting;
    impl Subject for Counting {
        fn any_name(&self, test: &dyn Fn(&str) -> bool) -> bool {
            test("Cijk<float>")
        }
        fn value(&self, _: Field) -> Value<'_> {
            Value::None
        }
        fn counter(&self, name: &str) -> Counted {
            match name {
                "SQ_WAVES" => Counted::Value(2e6),
                "TCC_HIT[1]" => Counted::Value(50.0),
                _ => Counted::Not,
            }
        }
    }

    #[test]
    fn counters_are_compared_by_name() {
        for (text, yes) in [
            ("SQ_WAVES>1e6", true),
            ("SQ_WAVES>2M", false),
            ("SQ_WAVES>=2M", true),
            ("TCC_HIT[1]=40..60", true),
            ("TCC_HIT[1]!=50", false),
            ("L2_HIT<50%", false),
            ("!(SQ_WAVES<1k)", true),
            ("Cijk<float>", true),
        ] {
            assert_eq!(Filter::parse(text).unwrap().accepts(&Counting), yes, "{text}");
        }
        // Other items have no counters, so the term does not apply.
        assert!(Filter::parse("SQ_WAVES>1e6").unwrap().accepts_text("anything"));
    }
}
