//! `roctop-hardware-GFX.json`: the numbers of all checks, made for an issue.

use super::inventory::Machine;
use super::step::Check;
use super::verdict::Verdict;
use serde_json::json;
use std::fs;
use std::io;
use std::path::Path;

/// Writes the file into a directory; its name.
pub(super) fn write(directory: &Path, machine: &Machine, checks: &[Check], verdict: &Verdict) -> io::Result<String> {
    let name = format!("roctop-hardware-{}.json", verdict.gfx);
    let beside = directory.join(format!(".{name}.{}", std::process::id()));
    let mut text = serde_json::to_string_pretty(&content(machine, checks, verdict)).map_err(io::Error::other)?;
    text.push('\n');
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, directory.join(&name)));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written.map(|()| name)
}

fn content(machine: &Machine, checks: &[Check], verdict: &Verdict) -> serde_json::Value {
    let checks: Vec<Check> = checks.iter().map(without_places).collect();
    json!({
        "format": 1,
        "roctop": env!("CARGO_PKG_VERSION"),
        "verdict": verdict,
        "machine": machine,
        "checks": checks,
    })
}

/// A check whose sentence names no directory of the user's.
fn without_places(check: &Check) -> Check {
    let clean = |text: &str| {
        let is_place = |word: &str| word.trim_start_matches(['(', '\'', '"']).starts_with('/') && !is_known(word);
        let words: Vec<&str> = text
            .split(' ')
            .map(|word| if is_place(word) { "(a file)" } else { word })
            .collect();
        words.join(" ")
    };
    Check {
        text: clean(&check.text),
        facts: check
            .facts
            .iter()
            .map(|(name, text)| (name.clone(), clean(text)))
            .collect(),
        ..check.clone()
    }
}

/// Places that every machine has.
fn is_known(word: &str) -> bool {
    ["/dev/", "/proc/self/", "/sys/"]
        .iter()
        .any(|place| word.starts_with(place))
}

#[cfg(test)]
mod tests {
    use super::super::step::Status;
    use super::*;

    #[test]
    fn sentences_name_no_directory() {
        let check = Check::found(Status::Bad, "'/home/someone/lib.so': not there; /dev/kfd: denied");
        assert_eq!(without_places(&check).text, "(a file) not there; /dev/kfd: denied");
    }
}
