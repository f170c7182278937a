//! Where the settings are.

use std::ffi::OsString;
use std::path::PathBuf;

/// Where the file is: `$ROCTOP_CONFIG`, else `roctop/config.toml` below the XDG configuration directory.
pub fn path() -> Option<PathBuf> {
    if let Some(path) = set("ROCTOP_CONFIG") {
        return Some(path.into());
    }
    directory().map(|directory| directory.join("config.toml"))
}

/// Whether the user named the file.
pub(super) fn is_named() -> bool {
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
