//! How a screen looks: theme, glyphs, colours, and the settings that it begins with; and a store that keeps to its memory.

use crate::cli::usage_error::UsageError;
use crate::cli::{self, Color, Glyphs, Look, Views};
use crate::kernel_name::Aliases;
use crate::model::analysis::Thresholds;
use crate::model::{Fresh, Options as StoreOptions, Snapshot, Store};
use crate::settings::{self, Config};
use crate::ui;
use crate::ui::run::{Detached, Settings, Shown};
use crate::ui::screen::Options as ScreenOptions;
use crate::ui::theme::{BUILT_IN, Depth, Theme};
use anyhow::{Context, Result, anyhow, bail};
use roctop_source::memory;
use roctop_trace::spelling::did_you_mean;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes a second to a terminal at the other end of SSH, when the user says nothing else.
const MAX_BYTES_OVER_SSH: u64 = 8 << 10;

/// Memory of a screen on a terminal, bytes, when the user says nothing else.
const MEMORY: u64 = 512 << 20;

/// What the command line, the settings and the terminal make of it.
pub(super) struct Appearance {
    pub(super) theme: Theme,
    pub(super) depth: Depth,
    pub(super) options: ScreenOptions,
    pub(super) settings: Settings,
    pub(super) aliases: Aliases,
    pub(super) thresholds: Thresholds,
    /// Memory that the screen may take, bytes.
    memory: u64,
}

impl Appearance {
    /// A store for this screen.
    pub(super) fn store(&self, options: StoreOptions) -> Arc<Mutex<Store>> {
        Arc::new(Mutex::new(Store::new(StoreOptions {
            aliases: self.aliases.clone(),
            thresholds: self.thresholds,
            slices: StoreOptions::slices_in(self.memory),
            memory: Some(self.memory),
            ..options
        })))
    }
}

/// The store of a screen, which keeps the process within the screen's memory.
pub(super) struct WithinMemory<'a>(pub(super) &'a Mutex<Store>);

impl Shown for WithinMemory<'_> {
    fn snapshot(&self, fresh: Fresh) -> Arc<Snapshot> {
        let used = memory::private(Path::new("/"));
        let mut store = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = used {
            store.uses(bytes);
        }
        store.snapshot(fresh)
    }

    fn is_new(&self) -> bool {
        self.0.is_new()
    }
}

/// The controlling terminal: standard input belongs to the program.
pub(super) fn open_terminal() -> Result<File> {
    if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        bail!("this terminal says that it can show no screen (TERM=dumb)");
    }
    let opened = File::options().read(true).write(true).open("/dev/tty");
    opened.context("cannot open the terminal /dev/tty; use --no-ui for a run without a screen")
}

/// The theme and glyphs that were asked for, on a terminal as the environment describes it.
pub(super) fn appearance(look: &Look) -> Result<Appearance> {
    let config = Config::load()?;
    let depth = match look.color {
        Color::Never => Depth::None,
        Color::Auto => Depth::detect(|variable| std::env::var(variable).ok()),
        Color::Always => Depth::detect(|variable| match variable {
            "NO_COLOR" => None,
            "CLICOLOR_FORCE" => Some("1".into()),
            other => std::env::var(other).ok(),
        }),
    };
    let chosen = look.theme.as_deref().or(config.theme.as_deref());
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let name = match chosen {
        _ if depth == Depth::None => "mono",
        Some(name) => name,
        None if variable("COLORFGBG").is_some_and(|colors| is_light(&colors)) => "light",
        None => "dark",
    };
    let theme = find_theme(name, depth).map_err(|error| match look.theme {
        Some(_) => UsageError(format!("--theme: {error:#}")).into(),
        None => error,
    })?;
    let is_remote = variable("SSH_CONNECTION").is_some() || variable("SSH_TTY").is_some();
    let most_bytes = look.max_bps.or_else(|| is_remote.then_some(MAX_BYTES_OVER_SSH));
    let options = ScreenOptions {
        ascii: match look.glyphs {
            Glyphs::Auto => config.unicode.map_or_else(ui::run::is_ascii, |unicode| !unicode),
            Glyphs::Unicode => false,
            Glyphs::Ascii => true,
        },
        no_mouse: config.no_mouse,
        // The user's word stands; consoles do not know the question.
        asks_background: chosen.is_none() && matches!(depth, Depth::True | Depth::C256),
    };
    let detected = || ui::Marks::detect(options.ascii, variable);
    let marks = config.marks.unwrap_or_else(detected);
    let filter = look.filter.as_ref().or(config.filter.as_ref());
    let filter = cli::filter(filter.map_or("", String::as_str), &config.presets)?;
    let defaults = Settings::default();
    Ok(Appearance {
        theme,
        depth,
        options,
        settings: Settings {
            filter,
            keys: config.keys,
            presets: config.presets,
            columns: config.columns,
            throttle: config.throttle.unwrap_or(defaults.throttle),
            view: look.view.unwrap_or_default(),
            is_compact: look.layout.map_or(config.is_compact, |layout| layout == Views::Compact),
            motion: config.motion,
            marks,
            rate: look.fps,
            most_bytes: most_bytes.filter(|most| *most > 0),
            grace: defaults.grace,
            detached: Detached::default(),
            at: None,
        },
        aliases: config.aliases,
        thresholds: config.thresholds,
        memory: config.memory.unwrap_or(MEMORY),
    })
}

/// Whether `foreground;background`, by numbers of the 16 colours, is a light background.
fn is_light(colors: &str) -> bool {
    let background = colors.rsplit(';').next().and_then(|number| number.parse::<u8>().ok());
    matches!(background, Some(7 | 9..=15))
}

/// A theme of this name or in this file.
pub(super) fn find_theme(name: &str, depth: Depth) -> Result<Theme> {
    if let Some(theme) = Theme::named(name, depth) {
        return Ok(theme);
    }
    let own = settings::directory().map(|directory| directory.join("themes").join(format!("{name}.toml")));
    let own = own.and_then(|path| std::fs::read_to_string(path).ok());
    let text = match own.map_or_else(|| std::fs::read_to_string(name), Ok) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let known: Vec<&str> = BUILT_IN.iter().map(|theme| theme.0).collect();
            let near = did_you_mean(name, known.iter().copied());
            bail!(
                "no theme {name}, and no file of that name{near}; themes: {}",
                known.join(", ")
            );
        }
        Err(error) => return Err(error).with_context(|| format!("the theme's file {name} cannot be read")),
    };
    Theme::parse(&text, depth).map_err(|error| anyhow!("{name}: {error}"))
}
