//! The runs of a command line: one for each job of its input file, and for each `--pmc`.

use super::input;
use super::settings::Settings;
use crate::live::run::say;
use anyhow::Result;
use std::path::Path;

/// A run of the program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) settings: Settings,
    /// Separate directory below that of the files.
    pub(super) directory: Option<String>,
}

/// The jobs of a command line; at least one. What is ignored of the input file is reported.
///
/// Errors: the input file cannot be used, or sets an option of the command line to another value.
pub(super) fn read(typed: &Settings) -> Result<Vec<Job>> {
    let Some(path) = typed.value("input").map(Path::new) else {
        return Ok(alone(typed));
    };
    let input = input::read(path)?;
    for unread in &input.unread {
        say(&format!("{}: {unread}", path.display()));
    }
    joined(typed, &input.jobs, input.word)
}

fn alone(typed: &Settings) -> Vec<Job> {
    let runs = typed.runs();
    let is_one = runs.len() == 1;
    let job = |(number, settings)| Job {
        settings,
        directory: (!is_one).then(|| format!("pass_{number}")),
    };
    (1..).zip(runs).map(job).collect()
}

fn joined(typed: &Settings, jobs: &[Settings], word: &str) -> Result<Vec<Job>> {
    let mut all = Vec::new();
    let runs = typed.runs();
    if typed.counts() && (runs.len() > 1 || jobs.first().is_some_and(Settings::counts)) {
        // As upstream: the counters of the command line come first, with what else the first job sets.
        let bare = typed.uncounted();
        for run in runs {
            let first = jobs.first().map(Settings::uncounted).unwrap_or_default();
            all.push((run.join(&first)?, "pass"));
        }
        let rest = jobs.iter().enumerate();
        for (_, job) in rest.filter(|(number, job)| *number > 0 || job.counts()) {
            all.push((bare.join(job)?, word));
        }
    } else {
        for job in jobs {
            all.push((typed.join(job)?, word));
        }
    }
    // As upstream: one job has a separate directory only when it names counters, not for groups of them.
    let is_one = all.len() == 1;
    let job = |(number, (settings, word)): (usize, (Settings, &str))| Job {
        directory: (!is_one || !settings.values("pmc").is_empty()).then(|| format!("{word}_{number}")),
        settings,
    };
    Ok((1..).zip(all).map(job).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &str) -> Settings {
        let words: Vec<std::ffi::OsString> = line.split(' ').map(Into::into).collect();
        Settings::parse(&words).unwrap().0
    }

    /// Directories with their counters.
    fn shown(jobs: &[Job]) -> Vec<String> {
        let shown = |job: &Job| {
            let directory = job.directory.as_deref().unwrap_or(".");
            format!("{directory}: {}", job.settings.values("pmc").join(" "))
        };
        jobs.iter().map(shown).collect()
    }

    #[test]
    fn each_pmc_is_a_pass_and_one_has_no_directory() {
        assert_eq!(shown(&alone(&typed("--pmc A B -M"))), [".: A B"]);
        assert_eq!(shown(&alone(&typed("--pmc A B --pmc C"))), ["pass_1: A B", "pass_2: C"]);
        assert!(
            alone(&typed("--pmc A -M --pmc C"))
                .iter()
                .all(|job| job.settings.on("mangled_kernels"))
        );
    }

    #[test]
    fn counters_of_the_command_line_come_before_those_of_the_file() {
        let file = [typed("--pmc X"), typed("--pmc Y -M")];
        let joined_of = |line: &str, jobs: &[Settings]| shown(&joined(&typed(line), jobs, "pmc").unwrap());
        assert_eq!(joined_of("-r", &file), ["pmc_1: X", "pmc_2: Y"]);
        assert_eq!(joined_of("-r", &file[..1]), ["pmc_1: X"]);
        assert_eq!(joined_of("-r", &[typed("-T")]), [".: "]);
        assert_eq!(joined_of("--pmc A", &file), ["pass_1: A", "pmc_2: X", "pmc_3: Y"]);
        assert_eq!(joined_of("--pmc A --pmc B", &[typed("-T")]), ["pass_1: A", "pass_2: B"]);
        assert_eq!(joined_of("--pmc A", &[typed("-T")]), ["pmc_1: A"]);
    }

    #[test]
    fn a_value_that_the_file_has_otherwise_is_told() {
        let error = joined(&typed("-T"), &[typed("--truncate-kernels=no")], "pass").unwrap_err();
        assert!(error.to_string().contains("--truncate-kernels"));
    }
}
