//! How the screen is to look.

use super::size;
use crate::ui::Tab;
use clap::{Args, ValueEnum};

/// How the screen looks.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Screen")]
pub struct Look {
    /// Theme: dark, light, high-contrast, okabe-ito, terminal, mono, or the path of a theme's file.
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,
    /// When to use colours.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    /// Filter to start with, in the language of `/`.
    ///
    /// Without a screen only what passes is in the summary.
    #[arg(long, value_name = "EXPR")]
    pub filter: Option<String>,
    /// View to start with: overview, timeline, kernels, copies, api, counters, devices, markers, processes, log, alerts,
    /// running, steps, diff, memory, samples, launches, collectives or sites.
    #[arg(long, value_name = "NAME", value_parser = view)]
    pub view: Option<Tab>,
    /// What views show: full, by the terminal's size, or compact: one list of each view.
    #[arg(long, value_enum)]
    pub layout: Option<Views>,
    /// Characters: auto (by locale and terminal), unicode or ascii.
    #[arg(long, value_enum, default_value_t)]
    pub glyphs: Glyphs,
    /// Frames a second at most, 1 to 10.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=10))]
    pub fps: Option<u32>,
    /// Bytes a second to the terminal at most, as 8K; 0 sets no limit. Over SSH it is 8K unless this is given.
    #[arg(long, value_name = "BYTES", value_parser = most_bytes)]
    pub max_bps: Option<u64>,
}

impl Default for Look {
    fn default() -> Self {
        Self {
            theme: None,
            color: Color::Auto,
            filter: None,
            view: None,
            layout: None,
            glyphs: Glyphs::default(),
            fps: None,
            max_bps: None,
        }
    }
}

/// How much views show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Views {
    /// As much as the terminal has room for.
    Full,
    /// What a small terminal has room for.
    Compact,
}

/// Characters that are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Glyphs {
    /// By the locale, the terminal and the settings.
    #[default]
    Auto,
    /// All.
    Unicode,
    /// ASCII only.
    Ascii,
}

fn view(text: &str) -> Result<Tab, String> {
    let known = Tab::of_program().find(|tab| tab.row().word.eq_ignore_ascii_case(text));
    known.ok_or_else(|| {
        let names: Vec<&str> = Tab::of_program().map(|tab| tab.row().word).collect();
        format!("views are {}", names.join(", "))
    })
}

fn most_bytes(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { size(text) }
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// By terminal, NO_COLOR and CLICOLOR_FORCE.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}
