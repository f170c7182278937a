//! What the user has set for good: a TOML file. What the command line says goes before it.
//!
//! Reading is strict: what is not known is an error that names the line.

mod columns;
mod thresholds;

use crate::filter::Filter;
use crate::kernel_name::Aliases;
use crate::model::analysis::Thresholds;
use crate::ui::key::Key;
use crate::ui::keymap::{KEYMAP, Keys};
use crate::ui::pane::Pane;
use anyhow::Context;
use regex::Regex;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The file as it is when nobody has set anything, with words on all of it.
pub const DEFAULT: &str = include_str!("config.toml");

/// What was set.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Name or path of the theme.
    pub theme: Option<String>,
    /// Glyphs beyond ASCII; none: as the locale says.
    pub unicode: Option<bool>,
    /// One list of each view, however large the terminal is.
    pub is_compact: bool,
    /// Whether the mouse is asked for.
    pub no_mouse: bool,
    /// Filter to start with.
    pub filter: Option<String>,
    /// Keys.
    pub keys: Keys,
    /// Kernels of other names.
    pub aliases: Aliases,
    /// Lists with columns of the user's choice, by their places.
    pub columns: Vec<(Pane, Vec<usize>)>,
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
        let unicode = match &file.glyphs {
            None => None,
            Some(glyphs) => match glyphs.get_ref().as_str() {
                "auto" => None,
                "unicode" => Some(true),
                "ascii" => Some(false),
                other => {
                    let message = format!("glyphs = \"{other}\": expected auto, unicode or ascii");
                    return Err(at(glyphs.span().start, message));
                }
            },
        };
        let is_compact = match &file.layout {
            None => false,
            Some(layout) => match layout.get_ref().as_str() {
                "full" => false,
                "compact" => true,
                other => {
                    let message = format!("layout = \"{other}\": expected full or compact");
                    return Err(at(layout.span().start, message));
                }
            },
        };
        let checked = |source: &Spanned<String>| match Filter::parse(source.get_ref()) {
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

/// Keeps a filter under a name in the user's file, which is made when it is not there; says where. Everything else in it
/// stays as it is.
pub fn keep_preset(name: &str, filter: &str) -> anyhow::Result<PathBuf> {
    let path = path().context("neither XDG_CONFIG_HOME nor HOME is set: there is no place for settings")?;
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => anyhow::bail!("{}: {error}", path.display()),
    };
    let text = with_preset(&text, name, filter);
    // A file that somebody wrote in another way than expected is left alone.
    let read = Config::parse(&text).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    anyhow::ensure!(
        read.presets.iter().any(|known| known.0 == name && known.1 == filter),
        "{}: [presets] is written in a way that roctop cannot add to",
        path.display()
    );
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    crate::export::write_atomic(&path, |out| std::io::Write::write_all(out, text.as_bytes()))?;
    Ok(path)
}

/// The text of a file with a preset more, or with another filter for one that was there.
fn with_preset(text: &str, name: &str, filter: &str) -> String {
    let line = format!("{name} = {}", toml::Value::from(filter));
    let mut lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.trim() == "[presets]");
    let at = at.unwrap_or_else(|| {
        if !lines.is_empty() {
            lines.push("");
        }
        lines.push("[presets]");
        lines.len() - 1
    });
    let rest = lines[at + 1..].iter();
    let own = rest.take_while(|line| !line.trim_start().starts_with('['));
    let mut keys = own.map(|line| line.split('=').next().unwrap_or("").trim());
    match keys.position(|key| key == name) {
        Some(known) => lines[at + 1 + known] = &line,
        None => lines.insert(at + 1, &line),
    }
    lines.join("\n") + "\n"
}

/// Where the file is: `$ROCTOP_CONFIG`, else `roctop/config.toml` below the XDG configuration directory.
pub fn path() -> Option<PathBuf> {
    if let Some(path) = set("ROCTOP_CONFIG") {
        return Some(path.into());
    }
    directory().map(|directory| directory.join("config.toml"))
}

/// Whether the user named the file.
fn is_named() -> bool {
    set("ROCTOP_CONFIG").is_some()
}

fn set(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// `roctop` below the XDG configuration directory.
pub fn directory() -> Option<PathBuf> {
    let base = set("XDG_CONFIG_HOME").map(PathBuf::from);
    let base = base.or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".config")));
    base.map(|base| base.join("roctop"))
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
    Keys::with(pairs).map_err(|(place, message)| {
        let from = wanted.iter().find(|known| known.0 == place).map_or(0, |known| known.2);
        at(from, message)
    })
}

fn short(message: &str) -> String {
    let last = message.lines().last().unwrap_or_default();
    format!("no regular expression: {}", last.trim_start_matches("error: "))
}

/// A JSON schema of the file, for editors.
pub fn schema() -> serde_json::Value {
    let keys: serde_json::Map<String, serde_json::Value> = KEYMAP
        .iter()
        .map(|binding| {
            let shape = serde_json::json!({
                "type": "array", "items": { "type": "string" }, "description": binding.help,
            });
            (binding.name.to_string(), shape)
        })
        .collect();
    let columns: serde_json::Map<String, serde_json::Value> = Pane::ALL
        .into_iter()
        .map(|pane| {
            let known = crate::ui::columns::words(pane);
            let shape = serde_json::json!({ "type": "array", "minItems": 1, "items": { "enum": known } });
            (pane.word().to_string(), shape)
        })
        .collect();
    let share = || serde_json::json!({ "type": "number", "minimum": 0, "maximum": 100, "description": "per cent" });
    let time = || serde_json::json!({ "type": "string", "description": "a time with its unit, as 1ms" });
    let speed = serde_json::json!({ "type": "string", "description": "a bandwidth with its unit, as 5GB/s" });
    serde_json::json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "roctop configuration",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "theme": { "type": "string" },
            "glyphs": { "enum": ["auto", "unicode", "ascii"] },
            "layout": { "enum": ["full", "compact"] },
            "mouse": { "type": "boolean" },
            "filter": { "type": "string" },
            "throttle": { "type": "number", "minimum": 1 },
            "keys": { "type": "object", "additionalProperties": false, "properties": keys },
            "columns": { "type": "object", "additionalProperties": false, "properties": columns },
            "thresholds": { "type": "object", "additionalProperties": false, "properties": {
                "idle": share(), "gap": time(), "long_gap": time(), "sync": share(), "short": time(),
                "shorts": share(), "outlier": { "type": "number", "minimum": 1 }, "launch": share(),
                "slow_copy": speed, "hang": time(),
            } },
            "alias": { "type": "array", "items": {
                "type": "object", "additionalProperties": false, "required": ["kernel", "name"],
                "properties": { "kernel": { "type": "string" }, "name": { "type": "string" } },
            } },
            "presets": { "type": "object", "additionalProperties": { "type": "string" } },
        },
    })
}

/// The default file, with every action and its keys.
pub fn printed() -> String {
    let mut out = DEFAULT.trim_end().to_string();
    out += "\n\n# Actions and their keys; an action that is named here has these keys and no others.\n[keys]\n";
    for binding in KEYMAP {
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
    fn a_preset_is_added_and_the_rest_stays() {
        let before =
            "# mine\ntheme = \"light\"\n\n[presets]\n# short ones\na = \"dur<1us\"\n\n[thresholds]\nidle = 40.0\n";
        let after = with_preset(before, "b", "name~\"x\" & dur>1ms");
        assert_eq!(after.replace("b = 'name~\"x\" & dur>1ms'\n", ""), before);
        let read = Config::parse(&after).unwrap();
        assert_eq!(read.presets[1], ("b".to_string(), "name~\"x\" & dur>1ms".to_string()));
        assert_eq!(read.theme.as_deref(), Some("light"));
        let again = with_preset(&after, "a", "gemm");
        assert_eq!(Config::parse(&again).unwrap().presets[0].1, "gemm");
        assert_eq!(again.lines().count(), after.lines().count());
        assert_eq!(with_preset("", "a", "x"), "[presets]\na = \"x\"\n");
        let bare = with_preset("theme = \"dark\"", "a", "x");
        assert_eq!(Config::parse(&bare).unwrap().presets.len(), 1);
    }

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
    fn the_schema_knows_every_setting_and_no_other() {
        let schema = schema();
        let properties = |of: &serde_json::Value| -> Vec<String> {
            let known = of["properties"].as_object().expect("it has properties");
            known.keys().cloned().collect()
        };
        let thresholds = properties(&schema["properties"]["thresholds"]);
        let printed = printed();
        // Each is in the printed file, and the printed file is read strictly.
        for name in properties(&schema).iter().chain(&thresholds) {
            let is_there = [
                format!("# {name} ="),
                format!("# [{name}]"),
                format!("# [[{name}]]"),
                format!("[{name}]"),
            ]
            .iter()
            .any(|line| printed.lines().any(|printed| printed.starts_with(line.as_str())));
            assert!(is_there, "{name} is not in the printed file");
        }
        assert_eq!(thresholds.len(), 10);
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
        assert_eq!(of(Pane::Routes).map(<[usize]>::len), Some(1));
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
