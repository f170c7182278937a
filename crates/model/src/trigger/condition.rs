//! The language of conditions.

use crate::query::{Error, Field, Filter, amount};
use crate::report::threshold::{self, MEASURES, Measure, ORDERS, Order};
use crate::subject::Kind;
use roctop_trace::gauge::metric::{Metric, Unit};
use roctop_trace::item::Nanos;
use roctop_trace::spelling::did_you_mean;
use roctop_trace::units::{self, Quantity};

/// A condition, as typed and parsed.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The condition as typed.
    pub source: String,
    pub(super) test: Test,
    /// Length of the window of its statistic, if it names one (`in last 10s`).
    pub(super) window: Option<Nanos>,
}

/// What a condition tests.
#[derive(Clone, Debug)]
pub(super) enum Test {
    /// A call that passes the filter failed.
    Error(Filter),
    /// The program ended.
    Exit(Ending),
    /// A mark or range passes the filter.
    Marker(Filter),
    /// A step, launch, copy, call or range took a time.
    Each(Each, Order, Limit),
    /// A statistic of each kernel, copy route or function that passes the filter.
    Statistic(Measure, Filter, Order, Limit),
    /// Records lost within the window.
    Lost(Order, f64),
    /// A GPU, or any, ran neither kernel nor copy for longer than this, ns.
    Idle(Option<u32>, u64),
    /// Work that passes the filter has been open for longer than this, ns.
    Hang(Filter, u64),
    /// A gauge of a GPU, or of any.
    Gauge(Metric, Option<u32>, Order, f64),
    /// A hardware counter or metric of a kernel that passes the filter, or of a GPU.
    Counter(String, Filter, Order, f64),
}

/// Things that have a duration each.
#[derive(Clone, Debug)]
pub(super) enum Each {
    /// Steps: ranges that pass the filter; without one, the ranges that the screen takes for steps.
    Step(Option<Filter>),
    /// Kernels, copies and calls that pass the filter.
    Work(Filter),
    /// ROC-TX ranges that pass the filter.
    Range(Filter),
}

/// Right side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Limit {
    /// A number, in base units.
    Fixed(f64),
    /// A factor times a statistic of the left side's subject.
    Times(f64, Measure),
}

/// How a program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Any,
    /// With a code other than 0, or by a signal.
    Error,
    Signal(Option<i32>),
    Code(i32),
}

/// Words at the beginning of a condition, apart from measures, gauges and counters.
const WORDS: [&str; 9] = [
    "step", "dur", "range", "error", "exit", "marker", "idle", "hang", "lost",
];

/// Hint for an invalid condition.
const SHAPE: &str = "expected as 'step > 1.3*p50(step)', 'p99(gemm) > 2ms', 'error(hip*)' or 'hang > 5s'";

impl Condition {
    /// Parses a condition.
    ///
    /// Errors: it is none; the error has the column and what was expected there.
    pub fn parse(source: &str) -> Result<Self, Error> {
        let mut scanner = Scanner {
            chars: source.chars().collect(),
            at: 0,
        };
        let (test, window) = scanner.condition()?;
        scanner.space();
        if scanner.at < scanner.chars.len() {
            return Err(scanner.error("expected nothing more"));
        }
        Ok(Self {
            source: source.trim().to_owned(),
            test,
            window,
        })
    }

    /// Its first word, for the name of a recording: `step`, `p99`, `hang`.
    pub fn word(&self) -> &str {
        let end = self.source.find(|c: char| !is_word(c));
        &self.source[..end.unwrap_or(self.source.len())]
    }

    /// Whether it needs decoded calls, dispatches, copies or markers.
    pub(super) const fn needs_records(&self) -> bool {
        !matches!(
            self.test,
            Test::Exit(_) | Test::Lost(..) | Test::Hang(..) | Test::Gauge(..)
        )
    }
}

const fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '[' || c == ']'
}

/// An argument in brackets: its column and its text.
type Argument = Option<(usize, String)>;

struct Scanner {
    chars: Vec<char>,
    at: usize,
}

impl Scanner {
    fn error(&self, message: impl Into<String>) -> Error {
        error_at(self.at, message)
    }

    fn space(&mut self) {
        while self.chars.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
    }

    fn rest(&self) -> String {
        self.chars[self.at..].iter().collect()
    }

    fn word(&mut self) -> String {
        let begin = self.at;
        while self.chars.get(self.at).is_some_and(|c| is_word(*c)) {
            self.at += 1;
        }
        self.chars[begin..self.at].iter().collect()
    }

    fn condition(&mut self) -> Result<(Test, Option<Nanos>), Error> {
        self.space();
        let begin = self.at;
        let word = self.word();
        if word.is_empty() {
            return Err(self.error(SHAPE));
        }
        let argument = self.argument()?;
        match word.as_str() {
            "error" => Ok((Test::Error(filter(argument, &[Kind::Call])?), None)),
            "exit" => Ok((Test::Exit(ending(argument)?), None)),
            "marker" => Ok((Test::Marker(self.marker(argument)?), None)),
            "step" | "dur" | "range" => self.each(&word, argument),
            "lost" => {
                no_argument(argument.as_ref(), "lost takes no name")?;
                let (order, limit) = self.compared(amount_of(Field::Calls))?;
                Ok((Test::Lost(order, limit), self.window()?))
            }
            "idle" => {
                let gpu = gpu(argument)?;
                Ok((Test::Idle(gpu, self.longer_than("idle")?), None))
            }
            "hang" => {
                let filter = filter(argument, &[Kind::Kernel, Kind::Call])?;
                Ok((Test::Hang(filter, self.longer_than("hang")?), None))
            }
            _ => self.measured(begin, &word, argument),
        }
    }

    /// A statistic, a gauge or a counter.
    fn measured(&mut self, begin: usize, word: &str, argument: Argument) -> Result<(Test, Option<Nanos>), Error> {
        if let Some((_, measure)) = MEASURES.iter().find(|known| known.0 == word) {
            if !measure.is_of_trigger() {
                let hint = match *measure {
                    Measure::Wait => "; one rank has 'dur(MPI_Allreduce) > 5ms'",
                    _ => "",
                };
                return Err(error_at(
                    begin,
                    format!("{word} is a measure of 'roctop summary' alone{hint}"),
                ));
            }
            if argument.is_none() {
                let message = format!("{word} of what? expected as {word}(gemm)");
                return Err(self.error(message));
            }
            let text = argument.as_ref().map(|argument| argument.1.clone());
            let measure = *measure;
            let filter = filter(argument, kinds_of(measure))?;
            let read = if measure == Measure::Bytes {
                amount_of(Field::Bytes)
            } else if measure.is_time() {
                time
            } else {
                amount_of(Field::Calls)
            };
            let order = self.order()?;
            let limit = self.limit(text.as_deref(), measure.is_time(), read)?;
            return Ok((Test::Statistic(measure, filter, order, limit), self.window()?));
        }
        if let Some(metric) = Metric::ALL.iter().find(|metric| metric.key() == word) {
            let gpu = gpu(argument)?;
            let (order, limit) = self.compared(match metric.unit() {
                Unit::Bytes => amount_of(Field::Bytes),
                Unit::BytesPerSecond => amount_of(Field::Bw),
                _ => plain,
            })?;
            return Ok((Test::Gauge(*metric, gpu, order, limit), None));
        }
        if word.starts_with(|c: char| c.is_ascii_uppercase()) {
            let filter = filter_on(argument, "kernels' counters", |field| {
                matches!(
                    field,
                    Field::Name | Field::Mangled | Field::Vgpr | Field::Sgpr | Field::Spills
                )
            })?;
            let (order, limit) = self.compared(plain)?;
            return Ok((Test::Counter(word.to_owned(), filter, order, limit), None));
        }
        let measures = MEASURES.iter().map(|known| known.0);
        let gauges = Metric::ALL.iter().map(|metric| metric.key());
        let near = did_you_mean(word, WORDS.into_iter().chain(measures).chain(gauges));
        Err(error_at(
            begin,
            format!(
                "no condition begins with '{word}'{near} ({}, a measure, a gauge, or a counter's name)",
                WORDS.join(", ")
            ),
        ))
    }

    fn each(&mut self, word: &str, argument: Argument) -> Result<(Test, Option<Nanos>), Error> {
        let text = argument.as_ref().map_or(word, |argument| &argument.1).to_owned();
        let each = match word {
            "step" => Each::Step(
                argument
                    .map(|argument| filter(Some(argument), &[Kind::Marker]))
                    .transpose()?,
            ),
            _ if argument.is_none() => {
                return Err(self.error(format!("{word} of what? expected as {word}(gemm)")));
            }
            "dur" => Each::Work(filter(argument, &WORK)?),
            _ => Each::Range(filter(argument, &[Kind::Marker])?),
        };
        let order = self.order()?;
        let limit = self.limit(Some(&text), true, time)?;
        let window = self.window()?;
        Ok((Test::Each(each, order, limit), window))
    }

    /// `~ "NaN"`, `= loss*`, or a filter in brackets.
    fn marker(&mut self, argument: Argument) -> Result<Filter, Error> {
        self.space();
        if let Some((column, _)) = &argument {
            if self.at < self.chars.len() {
                return Err(error_at(*column, "a marker's text is in brackets or after ~, not both"));
            }
            return filter(argument, &[Kind::Marker]);
        }
        let rest = self.rest();
        let Some(operator) = ["!~", "!=", "~", "="].iter().find(|sign| rest.starts_with(**sign)) else {
            return Err(self.error("expected ~ and a text, as in marker ~ \"NaN\""));
        };
        self.at += operator.len();
        self.space();
        let begin = self.at;
        let text: String = self.rest().trim_end().to_owned();
        self.at = self.chars.len();
        if text.is_empty() {
            return Err(error_at(begin, "expected a text, as in marker ~ \"NaN\""));
        }
        let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let written = match operator.strip_suffix('~') {
            Some(not) => {
                let regex = quoted.unwrap_or(&text).replace('/', "\\/");
                format!("name{not}=/{regex}/")
            }
            None => format!("name{operator}{text}"),
        };
        Filter::parse(&written).map_err(|error| error_at(begin, error.message))
    }

    /// The text in brackets, if there are some: up to the bracket that closes the first one.
    fn argument(&mut self) -> Result<Argument, Error> {
        self.space();
        if self.chars.get(self.at) != Some(&'(') {
            return Ok(None);
        }
        let open = self.at;
        self.at += 1;
        let (begin, mut depth, mut quote) = (self.at, 1usize, None);
        while let Some(c) = self.chars.get(self.at).copied() {
            let before = self.chars.get(self.at.wrapping_sub(1)).copied().unwrap_or(' ');
            match (quote, c) {
                (Some(end), c) if c == end && before != '\\' => quote = None,
                (None, '"') => quote = Some('"'),
                (None, '/') if before.is_whitespace() || "(!&|~=".contains(before) => quote = Some('/'),
                (None, '(') => depth += 1,
                (None, ')') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let text: String = self.chars[begin..self.at].iter().collect();
                self.at += 1;
                if text.trim().is_empty() {
                    return Err(error_at(begin, "expected a name or a filter in the brackets"));
                }
                return Ok(Some((begin, text)));
            }
            self.at += 1;
        }
        Err(error_at(open, "this bracket is not closed"))
    }

    fn order(&mut self) -> Result<Order, Error> {
        self.space();
        let rest = self.rest();
        let found = ORDERS.iter().find(|(sign, _)| rest.starts_with(sign));
        let Some((sign, order)) = found else {
            return Err(self.error("expected a comparison: > >= < <="));
        };
        self.at += sign.len();
        Ok(*order)
    }

    /// The text of a limit: up to `in last`, or to the end.
    fn limit_text(&mut self) -> Result<(usize, String), Error> {
        self.space();
        let begin = self.at;
        let rest = self.rest();
        let text = match rest.split_once(" in ") {
            Some((text, _)) => text,
            None => &rest,
        };
        self.at += text.chars().count();
        let text = text.trim().to_owned();
        if text.is_empty() {
            return Err(error_at(begin, "expected a limit"));
        }
        Ok((begin, text))
    }

    fn compared(&mut self, read: Reading) -> Result<(Order, f64), Error> {
        let order = self.order()?;
        let (column, text) = self.limit_text()?;
        Ok((order, read(&text).map_err(|message| error_at(column, message))?))
    }

    /// `> TIME`, ns.
    fn longer_than(&mut self, word: &str) -> Result<u64, Error> {
        self.space();
        let column = self.at;
        match self.compared(time)? {
            (Order::Above | Order::AtLeast, limit) => Ok(limit as u64),
            _ => Err(error_at(column, format!("{word} goes with > and >= alone"))),
        }
    }

    /// A number, or a factor times a statistic of `subject`.
    fn limit(&mut self, subject: Option<&str>, is_time: bool, read: Reading) -> Result<Limit, Error> {
        let (column, text) = self.limit_text()?;
        let Some((head, name)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) else {
            return read(&text)
                .map(Limit::Fixed)
                .map_err(|message| error_at(column, message));
        };
        let (factor, word) = head.split_once('*').unwrap_or(("1", head));
        let factor = factor.trim().parse::<f64>().ok().filter(|factor| *factor > 0.0);
        let Some(factor) = factor.filter(|factor| factor.is_finite()) else {
            return Err(error_at(column, "expected a factor, as in 1.3*p50(step)"));
        };
        let known = MEASURES.iter().find(|known| known.0 == word.trim());
        let Some(measure) = known
            .map(|known| known.1)
            .filter(|measure| is_time && measure.is_time() && measure.is_of_trigger() && *measure != Measure::Total)
        else {
            let near = did_you_mean(word.trim(), ["p50", "p95", "p99", "avg", "min", "max"]);
            let message = format!(
                "'{}' is no statistic of a time{near}: p50, p95, p99, avg, min, max",
                word.trim()
            );
            return Err(error_at(column, message));
        };
        if subject.map(str::trim) != Some(name.trim()) {
            let own = subject.unwrap_or("step");
            let message = format!("a limit is of the same subject: expected {}({own})", word.trim());
            return Err(error_at(column, message));
        }
        Ok(Limit::Times(factor, measure))
    }

    /// `in last TIME`, if it follows.
    fn window(&mut self) -> Result<Option<Nanos>, Error> {
        self.space();
        if self.at >= self.chars.len() {
            return Ok(None);
        }
        let begin = self.at;
        let rest = self.rest();
        let text = rest.strip_prefix("in ").map(str::trim_start);
        let Some(text) = text.and_then(|text| text.strip_prefix("last ")) else {
            return Err(error_at(begin, "expected 'in last' and a time, as in 'in last 10s'"));
        };
        self.at = self.chars.len();
        let nanos = units::time(text).filter(|nanos| *nanos >= 1_000_000);
        nanos.map(Some).ok_or_else(|| {
            let column = self.chars.len() - text.chars().count();
            error_at(column, "expected a time from 1ms on, as in 'in last 10s'")
        })
    }
}

fn error_at(column: usize, message: impl Into<String>) -> Error {
    Error {
        column,
        message: message.into(),
    }
}

/// Reads a limit; the error says what was expected.
type Reading = fn(&str) -> Result<f64, String>;

fn time(text: &str) -> Result<f64, String> {
    threshold::limit(text, true).ok_or_else(|| format!("'{text}' is not a time with its unit, as 2ms"))
}

/// A number, with or without the unit's sign.
fn plain(text: &str) -> Result<f64, String> {
    let digits = text
        .trim_end_matches(|c: char| c.is_alphabetic() || c == '%' || c == '°')
        .trim();
    let unit = text[digits.len()..].trim();
    let factor = match unit {
        "%" | "W" | "J" | "C" | "°C" | "MHz" | "rpm" | "mV" => 1.0,
        unit => Quantity::Count
            .factor(unit)
            .ok_or_else(|| format!("'{text}' is not a number"))?,
    };
    let number = digits.parse::<f64>().ok().filter(|number| number.is_finite());
    number
        .map(|number| number * factor)
        .ok_or_else(|| format!("'{text}' is not a number"))
}

fn amount_of(field: Field) -> Reading {
    match field {
        Field::Bytes => |text| amount(Field::Bytes, text).map_err(|error| error.message),
        Field::Bw => |text| amount(Field::Bw, text).map_err(|error| error.message),
        _ => |text| amount(Field::Calls, text).map_err(|error| error.message),
    }
}

/// Work with a duration each.
const WORK: [Kind; 3] = [Kind::Kernel, Kind::Copy, Kind::Call];

/// Kinds of records that have a measure.
const fn kinds_of(measure: Measure) -> &'static [Kind] {
    match measure {
        Measure::Bytes => &[Kind::Copy],
        Measure::Errors => &[Kind::Call],
        _ => &WORK,
    }
}

/// A filter on records of some kinds.
///
/// Errors: it is none, or it can select no record of these kinds.
fn filter(argument: Argument, kinds: &[Kind]) -> Result<Filter, Error> {
    let words: Vec<&str> = kinds.iter().map(|kind| kind.word()).collect();
    let begin = argument.as_ref().map_or(0, |argument| argument.0);
    let filter = parsed(argument)?;
    if kinds
        .iter()
        .any(|kind| filter.may_select(|field| kind.has_alone(field)))
    {
        return Ok(filter);
    }
    Err(selects_nothing(begin, &words.join(", ")))
}

/// A filter on things that have these fields.
fn filter_on(argument: Argument, word: &str, has: impl Fn(Field) -> bool + Copy) -> Result<Filter, Error> {
    let begin = argument.as_ref().map_or(0, |argument| argument.0);
    let filter = parsed(argument)?;
    if filter.may_select(has) {
        return Ok(filter);
    }
    Err(selects_nothing(begin, word))
}

fn selects_nothing(column: usize, word: &str) -> Error {
    let message = format!(
        "this can select nothing of {word}: a condition knows the fields of a record, not its call site, its row, or counters"
    );
    error_at(column, message)
}

/// A filter in brackets; a word with `*` matches the whole name, as in `error(hip*)`. Without brackets everything passes.
fn parsed(argument: Argument) -> Result<Filter, Error> {
    let Some((column, text)) = argument else {
        return Ok(Filter::default());
    };
    let lead = text.chars().take_while(|c| c.is_whitespace()).count();
    let word = text.trim();
    let is_glob = word.contains('*') && word.chars().all(|c| is_word(c) || "*:.-".contains(c));
    let (written, before) = if is_glob {
        (format!("name={word}"), "name=".len())
    } else {
        (text.clone(), 0)
    };
    let column = column + if is_glob { lead } else { 0 };
    Filter::parse(&written).map_err(|error| error_at(column + error.column.saturating_sub(before), error.message))
}

fn no_argument(argument: Option<&(usize, String)>, message: &str) -> Result<(), Error> {
    argument.map_or(Ok(()), |(column, _)| Err(error_at(*column, message)))
}

/// `gpu0`, `GPU0` or `0`; `None`: any GPU.
fn gpu(argument: Argument) -> Result<Option<u32>, Error> {
    let Some((column, text)) = argument else {
        return Ok(None);
    };
    let lower = text.trim().to_ascii_lowercase();
    let number = lower.strip_prefix("gpu").unwrap_or(&lower);
    let number = number
        .parse()
        .map_err(|_| error_at(column, format!("'{}' is not a GPU, as gpu0", text.trim())));
    number.map(Some)
}

fn ending(argument: Argument) -> Result<Ending, Error> {
    let Some((column, text)) = argument else {
        return Ok(Ending::Any);
    };
    let word = text.trim();
    let lower = word.to_ascii_lowercase();
    let name = lower.strip_prefix("sig").unwrap_or(&lower);
    let is_named = |number: &i32| {
        let known = units::signal_name(*number).to_ascii_lowercase();
        known.strip_prefix("sig").is_some_and(|known| known == name)
    };
    Ok(match lower.as_str() {
        "any" => Ending::Any,
        "error" => Ending::Error,
        "signal" => Ending::Signal(None),
        _ => match (word.parse(), (1..32).find(is_named)) {
            (Ok(code), _) => Ending::Code(code),
            (_, Some(signal)) => Ending::Signal(Some(signal)),
            _ => {
                let message =
                    format!("'{word}' is no way to end: expected signal, error, any, a code or a name as SEGV");
                return Err(error_at(column, message));
            }
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_documents_show_is_understood() {
        for text in [
            "step > 1.3*p50(step)",
            "step(train*) > 2 * p50(train*)",
            "step > 500ms",
            "p99(gemm) > 2ms",
            "p99(gemm) > 2ms in last 5s",
            "p99(gemm & dev=0) >= 3*p50(gemm & dev=0)",
            "dur(/gemm|conv/) > 10ms",
            "dur(Gemm<float>) > 10ms",
            "range(forward) > 1s",
            "calls(hipMalloc) > 1k in last 1s",
            "bytes(H2D) > 4GiB in last 1s",
            "idle(gpu0) > 500ms",
            "idle > 1s",
            "error(hip*)",
            "error",
            "errors(hipMalloc) > 3",
            "hang > 5s",
            "hang(gemm) >= 5s",
            "marker ~ \"NaN\"",
            "marker ~ \"loss is NaN\"",
            "marker = loss*",
            "marker(/loss (nan|inf)/i)",
            "lost > 0",
            "lost > 100 in last 1min",
            "temperature_junction > 95",
            "power(gpu1) > 300W",
            "vram_used > 60GiB",
            "busy(gpu0) < 10%",
            "SQ_WAVES > 1e6",
            "SQ_WAVES(gemm) > 2M",
            "exit(signal)",
            "exit(SEGV)",
            "exit(SIGABRT)",
            "exit(error)",
            "exit(3)",
            "exit",
            "dur(dir=h2d) > 1us",
            "dur(gemm | site~x) > 1us",
            "dur(!(gemm & site~x)) > 1us",
            "bytes(dev=0) > 1M",
            "SQ_WAVES(vgpr>100) > 1",
        ] {
            let parsed = Condition::parse(text);
            assert!(parsed.is_ok(), "{text}: {parsed:?}");
        }
        assert_eq!(Condition::parse(" p99(x) > 2ms").unwrap().word(), "p99");
        assert!(matches!(
            Condition::parse("exit(KILL)").unwrap().test,
            Test::Exit(Ending::Signal(Some(9)))
        ));
        assert!(matches!(
            Condition::parse("step > 1.3*p50(step) in last 1min").unwrap(),
            Condition { test: Test::Each(Each::Step(None), Order::Above, Limit::Times(factor, Measure::P50)), window: Some(60_000_000_000), .. }
                if (factor - 1.3).abs() < 1e-9
        ));
    }

    #[test]
    fn errors_have_a_column_and_say_what_is_expected() {
        for (text, column, part) in [
            ("", 0, "expected as"),
            ("stpe > 1ms", 0, "did you mean step?"),
            ("step", 4, "comparison"),
            ("step > ", 7, "expected a limit"),
            ("step > 3", 7, "with its unit"),
            ("step > 1.3*p51(step)", 7, "did you mean p50?"),
            ("step > x*p50(step)", 7, "expected a factor"),
            ("step > 2*p50(gemm)", 7, "p50(step)"),
            ("p99(gemm > 2ms", 3, "not closed"),
            ("p99() > 2ms", 4, "expected a name"),
            ("p99 > 2ms", 4, "p99(gemm)"),
            ("p99(dru>3) > 2ms", 4, "did you mean dur?"),
            ("p99(gemm) > 2ms in last x", 24, "expected a time"),
            ("p99(gemm) > 2ms in 3s", 16, "in last"),
            ("skew(AllReduce) > 2ms", 0, "alone"),
            ("wait(MPI_Allreduce) > 2ms", 0, "dur(MPI_Allreduce)"),
            ("hang < 5s", 5, "> and >= alone"),
            ("idle(cpu0) > 1s", 5, "as gpu0"),
            ("lost(x) > 0", 5, "takes no name"),
            ("lost > 1ms", 7, "expected a number"),
            ("error(hip*) > 2", 12, "expected nothing more"),
            ("error(~[)", 7, "regex"),
            ("exit(sigwhat)", 5, "as SEGV"),
            ("marker", 6, "expected ~"),
            ("marker ~ ", 9, "expected a text"),
            ("marker ~ \"[\"", 9, "regex"),
            ("power > x", 8, "not a number"),
            ("dur > 2ms", 4, "dur(gemm)"),
            ("dur(site~nothing) > 1us", 4, "nothing of kernels, copies, calls"),
            ("dur(gemm & file~x) > 1us", 4, "not its call site"),
            ("dur(total>1%) > 1us", 4, "its row"),
            ("p99(SQ_WAVES>3) > 1us", 4, "counters"),
            ("dur(dir=h2d err>0) > 1us", 4, "can select nothing"),
            ("dur(!(domain=hip | dev=0)) > 1us", 4, "can select nothing"),
            ("bytes(vgpr>3) > 1k", 6, "nothing of copies"),
            ("errors(dev=0) > 1", 7, "nothing of calls"),
            ("step(bytes>3) > 1ms", 5, "nothing of markers"),
            ("SQ_WAVES(stream=3) > 1", 9, "kernels' counters"),
        ] {
            let error = Condition::parse(text).map(|_| ()).unwrap_err();
            assert!(error.message.contains(part), "{text}: {}", error.message);
            assert_eq!(error.column, column, "{text}: {}", error.message);
        }
    }

    #[test]
    fn any_text_is_a_condition_or_an_error() {
        let alphabet: Vec<char> = "steppdur(p50)>1.3*msin last\"/~=é[&|".chars().collect();
        let mut seed = 1u64;
        for _ in 0..20_000 {
            let mut text = String::from(["step ", "p99(", "marker ~", "idle", ""][(seed % 5) as usize]);
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            let mut bits = seed;
            for _ in 0..(seed >> 59) {
                bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(7);
                text.push(alphabet[(bits >> 40) as usize % alphabet.len()]);
            }
            if let Err(error) = Condition::parse(&text) {
                assert!(error.column <= text.chars().count(), "{text}: {error:?}");
            }
        }
    }
}
