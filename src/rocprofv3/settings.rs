//! What was set, on the command line or by an input file.

use super::table::{self, Here, Row, TABLE, Takes, truth, typed};
use crate::cli::usage_error::UsageError;
use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Options with their values, by long name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    set: BTreeMap<&'static str, Vec<String>>,
    /// Counters of further runs: those of each `--pmc` after the first.
    more: Vec<Vec<String>>,
}

impl Settings {
    /// Reads a command line; what follows `--` is the program and its arguments.
    ///
    /// Errors: a [`UsageError`], as `argparse` reports it upstream.
    pub(super) fn parse(words: &[OsString]) -> Result<(Self, Vec<OsString>)> {
        Self::understand(words).map_err(|error| usage_error(format!("{error:#}")))
    }

    fn understand(words: &[OsString]) -> Result<(Self, Vec<OsString>)> {
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        let program = words.get(end + 1..).unwrap_or_default().to_vec();
        let mut options = Vec::new();
        for word in &words[..end] {
            let word = word.to_str().ok_or_else(|| anyhow!("{} is no UTF-8", word.display()))?;
            options.push(word);
        }
        let mut settings = Self::default();
        let mut rest = &options[..];
        while let Some((word, after)) = rest.split_first() {
            rest = after;
            if let Some(long) = word.strip_prefix("--") {
                let (name, value) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None => (long, None),
                };
                let row = table::find(name).ok_or_else(|| unknown(word))?;
                let first = (row.name == "pmc").then(|| settings.set.remove("pmc")).flatten();
                settings.take(row, value, &mut rest)?;
                if let Some(first) = first {
                    settings.more.extend(settings.set.insert("pmc", first));
                }
            } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                settings.letters(word, letters, &mut rest)?;
            } else {
                bail!("'{word}' is no option; the program follows '--': rocprofv3 [options] -- {word} …");
            }
        }
        Ok((settings, program))
    }

    fn letters(&mut self, word: &str, letters: &str, rest: &mut &[&str]) -> Result<()> {
        let mut letters = letters.chars();
        while let Some(letter) = letters.next() {
            let row = TABLE.iter().find(|row| row.letter == letter && letter != ' ');
            let row = row.ok_or_else(|| unknown(word))?;
            let attached = letters.as_str();
            if row.takes == Takes::Flag && !attached.starts_with('=') {
                // A truth value may follow the last of several letters.
                let mut none: &[&str] = &[];
                self.take(row, None, if attached.is_empty() { rest } else { &mut none })?;
                continue;
            }
            let value = attached.strip_prefix('=').unwrap_or(attached);
            return self.take(row, Some(value).filter(|value| !value.is_empty()), rest);
        }
        Ok(())
    }

    /// Takes an option's values from where it was named, and from the words that follow.
    fn take(&mut self, row: &'static Row, value: Option<&str>, rest: &mut &[&str]) -> Result<()> {
        let mut values: Vec<String> = value.map(str::to_owned).into_iter().collect();
        let is_value = |word: &str| !word.starts_with('-') || word.parse::<f64>().is_ok();
        let most = match row.takes {
            Takes::Flag | Takes::One => 1,
            Takes::Many | Takes::Any => usize::MAX,
        };
        while values.len() < most
            && let Some((next, after)) = rest.split_first()
            && is_value(next)
            && (row.takes != Takes::Flag || truth(next).is_some())
        {
            values.push((*next).to_owned());
            *rest = after;
        }
        self.set(row, values)
    }

    /// Sets an option.
    pub(super) fn set(&mut self, row: &'static Row, mut values: Vec<String>) -> Result<()> {
        let name = typed(row.name);
        if row.takes == Takes::Flag {
            let value = values.pop().unwrap_or_else(|| "true".to_owned());
            let value = truth(&value).with_context(|| format!("{name} takes yes or no, not '{value}'"))?;
            values = vec![value.to_string()];
        }
        if values.is_empty() && row.takes != Takes::Any {
            bail!("{name} needs a value");
        }
        let is_switch = matches!(row.takes, Takes::Flag | Takes::Any);
        let is_off = is_switch && matches!(&values[..], [word] if truth(word) == Some(false));
        if let Here::Refused(why) = row.here
            && !is_off
        {
            bail!("{name} is not available: {why}");
        }
        self.set.insert(row.name, values);
        Ok(())
    }

    /// The runs of a command line: one for each `--pmc`, and one if there is none.
    pub(super) fn runs(&self) -> Vec<Self> {
        let with = |counters| {
            let mut set = self.set.clone();
            set.extend(counters);
            Self { set, more: Vec::new() }
        };
        let more = self.more.iter().map(|counters| with(Some(("pmc", counters.clone()))));
        std::iter::once(with(None)).chain(more).collect()
    }

    /// The same without the counters.
    pub(super) fn uncounted(&self) -> Self {
        let mut set = self.set.clone();
        set.remove("pmc");
        Self { set, more: Vec::new() }
    }

    /// Whether counters are named.
    pub(super) fn counts(&self) -> bool {
        !self.values("pmc").is_empty()
    }

    /// Adds what an input file sets; the same option with another value is an error.
    pub(super) fn join(&self, file: &Self) -> Result<Self> {
        let mut all = self.clone();
        for (name, values) in &file.set {
            match all.set.get(name) {
                Some(typed_values) if typed_values != values => bail!(
                    "{} is '{}' on the command line and '{}' in the input file",
                    typed(name),
                    typed_values.join(" "),
                    values.join(" ")
                ),
                _ => all.set.insert(name, values.clone()),
            };
        }
        Ok(all)
    }

    /// A switch, if it was set.
    pub(super) fn switch(&self, name: &str) -> Option<bool> {
        self.set.get(name).map(|values| values == &["true"])
    }

    /// Whether a switch is on.
    pub(super) fn on(&self, name: &str) -> bool {
        self.switch(name) == Some(true)
    }

    /// An option's one value.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.set.get(name).and_then(|values| values.last()).map(String::as_str)
    }

    /// All values of an option.
    pub(super) fn values(&self, name: &str) -> &[String] {
        self.set.get(name).map_or(&[], Vec::as_slice)
    }

    /// Every option that was set, as JSON: truth values, one text, or a list.
    pub(super) fn all(&self) -> impl Iterator<Item = (String, Value)> {
        self.set.iter().map(|(name, values)| {
            let takes = table::find(name).map(|row| row.takes);
            let value = match (takes, values.as_slice()) {
                (Some(Takes::Flag), [one]) => Value::from(one == "true"),
                (Some(Takes::One), [one]) => Value::from(one.as_str()),
                _ => Value::from(values.as_slice()),
            };
            ((*name).to_owned(), value)
        })
    }

    /// Options that change nothing here or do not do all they should, with the reason.
    pub(super) fn moot(&self) -> impl Iterator<Item = Note> {
        self.set.keys().filter_map(|name| match table::find(name)?.here {
            Here::Moot(why) => Some((typed(name), why)),
            Here::Partly(why) if self.on(name) => Some((typed(name), why)),
            _ => None,
        })
    }
}

/// An option as it is typed, and what is missing of it.
pub(super) type Note = (String, &'static str);

/// What a command line has wrong by itself.
pub(super) fn usage_error(message: String) -> anyhow::Error {
    UsageError(message).into()
}

fn unknown(word: &str) -> anyhow::Error {
    let bare = word.trim_start_matches('-').replace('-', "_");
    let bare = bare.split('=').next().unwrap_or(&bare);
    let near = TABLE
        .iter()
        .map(|row| row.name)
        .find(|name| bare.len() > 2 && name.starts_with(bare));
    match near {
        Some(near) => anyhow!("there is no option '{word}'; {} is one", typed(near)),
        None => anyhow!("there is no option '{word}'; 'roctop rocprofv3 --help' lists them"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<(Settings, Vec<OsString>)> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        Settings::parse(&words)
    }

    #[test]
    fn every_option_is_taken_or_refused_with_a_reason() {
        for row in TABLE {
            let value = if row.takes == Takes::Flag { "" } else { " 1" };
            let long = parse(&format!("{}{value} -- app", typed(row.name)));
            match row.here {
                Here::Refused(why) => assert!(long.unwrap_err().to_string().contains(why)),
                _ => assert_eq!(long.unwrap().1, ["app"], "{}", row.name),
            }
            if row.letter != ' ' && !matches!(row.here, Here::Refused(_)) {
                let (long, short) = (typed(row.name), format!("-{}", row.letter));
                let parsed = |name: &str| parse(&format!("{name}{value} -- app")).unwrap();
                assert_eq!(parsed(&long), parsed(&short));
            }
        }
        let mut letters: Vec<char> = TABLE
            .iter()
            .map(|row| row.letter)
            .filter(|letter| *letter != ' ')
            .collect();
        let count = letters.len();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), count, "a letter means one thing");
    }

    #[test]
    fn values_may_be_attached_or_follow() {
        let (settings, program) =
            parse("-d out -oname --output-format csv JSON --hip-trace=no -MS -- ./app -d x").unwrap();
        assert_eq!(settings.value("output_directory"), Some("out"));
        assert_eq!(settings.value("output_file"), Some("name"));
        assert_eq!(settings.values("output_format"), ["csv", "JSON"]);
        assert_eq!(settings.switch("hip_trace"), Some(false));
        assert!(settings.on("mangled_kernels") && settings.on("summary"));
        assert_eq!(program, ["./app", "-d", "x"]);
        assert!(parse("--kernel-trace off -- a").unwrap().0.switch("kernel_trace") == Some(false));
        assert!(parse("--memory-allocation-trace=no -- a").is_ok());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, word) in [
            ("--kernel-tr -- a", "--kernel-trace"),
            ("--nonsense -- a", "--nonsense"),
            ("-q -- a", "-q"),
            ("./app", "./app"),
            ("-d", "--output-directory"),
            ("--hip-trace=maybe -- a", "maybe"),
            ("--pmc-groups -- a", "--pmc-groups needs a value"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.is::<UsageError>());
            let shown = error.to_string();
            assert!(shown.contains(word), "{line}: {shown}");
        }
    }

    #[test]
    fn each_pmc_is_a_run() {
        let counters = |line: &str| {
            let runs = parse(line).unwrap().0.runs();
            runs.iter().map(|run| run.values("pmc").join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(counters("--pmc A B -M -- a"), ["A B"]);
        assert_eq!(counters("--pmc A B --pmc=C -M --pmc D -- a"), ["A B", "C", "D"]);
        assert_eq!(counters("--kernel-trace -- a"), [""]);
        assert_eq!(counters("--pmc -- a"), [""]);
    }

    #[test]
    fn what_takes_values_or_none_takes_none() {
        let (settings, _) = parse("--preload -M -- a").unwrap();
        assert!(settings.values("preload").is_empty() && settings.on("mangled_kernels"));
        assert!(parse("--ompt-trace -- a").unwrap_err().to_string().contains("OpenMP"));
        assert!(parse("--ompt-trace parallel task -- a").is_err() && parse("--ompt-trace=no -- a").is_ok());
    }
}
