//! `roctop ci`: is it slower than the baseline?

use super::check::put;
use super::failure::Failure;
use super::recordings::{EXCEEDED, Recorded, open_on};
use crate::cli::usage_error::UsageError;
use crate::cli::{self, Ci, CiAction, CiFormat, CiReport, Look};
use crate::item::Exit;
use crate::live::ingest::Gauging;
use crate::live::run::{Run, headless, say, say_all};
use crate::model::report::runs::{self, Comparison, Environment, Side, Sums};
use crate::private_dir::PrivateDir;
use crate::process::launch::{Output, Program};
use crate::report::runs::baseline;
use crate::report::threshold::{Threshold, exceeded_between};
use crate::rocprofv3::rocm_release;
use crate::units;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The exit code where no verdict is possible: `git bisect run` skips such a commit.
const NO_VERDICT: u8 = 125;

/// `roctop ci`. A failure of roctop's own is no verdict either.
pub fn ci(options: &Ci) -> u8 {
    let done = match &options.action {
        CiAction::Run(options) => run(options),
        CiAction::Compare(options) => compare(options),
    };
    done.unwrap_or_else(|error| {
        let failure = Failure::from(error);
        say(&failure.to_string());
        match failure {
            Failure::Usage(_) => failure.exit_code(),
            Failure::NotStarted(..) | Failure::OutputClosed | Failure::Other(_) => NO_VERDICT,
        }
    })
}

/// The conditions of a report.
fn thresholds(report: &CiReport) -> Result<Vec<Threshold>> {
    let parsed = report.fail_if.iter().map(|text| {
        let threshold = Threshold::parse(text).map_err(|error| UsageError(error.to_string()))?;
        if threshold.is_of_sums() {
            return Ok(threshold);
        }
        let message = format!("--fail-if '{text}': 'roctop summary' alone has this measure");
        Err(UsageError(message).into())
    });
    parsed.collect()
}

/// `roctop ci run`.
fn run(options: &cli::CiRun) -> Result<u8> {
    let thresholds = thresholds(&options.report)?;
    if options.baseline.is_none() && options.before.is_none() {
        if let Some(change) = thresholds.iter().find(|threshold| threshold.is_change()) {
            let message = format!("--fail-if '{}': a change needs a --baseline or --before", change.text());
            return Err(UsageError(message).into());
        }
        if options.report.format != CiFormat::Table {
            let message = "--format is of a comparison: name a --baseline or --before";
            return Err(UsageError(message.into()).into());
        }
    }
    let before = options.baseline.as_deref().map(read_baseline).transpose()?;
    let mut programs = vec![("run", Program::find(&options.words)?)];
    if let Some(command) = &options.before {
        programs.insert(0, ("before", other(command)?));
    }
    let mut sides = vec![
        Side {
            environment: here(),
            ..Side::default()
        };
        programs.len()
    ];
    let stopped = repeat(&programs, options, &mut sides)?;
    let after = sides.pop().unwrap_or_default();
    let before = before.or_else(|| sides.pop());
    if let Some(reason) = stopped {
        return decide(&before.unwrap_or_default(), &after, vec![reason], &[], &options.report);
    }
    if let Some(path) = &options.save {
        save(&after, path)?;
    }
    if let Some(before) = before {
        return decide(&before, &after, Vec::new(), &thresholds, &options.report);
    }
    let failed = exceeded_between(&thresholds, &after, &after);
    put(std::io::stdout().lock(), |out| runs::write_runs(&after, out))?;
    let failed = failed?;
    say_all(&failed);
    Ok(if failed.is_empty() { 0 } else { EXCEEDED })
}

/// The program of --before.
fn other(command: &str) -> Result<Program> {
    let words = shlex::split(command).filter(|words| !words.is_empty());
    let words = words.ok_or_else(|| UsageError(format!("--before '{command}': no command")))?;
    let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    Ok(Program::find(&words)?)
}

/// Runs each program again and again, a side each; why that ended early, if it did.
fn repeat(programs: &[(&str, Program)], options: &cli::CiRun, sides: &mut [Side]) -> Result<Option<String>> {
    let Some(place) = &options.output else {
        return repeat_in(PrivateDir::new("ci")?.path(), programs, options, sides);
    };
    fs::create_dir_all(place).with_context(|| format!("cannot create {}", place.display()))?;
    repeat_in(place, programs, options, sides)
}

/// The same, with the recordings in `place`. Two programs run in turns, as ABBA: a machine that gets slower meanwhile is as slow
/// for both.
fn repeat_in(
    place: &Path,
    programs: &[(&str, Program)],
    options: &cli::CiRun,
    sides: &mut [Side],
) -> Result<Option<String>> {
    let budget = options.budget.map(Duration::from_nanos);
    let began = Instant::now();
    for number in 1..=options.runs {
        if budget.is_some_and(|budget| began.elapsed() >= budget) {
            if number == 1 {
                return Ok(Some("the time of --for was over before the first run".into()));
            }
            say(&format!("the time of --for is over after {} runs", number - 1));
            break;
        }
        let mut turn: Vec<usize> = (0..programs.len()).collect();
        if number % 2 == 0 {
            turn.reverse();
        }
        for at in turn {
            let (word, program) = &programs[at];
            let recording = place.join(format!("{word}-{number}"));
            let sums = once(program, &recording)?;
            if options.output.is_none() {
                fs::remove_dir_all(&recording).with_context(|| format!("cannot remove {}", recording.display()))?;
            }
            match sums {
                Ok(sums) => sides[at].runs.push(sums),
                Err(why) => return Ok(Some(format!("{word} {number}: {why}"))),
            }
            say(&format!("{word} {number} of {}", options.runs));
        }
    }
    Ok(None)
}

/// Records a run of the program; the inner error is why it has nothing to compare.
fn once(program: &Program, recording: &Path) -> Result<std::result::Result<Sums, String>> {
    let own = Run {
        recording: Some(recording.to_owned()),
        gauging: Some(Gauging::rate(cli::Gauges::default().gauge_rate)),
        output: Output::Error,
        ..Run::default()
    };
    let ran = headless(program, &own, &Look::default())?;
    match ran.exit {
        _ if ran.was_asked_to_end => Ok(Err("a signal asked it to end".to_owned())),
        Exit::Code(0) if ran.is_whole => sums(recording, cli::Reading::default()),
        Exit::Code(0) => Ok(Err("its recording is incomplete".to_owned())),
        Exit::Code(code) => Ok(Err(format!("the program failed with exit code {code}"))),
        exit => Ok(Err(format!("the program did not end by itself: {}", units::exit(exit)))),
    }
}

/// What a run adds up to; the inner error is why it has nothing to compare.
fn sums(path: &Path, reading: cli::Reading) -> Result<std::result::Result<Sums, String>> {
    let recordings = open_on(reading, std::slice::from_ref(&path.to_owned()))?;
    let recorded = Recorded::read(&recordings, true)?;
    let whole = &recorded.snapshot;
    if let Some(why) = runs::trouble(whole) {
        return Ok(Err(why));
    }
    Ok(Ok(match runs::warm_up(whole) {
        Some(warm_up) => Sums::of(whole, &recorded.summed(warm_up.steady)?, warm_up.steps),
        None => Sums::of(whole, whole, 0),
    }))
}

/// `roctop ci compare`.
fn compare(options: &cli::CiCompare) -> Result<u8> {
    let thresholds = thresholds(&options.report)?;
    let mut reasons = Vec::new();
    let [before, after] = [&options.before, &options.after].map(|paths| {
        let mut side = Side::default();
        for path in paths {
            if path.is_file() {
                let read = read_baseline(path)?;
                side.runs.extend(read.runs);
                side.environment = read.environment;
                continue;
            }
            match sums(path, options.reading)? {
                Ok(sums) => side.runs.push(sums),
                Err(why) => reasons.push(format!("{}: {why}", path.display())),
            }
        }
        anyhow::Ok(side)
    });
    decide(&before?, &after?, reasons, &thresholds, &options.report)
}

/// Writes the report; the exit code.
fn decide(
    before: &Side,
    after: &Side,
    mut reasons: Vec<String>,
    thresholds: &[Threshold],
    report: &CiReport,
) -> Result<u8> {
    let mut compared: Option<Comparison> = None;
    let mut failed = Vec::new();
    if reasons.is_empty() {
        match runs::compare(before, after) {
            Ok(found) => compared = Some(found),
            Err(why) => reasons.push(why.to_string()),
        }
    }
    if compared.is_some() {
        match exceeded_between(thresholds, before, after) {
            Ok(lines) => failed = lines,
            Err(why) => {
                reasons.push(why.to_string());
                compared = None;
            }
        }
    }
    let has_conditions = !thresholds.is_empty();
    put(std::io::stdout().lock(), |out| {
        runs::write(
            report.format.into(),
            [before, after],
            compared.as_ref().ok_or(&reasons[..]),
            has_conditions.then_some(&failed[..]),
            out,
        )
    })?;
    let is_worse = match &compared {
        None => return Ok(NO_VERDICT),
        Some(_) if has_conditions => !failed.is_empty(),
        Some(found) => found.slower().next().is_some(),
    };
    Ok(if is_worse { EXCEEDED } else { 0 })
}

fn read_baseline(path: &Path) -> Result<Side> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    baseline::read(&mut BufReader::new(file)).with_context(|| path.display().to_string())
}

/// Writes a baseline under a temporary name, and renames it when it is complete.
fn save(side: &Side, path: &Path) -> Result<()> {
    if path.is_dir() {
        bail!("{} is a directory", path.display());
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    let write = || -> Result<()> {
        let mut out = BufWriter::new(File::create(&beside)?);
        baseline::write(side, &mut out)?;
        out.flush()?;
        Ok(fs::rename(&beside, path)?)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// What is known of this machine.
fn here() -> Environment {
    let mut facts = Environment::default();
    let line = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    facts.put("ROCm", rocm_release());
    let driver = line("/sys/module/amdgpu/version").or_else(|| line("/sys/module/amdgpu/srcversion"));
    facts.put("amdgpu", driver);
    let system = rustix::system::uname();
    facts.put("Linux", Some(system.release().to_string_lossy().into_owned()));
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    facts.put("CPUs", allowed.map(|list| list.trim().to_owned()));
    facts.put_variables(&|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()));
    facts
}
