//! What can be set while the screen is shown, and is not kept.

use crate::time::Motion;
use crate::{Effect, Marks, Ui};
use roctop_trace::units::Unit;

/// What can be set, with all values that have words.
pub(super) const SETTINGS: [&str; 23] = [
    "glyphs unicode",
    "glyphs ascii",
    "units auto",
    "units ns",
    "units us",
    "units ms",
    "units s",
    "hints on",
    "hints off",
    "layout full",
    "layout compact",
    "motion scroll",
    "motion sweep",
    "motion page",
    "charts ascii",
    "charts blocks",
    "charts braille",
    "charts sextants",
    "charts octants",
    "fps 10",
    "fps 5",
    "fps 2",
    "fps 1",
];

/// Sets it; an error says what could be set.
pub(super) fn set(ui: &mut Ui, rest: &str) -> Result<Effect, String> {
    let (what, value) = rest.split_once(' ').unwrap_or((rest, ""));
    match (what, value.trim()) {
        ("glyphs", "ascii") => return Ok(Effect::Ascii(true)),
        ("glyphs", "unicode" | "block") => return Ok(Effect::Ascii(false)),
        ("units", "auto") => ui.prefs.unit = None,
        ("units", value) => {
            let known = Unit::ALL.iter().find(|known| known.1 == value);
            ui.prefs.unit = Some(known.ok_or("set units auto, ns, us, ms or s")?.0);
        }
        ("hints", "on") => ui.prefs.bare = false,
        ("hints", "off") => ui.prefs.bare = true,
        ("layout", "full") => ui.prefs.is_compact = false,
        ("layout", "compact") => ui.prefs.is_compact = true,
        ("motion", value) => {
            let known = Motion::ALL.iter().find(|known| known.1 == value);
            ui.time.motion = known.ok_or("set motion scroll, sweep or page")?.0;
        }
        ("charts", value) => {
            let known = Marks::ALL.iter().find(|known| known.1 == value);
            ui.prefs.marks = known.ok_or("set charts ascii, blocks, braille, sextants or octants")?.0;
        }
        ("fps", value) => {
            let rate = value.parse().ok().filter(|rate| (1..=10).contains(rate));
            ui.prefs.rate = Some(rate.ok_or("set fps 1 to 10")?);
        }
        _ => return Err(format!("set {}", SETTINGS.join(", set "))),
    }
    Ok(Effect::None)
}
