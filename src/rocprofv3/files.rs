//! The files of a run: written from its recording, listed, and summed up.

use super::naming::Keys;
use super::plan::{Level, Plan};
use crate::export::collect::collect;
use crate::export::facts::Facts;
use crate::export::hosts::Hosts;
use crate::export::workspace::Workspace;
use crate::export::{self, Sums, summary};
use crate::item;
use crate::live::run::{say, say_all};
use crate::progress::Progress;
use crate::recording::{Merged, Recording};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Writes what a plan wants of the recording at `path`; `words` is the command line, `launched` when it was started, in
/// seconds since 1970.
pub(super) fn write(plan: &Plan, words: &[String], launched: u64, path: &Path) -> Result<()> {
    let recording = Recording::open(path)?.on_threads(Workspace::cores());
    let recordings = [recording];
    let whole = Merged::new(recordings.iter().collect())?;
    let progress = Progress::new();
    // Beside the recording: there is room, and it is removed with it.
    // The ranks of a node end at the same time.
    let threads = Workspace::cores();
    let place = Workspace::new(path, threads, Workspace::memory(threads) / 8);
    let (collected, replay) = collect(&whole, None, &place, &progress)?;
    say_all(&replay.warnings(&path.display().to_string()));
    let facts = Facts::read(&whole)?;
    let (nodes, faults) = Hosts::of_recordings(&recordings, &collected.run);
    say_all(&faults);
    let processes = &collected.run.processes;
    let keys = |process: &item::Process| {
        let siblings = processes.iter().filter(|other| other.parent == process.parent);
        Keys::of(process, words, siblings.count(), plan.rank, launched)
    };
    let stem = |process: &item::Process| {
        let keys = keys(process);
        PathBuf::from(keys.expand(&plan.directory)).join(keys.expand(&plan.file))
    };
    let job = export::Job {
        collected: &collected,
        place: &place,
        nodes: &nodes,
        progress: &progress,
        facts: &facts,
        command: words,
        choice: &plan.choice,
        formats: &plan.formats,
        sums: plan.wants_summary(),
        stem: &stem,
    };
    let export::Written { files: made, sums } = export::write(&job)?;
    if report(plan, &made)? == Amount::TooLittle {
        // As upstream, what is too little for files is too little for tables.
        return Ok(());
    }
    for one in sums.iter().filter(|_| plan.wants_summary()) {
        print(plan, one, &keys(&one.process))?;
    }
    Ok(())
}

/// Whether there is as much output as is wanted at least.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Amount {
    Enough,
    TooLittle,
}

/// Lists the files that were made; takes them away when they are fewer bytes than are wanted.
fn report(plan: &Plan, made: &[PathBuf]) -> Result<Amount> {
    let sizes = made.iter().filter_map(|path| Some(path.metadata().ok()?.len()));
    let bytes: u64 = sizes.sum();
    let is_small = bytes < plan.least_bytes;
    if made.is_empty() && plan.level >= Level::Warning {
        say("nothing of what was asked for was recorded: no file was written");
    } else if is_small {
        for path in made {
            std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        say(&format!(
            "{bytes} bytes of output are less than --minimum-output-data: no file was written"
        ));
    } else {
        for path in made {
            say(&format!("Opened result file: {}", path.display()));
        }
    }
    Ok(if is_small { Amount::TooLittle } else { Amount::Enough })
}

/// Prints the summary tables where they are wanted.
fn print(plan: &Plan, sums: &Sums, keys: &Keys) -> Result<()> {
    let mut tables = plan.tables.clone();
    let domains = &sums.domains;
    match plan.summary_file.to_ascii_lowercase().as_str() {
        "stderr" => summary::write(domains, &tables, &mut std::io::stderr().lock())?,
        "stdout" => summary::write(domains, &tables, &mut std::io::stdout().lock())?,
        _ => {
            tables.indent = 0;
            let mut path = sums.stem.as_os_str().to_owned();
            path.push(format!("_{}.txt", keys.expand(&plan.summary_file)));
            let path = PathBuf::from(path);
            if let Some(directory) = path.parent() {
                export::prepare_directory(directory)?;
            }
            export::write_atomic(&path, |out| summary::write(domains, &tables, out))?;
            say(&format!("Opened result file: {}", path.display()));
        }
    }
    Ok(())
}
