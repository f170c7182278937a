//! The parser of questions: a verb, then clauses in any order.

use crate::analysis::steps::Name;
use crate::query::{Error, Filter, with_presets};
use roctop_trace::spelling::did_you_mean;
use roctop_trace::units;

/// Maximum number of characters of a question.
pub const MAX_QUESTION: usize = 4096;
/// Number of rows if the question sets no limit.
pub const DEFAULT_LIMIT: usize = 20;
/// Maximum number of rows.
pub const MAX_LIMIT: usize = 10_000;

macro_rules! words {
    ($(#[$meta:meta])* $Name:ident { $($Variant:ident $word:literal $help:literal)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Name {
            $(#[doc = $help] $Variant,)*
        }

        impl $Name {
            /// All, each with its word and what it lists.
            pub const ALL: &[(Self, &str, &str)] = &[$((Self::$Variant, $word, $help),)*];
            /// The words alone.
            pub const WORDS: &[&str] = &[$($word,)*];

            /// Its word in a question.
            pub fn word(self) -> &'static str {
                Self::ALL.iter().find(|known| known.0 == self).map_or("", |known| known.1)
            }

            fn of(word: &str) -> Option<Self> {
                Self::ALL.iter().find(|known| known.1 == word).map(|known| known.0)
            }
        }
    };
}

words! {
    /// What `top` lists.
    Top {
        Kernels "kernels" "Kernels by total time."
        Calls "calls" "API functions by total time."
        Copies "copies" "Copy routes by bytes."
        Markers "markers" "ROC-TX ranges and marks by total time."
        Ranges "ranges" "ROC-TX ranges by total time, with the GPU work in them."
        Processes "processes" "Processes by number of records."
        Collectives "collectives" "Collectives of RCCL by skew."
        Mpi "mpi" "Functions of MPI by total time, with bytes."
        Sites "sites" "Call paths that launch, by GPU time, with file and line."
    }
}

words! {
    /// What `slowest` lists.
    Slow {
        Kernels "kernels" "Single launches by duration."
        Calls "calls" "Single API calls by duration."
        Copies "copies" "Single copies by duration."
        Ranges "ranges" "Single ROC-TX ranges by duration."
    }
}

/// What a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Sums by kernel, function, route, …
    Top(Top),
    /// Single launches, calls, copies or ranges.
    Slowest(Slow),
    /// When a GPU had nothing to do, and why.
    Gaps,
    /// Iterations.
    Steps,
    /// What is open for longer than the hang threshold.
    Hang,
    /// Functions that returned errors.
    Errors,
    /// Which kernels became slower or faster.
    Compare(Compared),
    /// Allocations that are held.
    Memory,
    /// What the driver's sensors say.
    Gauges,
    /// Where processes run, and where their GPUs are; and where their memory is.
    Placement(Buffers),
    /// The session as a whole.
    Status,
}

/// Whether `placement` also reads where memory is, which stops the program for a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Buffers {
    /// It does not.
    #[default]
    None,
    /// Of processes with little memory.
    Small,
    /// Of all.
    All,
}

/// What `compare` compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// What the screen compares: the last seconds with those of a minute ago.
    Usual,
    /// Two windows, ns since the beginning.
    Windows([(u64, u64); 2]),
    /// Two steps.
    Steps(Name, Name),
    /// The last `length` ns with as many, `back` ns ago.
    Ago {
        /// Length of both windows.
        length: u64,
        /// From the end of the first window to now.
        back: u64,
    },
}

/// The time that a question is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// The whole run.
    #[default]
    Whole,
    /// From and to, ns since the beginning; `u64::MAX` for an open end.
    Between(u64, u64),
    /// The last ROC-TX range of this text.
    Named(String),
    /// The last time, ns.
    Last(u64),
    /// Steps from and to.
    Steps(Name, Name),
}

/// A word or clause, and its column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clause<T> {
    /// Column, in characters from 0.
    pub column: usize,
    /// What it says.
    pub value: T,
}

/// A question.
#[derive(Clone, Debug)]
pub struct Question {
    /// As typed.
    pub source: String,
    /// What it asks for.
    pub verb: Verb,
    /// What passes.
    pub filter: Filter,
    /// The time that it is about.
    pub when: Clause<When>,
    /// The field that sorts or groups.
    pub by: Option<Clause<String>>,
    /// Maximum number of rows.
    pub limit: usize,
}

const VERBS: [&str; 11] = [
    "top",
    "slowest",
    "gaps",
    "steps",
    "hang",
    "errors",
    "compare",
    "memory",
    "gauges",
    "placement",
    "status",
];
const CLAUSES: [&str; 6] = ["where", "in", "last", "step", "by", "limit"];

impl Verb {
    /// Its words in a question.
    pub fn words(self) -> String {
        match self {
            Self::Top(top) => format!("top {}", top.word()),
            Self::Slowest(slow) => format!("slowest {}", slow.word()),
            other => VERBS[other.number()].into(),
        }
    }

    const fn number(self) -> usize {
        match self {
            Self::Top(_) => 0,
            Self::Slowest(_) => 1,
            Self::Gaps => 2,
            Self::Steps => 3,
            Self::Hang => 4,
            Self::Errors => 5,
            Self::Compare(_) => 6,
            Self::Memory => 7,
            Self::Gauges => 8,
            Self::Placement(_) => 9,
            Self::Status => 10,
        }
    }

    /// Why it cannot be about a stretch of time; `None` if it can.
    const fn without_time(self) -> Option<&'static str> {
        match self {
            Self::Top(Top::Kernels | Top::Calls | Top::Copies | Top::Markers | Top::Ranges | Top::Mpi)
            | Self::Slowest(_)
            | Self::Gaps
            | Self::Steps
            | Self::Errors => None,
            Self::Top(Top::Processes | Top::Collectives | Top::Sites) => Some("is counted over the whole run"),
            Self::Compare(_) => Some("names its times itself, as compare 10s..20s with 70s..80s"),
            Self::Hang | Self::Memory | Self::Gauges | Self::Placement(_) | Self::Status => Some("is about now"),
        }
    }
}

impl Question {
    /// Parses a question. `@name` in its filter stands for the preset of that name.
    ///
    /// Errors: it is none; with the column, and what was expected.
    pub fn parse(source: &str, presets: &[(String, String)]) -> Result<Self, Error> {
        let mut parser = Parser {
            chars: source.chars().collect(),
            at: 0,
        };
        if parser.chars.len() > MAX_QUESTION {
            return Err(error(
                MAX_QUESTION,
                format!("a question has at most {MAX_QUESTION} characters"),
            ));
        }
        parser.question(source, presets)
    }
}

fn error(column: usize, message: impl Into<String>) -> Error {
    Error {
        column,
        message: message.into(),
    }
}

/// `a, b or c`.
fn listed(words: &[&str]) -> String {
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.join(""),
    }
}

fn unknown(word: &Clause<String>, what: &str, known: &[&str]) -> Error {
    let near = did_you_mean(&word.value, known.iter().copied());
    let message = if word.value.is_empty() {
        format!("expected {}", listed(known))
    } else {
        format!(
            "no {what} {:?}{}",
            word.value,
            if near.is_empty() {
                format!("; expected {}", listed(known))
            } else {
                near
            }
        )
    };
    error(word.column, message)
}

struct Parser {
    chars: Vec<char>,
    at: usize,
}

impl Parser {
    fn space(&mut self) {
        while self.chars.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
    }

    /// The next word; empty at the end.
    fn word(&mut self) -> Clause<String> {
        self.space();
        let column = self.at;
        while self.chars.get(self.at).is_some_and(|c| !c.is_whitespace()) {
            self.at += 1;
        }
        Clause {
            column,
            value: self.chars[column..self.at].iter().collect(),
        }
    }

    fn peek(&mut self) -> Clause<String> {
        let before = self.at;
        let word = self.word();
        self.at = before;
        word
    }

    /// Takes the next word if it is this one.
    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.peek().value == word;
        if is_next {
            self.word();
        }
        is_next
    }

    fn question(&mut self, source: &str, presets: &[(String, String)]) -> Result<Question, Error> {
        let verb = self.verb()?;
        let mut question = Question {
            source: source.trim().to_owned(),
            verb,
            filter: Filter::default(),
            when: Clause::default(),
            by: None,
            limit: DEFAULT_LIMIT,
        };
        let mut seen: Vec<&str> = Vec::new();
        loop {
            let word = self.word();
            if word.value.is_empty() {
                return Ok(question);
            }
            let Some(&clause) = CLAUSES.iter().find(|known| **known == word.value) else {
                return Err(unknown(&word, "clause", &CLAUSES));
            };
            let is_time = |clause: &str| matches!(clause, "in" | "last" | "step");
            if let Some(before) = seen
                .iter()
                .find(|known| **known == clause || (is_time(known) && is_time(clause)))
            {
                let message = if *before == clause {
                    format!("{clause} is given twice")
                } else {
                    format!("{before} has set the time already")
                };
                return Err(error(word.column, message));
            }
            seen.push(clause);
            match clause {
                "where" if verb == Verb::Status => {
                    return Err(error(word.column, "status is about all: it takes no filter"));
                }
                "where" => question.filter = self.filter(presets)?,
                "by" => question.by = Some(self.field(verb, word.column)?),
                "limit" => question.limit = self.limit()?,
                _ => {
                    if let Some(why) = verb.without_time() {
                        return Err(error(word.column, format!("{} {why}", verb.words())));
                    }
                    question.when = Clause {
                        column: word.column,
                        value: self.when(clause)?,
                    };
                }
            }
        }
    }

    fn verb(&mut self) -> Result<Verb, Error> {
        let word = self.word();
        Ok(match word.value.as_str() {
            "top" => {
                let what = self.word();
                Verb::Top(Top::of(&what.value).ok_or_else(|| unknown(&what, "list", Top::WORDS))?)
            }
            "slowest" => {
                let what = self.peek();
                if what.value.is_empty() || CLAUSES.contains(&what.value.as_str()) {
                    return Ok(Verb::Slowest(Slow::Kernels));
                }
                self.word();
                Verb::Slowest(Slow::of(&what.value).ok_or_else(|| unknown(&what, "list", Slow::WORDS))?)
            }
            "gaps" => Verb::Gaps,
            "steps" => Verb::Steps,
            "hang" => Verb::Hang,
            "errors" => Verb::Errors,
            "compare" => Verb::Compare(self.compared()?),
            "memory" => Verb::Memory,
            "gauges" => Verb::Gauges,
            "placement" if self.takes("buffers") => Verb::Placement(Buffers::All),
            "placement" if self.takes("small-buffers") => Verb::Placement(Buffers::Small),
            "placement" => Verb::Placement(Buffers::None),
            "status" => Verb::Status,
            _ => return Err(unknown(&word, "question", &VERBS)),
        })
    }

    fn compared(&mut self) -> Result<Compared, Error> {
        let next = self.peek();
        match next.value.as_str() {
            "step" => {
                self.word();
                let before = self.step()?;
                self.takes("with");
                Ok(Compared::Steps(before, self.step()?))
            }
            "last" => {
                self.word();
                let length = self.time()?;
                if !self.takes("with") {
                    return Ok(Compared::Ago { length, back: length });
                }
                let back = self.time()?;
                let ago = self.word();
                if ago.value != "ago" {
                    return Err(error(ago.column, "expected ago, as in compare last 10s with 60s ago"));
                }
                Ok(Compared::Ago { length, back })
            }
            word if word == "in" || word.contains("..") => {
                self.takes("in");
                let before = self.range()?;
                self.takes("with");
                Ok(Compared::Windows([before, self.range()?]))
            }
            _ => Ok(Compared::Usual),
        }
    }

    /// The filter: up to the next clause outside of quotes, slashes and brackets.
    fn filter(&mut self, presets: &[(String, String)]) -> Result<Filter, Error> {
        self.space();
        let begin = self.at;
        let mut depth = 0usize;
        while let Some(&c) = self.chars.get(self.at) {
            let before = self.at.checked_sub(1).map_or(' ', |before| self.chars[before]);
            let is_start = before.is_whitespace() || "&|!(=~".contains(before);
            match c {
                '"' => self.skip('"'),
                '/' if is_start => self.skip('/'),
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ if depth == 0 && before.is_whitespace() && CLAUSES.contains(&self.peek().value.as_str()) => break,
                _ => {}
            }
            self.at += 1;
        }
        self.at = self.at.min(self.chars.len());
        let text: String = self.chars[begin..self.at].iter().collect();
        if text.trim().is_empty() {
            return Err(error(begin, "expected a filter, as in where dev=0 dur>1ms"));
        }
        let whole = with_presets(&text, presets);
        Filter::parse(&whole).map_err(|wrong| {
            if whole == text {
                return error(begin + wrong.column, wrong.message);
            }
            error(
                begin,
                format!("{} (column {} of '{}')", wrong.message, wrong.column + 1, whole.trim()),
            )
        })
    }

    /// Moves to the closing quote of a text that begins here, if it is closed.
    fn skip(&mut self, quote: char) {
        let mut at = self.at + 1;
        while let Some(&c) = self.chars.get(at) {
            match c {
                '\\' => at += 1,
                c if c == quote => {
                    self.at = at;
                    return;
                }
                _ => {}
            }
            at += 1;
        }
    }

    fn field(&mut self, verb: Verb, column: usize) -> Result<Clause<String>, Error> {
        let word = self.word();
        if word.value.is_empty() {
            return Err(error(word.column, "expected a field, as in by p99"));
        }
        if verb == Verb::Status {
            return Err(error(column, "status is one row: nothing sorts it"));
        }
        Ok(word)
    }

    fn limit(&mut self) -> Result<usize, Error> {
        let word = self.word();
        let limit = word.value.parse::<usize>().ok();
        limit.filter(|limit| (1..=MAX_LIMIT).contains(limit)).ok_or_else(|| {
            error(
                word.column,
                format!("expected a number of rows from 1 to {MAX_LIMIT}, as in limit 10"),
            )
        })
    }

    fn when(&mut self, clause: &str) -> Result<When, Error> {
        match clause {
            "last" => Ok(When::Last(self.time()?)),
            "step" => self.steps(),
            _ => {
                let next = self.peek();
                match next.value.as_str() {
                    "last" => {
                        self.word();
                        Ok(When::Last(self.time()?))
                    }
                    "step" => {
                        self.word();
                        self.steps()
                    }
                    word if word.starts_with('"') => self.named(next.column),
                    _ => {
                        let (from, to) = self.range()?;
                        Ok(When::Between(from, to))
                    }
                }
            }
        }
    }

    /// The text of a ROC-TX range.
    fn named(&mut self, column: usize) -> Result<When, Error> {
        let begin = column + 1;
        let end = self.chars[begin..].iter().position(|c| *c == '"');
        let end = begin + end.ok_or_else(|| error(column, "no closing \""))?;
        self.at = end + 1;
        let text: String = self.chars[begin..end].iter().collect();
        if text.is_empty() {
            return Err(error(column, "expected the text of a ROC-TX range"));
        }
        Ok(When::Named(text))
    }

    fn steps(&mut self) -> Result<When, Error> {
        let word = self.word();
        let (from, to) = word.value.split_once("..").unwrap_or((&word.value, &word.value));
        let both = Name::parse(from).zip(Name::parse(to));
        both.map(|(from, to)| When::Steps(from, to)).ok_or_else(|| {
            error(
                word.column,
                "expected steps by their numbers, as in step 3..7 or step #3",
            )
        })
    }

    fn step(&mut self) -> Result<Name, Error> {
        let word = self.word();
        let expected = "expected the number of a step, as in compare step 3 with 9";
        Name::parse(&word.value).ok_or_else(|| error(word.column, expected))
    }

    fn time(&mut self) -> Result<u64, Error> {
        let word = self.word();
        let time = units::time(&word.value).filter(|time| *time > 0);
        time.ok_or_else(|| error(word.column, "expected a time, as in last 10s"))
    }

    fn range(&mut self) -> Result<(u64, u64), Error> {
        let word = self.word();
        let wrong = || {
            error(
                word.column,
                "expected a time, as in 1.5s..2s, or a ROC-TX range in quotes",
            )
        };
        let (from, to) = word.value.split_once("..").ok_or_else(wrong)?;
        let at = |text: &str, open: u64| match text.trim_start_matches('+') {
            "" => Some(open),
            text => units::time(text),
        };
        let (from, to) = at(from, 0).zip(at(to, u64::MAX)).ok_or_else(wrong)?;
        if from >= to {
            return Err(error(word.column, "the time ends before it begins"));
        }
        Ok((from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(source: &str) -> Question {
        Question::parse(source, &[]).unwrap_or_else(|wrong| panic!("{source}: {wrong:?}"))
    }

    fn wrong(source: &str) -> (usize, String) {
        let error = Question::parse(source, &[]).map(|_| ()).expect_err(source);
        (error.column, error.message)
    }

    #[test]
    fn clauses_come_in_any_order() {
        let question = parsed("top kernels where dev=0 & dur>1ms in last 10s by p99 limit 5");
        assert_eq!(question.verb, Verb::Top(Top::Kernels));
        assert_eq!(question.filter.source, "dev=0 & dur>1ms");
        assert_eq!(question.when.value, When::Last(10_000_000_000));
        assert_eq!(question.by.as_ref().map(|by| by.value.as_str()), Some("p99"));
        assert_eq!(question.limit, 5);
        let other = parsed("  top kernels limit 5 by p99 last 10s where dev=0 & dur>1ms ");
        assert_eq!(
            (other.filter.source, other.when.value),
            (question.filter.source, question.when.value)
        );
        assert_eq!(parsed("slowest last 1s").verb, Verb::Slowest(Slow::Kernels));
        assert_eq!(
            parsed("slowest copies in 1.5s..2s").when.value,
            When::Between(1_500_000_000, 2_000_000_000)
        );
        assert_eq!(
            parsed("gaps in 2s..").when.value,
            When::Between(2_000_000_000, u64::MAX)
        );
        assert_eq!(
            parsed("steps step 3..7").when.value,
            When::Steps(Name::Number(3), Name::Number(7))
        );
        let (zero, first) = (Name::Number(0), Name::Absolute(1));
        assert_eq!(parsed("steps step 0").when.value, When::Steps(zero, zero));
        assert_eq!(parsed("steps step 0..#1").when.value, When::Steps(zero, first));
        assert_eq!(
            parsed("errors in \"epoch 3\" limit 1").when.value,
            When::Named("epoch 3".into())
        );
        assert_eq!(parsed("status").limit, DEFAULT_LIMIT);
    }

    #[test]
    fn placement_reads_memory_only_where_it_is_asked() {
        let verb = |text: &str| Question::parse(text, &[]).map(|question| question.verb);
        assert_eq!(verb("placement"), Ok(Verb::Placement(Buffers::None)));
        assert_eq!(verb("placement buffers limit 3"), Ok(Verb::Placement(Buffers::All)));
        assert_eq!(verb("placement small-buffers"), Ok(Verb::Placement(Buffers::Small)));
        assert!(verb("placement memory").is_err());
    }

    #[test]
    fn a_filter_keeps_words_in_quotes_slashes_and_brackets() {
        for (source, filter) in [
            ("top kernels where \"by limit\" by avg", "\"by limit\""),
            ("top kernels where /a by b/ by avg", "/a by b/"),
            ("top kernels where (gemm | by) limit 3", "(gemm | by)"),
            ("top calls where hip* last 3s", "hip*"),
            ("top calls where \"limit", ""),
        ] {
            match Question::parse(source, &[]) {
                Ok(question) => assert_eq!(question.filter.source, filter, "{source}"),
                Err(error) => assert!(filter.is_empty() && error.message.contains("no closing"), "{error:?}"),
            }
        }
        let presets = [("long".to_string(), "dur>1ms".to_string())];
        let question = Question::parse("slowest where @long limit 2", &presets).expect("a question");
        assert_eq!(question.filter.source, "(dur>1ms)");
    }

    #[test]
    fn comparisons_name_their_times() {
        let second = 1_000_000_000;
        for (source, compared) in [
            ("compare", Compared::Usual),
            ("compare where gemm", Compared::Usual),
            (
                "compare 1s..2s with 3s..4s",
                Compared::Windows([(second, 2 * second), (3 * second, 4 * second)]),
            ),
            (
                "compare in 1s..2s 3s..4s",
                Compared::Windows([(second, 2 * second), (3 * second, 4 * second)]),
            ),
            (
                "compare step 3 with 9",
                Compared::Steps(Name::Number(3), Name::Number(9)),
            ),
            (
                "compare last 10s",
                Compared::Ago {
                    length: 10 * second,
                    back: 10 * second,
                },
            ),
            (
                "compare last 10s with 60s ago",
                Compared::Ago {
                    length: 10 * second,
                    back: 60 * second,
                },
            ),
        ] {
            assert_eq!(parsed(source).verb, Verb::Compare(compared), "{source}");
        }
    }

    #[test]
    fn errors_have_the_column_and_what_was_expected() {
        for (source, column, part) in [
            ("", 0, "expected top, slowest"),
            ("tpo kernels", 0, "did you mean top?"),
            ("top", 3, "expected kernels, calls"),
            ("top kernel", 4, "did you mean kernels?"),
            ("slowest banana", 8, "expected kernels, calls, copies or ranges"),
            ("top kernels were gemm", 12, "did you mean where?"),
            ("top kernels where", 17, "expected a filter"),
            ("top kernels where dru>3", 18, "did you mean dur?"),
            ("top kernels where gemm & limit 3", 25, "expected"),
            ("top kernels last", 16, "expected a time"),
            ("top kernels last 3parsecs", 17, "expected a time"),
            ("top kernels in 3s", 15, "expected a time, as in 1.5s..2s"),
            ("top kernels in 3s..2s", 15, "ends before it begins"),
            ("top kernels last 3s step 3", 20, "last has set the time"),
            ("top kernels limit 3 limit 3", 20, "limit is given twice"),
            ("top kernels limit 0", 18, "from 1 to 10000"),
            ("top kernels by", 14, "expected a field"),
            ("steps step #0..3", 11, "expected steps"),
            ("hang last 3s", 5, "hang is about now"),
            (
                "top collectives last 3s",
                16,
                "top collectives is counted over the whole run",
            ),
            ("compare step 3 with x", 20, "expected the number of a step"),
            ("compare last 3s with 4s then", 24, "expected ago"),
            ("status where gemm", 7, "takes no filter"),
            ("ümlaut", 0, "no question"),
            ("top kernels in \"ümlaut", 15, "no closing"),
        ] {
            let (at, message) = wrong(source);
            assert_eq!(at, column, "{source}: {message}");
            assert!(message.contains(part), "{source}: {message}");
        }
        assert_eq!(wrong(&"x".repeat(MAX_QUESTION + 1)).0, MAX_QUESTION);
    }

    #[test]
    fn any_text_is_a_question_or_an_error_in_it() {
        let words = [
            "top", "kernels", "slowest", "gaps", "where", "in", "last", "step", "by", "limit", "compare", "with", "3s",
            "3..4", "1s..2s", "\"", "/", "(", ")", "é", "gemm", "dur>1ms", "&", "ago", "0", "..", "\u{0}", " ",
        ];
        let mut seed = 1u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            let mut bits = seed;
            for _ in 0..(seed >> 60) + 2 {
                bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(7);
                text += words[(bits >> 40) as usize % words.len()];
                text += if (bits >> 20).is_multiple_of(8) { "" } else { " " };
            }
            if let Err(error) = Question::parse(&text, &[]) {
                assert!(error.column <= text.chars().count(), "{text}: {error:?}");
            }
        }
    }
}
