//! What the user has set for good: a TOML file. What the command line says goes before it.
//!
//! Reading is strict: what is not known is an error that names the line.

mod columns;
mod path;
mod preset;
mod schema;
mod thresholds;
pub mod yaml;

pub use self::path::{directory, path};
pub use self::preset::keep_preset;
pub use self::schema::schema;

use self::path::is_named;
use crate::kernel_name::Aliases;
use crate::model::analysis::Thresholds;
use crate::query::{Filter, with_presets};
use crate::ui::key::Key;
use crate::ui::keymap::{KEYMAP, Keys, Scope};
use crate::ui::time::Motion;
use crate::ui::{ColumnId, Marks, Pane};
use regex::Regex;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The file as it is when nobody has set anything, with words on all of it.
pub const DEFAULT: &str = include_str!("settings/default.toml");

/// A screen takes so much without any data.
const MIN_MEMORY: u64 = 192 << 20;

/// What was set.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Name or path of the theme.
    pub theme: Option<String>,
    /// Glyphs beyond ASCII; none: as the locale says.
    pub unicode: Option<bool>,
    /// One list of each view, however large the terminal is.
    pub is_compact: bool,
    /// Memory that a screen may take, for exact data of the timeline; none: as usual.
    pub memory: Option<u64>,
    /// How the timeline moves; none: as the line to the terminal allows.
    pub motion: Option<Motion>,
    /// What charts are drawn with; none: what the terminal is likely to show.
    pub marks: Option<Marks>,
    /// Whether the mouse is asked for.
    pub no_mouse: bool,
    /// Filter to start with.
    pub filter: Option<String>,
    /// Keys.
    pub keys: Keys,
    /// Kernels of other names.
    pub aliases: Aliases,
    /// Lists with columns of the user's choice.
    pub columns: Vec<(Pane, Vec<ColumnId>)>,
    /// When something is worth a look.
    pub thresholds: Thresholds,
    /// Filters by name.
    pub presets: Vec<(String, String)>,
    /// The share of a core, in per cent, above which the screen slows down.
    pub throttle: Option<f64>,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong and what was expected.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    theme: Option<String>,
    glyphs: Option<Spanned<String>>,
    layout: Option<Spanned<String>>,
    #[serde(default)]
    timeline: Timeline,
    #[serde(default)]
    charts: Charts,
    mouse: Option<bool>,
    filter: Option<Spanned<String>>,
    throttle: Option<Spanned<f64>>,
    #[serde(default)]
    keys: BTreeMap<Spanned<String>, Vec<Spanned<String>>>,
    #[serde(default)]
    columns: BTreeMap<Spanned<String>, Vec<Spanned<String>>>,
    #[serde(default)]
    thresholds: thresholds::File,
    #[serde(default)]
    alias: Vec<Alias>,
    #[serde(default)]
    presets: BTreeMap<String, Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Timeline {
    motion: Option<Spanned<String>>,
    memory: Option<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Charts {
    marks: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Alias {
    kernel: Spanned<String>,
    name: String,
}

impl Config {
    /// Reads a file's text.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let at = |from: usize, message: String| Error {
            line: text[..from.min(text.len())].matches('\n').count() + 1,
            message,
        };
        let file: File = toml::from_str(text).map_err(|error| {
            let from = error.span().map_or(0, |span| span.start);
            at(from, error.message().trim().replace('\n', ", "))
        })?;
        let unicode = one_of(
            "glyphs",
            file.glyphs.as_ref(),
            &[("auto", None), ("unicode", Some(true)), ("ascii", Some(false))],
            &at,
        )?;
        let layouts = [("full", false), ("compact", true)];
        let is_compact = one_of("layout", file.layout.as_ref(), &layouts, &at)?;
        let motions = [
            ("auto", None),
            ("scroll", Some(Motion::Scroll)),
            ("sweep", Some(Motion::Sweep)),
            ("page", Some(Motion::Page)),
        ];
        let motion = one_of("motion", file.timeline.motion.as_ref(), &motions, &at)?;
        let marks = Marks::ALL.iter().map(|(marks, word)| (*word, Some(*marks)));
        let marks: Vec<(&str, Option<Marks>)> = std::iter::once(("auto", None)).chain(marks).collect();
        let marks = one_of("[charts] marks", file.charts.marks.as_ref(), &marks, &at)?;
        let memory = |set: &Spanned<String>| {
            let bytes = crate::cli::size(set.get_ref());
            let least = |bytes: &u64| *bytes >= MIN_MEMORY;
            let wrong = || "[timeline] memory: expected a size from 192M, such as 512M or 2G".to_string();
            let bytes = bytes.ok().filter(least);
            bytes.ok_or_else(|| at(set.span().start, wrong()))
        };
        let saved = file.presets.iter();
        let saved: Vec<(String, String)> = saved
            .map(|(name, source)| (name.clone(), source.get_ref().clone()))
            .collect();
        let checked = |source: &Spanned<String>| match Filter::parse(&with_presets(source.get_ref(), &saved)) {
            Ok(_) => Ok(source.get_ref().clone()),
            Err(error) => Err(at(
                source.span().start,
                format!("{} (column {} of the filter)", error.message, error.column + 1),
            )),
        };
        let mut aliases = Vec::new();
        for alias in &file.alias {
            let regex = Regex::new(alias.kernel.get_ref());
            let regex = regex.map_err(|error| at(alias.kernel.span().start, short(&error.to_string())))?;
            aliases.push((regex, alias.name.clone()));
        }
        let mut presets = Vec::new();
        for (name, source) in &file.presets {
            presets.push((name.clone(), checked(source)?));
        }
        if let Some(throttle) = &file.throttle
            && !(1.0..=10_000.0).contains(throttle.get_ref())
        {
            let message = "throttle: expected per cent of a core, from 1".to_string();
            return Err(at(throttle.span().start, message));
        }
        Ok(Self {
            theme: file.theme,
            unicode,
            is_compact,
            motion,
            marks,
            memory: file.timeline.memory.as_ref().map(memory).transpose()?,
            no_mouse: file.mouse == Some(false),
            filter: file.filter.as_ref().map(checked).transpose()?,
            keys: keys(&file.keys, &at)?,
            aliases: Aliases::new(aliases),
            columns: columns::read(&file.columns, &at)?,
            thresholds: thresholds::read(&file.thresholds, &at)?,
            presets,
            throttle: file.throttle.map(Spanned::into_inner),
        })
    }

    /// Reads the user's file, which need not be there. In a home that is somebody else's, as in containers, there is none.
    pub fn load() -> anyhow::Result<Self> {
        let is_closed = |path: &PathBuf| {
            let looked = std::fs::metadata(path);
            looked.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
        };
        match path() {
            Some(path) if is_named() || !is_closed(&path) => Self::read(&path),
            _ => Ok(Self::default()),
        }
    }

    fn read(path: &Path) -> anyhow::Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => anyhow::bail!("{}: {error}", path.display()),
        };
        Self::parse(&text).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))
    }
}

/// What a word stands for; what is usual where there is none.
fn one_of<T: Copy + Default>(
    name: &str,
    set: Option<&Spanned<String>>,
    known: &[(&str, T)],
    at: &dyn Fn(usize, String) -> Error,
) -> Result<T, Error> {
    let Some(set) = set else { return Ok(T::default()) };
    let found = known.iter().find(|(word, _)| word == set.get_ref());
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        let (last, first) = words.split_last().map_or(("", &[][..]), |(last, first)| (*last, first));
        let expected = format!("{} or {last}", first.join(", "));
        let message = format!("{name} = \"{}\": expected {expected}", set.get_ref());
        at(set.span().start, message)
    })
}

fn keys(
    set: &BTreeMap<Spanned<String>, Vec<Spanned<String>>>,
    at: &dyn Fn(usize, String) -> Error,
) -> Result<Keys, Error> {
    let mut wanted = Vec::new();
    for (name, words) in set {
        let place = KEYMAP.iter().position(|binding| binding.name == name.get_ref());
        let place = place.ok_or_else(|| {
            let message = format!(
                "[keys] {}: no such action; `roctop config print` lists them",
                name.get_ref()
            );
            at(name.span().start, message)
        })?;
        let mut keys = Vec::new();
        for word in words {
            let key = Key::named(word.get_ref());
            let wrong = || format!("[keys] {}: no such key: {}", name.get_ref(), word.get_ref());
            keys.push(key.ok_or_else(|| at(word.span().start, wrong()))?);
        }
        wanted.push((place, keys, name.span().start));
    }
    let pairs = wanted.iter().map(|(place, keys, _)| (*place, keys.clone())).collect();
    Keys::with(pairs).map_err(|conflict| {
        let place = wanted.iter().find(|known| known.0 == conflict.place);
        at(place.map_or(0, |known| known.2), conflict.to_string())
    })
}

fn short(message: &str) -> String {
    let last = message.lines().last().unwrap_or_default();
    format!("no regular expression: {}", last.trim_start_matches("error: "))
}

/// The default file, with every action and its keys.
pub fn printed() -> String {
    let mut out = DEFAULT.trim_end().to_string();
    out += "\n\n# Actions and their keys; an action that is named here has these keys and no others.\n[keys]\n";
    for binding in KEYMAP.iter().filter(|binding| binding.scope != Scope::Job) {
        let keys: Vec<String> = binding
            .keys
            .iter()
            .map(|key| serde_json::Value::String(key.word()).to_string())
            .collect();
        let _ = writeln!(out, "# {} = [{}]  # {}", binding.name, keys.join(", "), binding.help);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::Tab;
    use crate::ui::keymap::{Action, action};

    #[test]
    fn what_is_printed_is_read_again_and_says_nothing_new() {
        let printed = printed();
        let config = Config::parse(&printed).unwrap();
        assert_eq!((config.theme, config.filter, config.aliases.len()), (None, None, 0));
        // Every line that is commented out is valid as well.
        let all: String = printed
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(rest) if rest.contains(" = ") || rest.starts_with('[') => format!("{rest}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        let config = Config::parse(&all).unwrap_or_else(|error| panic!("{error}\n{all}"));
        assert_eq!(config.presets.len(), 1);
        assert_eq!((config.aliases.len(), config.columns.len()), (1, 1));
        // The thresholds that are printed are those in force.
        assert_eq!(config.thresholds, Thresholds::default());
    }

    #[test]
    fn what_is_not_known_is_an_error_with_its_line() {
        let line = |text: &str| Config::parse(text).map(|_| ()).unwrap_err().line;
        assert_eq!(line("theme = \"dark\"\nthme = 1\n"), 2);
        assert_eq!(line("\n\n[keys]\npause = [\"x\"]\nnonsense = [\"x\"]\n"), 5);
        assert_eq!(line("[keys]\npause = [\"hyper-x\"]\n"), 2);
        assert_eq!(line("glyphs = \"runes\"\n"), 1);
        assert_eq!(line("mouse = true\nlayout = \"tiny\"\n"), 2);
        assert_eq!(line("[charts]\nmarks = \"runes\"\n"), 2);
        assert_eq!(line("theme = \"x\"\nfilter = \"dur>\"\n"), 2);
        assert_eq!(line("[[alias]]\nkernel = \"(\"\nname = \"x\"\n"), 2);
        assert_eq!(line("[presets]\na = \"(\"\n"), 2);
        assert_eq!(line("throttle = 0.0\n"), 1);
        assert_eq!(line("[columns]\nkernels = [\"KERNEL\"]\nnonsense = [\"P99\"]\n"), 3);
        assert_eq!(line("[columns]\nkernels = [\n  \"KERNEL\",\n  \"P98\"]\n"), 4);
        assert_eq!(line("[columns]\nkernels = []\n"), 2);
        assert_eq!(line("[thresholds]\nidle = 50\ngap = \"1 parsec\"\n"), 3);
        assert_eq!(line("[thresholds]\nidle = 500\n"), 2);
        assert_eq!(line("[thresholds]\nidel = 50\n"), 2);
        assert_eq!(line("theme = \n"), 1);
        // One key for two actions of one view.
        assert_eq!(line("[keys]\npause = [\"p\"]\nfollow = [\"p\"]\n"), 3);
    }

    #[test]
    fn columns_are_taken_in_the_order_of_the_list_and_counters_stay() {
        let config = Config::parse("[columns]\nkernels = [\"p99\", \"KERNEL\"]\ncopies = [\"ROUTE\"]\n").unwrap();
        let of = |pane: Pane| {
            config
                .columns
                .iter()
                .find(|known| known.0 == pane)
                .map(|known| &known.1[..])
        };
        let named = |word| crate::ui::columns::named(Pane::Kernels, word).unwrap();
        let kernels = of(Pane::Kernels).unwrap();
        assert_eq!(kernels[..3], [named("P99"), named("KERNEL"), named("Counter_1")]);
        assert_eq!(of(Pane::Routes).map(<[ColumnId]>::len), Some(1));
    }

    #[test]
    fn a_key_that_is_set_does_what_was_set() {
        let config = Config::parse("[keys]\npause = [\"p\", \"ctrl-p\"]\nfollow = [\" \"]\n").unwrap();
        let does = |key| action(&config.keys, Tab::Kernels, key);
        assert_eq!(does(Key::Char('p')), Some(Action::Pause));
        assert_eq!(does(Key::Ctrl('p')), Some(Action::Pause));
        assert_eq!(does(Key::Char(' ')), Some(Action::Follow));
        assert_eq!(
            does(Key::Char('f')),
            None,
            "an action has the keys that were set and no others"
        );
        assert_eq!(does(Key::Char('q')), Some(Action::Quit));
    }
}
