//! The texts on options and version.

use super::table;
use anyhow::Result;
use std::io::Write;
use std::path::PathBuf;

const HELP: &str = "Usage: roctop rocprofv3 [options] -- <application> [application options]

rocprofv3's command line and files, without the rocprofiler SDK. Formats: csv (default), json, pftrace, rocpd.
ROCTOP_ROCPROFV3_FORMAT names others to write when no format is asked for; rocprofv3 since ROCm 7.0 writes rocpd then.
--layout seed gives the columns and names of ROCm 6.2.
";

/// Prints the options, each with what becomes of it.
pub(super) fn help() -> Result<()> {
    let mut out = std::io::stdout().lock();
    write!(out, "{HELP}\nOptions:\n")?;
    for row in table::TABLE {
        let letter = if row.letter == ' ' {
            String::new()
        } else {
            format!("-{}, ", row.letter)
        };
        let value = match row.takes {
            table::Takes::Flag => "",
            table::Takes::One => " VALUE",
            table::Takes::Many => " VALUE…",
            table::Takes::Any => " [VALUE…]",
        };
        let note = match row.here {
            table::Here::Works => String::new(),
            table::Here::Moot(why) => format!("  (no effect: {why})"),
            table::Here::Partly(why) => format!("  (in part: {why})"),
            table::Here::Refused(why) => format!("  (not here: {why})"),
        };
        writeln!(out, "  {letter:>4}{}{value}{note}", table::typed(row.name))?;
    }
    Ok(())
}

/// The installed release of ROCm.
pub(crate) fn rocm_release() -> Option<String> {
    let rocm = std::env::var_os("ROCM_PATH").map_or_else(|| "/opt/rocm".into(), PathBuf::from);
    let release = std::fs::read_to_string(rocm.join(".info/version")).ok()?;
    Some(release.trim().to_owned())
}

/// Prints what `--version` prints.
pub(super) fn version() -> Result<()> {
    let system = rustix::system::uname();
    let word = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let release = rocm_release().unwrap_or_default();
    let facts = [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("git_revision", String::new()),
        ("library_arch", format!("{}-linux-gnu", std::env::consts::ARCH)),
        ("system_name", word(system.sysname())),
        ("system_processor", word(system.machine())),
        ("system_version", word(system.release())),
        ("compiler_id", "rustc".to_owned()),
        ("compiler_version", env!("CARGO_PKG_RUST_VERSION").to_owned()),
        ("rocm_version", release),
    ];
    let mut out = std::io::stdout().lock();
    for (key, value) in facts {
        writeln!(out, "{key:>20}: {value}")?;
    }
    Ok(())
}
