//! What is done with recordings.

use crate::cli;
use crate::cli::usage_error::UsageError;
use crate::decode::{Decoder, Output};
use crate::export::collect::{Collected, collect};
use crate::export::facts::Facts;
use crate::export::hosts::Hosts;
use crate::export::options::{Choice, KernelNames, Layout};
use crate::export::workspace::Workspace;
use crate::export::{self, prepare_directory};
use crate::item::{Item, Process, Span};
use crate::kernel_name::Aliases;
use crate::live;
use crate::live::run::{ranges_left_open, say, say_all};
use crate::model::tally::{Counting, State};
use crate::model::{Fresh, Mode, Narrowing, Options, Snapshot, Store};
use crate::progress::Progress;
use crate::query::{Field, Filter};
use crate::recording;
use crate::recording::{Merged, Origin, Recorder, Recording, Replay};
use crate::report::comparison;
use crate::report::summary as tables;
use crate::report::threshold::Threshold;
use crate::session;
use crate::settings::Config;
use crate::ui::{self, tally};
use anyhow::{Context, Result, bail};
use std::collections::HashSet;
use std::io::{IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// The exit code when a threshold was exceeded.
pub(super) const EXCEEDED: u8 = 3;

/// Opens recordings. A directory that is none but holds some stands for these, in order of their names.
pub(super) fn open_all(paths: &[PathBuf]) -> Result<Vec<Recording>> {
    open_on(cli::Reading::default(), paths)
}

/// Number of threads that read recordings.
fn threads(reading: cli::Reading) -> NonZeroUsize {
    let asked = reading.threads.and_then(|threads| NonZeroUsize::new(threads.into()));
    asked.unwrap_or_else(Workspace::cores)
}

/// As `open_all`, read as the user asks.
pub(super) fn open_on(reading: cli::Reading, paths: &[PathBuf]) -> Result<Vec<Recording>> {
    let threads = threads(reading);
    let (mut opened, mut known) = (Vec::new(), HashSet::new());
    let mut add = |path: &Path, recording: Recording| {
        // Its records would count twice.
        if path.canonicalize().is_ok_and(|own| !known.insert(own)) {
            bail!("the recording {} is named twice", path.display());
        }
        opened.push(recording.on_threads(threads));
        Ok(())
    };
    for path in paths {
        match Recording::open(path) {
            Ok(recording) => add(path, recording)?,
            Err(error) => {
                let inner = inside(path);
                if inner.is_empty() {
                    return Err(error.into());
                }
                for path in inner {
                    add(&path, Recording::open(&path)?)?;
                }
            }
        }
    }
    Ok(opened)
}

/// Recordings right inside of a directory.
fn inside(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(path) else {
        return Vec::new();
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut found: Vec<PathBuf> = paths.filter(|path| path.join(recording::MANIFEST).exists()).collect();
    found.sort();
    found
}

/// Recordings as one; says how their clocks were brought together.
pub(super) fn merged(recordings: &[Recording]) -> Result<Merged<'_>> {
    let whole = Merged::new(recordings.iter().collect())?;
    for line in whole.alignment() {
        say(&line);
    }
    Ok(whole)
}

/// The machines on which something was recorded; what is wrong with what is known of them is said.
fn hosts(recordings: &[Recording], collected: &Collected) -> Hosts {
    let (hosts, faults) = Hosts::of_recordings(recordings, &collected.run);
    say_all(&faults);
    hosts
}

fn names(recordings: &[Recording]) -> String {
    let paths: Vec<String> = recordings.iter().map(|one| one.path().display().to_string()).collect();
    paths.join(" ")
}

/// `roctop open`: the screen on recordings.
pub fn open(options: &cli::Open) -> Result<u8> {
    let recordings = open_on(options.reading, &options.recordings)?;
    if !std::io::stdout().is_terminal() {
        bail!("'roctop open' needs a terminal; 'roctop summary' prints tables");
    }
    live::replay(recordings, &options.look, options.range, options.at.clone())?;
    Ok(0)
}

/// `roctop export`: files.
pub fn export_files(options: &cli::Export) -> Result<u8> {
    let choice = choice(options)?;
    let threads = threads(options.reading);
    let recordings = open_on(options.reading, &options.recordings)?;
    let whole = merged(&recordings)?;
    prepare_directory(&options.directory)?;
    let memory = options.memory.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let place = Workspace::new(
        &options.directory,
        threads,
        memory.unwrap_or_else(|| Workspace::memory(threads)),
    );
    let progress = Progress::new();
    let (mut collected, replay) = collect(&whole, options.range, &place, &progress)?;
    if choice.filter.asks_for_rows() {
        collected.rows = Some(export::collect::rows(&whole, options.range, &progress)?);
    }
    let formats: Vec<export::Format> = options.format.iter().map(|format| (*format).into()).collect();
    if formats.iter().any(|format| format.has_call_paths()) || asks_for_sites(&choice.filter) {
        crate::sites::name(&mut collected.run.sites);
    }
    say_all(&replay.warnings(&names(&recordings)));
    for recording in &recordings {
        if let Some(line) = ranges_left_open(&recording.left_open()?.ranges) {
            say(&line);
        }
    }
    let stem = |process: &Process| {
        let usual = || process.pid.to_string();
        options.directory.join(options.output.clone().unwrap_or_else(usual))
    };
    let job = export::Job {
        collected: &collected,
        place: &place,
        nodes: &hosts(&recordings, &collected),
        facts: &Facts::read(&whole)?,
        command: recordings.first().map_or(&[], Recording::command),
        choice: &choice,
        formats: &formats,
        progress: &progress,
        sums: false,
        stem: &stem,
    };
    let made = export::write(&job)?.files;
    drop(progress);
    // The files of other formats have it.
    if formats.contains(&export::Format::Collapsed) {
        for process in &collected.run.processes {
            for text in collected.run.missing_of(process.id) {
                say(&format!("process {}: {text}", process.pid));
            }
        }
    }
    for path in &made {
        writeln!(std::io::stdout(), "{}", path.display())?;
    }
    if made.is_empty() {
        say("the recording holds no such records, so no file was written");
    }
    Ok(0)
}

fn choice(options: &cli::Export) -> Result<Choice> {
    let config = Config::load()?;
    let filter = options.filter.as_deref().unwrap_or("");
    Ok(Choice {
        layout: match options.layout {
            cli::Layout::New => Layout::New,
            cli::Layout::Seed => Layout::Seed,
        },
        has_code: matches!(options.layout, cli::Layout::New),
        kernel_names: match (options.mangled_kernels, options.truncate_kernels) {
            (true, _) => KernelNames::Mangled,
            (_, true) => KernelNames::Truncated,
            _ => KernelNames::Demangled,
        },
        filter: cli::filter(filter, &config.presets)?,
        aliases: config.aliases,
        rename: options.kernel_rename,
        wide_counters: options.wide_counters,
        pftrace_bytes: options.split.map(|bytes| bytes.max(1)),
        stats: options.stats,
        range: options.range,
        ..Choice::default()
    })
}

/// `roctop summary`: tables, and thresholds.
pub fn summary(options: &cli::Summary) -> Result<u8> {
    let thresholds = options.fail_if.iter().map(|text| Threshold::parse(text));
    let thresholds = thresholds.collect::<Result<Vec<_>, _>>();
    let thresholds = thresholds.map_err(|error| UsageError(error.to_string()))?;
    if let Some(change) = thresholds.iter().find(|threshold| threshold.is_change()) {
        let message = format!(
            "--fail-if '{}': a change needs a baseline: 'roctop ci' has one",
            change.text()
        );
        return Err(UsageError(message).into());
    }
    let presets = Config::load()?.presets;
    let filter = cli::filter(options.filter.as_deref().unwrap_or(""), &presets)?;
    let recordings = open_on(options.reading, &options.recordings)?;
    // Filters ask for single launches and calls.
    let has_timeline = !filter.is_empty() || thresholds.iter().any(Threshold::needs_timeline);
    let mut recorded = Recorded::read(&recordings, has_timeline)?;
    if asks_for_sites(&filter) {
        recorded = recorded.named();
    }
    let snapshot = recorded.counted(&filter)?.snapshot;
    let whole = snapshot.values.totals;
    let snapshot = ui::export::only(snapshot, filter);
    for warning in tables::warnings(&snapshot) {
        say(&warning);
    }
    let mut out = std::io::stdout().lock();
    match options.format {
        cli::SummaryFormat::Table => tables::write_table(&snapshot, &whole, &mut out)?,
        cli::SummaryFormat::Json => writeln!(out, "{:#}", tables::json(&snapshot))?,
        cli::SummaryFormat::Csv => tables::write_csv(&snapshot, &mut out)?,
        cli::SummaryFormat::Md => tables::write_markdown(&snapshot, &mut out)?,
    }
    let mut code = 0;
    for threshold in &thresholds {
        for line in threshold.exceeded(&snapshot)? {
            say(&line);
            code = EXCEEDED;
        }
    }
    Ok(code)
}

/// Recordings, and what is known at their end.
pub(super) struct Recorded<'a> {
    whole: Merged<'a>,
    decoder: Decoder,
    pub(super) snapshot: Arc<Snapshot>,
    aliases: Aliases,
}

impl<'a> Recorded<'a> {
    /// Reads all of them; without a timeline in half the time.
    pub(super) fn read(recordings: &'a [Recording], has_timeline: bool) -> Result<Self> {
        let whole = merged(recordings)?;
        let title = match recordings {
            [one] => match one.trigger() {
                Some(trigger) => format!("{}; {}", one.command().join(" "), trigger.line()),
                None => one.command().join(" "),
            },
            many => names(many),
        };
        let config = Config::load()?;
        let mut store = Store::new(Options {
            mode: Mode::Replay,
            title,
            aliases: config.aliases.clone(),
            thresholds: config.thresholds,
            timeline: has_timeline,
            ..Options::default()
        });
        let progress = Progress::new();
        progress.begin("reading", whole.bytes());
        let mut add = |bytes| progress.add(bytes);
        let (replay, decoder) = if has_timeline || whole.threads() == 1 {
            whole.by_kind(None, &mut add, &mut |output| store.take(&output.decoded()))?
        } else {
            read_on_three_threads(&whole, &mut store, &mut add)?
        };
        drop(progress);
        say_all(&replay.warnings(&names(recordings)));
        store.set_faults(live::faults(&replay));
        Ok(Self {
            whole,
            decoder,
            snapshot: store.snapshot(Fresh::All),
            aliases: config.aliases,
        })
    }

    /// The same with the names of call paths.
    pub(super) fn named(mut self) -> Self {
        let snapshot = Arc::make_mut(&mut self.snapshot);
        crate::sites::name(Arc::make_mut(&mut snapshot.sites));
        self
    }

    /// The same with the launches and calls that pass a filter counted in the recording, if memory does not hold all.
    pub(super) fn counted(mut self, filter: &Filter) -> Result<Self> {
        if tally::is_wanted(&self.snapshot, filter) {
            let plan = tally::Plan::new(self.snapshot.clone(), filter);
            let counted = live::tally::count(&mut self.whole.scan(), &self.decoder, &plan, &|| false, &|_, _| ())?;
            let counting = counted.map(|counted| Counting {
                filter: filter.source.clone(),
                state: State::Done(counted.tally),
            });
            Arc::make_mut(&mut self.snapshot).counting = counting.map(Arc::new);
        }
        Ok(self)
    }

    /// The records that ended in a stretch of time, read again.
    pub(super) fn narrowed(&self, span: Span) -> Result<Snapshot> {
        self.read_again(span, Narrowing::of_records(span))
    }

    /// What the records that ended in a stretch of time add up to.
    pub(super) fn summed(&self, span: Span) -> Result<Snapshot> {
        self.read_again(span, Narrowing::of_sums(span))
    }

    fn read_again(&self, span: Span, narrowing: Narrowing) -> Result<Snapshot> {
        let mut narrowing = narrowing.with_aliases(self.aliases.clone());
        self.whole
            .items(Some(span), &mut |_| (), &mut |items| narrowing.take(&items))?;
        Ok(narrowing.finish(&self.snapshot))
    }
}

/// Reads all records into an empty store without a timeline. Two more threads count: one by kernel, operation and thread, one by
/// marker.
fn read_on_three_threads(
    whole: &Merged<'_>,
    store: &mut Store,
    read: &mut dyn FnMut(u64),
) -> Result<(Replay, Decoder)> {
    let (mut counted, mut markers) = store.parts();
    let (to_counted, by_counted) = sync_channel::<Arc<Output>>(MAX_BATCHES_AHEAD);
    let (to_markers, by_markers) = sync_channel::<Arc<Output>>(MAX_BATCHES_AHEAD);
    let (replay, counted, markers) = std::thread::scope(|scope| {
        let counting = scope.spawn(move || {
            for batch in by_counted {
                counted.take(&batch.decoded());
            }
            counted
        });
        let attributing = scope.spawn(move || {
            for batch in by_markers {
                markers.take(&batch.decoded());
            }
            markers
        });
        let replay = whole.by_kind(None, read, &mut |output| {
            store.take(&output.decoded());
            let batch = Arc::new(std::mem::take(output));
            // The other threads are gone only if they panicked.
            let _ = to_counted.send(batch.clone());
            let _ = to_markers.send(batch);
        });
        drop((to_counted, to_markers));
        (replay, joined(counting), joined(attributing))
    });
    store.join(counted, markers);
    Ok(replay?)
}

/// Maximum number of batches between two of these threads.
const MAX_BATCHES_AHEAD: usize = 64;

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))
}

/// The tables at the end of some recordings.
fn load_tables(recordings: &[Recording]) -> Result<Arc<Snapshot>> {
    Ok(Recorded::read(recordings, false)?.snapshot)
}

/// Whether a filter compares names of call paths.
fn asks_for_sites(filter: &Filter) -> bool {
    !filter.asks_only(|field| !matches!(field, Field::Site | Field::File))
}

/// What is known at the end of some recordings, as one.
pub(crate) fn snapshot(paths: &[PathBuf]) -> Result<Arc<Snapshot>> {
    Ok(Recorded::read(&open_all(paths)?, true)?.snapshot)
}

/// `roctop diff`: what became slower or faster.
pub fn compare(options: &cli::Diff) -> Result<u8> {
    let load = |path| load_tables(&open_on(options.reading, std::slice::from_ref(path))?);
    let (before, after) = (load(&options.before)?, load(&options.after)?);
    comparison::write(&before, &after, &mut std::io::stdout().lock())?;
    Ok(0)
}

/// `roctop cut`: a stretch of time as a separate recording.
pub fn cut(options: &cli::Cut) -> Result<u8> {
    let recordings = open_on(options.reading, &options.recordings)?;
    let whole = merged(&recordings)?;
    let begin = match whole.beginning()? {
        Some(begin) => begin,
        None => times(&whole)?.begin,
    };
    let (from, to) = options.range;
    let span = Span {
        // The first readings of gauges are from before the program began.
        begin: if from == 0 { 0 } else { begin.saturating_add(from) },
        end: begin.saturating_add(to),
    };
    let touches = |all: Span| all.begin <= span.end && all.end >= span.begin;
    // Segments without an index are not part of the span.
    if !whole.span()?.is_some_and(touches) {
        let all = times(&whole)?;
        if !touches(all) {
            let since = |at: u64| format!("{:.3} s", at.saturating_sub(begin) as f64 / 1e9);
            let (first, last) = (since(all.begin), since(all.end));
            bail!("nothing was recorded in this --range: the records are from {first} to {last}");
        }
    }
    let is_whole = from == 0 && to == u64::MAX;
    write_recording(&options.output, &recordings, &whole, (!is_whole).then_some(span))
}

/// `roctop merge`: several recordings as one.
pub fn merge(options: &cli::Merge) -> Result<u8> {
    let recordings = open_on(options.reading, &options.recordings)?;
    let whole = merged(&recordings)?;
    write_recording(&options.output, &recordings, &whole, None)
}

fn write_recording(output: &Path, recordings: &[Recording], whole: &Merged<'_>, span: Option<Span>) -> Result<u8> {
    let Some(first) = recordings.first() else {
        bail!("there is no recording");
    };
    // The first one's clock counts, wherever the copy is made.
    let origin = Origin {
        host: first.host().to_owned(),
        boot: first.boot().to_owned(),
        clock_offset: first.clock_offset(),
        topologies: recordings.iter().flat_map(Recording::topologies).collect(),
        machines: whole.machines(),
    };
    let recorder = Recorder::copy(output, first.command(), &origin)?;
    let progress = Progress::new();
    progress.begin("copying", whole.bytes());
    let replay = recording::cut(whole, span, &mut |bytes| progress.add(bytes), recorder)?;
    drop(progress);
    say_all(&replay.warnings(&names(recordings)));
    Ok(0)
}

/// Begin of the first and end of the last record, by reading all.
fn times(whole: &Merged<'_>) -> Result<Span> {
    let (mut begin, mut end) = (u64::MAX, 0);
    whole.items(None, &mut |_| (), &mut |items| {
        let known = items.iter().filter_map(Item::span);
        for span in known.filter(|span| span.begin > 0) {
            begin = begin.min(span.begin);
            end = end.max(span.end);
        }
    })?;
    if begin == u64::MAX {
        bail!("there is no record in it");
    }
    Ok(Span { begin, end })
}

/// How often a session that goes on is read, and how often it is asked whether it does.
const READING: Duration = Duration::from_millis(20);
const ASKING: Duration = Duration::from_millis(500);

/// Goes on with a recording while programs of the session live. Nobody sees what it says.
fn follow(session: &Path, path: &Path) -> Result<u8> {
    let mut asked = Instant::now();
    let mut lives = true;
    let mut goes_on = || {
        if asked.elapsed() >= ASKING {
            asked = Instant::now();
            lives = !session::going_on(session).is_empty();
        }
        if lives {
            std::thread::sleep(READING);
        }
        lives
    };
    recording::recover(session, path, &mut goes_on, live::unwind_stacks)?;
    std::fs::remove_dir_all(session)?;
    Ok(0)
}

/// `roctop recover`: completes the recording of a session whose roctop died.
pub fn recover(options: &cli::Recover) -> Result<u8> {
    let session = session::find(&options.session)?;
    let own = session::recording_of(&session);
    let path = match (&options.output, own) {
        // A recording that was moved is no longer where the session says.
        (Some(path), Some(own)) if own.exists() && path.canonicalize().ok() != own.canonicalize().ok() => bail!(
            "{} is not the recording of the session {}: that is {}",
            path.display(),
            session.display(),
            own.display()
        ),
        (Some(path), _) => path.clone(),
        (None, own) => own.with_context(|| {
            format!(
                "the session {} does not say where its recording is; name it with -o",
                session.display()
            )
        })?,
    };
    if options.follow {
        return follow(&session, &path);
    }
    if session::is_in_use(&session) {
        bail!(
            "the session {} is still in use: its roctop or a program in it lives; 'roctop attach' watches it",
            session.display()
        );
    }
    let found = recording::recover(&session, &path, &mut || false, live::unwind_stacks)?;
    std::fs::remove_dir_all(&session).with_context(|| format!("cannot remove the session {}", session.display()))?;
    let in_flight = match Recording::open(&path)?.left_open()?.dispatches {
        0 => String::new(),
        count => format!("; {count} launched, not complete: in flight when the program ended"),
    };
    say(&format!("{}: {found}{in_flight}", path.display()));
    Ok(0)
}
