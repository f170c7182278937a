//! A filter kept under a name: the one setting that roctop itself writes.

use super::{Config, path};
use crate::export::write_atomic;
use anyhow::Context;
use std::path::PathBuf;

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
    write_atomic(&path, |out| std::io::Write::write_all(out, text.as_bytes()))?;
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
