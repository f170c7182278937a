//! Roles to styles. Widgets know roles; a theme file says what a role looks like; the terminal's depth says what of that
//! is sent.

use std::collections::BTreeMap;

use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;

macro_rules! roles {
    ($($Role:ident $word:literal)*) => {
        /// What something on screen means.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Role {
            $(#[doc = $word] $Role,)*
        }

        impl Role {
            /// All roles with their names in theme files.
            pub const ALL: &[(Self, &str)] = &[$((Self::$Role, $word),)*];
        }
    };
}

roles! {
    Text "text"
    Muted "muted"
    Accent "accent"
    Title "title"
    Border "border"
    Tab "tab"
    TabActive "tab.active"
    Head "head"
    Sorted "head.sorted"
    Selected "row.selected"
    Match "row.match"
    Internal "row.internal"
    Live "state.live"
    Paused "state.paused"
    Ended "state.ended"
    Replay "state.replay"
    Good "alert.good"
    Warn "alert.warn"
    Bad "alert.bad"
    GaugeLow "gauge.low"
    GaugeMid "gauge.mid"
    GaugeHigh "gauge.high"
    GaugeRest "gauge.rest"
    CopyH2d "copy.h2d"
    CopyD2h "copy.d2h"
    CopyD2d "copy.d2d"
    CopyFill "copy.fill"
    ApiSync "api.sync"
    ApiLaunch "api.launch"
    ApiMemory "api.memory"
    ApiOther "api.other"
    Marker "marker"
    Idle "idle"
    Open "open"
    Now "now"
    Key "key"
    Prompt "prompt"
    PromptError "prompt.error"
}

/// How many colours the terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// 24 bits.
    True,
    /// 256.
    C256,
    /// 16.
    C16,
    /// None: only bold, reverse, underline.
    None,
}

impl Depth {
    /// From the environment, which is asked by `variable`.
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        if set("NO_COLOR") {
            return Self::None;
        }
        let term = variable("TERM").unwrap_or_default();
        let remote = set("SSH_CONNECTION") || set("SSH_TTY");
        let many = variable("COLORTERM").is_some_and(|value| value == "truecolor" || value == "24bit");
        match &*term {
            "dumb" => Self::None,
            _ if many && !remote => Self::True,
            _ if many || term.contains("256color") || term.contains("direct") => Self::C256,
            _ => Self::C16,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    #[serde(default)]
    light: bool,
    #[serde(default)]
    palette: BTreeMap<String, Paint>,
    roles: BTreeMap<String, Look>,
    kernels: Kernels,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Paint {
    rgb: String,
    c256: u8,
    c16: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "as a theme file spells them")]
struct Look {
    fg: Option<String>,
    bg: Option<String>,
    bold: bool,
    dim: bool,
    underline: bool,
    reverse: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kernels {
    colors: Vec<String>,
}

/// A theme at one depth.
#[derive(Clone, Debug)]
pub struct Theme {
    /// Its name.
    pub name: String,
    styles: Vec<Style>,
    kernels: Vec<Color>,
    /// Whether slices have a background colour; else letters fill them.
    pub is_coloured: bool,
    /// Meant for a light terminal.
    pub is_light: bool,
}

/// The themes that come with roctop.
pub const BUILT_IN: [(&str, &str); 6] = [
    ("dark", include_str!("../../../themes/dark.toml")),
    ("light", include_str!("../../../themes/light.toml")),
    ("high-contrast", include_str!("../../../themes/high-contrast.toml")),
    ("okabe-ito", include_str!("../../../themes/okabe-ito.toml")),
    ("terminal", include_str!("../../../themes/terminal.toml")),
    ("mono", include_str!("../../../themes/mono.toml")),
];

/// What is wrong with the text of a theme.
#[derive(Debug, thiserror::Error)]
pub enum ThemeError {
    /// It is not TOML, or has other tables than a theme.
    #[error(transparent)]
    Toml(#[from] toml::de::Error),
    /// It names a role that does not exist.
    #[error("no such role: {0}")]
    NoRole(String),
    /// A colour of its palette has no red, green and blue.
    #[error("{name}: {rgb} is no colour")]
    NoColour {
        /// The colour's name.
        name: String,
        /// Its text.
        rgb: String,
    },
    /// A role has a colour that does not exist.
    #[error("{0}: neither in the palette nor one of 16 colours")]
    UnknownColour(String),
}

impl Theme {
    /// A theme that comes with roctop.
    pub fn named(name: &str, depth: Depth) -> Option<Self> {
        let text = BUILT_IN.iter().find(|theme| theme.0 == name)?.1;
        Self::parse(text, depth).ok()
    }

    /// A theme from a file's text; an error says what is wrong with it.
    pub fn parse(text: &str, depth: Depth) -> Result<Self, ThemeError> {
        let file: File = toml::from_str(text)?;
        let color = |name: &str| paint(&file.palette, name, depth);
        let mut styles = vec![Style::default(); Role::ALL.len()];
        for (name, look) in &file.roles {
            let at = Role::ALL
                .iter()
                .position(|role| role.1 == name)
                .ok_or_else(|| ThemeError::NoRole(name.clone()))?;
            let ink = |name: &Option<String>| Ok::<_, ThemeError>(name.as_deref().map(color).transpose()?.flatten());
            let modifiers = [
                (look.bold, Modifier::BOLD),
                (look.dim, Modifier::DIM),
                (look.underline, Modifier::UNDERLINED),
                (look.reverse, Modifier::REVERSED),
            ];
            let add_modifier = modifiers.iter().filter(|m| m.0).map(|m| m.1).collect();
            styles[at] = Style {
                fg: ink(&look.fg)?,
                bg: ink(&look.bg)?,
                add_modifier,
                ..Style::default()
            };
        }
        let kernels: Result<Vec<_>, _> = file.kernels.colors.iter().map(|name| color(name)).collect();
        let kernels: Vec<Color> = kernels?.into_iter().flatten().collect();
        let is_coloured = !kernels.is_empty();
        Ok(Self {
            name: file.name,
            styles,
            kernels,
            is_coloured,
            is_light: file.light,
        })
    }

    /// How a role looks.
    pub fn style(&self, role: Role) -> Style {
        let at = Role::ALL.iter().position(|known| known.0 == role).unwrap_or(0);
        self.styles[at]
    }

    /// The colour of a thing with a number (the same number, the same colour).
    pub fn hue(&self, number: usize) -> Option<Color> {
        if self.kernels.is_empty() {
            None
        } else {
            Some(self.kernels[number % self.kernels.len()])
        }
    }

    /// Letters upon a colour: reversed, so that the letters have the terminal's own background.
    pub fn filled(&self, number: usize) -> Style {
        match self.hue(number) {
            Some(color) => Style::default().fg(color).add_modifier(Modifier::REVERSED),
            None => Style::default().add_modifier(Modifier::REVERSED),
        }
    }

    /// A colour as the letters themselves.
    pub fn line(&self, number: usize) -> Style {
        self.hue(number)
            .map_or_else(Style::default, |color| Style::default().fg(color))
    }

    /// A role's colour as a background with letters upon it.
    pub fn filled_role(&self, role: Role) -> Style {
        match self.style(role).fg {
            Some(color) if self.is_coloured => Style::default().fg(color).add_modifier(Modifier::REVERSED),
            _ => Style::default().add_modifier(Modifier::REVERSED),
        }
    }
}

fn paint(palette: &BTreeMap<String, Paint>, name: &str, depth: Depth) -> Result<Option<Color>, ThemeError> {
    let paint = palette.get(name);
    let sixteen = paint.map_or(name, |paint| &paint.c16);
    match (depth, paint) {
        (Depth::None, _) => Ok(None),
        (Depth::True, Some(paint)) => {
            let digits = paint.rgb.trim_start_matches('#');
            let rgb = u32::from_str_radix(digits, 16).map_err(|_| ThemeError::NoColour {
                name: name.to_owned(),
                rgb: paint.rgb.clone(),
            })?;
            Ok(Some(Color::Rgb((rgb >> 16) as u8, (rgb >> 8) as u8, rgb as u8)))
        }
        (Depth::C256, Some(paint)) => Ok(Some(Color::Indexed(paint.c256))),
        _ => {
            const NAMES: [&str; 17] = [
                "black",
                "red",
                "green",
                "yellow",
                "blue",
                "magenta",
                "cyan",
                "white",
                "bright-black",
                "bright-red",
                "bright-green",
                "bright-yellow",
                "bright-blue",
                "bright-magenta",
                "bright-cyan",
                "bright-white",
                "default",
            ];
            let at = NAMES.iter().position(|known| *known == sixteen);
            let at = at.ok_or_else(|| ThemeError::UnknownColour(name.to_owned()))?;
            Ok((at < 16).then_some(Color::Indexed(at as u8)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_theme_says_every_role_at_every_depth() {
        for (name, text) in BUILT_IN {
            for depth in [Depth::True, Depth::C256, Depth::C16, Depth::None] {
                let theme = Theme::parse(text, depth).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(theme.name, name);
            }
            let file: File = toml::from_str(text).unwrap();
            for (_, role) in Role::ALL {
                assert!(file.roles.contains_key(*role), "{name} does not say {role}");
            }
        }
        assert!(Theme::parse("name='x'\n[roles]\nnonsense={}\n[kernels]\ncolors=[]", Depth::C16).is_err());
    }

    #[test]
    fn first_kernels_have_colours_of_their_own_even_of_sixteen() {
        const FIRST: usize = 3;
        for name in ["dark", "light", "okabe-ito", "terminal"] {
            let theme = Theme::named(name, Depth::C16).expect("it is there");
            let roles = [Role::CopyH2d, Role::CopyD2h, Role::CopyD2d, Role::ApiSync];
            let mut colours: Vec<_> = roles.iter().map(|role| theme.style(*role).fg).collect();
            colours.extend((0..FIRST).map(|number| theme.line(number).fg));
            for (at, colour) in colours.iter().enumerate() {
                let others = colours.iter().skip(at + 1);
                assert!(
                    colour.is_some() && others.clone().all(|other| other != colour),
                    "{name}: {colours:?}"
                );
            }
        }
    }

    #[test]
    fn depth_follows_the_environment() {
        let depth = |set: &[(&str, &str)]| {
            Depth::detect(|name| set.iter().find(|pair| pair.0 == name).map(|pair| pair.1.to_string()))
        };
        assert_eq!(depth(&[("TERM", "xterm-256color")]), Depth::C256);
        assert_eq!(
            depth(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]),
            Depth::True
        );
        assert_eq!(
            depth(&[("COLORTERM", "truecolor"), ("SSH_TTY", "/dev/pts/1")]),
            Depth::C256
        );
        assert_eq!(depth(&[("TERM", "xterm"), ("NO_COLOR", "1")]), Depth::None);
        assert_eq!(depth(&[("TERM", "linux")]), Depth::C16);
    }
}
