//! Finds the call paths of sites: reads the stacks that processes copy, unwinds them and names their frames.
//!
//! A thread of low priority does this, because it opens and parses the program's files; another one reads the stack files
//! meanwhile. The bytes of a stack end here.

mod python;
mod reading;

use self::python::{CFrame, Merged, Python, merge};
use self::reading::{Message, Reading};
use super::ingest::BatchSender;
use crate::ask::server::Asked;
use crate::item::ProcessId;
use crate::raw::{Batch, Raw, RawSink};
use crate::session::StackFile;
use crate::sites::line;
use anyhow::Result;
use roctop_ring::sites::{Entry, PythonStack, Stack as Copied};
use roctop_trace::site::{Frame, Line, Module, NO_MODULE, PathEnd, SiteFact, SiteNumber};
use roctop_unwind::{CallPath, End, Files, FoundBy, Mapping, ModuleId, Names, NoName, Process, Stack, State};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::mem::take;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Maximum number of entries that are unwound in one round: names and what was found wait meanwhile.
const UNWOUND_AT_ONCE: usize = 256;
/// Maximum number of frames named in one round: new sites wait meanwhile.
const NAMED_AT_ONCE: usize = 512;
/// Frames that wait for the first question; later ones have no name.
const MAX_UNNAMED: usize = 1 << 18;
/// Frames with a name that are remembered.
const MAX_NAMED: usize = 1 << 18;
/// Maximum bytes of a process's stacks that wait for a mapping: as many as a stack file holds.
const MAX_WAITING_FOR_MAPPINGS: usize = roctop_ring::sites::MAX_FILE;
/// Ticks for which a stack waits for a mapping, some seconds. A library that is loaded later is not the one it needs.
const MAX_WAIT: u64 = 1 << 34;

/// What the thread that reads the rings knows.
#[derive(Default)]
pub(super) struct Found {
    /// Stack files that are not read yet.
    pub(super) files: Vec<StackFile>,
    /// Processes that have not ended, ascending. Their ring files say so; a process id may be another namespace's.
    pub(super) alive: Vec<ProcessId>,
}

/// The same, shared with the thread that reads stack files.
pub(super) type StackFiles = Arc<Mutex<Found>>;

/// Which frames get names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Naming {
    /// None: a recording has build-ids and offsets.
    #[default]
    Never,
    /// From the first question on, those for which there is time until the end.
    WhenAsked,
    /// Those for which there is time until the end.
    WhileRunning,
    /// All.
    Always,
}

/// Starts to read, at each drain of the rings. The threads end when the sender of `drains` is dropped, after they have read
/// and unwound what is left; the one that is returned ends last.
pub(super) fn start(
    files: StackFiles,
    drains: Receiver<()>,
    (naming, asked): (Naming, Option<Asked>),
    sending: BatchSender,
) -> Result<JoinHandle<()>> {
    let (read, received) = channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    let to_unwind = waiting.clone();
    std::thread::Builder::new()
        .name("stacks".into())
        .spawn(move || reading::run(&files, &drains, asked, &read, &waiting))?;
    let thread = std::thread::Builder::new().name("sites".into()).spawn(move || {
        // It never competes with the program.
        let _ = rustix::process::nice(10);
        let mut sites = CallSites::new(naming);
        loop {
            let mut batch = Batch::default();
            let is_last = sites.take_all(&received, &to_unwind);
            sites.pass_on(&mut batch);
            let mut has_more = sites.name(&mut batch);
            while has_more && is_last && naming == Naming::Always {
                has_more = sites.name(&mut batch);
            }
            if batch.size() > 0 && !sending.send(batch) || is_last {
                return;
            }
        }
    })?;
    Ok(thread)
}

/// Unwinds all stacks of processes that have ended, and passes the call paths on.
pub fn unwind_stacks(files: Vec<StackFile>, sink: &mut dyn RawSink) {
    let (mut reading, mut sites) = (Reading::default(), CallSites::new(Naming::Never));
    let mut unwind = |message| {
        sites.take(message);
        true
    };
    for file in files {
        reading.add(file, &mut unwind);
    }
    reading.read(&[], &mut unwind);
    let mut batch = Batch::default();
    sites.pass_on(&mut batch);
    batch.deliver(sink);
}

/// A process with sites.
struct Source {
    process: ProcessId,
    mapped: Process,
    /// Modules and frames that were passed on already.
    modules: HashSet<ModuleId>,
    frames: HashSet<FrameKey>,
    python: Python,
    paths: HashMap<u16, KnownPath>,
    waiting: VecDeque<WaitingStack>,
    /// What is not passed on yet: facts, and frames that need a name.
    facts: Vec<SiteFact>,
    unnamed: Vec<FrameKey>,
    is_over: bool,
}

/// A frame of a file in [`Files`].
type FrameKey = (ModuleId, u64);

/// A new site's stack with an address in no known mapping. While other threads read the list of mappings, a stack may stand
/// in the stack file before a mapping that it needs.
struct WaitingStack {
    copied: Copied,
    python: Option<PythonStack>,
    unmapped: u64,
}

/// The call path of a site, and what further copies of its stack showed.
#[derive(Default)]
struct KnownPath {
    frames: Vec<Frame>,
    end: PathEnd,
    copies: u32,
    different: u32,
}

impl Source {
    fn new(process: ProcessId, pid: u32) -> Self {
        Self {
            process,
            mapped: Process::new(Some(PathBuf::from(format!("/proc/{pid}/root")))),
            modules: HashSet::new(),
            frames: HashSet::new(),
            python: Python::default(),
            paths: HashMap::new(),
            waiting: VecDeque::new(),
            facts: Vec::new(),
            unnamed: Vec::new(),
            is_over: false,
        }
    }

    /// Takes what its process wrote.
    fn take(&mut self, entry: Entry, files: &mut Files) {
        match entry {
            Entry::Mapping(mapping) => {
                let range = mapping.start..mapping.end;
                self.mapped.map(Mapping {
                    start: mapping.start,
                    end: mapping.end,
                    offset: mapping.offset,
                    device: mapping.device,
                    inode: mapping.inode,
                    path: PathBuf::from(OsString::from_vec(mapping.path)),
                });
                let (ready, waiting) = take(&mut self.waiting)
                    .into_iter()
                    .partition(|one| range.contains(&one.unmapped));
                self.waiting = waiting;
                let ready: VecDeque<WaitingStack> = ready;
                for one in ready {
                    self.path(one.copied, one.python, files);
                }
            }
            Entry::Stack(copied) => {
                let call = &copied.call;
                let python = self.python.of_stack(call.site, call.tid, call.time);
                if self.paths.contains_key(&call.site) {
                    self.compare(&copied, python.as_ref(), files);
                } else {
                    self.path(copied, python, files);
                }
            }
            Entry::Code(code) => self.python.code(code),
            Entry::Python(stack) => self.python.frames(stack),
        }
    }

    fn unwound(&mut self, copied: &Copied, files: &mut Files) -> CallPath {
        let call = &copied.call;
        let stack = Stack {
            ip: call.ip,
            sp: call.sp,
            bp: call.bp,
            bytes: &copied.bytes,
        };
        self.mapped.call_path(&stack, files)
    }

    /// Compares another copy of a known site's stack.
    fn compare(&mut self, copied: &Copied, python: Option<&PythonStack>, files: &mut Files) {
        let mut path = self.unwound(copied, files);
        let (frames, _) = self.merged(&mut path, python, files);
        if let Some(known) = self.paths.get_mut(&copied.call.site) {
            known.copies = known.copies.saturating_add(1);
            let is_other = known.is_other(&frames, reason(path.end));
            known.different = known.different.saturating_add(u32::from(is_other));
            self.facts.push(SiteFact::Checked {
                site: SiteNumber(copied.call.site),
                copies: known.copies,
                different: known.different,
            });
        }
    }

    /// The call path of a new site, or of one whose path was not found completely.
    fn path(&mut self, copied: Copied, python: Option<PythonStack>, files: &mut Files) {
        let mut path = self.unwound(&copied, files);
        let (frames, is_unsure) = self.merged(&mut path, python.as_ref(), files);
        for frame in &path.frames {
            let Some(id) = frame.module else { continue };
            if self.modules.insert(id)
                && let Some(module) = files.module(id)
            {
                self.facts.push(SiteFact::Module(Module {
                    number: id.0,
                    path: module.path.to_string_lossy().into_owned(),
                    build_id: module.build_id.clone(),
                    problem: problem(module.state).into(),
                    is_python: false,
                }));
            }
            if self.frames.insert((id, frame.offset)) {
                self.unnamed.push((id, frame.offset));
            }
        }
        let (site, end) = (copied.call.site, reason(path.end));
        self.facts.push(SiteFact::Path {
            site: SiteNumber(site),
            frames: frames.clone(),
            end,
            is_guessed: is_unsure || path.frames.iter().any(|frame| frame.found_by == FoundBy::FramePointer),
        });
        let known = self.paths.entry(site).or_default();
        (known.frames, known.end) = (frames, end);
        if let Some(unmapped) = path.unmapped {
            self.wait(WaitingStack {
                copied,
                python,
                unmapped,
            });
        }
    }

    /// Keeps a stack until its mapping comes. The oldest ones go if there are too many.
    fn wait(&mut self, stack: WaitingStack) {
        let now = stack.copied.call.time;
        self.waiting.push_back(stack);
        let size = |one: &WaitingStack| size_of::<WaitingStack>() + one.copied.bytes.len();
        let mut bytes: usize = self.waiting.iter().map(size).sum();
        while let Some(first) = self.waiting.front()
            && (bytes > MAX_WAITING_FOR_MAPPINGS || now.saturating_sub(first.copied.call.time) > MAX_WAIT)
        {
            bytes -= size(first);
            self.waiting.pop_front();
        }
    }
}

impl Source {
    /// The frames of a path together with its Python frames; those that these replace are removed from the path. True if
    /// the place of a Python frame is not known.
    fn merged(&mut self, path: &mut CallPath, python: Option<&PythonStack>, files: &Files) -> (Vec<Frame>, bool) {
        let plain = |frame: &roctop_unwind::Frame| Frame {
            module: frame.module.map_or(NO_MODULE, |module| module.0),
            offset: frame.offset,
        };
        let Some(python) = python.filter(|python| !python.frames.is_empty()) else {
            return (path.frames.iter().map(plain).collect(), false);
        };
        let of_interpreter = |id| files.module(id).is_some_and(|module| is_interpreter(&module.path));
        let c = path.frames.iter().map(|frame| CFrame {
            address: frame.address,
            sp: frame.sp,
            is_interpreter: frame.module.is_some_and(of_interpreter),
            has_file: frame.module.is_some(),
        });
        let (merged, is_unsure) = merge(&c.collect::<Vec<_>>(), python, path.end == End::Complete);
        let frames = merged.iter().filter_map(|one| match one {
            Merged::C(at) => Some(plain(&path.frames[*at])),
            Merged::Python(at) => {
                let frame = &python.frames[*at];
                let is_shown = !self.python.is_of_creation(frame);
                is_shown.then(|| self.python.frame(frame, &mut self.facts))
            }
        });
        let frames = frames.collect();
        let kept: HashSet<usize> = merged
            .iter()
            .filter_map(|one| match one {
                Merged::C(at) => Some(*at),
                Merged::Python(_) => None,
            })
            .collect();
        let mut at = 0..;
        path.frames.retain(|_| at.next().is_some_and(|at| kept.contains(&at)));
        (frames, is_unsure)
    }
}

/// Whether this is the interpreter's own file: `python3.11`, `libpython3.12.so.1.0`. Programs that contain an interpreter
/// have other names.
fn is_interpreter(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.trim_start_matches("lib").starts_with("python")
}

impl KnownPath {
    /// Whether another copy of the stack shows another path. Of a path that is cut, the part that both have is compared.
    fn is_other(&self, frames: &[Frame], end: PathEnd) -> bool {
        let is_whole = self.end == PathEnd::Complete && end == PathEnd::Complete;
        let both = self.frames.len().min(frames.len());
        self.frames[..both] != frames[..both] || is_whole && self.frames.len() != frames.len()
    }
}

/// The files and names of a session.
struct CallSites {
    /// Processes by the numbers of their stack files.
    sources: BTreeMap<u32, Source>,
    files: Files,
    naming: Naming,
    names: Names,
    named: HashMap<FrameKey, Vec<Line>>,
    /// Frames that wait for a name, by module, with the processes that have them.
    unnamed: BTreeMap<ModuleId, BTreeMap<u64, Vec<ProcessId>>>,
    /// Number of these, once for each process.
    unnamed_count: usize,
}

impl CallSites {
    fn new(naming: Naming) -> Self {
        Self {
            sources: BTreeMap::new(),
            files: Files::new(),
            naming,
            names: Names::default(),
            named: HashMap::new(),
            unnamed: BTreeMap::new(),
            unnamed_count: 0,
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Asked if self.naming == Naming::WhenAsked => self.naming = Naming::WhileRunning,
            Message::Asked => {}
            Message::New(number, process, pid) => drop(self.sources.insert(number, Source::new(process, pid))),
            Message::Entry(number, entry) => {
                if let Some(source) = self.sources.get_mut(&number) {
                    source.take(entry, &mut self.files);
                }
            }
            Message::Missing(number, missing) => {
                if let Some(source) = self.sources.get_mut(&number) {
                    source.facts.push(SiteFact::Missing(missing));
                }
            }
            Message::Over(number) => {
                if let Some(source) = self.sources.get_mut(&number) {
                    source.is_over = true;
                }
            }
        }
    }

    /// Unwinds some of what was read; waits for it if there is nothing else to do. True after the last.
    fn take_all(&mut self, received: &Receiver<Message>, waiting: &AtomicUsize) -> bool {
        let is_idle = self.unnamed.is_empty() || self.naming == Naming::WhenAsked;
        for at in 0..UNWOUND_AT_ONCE {
            let next = match at {
                0 if is_idle => received.recv().map_err(|_| TryRecvError::Disconnected),
                _ => received.try_recv(),
            };
            match next {
                Ok(message) => {
                    if let Message::Entry(_, entry) = &message {
                        waiting.fetch_sub(reading::size(entry), Ordering::Relaxed);
                    }
                    self.take(message);
                }
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => return true,
            }
        }
        false
    }

    /// Passes on what was found.
    fn pass_on(&mut self, batch: &mut Batch) {
        for source in self.sources.values_mut() {
            let mut facts = take(&mut source.facts);
            let frames = take(&mut source.unnamed).into_iter();
            for frame in frames.filter(|_| self.naming != Naming::Never) {
                if let Some(lines) = self.named.get(&frame) {
                    facts.push(names_of(frame, lines));
                } else if self.naming != Naming::WhenAsked || self.unnamed_count < MAX_UNNAMED {
                    let waiting = self.unnamed.entry(frame.0).or_default();
                    waiting.entry(frame.1).or_default().push(source.process);
                    self.unnamed_count += 1;
                }
            }
            if !facts.is_empty() {
                batch.take(source.process, &Raw::Sites(&facts));
            }
        }
        self.sources.retain(|_, source| !source.is_over);
    }

    /// Names some frames of one file; false when none is left, or nobody has asked yet.
    fn name(&mut self, batch: &mut Batch) -> bool {
        if self.naming == Naming::WhenAsked {
            return false;
        }
        let Some(mut first) = self.unnamed.first_entry() else {
            return false;
        };
        let id = *first.key();
        let waiting = first.get_mut();
        let rest = waiting.keys().nth(NAMED_AT_ONCE).copied();
        let rest = rest.map(|from| waiting.split_off(&from)).unwrap_or_default();
        let these = std::mem::replace(waiting, rest);
        if waiting.is_empty() {
            first.remove();
        }
        let offsets: Vec<u64> = these.keys().copied().collect();
        let lines = self.lines(id, &offsets);
        for ((offset, processes), lines) in these.into_iter().zip(lines) {
            let fact = names_of((id, offset), &lines);
            self.unnamed_count = self.unnamed_count.saturating_sub(processes.len());
            for process in processes {
                batch.take(process, &Raw::Sites(std::slice::from_ref(&fact)));
            }
            if self.named.len() < MAX_NAMED {
                self.named.insert((id, offset), lines);
            }
        }
        true
    }

    /// Functions at addresses of a file; none where there are no names.
    fn lines(&mut self, id: ModuleId, offsets: &[u64]) -> Vec<Vec<Line>> {
        let Some(module) = self.files.module(id).filter(|module| module.state == State::Same) else {
            return vec![Vec::new(); offsets.len()];
        };
        let mut found = self.names.all(&module.opened, &module.build_id, offsets);
        // When a process ends, its root is no longer there.
        if module.opened != module.path && found.first().is_some_and(|first| *first == Err(NoName::Missing)) {
            found = self.names.all(&module.path, &module.build_id, offsets);
        }
        let lines = found.into_iter().map(Result::unwrap_or_default);
        lines.map(|lines| lines.into_iter().map(line).collect()).collect()
    }
}

fn names_of((module, offset): FrameKey, lines: &[Line]) -> SiteFact {
    SiteFact::Names {
        frame: Frame {
            module: module.0,
            offset,
        },
        lines: lines.to_vec(),
    }
}

const fn reason(end: End) -> PathEnd {
    match end {
        End::Complete => PathEnd::Complete,
        End::Cut => PathEnd::Cut,
        End::NoInformation => PathEnd::NoInformation,
        End::Damaged => PathEnd::Damaged,
        End::TooDeep => PathEnd::TooDeep,
    }
}

/// Why nothing is read from a file; empty if it is read.
const fn problem(state: State) -> &'static str {
    match state {
        State::Same => "",
        State::Changed => "replaced since it was loaded",
        State::Missing => "removed or not readable",
        State::NotElf => "not an ELF file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_ring::sites::{Call, Mapping as Written};

    const SP: u64 = 0x7fff_0000;

    /// A call at `ip`, whose caller is at `caller` by the frame pointer.
    fn stack(site: u16, time: u64, ip: u64, caller: u64) -> Entry {
        let call = Call {
            site,
            time,
            ip,
            sp: SP,
            bp: SP,
            ..Call::default()
        };
        let bytes = [0, caller].iter().flat_map(|word| word.to_le_bytes()).collect();
        Entry::Stack(Copied { call, bytes })
    }

    /// Code without a file: callers are found by the frame pointer.
    fn mapping(start: u64) -> Entry {
        Entry::Mapping(Written {
            start,
            end: start + 0x1000,
            ..Written::default()
        })
    }

    /// The paths that these entries give, each time that one is found.
    fn paths(source: &mut Source, entries: impl IntoIterator<Item = Entry>) -> Vec<(u16, Vec<u64>, PathEnd)> {
        let mut files = Files::new();
        for entry in entries {
            source.take(entry, &mut files);
        }
        let found = source.facts.drain(..).filter_map(|fact| match fact {
            SiteFact::Path { site, frames, end, .. } => {
                Some((site.0, frames.iter().map(|frame| frame.offset).collect(), end))
            }
            _ => None,
        });
        found.collect()
    }

    #[test]
    fn a_stack_before_its_mapping_is_unwound_again() {
        let mut source = Source::new(ProcessId(0), 0);
        let first = paths(&mut source, [mapping(0x1000), stack(1, 0, 0x1100, 0x3100)]);
        assert_eq!(first, [(1, vec![0x10ff], PathEnd::NoInformation)]);
        assert_eq!(paths(&mut source, [mapping(0x2000)]), []);
        let whole = (1, vec![0x10ff, 0x30ff], PathEnd::Complete);
        assert_eq!(paths(&mut source, [mapping(0x3000)]), [whole]);
        assert_eq!(paths(&mut source, [mapping(0x3000)]), [], "it waits for nothing more");

        // All mappings behind all stacks, as in a stack file that nobody has read.
        let mut source = Source::new(ProcessId(0), 0);
        let stacks = [stack(1, 0, 0x1100, 0x3100), stack(2, 1, 0x3200, 0x1200)];
        let found = paths(
            &mut source,
            stacks.into_iter().chain([mapping(0x1000), mapping(0x3000)]),
        );
        let last = |site| found.iter().rfind(|(of, ..)| *of == site).cloned();
        assert_eq!(last(1), Some((1, vec![0x10ff, 0x30ff], PathEnd::Complete)));
        assert_eq!(last(2), Some((2, vec![0x31ff, 0x11ff], PathEnd::Complete)));
        assert!(source.waiting.is_empty());
    }

    #[test]
    fn stacks_wait_for_mappings_within_bounds() {
        let mut source = Source::new(ProcessId(0), 0);
        let late = [
            stack(1, 0, 0x1100, 0),
            stack(2, MAX_WAIT + 1, 0x1100, 0),
            mapping(0x1000),
        ];
        let found = paths(&mut source, late);
        let of = |site| found.iter().filter(|(of, ..)| *of == site).count();
        assert_eq!((of(1), of(2)), (1, 2), "the first waits too long");

        let large = |site| {
            let Entry::Stack(mut copied) = stack(site, 0, 0x5100, 0) else {
                unreachable!()
            };
            copied.bytes.resize(16 << 10, 0);
            Entry::Stack(copied)
        };
        assert_eq!(paths(&mut source, (100..600).map(large)).len(), 500);
        let found = paths(&mut source, [mapping(0x5000)]);
        assert!((250..257).contains(&found.len()), "{}", found.len());
        assert_eq!(found.last().map(|(site, ..)| *site), Some(599), "the latest are kept");
    }
}
