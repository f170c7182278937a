//! Call sites: the call paths that launches, copies and calls come from, and what they cost.
//!
//! Processes and threads number their sites separately. Sites with the same call path, in files with the same build-id, have
//! one path here.

mod torch;

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use super::fx_hash::FastMap;
use super::stats::Sum;
use super::table::{MAX_IDS, is_untimed};
use roctop_ring::near;
use roctop_trace::item::{ApiCall, Copy, Dispatch, KernelId, OperationId, ProcessId};
use roctop_trace::site::{Frame, Line, MissingSites, Module, NO_MODULE, PathEnd, SiteFact, SiteNumber};

/// A call path, dense over the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathId(pub u32);

/// Frames, from the one that makes the call outward.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallPath {
    /// Frames, innermost first. Their modules are those of [`Sites::module`].
    pub frames: Arc<[Frame]>,
    /// Why there are no further frames.
    pub end: PathEnd,
    /// Whether frames were found by frame pointers alone: callers may be missing between them.
    pub is_guessed: bool,
    /// Number of stacks that were copied again.
    pub copies: u64,
    /// Number of those with another call path: the path is ambiguous if there are any.
    pub different: u64,
}

/// Maximum number of frames of a path, and of functions in a frame.
const MAX_FRAMES: usize = 256;
/// Maximum number of frames with names: ten thousand sites have fewer.
const MAX_NAMES: usize = 1 << 20;
/// Maximum number of sites.
const MAX_SITES: usize = 1 << 18;

/// What HIP's compiler puts between a launch and the run-time: not what people wrote.
const STUB: &str = "__device_stub__";

/// What is known of call sites.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    modules: Vec<Arc<Module>>,
    module_ids: HashMap<(Vec<u8>, String), u32>,
    /// Module by process and its number there.
    of_process: FastMap<(u32, u32), u32>,
    paths: Vec<CallPath>,
    path_ids: HashMap<(Arc<[Frame]>, PathEnd), PathId>,
    /// Path by process and number of the site.
    by_number: FastMap<(u32, u16), PathId>,
    /// Latest check of each site.
    checked: FastMap<(u32, u16), (u32, u32)>,
    names: HashMap<Frame, Arc<[Line]>>,
    /// Texts of paths, each made when it is needed.
    texts: Vec<OnceLock<PathText>>,
    /// Whether frames were named since the texts were made.
    has_new_names: bool,
    missing: FastMap<u32, MissingSites>,
}

/// Texts of a path.
#[derive(Clone, Debug, Default)]
struct PathText {
    label: String,
    operator: String,
    torch_module: String,
    functions: String,
    files: String,
}

impl Sites {
    /// Adds a fact.
    pub fn add(&mut self, process: ProcessId, fact: &SiteFact) {
        match fact {
            SiteFact::Module(module) => self.module_of(process, module),
            SiteFact::Path {
                site,
                frames,
                end,
                is_guessed,
            } => {
                let frames = frames.iter().take(MAX_FRAMES);
                let frames = frames.map(|frame| self.shared(process, *frame)).collect();
                let path = self.path_id(frames, *end);
                if let Some(known) = self.paths.get_mut(path.0 as usize) {
                    known.is_guessed |= *is_guessed;
                }
                let key = (process.0, site.0);
                if self.by_number.len() < MAX_SITES || self.by_number.contains_key(&key) {
                    self.by_number.insert(key, path);
                }
            }
            SiteFact::Checked {
                site,
                copies,
                different,
            } => self.check(process, *site, (*copies, *different)),
            SiteFact::Names { frame, lines } => {
                self.name(self.shared(process, *frame), lines);
            }
            SiteFact::Missing(numbers) => drop(self.missing.insert(process.0, *numbers)),
        }
    }

    /// Names a frame with the session's number of its module.
    pub fn name(&mut self, frame: Frame, lines: &[Line]) {
        if self.names.len() < MAX_NAMES {
            self.names
                .insert(frame, lines.get(..MAX_FRAMES).unwrap_or(lines).into());
            self.has_new_names = true;
        }
    }

    /// Number of frames for which a name was looked for.
    pub fn named(&self) -> usize {
        self.names.len()
    }

    /// Frames in files for which no name was looked for, each once.
    pub fn unnamed(&self) -> BTreeSet<Frame> {
        let frames = self.paths.iter().flat_map(|path| path.frames.iter().copied());
        let frames = frames.filter(|frame| frame.module != NO_MODULE && !self.names.contains_key(frame));
        frames.collect()
    }

    fn module_of(&mut self, process: ProcessId, module: &Module) {
        let next = self.modules.len() as u32;
        let key = (module.build_id.clone(), module.path.clone());
        let id = *self.module_ids.entry(key).or_insert(next);
        if id == next {
            self.modules.push(Arc::new(module.clone()));
        }
        self.of_process.insert((process.0, module.number), id);
    }

    /// A frame with the session's number of its module.
    fn shared(&self, process: ProcessId, frame: Frame) -> Frame {
        let module = self.of_process.get(&(process.0, frame.module)).copied();
        Frame {
            module: module.unwrap_or(NO_MODULE),
            ..frame
        }
    }

    fn path_id(&mut self, frames: Arc<[Frame]>, end: PathEnd) -> PathId {
        let next = PathId(self.paths.len() as u32);
        let id = *self.path_ids.entry((frames.clone(), end)).or_insert(next);
        if id == next {
            self.paths.push(CallPath {
                frames,
                end,
                ..CallPath::default()
            });
            self.texts.push(OnceLock::new());
        }
        id
    }

    /// Makes texts of paths with new names again when they are needed.
    pub fn settle(&mut self) {
        if std::mem::take(&mut self.has_new_names) {
            self.texts.fill_with(OnceLock::new);
        }
    }

    /// Whether [`Sites::settle`] has something to do.
    pub const fn is_unsettled(&self) -> bool {
        self.has_new_names
    }

    /// A path without names: the files, by build-id if they have one, and the offsets of its frames.
    pub fn identity(&self, path: PathId) -> String {
        let Some(known) = self.path(path) else {
            return String::new();
        };
        let mut text = format!("{:?}", known.end);
        for frame in &*known.frames {
            let file = self.module(*frame);
            let (id, path) = file.map_or((&[][..], ""), |file| (&file.build_id, &file.path));
            text.push('\n');
            if id.is_empty() {
                text += path;
            }
            for byte in id {
                let _ = write!(text, "{byte:02x}");
            }
            let _ = write!(text, "+{:x}", frame.offset);
        }
        text
    }

    /// Number of paths whose caller has no name: because nobody has looked for it yet, and because there is none.
    pub fn unnamed_callers(&self) -> (usize, usize) {
        let callers = (0..self.paths.len()).filter_map(|path| self.caller(PathId(path as u32)));
        let unnamed = callers.filter(|(frame, line)| line.function.is_empty() && frame.module != NO_MODULE);
        unnamed.fold((0, 0), |(waiting, without), (frame, _)| {
            if self.names.contains_key(&frame) {
                (waiting, without + 1)
            } else {
                (waiting + 1, without)
            }
        })
    }

    /// All functions of a path, innermost first, as one text.
    pub fn functions_text(&self, path: PathId) -> &str {
        self.text(path).map_or("", |text| &text.functions)
    }

    /// All source files of a path, innermost first, as one text.
    pub fn files_text(&self, path: PathId) -> &str {
        self.text(path).map_or("", |text| &text.files)
    }

    fn text(&self, path: PathId) -> Option<&PathText> {
        let place = self.texts.get(path.0 as usize)?;
        Some(place.get_or_init(|| {
            let mut text = PathText {
                label: self.make_label(path),
                operator: self.make_operator(path).unwrap_or_default(),
                torch_module: self.make_torch_module(path),
                ..PathText::default()
            };
            for (frame, line) in self.functions(path) {
                text.functions += &self.function(frame, line);
                text.functions.push('\n');
                let file = match (&*line.file, self.module(frame)) {
                    ("", Some(module)) => &module.path,
                    (file, _) => file,
                };
                if !text.files.ends_with(&format!("{file}\n")) {
                    text.files += file;
                    text.files.push('\n');
                }
            }
            for name in [&text.operator, &text.torch_module] {
                if !name.is_empty() {
                    text.functions += name;
                    text.functions.push('\n');
                }
            }
            text
        }))
    }

    fn check(&mut self, process: ProcessId, site: SiteNumber, found: (u32, u32)) {
        let key = (process.0, site.0);
        let Some(path) = self
            .by_number
            .get(&key)
            .and_then(|id| self.paths.get_mut(id.0 as usize))
        else {
            return;
        };
        let before = self.checked.insert(key, found).unwrap_or_default();
        path.copies += u64::from(found.0.saturating_sub(before.0));
        path.different += u64::from(found.1.saturating_sub(before.1));
    }

    /// Path of a site; none if it has none or is not unwound yet.
    pub fn path_of(&self, process: ProcessId, site: SiteNumber) -> Option<PathId> {
        self.by_number.get(&(process.0, site.0)).copied()
    }

    /// A path.
    pub fn path(&self, id: PathId) -> Option<&CallPath> {
        self.paths.get(id.0 as usize)
    }

    /// All paths, by id.
    pub fn paths(&self) -> &[CallPath] {
        &self.paths
    }

    /// File of a frame.
    pub fn module(&self, frame: Frame) -> Option<&Module> {
        self.modules.get(frame.module as usize).map(|module| &**module)
    }

    /// Functions of a frame, the innermost inlined one first; empty if there is no name, or not yet.
    pub fn lines(&self, frame: Frame) -> &[Line] {
        self.names.get(&frame).map_or(&[], |lines| lines)
    }

    /// Name of a function in a frame, and of its file and offset if it has none.
    pub fn function(&self, frame: Frame, line: &Line) -> String {
        if !line.function.is_empty() {
            return line.function.clone();
        }
        let Some(module) = self.module(frame) else {
            return format!("{:#x}", frame.offset);
        };
        format!("{}+{:#x}", file_name(&module.path), frame.offset)
    }

    /// All functions of a path, innermost first, with their frames. A frame without a name has one line without text.
    pub fn functions(&self, path: PathId) -> impl Iterator<Item = (Frame, &Line)> {
        let frames = self.path(path).map_or(&[][..], |path| &path.frames);
        let lines = |frame: &Frame| self.lines_or_unnamed(*frame).iter().zip(std::iter::repeat(*frame));
        frames.iter().flat_map(lines).map(|(line, frame)| (frame, line))
    }

    /// Functions of a frame; one without text if it has no name.
    pub fn lines_or_unnamed(&self, frame: Frame) -> &[Line] {
        match self.lines(frame) {
            [] => std::slice::from_ref(&UNNAMED),
            lines => lines,
        }
    }

    /// The function that people mean by a site: the innermost Python function that is not of an installed package, else
    /// the innermost Python function; in a path without one, the innermost function that was written by hand.
    pub fn caller(&self, path: PathId) -> Option<(Frame, &Line)> {
        let is_python = |(frame, _): &(Frame, &Line)| self.is_python(*frame);
        let is_own = |(frame, line): &(Frame, &Line)| self.is_python(*frame) && !is_installed(&line.file);
        let written = |(_, line): &(Frame, &Line)| !is_stub(&line.function) && !is_of_hip(line);
        let first = |wanted: &dyn Fn(&(Frame, &Line)) -> bool| self.functions(path).find(wanted);
        first(&is_own)
            .or_else(|| first(&is_python))
            .or_else(|| first(&written))
            .or_else(|| self.functions(path).next())
    }

    /// Whether a frame is one of Python.
    pub fn is_python(&self, frame: Frame) -> bool {
        self.module(frame).is_some_and(|module| module.is_python)
    }

    /// A site in short: `model.cpp:120 forward(int)`.
    pub fn label(&self, path: PathId) -> &str {
        self.text(path).map_or("", |text| &text.label)
    }

    /// The innermost operator of PyTorch on the way to the call, `aten::addmm`; empty if there is none.
    pub fn operator(&self, path: PathId) -> &str {
        self.text(path).map_or("", |text| &text.operator)
    }

    /// Classes of PyTorch's modules on the way to the call, the outermost first: `Net/Block/Linear`. Empty if there are none,
    /// or if this version of Python has no qualified names of functions (before 3.11).
    pub fn torch_module(&self, path: PathId) -> &str {
        self.text(path).map_or("", |text| &text.torch_module)
    }

    fn make_operator(&self, path: PathId) -> Option<String> {
        self.functions(path)
            .find_map(|(_, line)| torch::operator(&line.function))
    }

    fn make_torch_module(&self, path: PathId) -> String {
        let functions: Vec<_> = self.functions(path).filter(|(at, _)| self.is_python(*at)).collect();
        let classes = functions.windows(2).rev().filter_map(|pair| match pair {
            [(_, inner), (_, caller)] => torch::module(&inner.function, &caller.function),
            _ => None,
        });
        classes.collect::<Vec<_>>().join("/")
    }

    fn make_label(&self, path: PathId) -> String {
        let Some((frame, line)) = self.caller(path) else {
            return "(no frames)".into();
        };
        let function = self.function(frame, line);
        match place(line) {
            Some(place) => format!("{place} {function}"),
            None => with_distance(function, line),
        }
    }

    /// Where a function of a path is, in short: file and line, else its name and the distance of the call from its beginning.
    pub fn place(&self, frame: Frame, line: &Line) -> String {
        place(line).unwrap_or_else(|| with_distance(self.function(frame, line), line))
    }

    /// Whether another copy of a site's stack had another call path, or frames are a guess.
    pub fn is_ambiguous(&self, path: PathId) -> bool {
        self.path(path)
            .is_some_and(|path| path.different > 0 || path.is_guessed)
    }

    /// Number of calls without a site, and of stacks that were overwritten before they were read, over all processes.
    pub fn missing(&self) -> (u64, u64) {
        let all = self.missing.values();
        all.fold((0, 0), |(calls, stacks): (u64, u64), one| {
            (
                calls.saturating_add(one.calls()),
                stacks.saturating_add(one.overwritten),
            )
        })
    }

    /// Whether anything is known.
    pub fn is_empty(&self) -> bool {
        self.by_number.is_empty() && self.missing.is_empty()
    }
}

static UNNAMED: Line = Line {
    function: String::new(),
    file: String::new(),
    line: 0,
    distance: 0,
};

/// Last part of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// File and line in short; none without a file.
pub fn place(line: &Line) -> Option<String> {
    match (file_name(&line.file), line.line) {
        ("", _) => None,
        (file, 0) => Some(file.to_owned()),
        (file, line) => Some(format!("{file}:{line}")),
    }
}

/// A function without a known file, `main+0x1a4`: several calls in it look different.
pub fn with_distance(function: String, line: &Line) -> String {
    match line.distance {
        0 => function,
        distance => format!("{function}+{distance:#x}"),
    }
}

/// Whether a function is what the compiler puts between: `void ns::__device_stub__gemm<float>(float*)`. Templates have their
/// result in front, and the word may also be within the name of another function, as an argument of a template.
fn is_stub(function: &str) -> bool {
    let name = function.strip_prefix("void ").unwrap_or(function);
    let mut depth = 0_u32;
    name.contains(STUB)
        && name.char_indices().any(|(at, character)| {
            let (before, rest) = name.split_at(at);
            let is_first = before.is_empty() || before.ends_with("::");
            match character {
                '<' | '(' | '{' | '[' => depth += 1,
                '>' | ')' | '}' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && is_first && rest.starts_with(STUB)
        })
}

/// Whether a function is of HIP's own headers: they wrap many calls in templates, as `hipMalloc<float>`.
fn is_of_hip(line: &Line) -> bool {
    if line.file.is_empty() {
        // Without a file the name decides, which is that of an instance, with its result.
        let name = line.function.strip_prefix("hipError_t hip");
        return name.is_some_and(|name| name.starts_with(char::is_uppercase) && name.contains('<'));
    }
    let is_header = |name: &str| name.starts_with("hip_") || name.starts_with("amd_");
    let folder = line.file.rsplit_once('/').filter(|(_, name)| is_header(name));
    let folders = ["/include/hip", "/include/hip/amd_detail"];
    folder.is_some_and(|(folder, _)| folders.iter().any(|known| folder.ends_with(known)))
}

/// Whether a Python file comes with Python or a package.
fn is_installed(file: &str) -> bool {
    let folders = ["/site-packages/", "/dist-packages/", "/lib/python3"];
    file.starts_with("<frozen ") || folders.iter().any(|folder| file.contains(folder))
}

/// What comes from a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SiteWork {
    /// Launches of a kernel.
    Kernel(KernelId),
    /// Calls of a function.
    Call(OperationId),
    /// Copies by a route: its index in the snapshot's copies.
    Copy(u32),
}

/// Work of one kind from one site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteRow {
    /// Process.
    pub process: ProcessId,
    /// The site.
    pub site: SiteNumber,
    /// What it is.
    pub work: SiteWork,
    /// Durations: on the GPU, of calls on the host.
    pub sum: Sum,
    /// Bytes of copies.
    pub bytes: u64,
}

/// Maximum number of rows.
const MAX_ROWS: usize = 1 << 17;
/// Size of the lookup table in front of the map at first; it grows with the rows.
const CACHED_ROWS: usize = 1 << 10;
/// Number of records between the prefetch of an entry of that table and its use.
const PREFETCH: usize = 8;

/// Work by site.
#[derive(Debug)]
pub(super) struct SiteTable {
    rows: Vec<SiteRow>,
    ids: FastMap<u64, u32>,
    /// Latest rows, by bits of the hashed key: key and index. A power of two.
    near: Vec<(u64, u32)>,
    left_out: u64,
}

impl Default for SiteTable {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            ids: FastMap::default(),
            near: vec![(0, 0); CACHED_ROWS],
            left_out: 0,
        }
    }
}

/// Key of a row; none if it has no room. Never 0, because the site is known.
#[inline]
fn key(process: ProcessId, site: SiteNumber, kind: u64, id: u32) -> Option<u64> {
    let fits = process.0 < 1 << 16 && (id as usize) < MAX_IDS;
    fits.then(|| u64::from(process.0) << 48 | u64::from(site.0) << 32 | kind << 28 | u64::from(id))
}

impl SiteTable {
    /// Place of a key in the lookup table.
    #[inline]
    fn place(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.near.len() - 1)
    }

    /// The row of a key, if there is room for it.
    #[inline]
    fn row(&mut self, key: u64, make: impl Fn() -> SiteRow) -> Option<&mut SiteRow> {
        let near = self.place(key);
        let (known, at) = self.near[near];
        let at = if known == key { at } else { self.find(key, near, make)? };
        self.rows.get_mut(at as usize)
    }

    fn find(&mut self, key: u64, near: usize, make: impl Fn() -> SiteRow) -> Option<u32> {
        let at = match self.ids.get(&key) {
            Some(&at) => at,
            None if self.rows.len() >= MAX_ROWS => {
                self.left_out += 1;
                return None;
            }
            None => {
                self.rows.push(make());
                let at = self.rows.len() as u32 - 1;
                self.ids.insert(key, at);
                if self.rows.len() > self.near.len() / 2 {
                    self.grow();
                    return Some(at);
                }
                at
            }
        };
        self.near[near] = (key, at);
        Some(at)
    }

    /// Enlarges the lookup table.
    #[cold]
    fn grow(&mut self) {
        self.near = vec![(0, 0); 4 * self.near.len()];
        for (key, at) in &self.ids {
            let near = self.place(*key);
            self.near[near] = (*key, *at);
        }
    }

    /// Counts dispatches.
    pub(super) fn dispatches(&mut self, dispatches: &[Dispatch]) {
        let mut later = dispatches.iter().skip(PREFETCH);
        for dispatch in dispatches {
            if let Some(later) = later.next()
                && let Some(key) = key(later.process, later.site, 0, later.kernel.0)
            {
                near::fetch(&self.near[self.place(key)]);
            }
            if !dispatch.site.is_known() {
                continue;
            }
            let (process, site, kernel) = (dispatch.process, dispatch.site, dispatch.kernel);
            let make = || new(process, site, SiteWork::Kernel(kernel));
            let Some(key) = key(process, site, 0, kernel.0) else {
                continue;
            };
            if let Some(row) = self.row(key, make) {
                let is_timed = !is_untimed(dispatch.flags, dispatch.span.end);
                row.sum.add(is_timed.then(|| dispatch.span.duration()));
            }
        }
    }

    /// Counts calls.
    pub(super) fn calls(&mut self, calls: &[ApiCall]) {
        for call in calls.iter().filter(|one| one.site.is_known()) {
            let (process, site, operation) = (call.process, call.site, call.operation);
            let make = || new(process, site, SiteWork::Call(operation));
            let Some(key) = key(process, site, 1, operation.0) else {
                continue;
            };
            if let Some(row) = self.row(key, make) {
                row.sum.add(Some(call.span.duration()));
            }
        }
    }

    /// Counts a copy by a route.
    pub(super) fn copy(&mut self, route: u32, copy: &Copy) {
        if !copy.site.is_known() {
            return;
        }
        let make = || new(copy.process, copy.site, SiteWork::Copy(route));
        let Some(key) = key(copy.process, copy.site, 2, route) else {
            return;
        };
        if let Some(row) = self.row(key, make) {
            let is_timed = !is_untimed(copy.flags, copy.span.end);
            row.sum.add(is_timed.then(|| copy.span.duration()));
            row.bytes = row.bytes.saturating_add(copy.bytes);
        }
    }

    /// All rows.
    pub(super) fn rows(&self) -> &[SiteRow] {
        &self.rows
    }

    /// By work: the index of a row of the call path with most time, and the number of call paths.
    pub(super) fn by_work(&self, sites: &Sites) -> FastMap<SiteWork, (u32, u32)> {
        let mut sums: FastMap<(SiteWork, Option<PathId>), (u32, u64)> = FastMap::default();
        for (at, row) in (0..).zip(&self.rows) {
            let path = sites.path_of(row.process, row.site);
            let sum = sums.entry((row.work, path)).or_insert((at, 0));
            sum.1 = sum.1.saturating_add(row.sum.total);
        }
        let mut most: FastMap<SiteWork, (u32, u64, u32)> = FastMap::default();
        for ((work, _), (at, total)) in sums {
            let known = most.entry(work).or_insert((at, total, 0));
            known.2 += 1;
            // The lower index wins a tie.
            if (total, known.0) > (known.1, at) {
                (known.0, known.1) = (at, total);
            }
        }
        let most = most.into_iter().map(|(work, (at, _, count))| (work, (at, count)));
        most.collect()
    }

    /// Number of launches, copies and calls for which there was no row.
    pub(super) const fn left_out(&self) -> u64 {
        self.left_out
    }
}

fn new(process: ProcessId, site: SiteNumber, work: SiteWork) -> SiteRow {
    SiteRow {
        process,
        site,
        work,
        sum: Sum::default(),
        bytes: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roctop_trace::item::Span;

    fn module(number: u32, path: &str) -> SiteFact {
        SiteFact::Module(Module {
            number,
            path: path.into(),
            build_id: vec![1, 2],
            ..Module::default()
        })
    }

    fn frame(module: u32, offset: u64) -> Frame {
        Frame { module, offset }
    }

    fn path(site: u16, frames: &[Frame]) -> SiteFact {
        SiteFact::Path {
            site: SiteNumber(site),
            frames: frames.to_vec(),
            end: PathEnd::Complete,
            is_guessed: false,
        }
    }

    fn names(frame: Frame, functions: &[(&str, &str, u32)]) -> SiteFact {
        let lines = functions.iter().map(|(function, file, line)| Line {
            function: (*function).into(),
            file: (*file).into(),
            line: *line,
            distance: 0,
        });
        SiteFact::Names {
            frame,
            lines: lines.collect(),
        }
    }

    #[test]
    fn sites_of_processes_with_the_same_call_path_share_it() {
        let mut sites = Sites::default();
        let (one, other) = (ProcessId(0), ProcessId(1));
        sites.add(one, &module(0, "/opt/app"));
        sites.add(other, &module(7, "/opt/app"));
        sites.add(one, &path(1, &[frame(0, 0x10), frame(0, 0x20)]));
        sites.add(other, &path(5, &[frame(7, 0x10), frame(7, 0x20)]));
        sites.add(other, &path(6, &[frame(7, 0x10), frame(7, 0x30)]));
        let shared = sites.path_of(one, SiteNumber(1));
        assert!(shared.is_some());
        assert_eq!(sites.path_of(other, SiteNumber(5)), shared);
        assert_ne!(sites.path_of(other, SiteNumber(6)), shared);
        assert_eq!(sites.path_of(other, SiteNumber(1)), None);
    }

    #[test]
    fn label_is_the_innermost_function_written_by_hand() {
        let mut sites = Sites::default();
        let process = ProcessId(0);
        sites.add(process, &module(0, "/opt/lib/libmodel.so"));
        sites.add(process, &path(1, &[frame(0, 0x10), frame(0, 0x20)]));
        let id = sites.path_of(process, SiteNumber(1)).expect("it is known");
        assert_eq!(sites.label(id), "libmodel.so+0x10");
        sites.add(process, &names(frame(0, 0x10), &[("__device_stub__gemm(int)", "", 0)]));
        sites.add(
            process,
            &names(
                frame(0, 0x20),
                &[("launch()", "/src/launch.h", 7), ("forward()", "/src/model.cpp", 120)],
            ),
        );
        sites.settle();
        assert_eq!(sites.label(id), "launch.h:7 launch()");
        let all: Vec<_> = sites.functions(id).map(|(_, line)| line.function.as_str()).collect();
        assert_eq!(all, ["__device_stub__gemm(int)", "launch()", "forward()"]);
    }

    #[test]
    fn stubs_of_templates_and_namespaces_are_stubs() {
        for stub in [
            "__device_stub__gemm(int)",
            "ns::__device_stub__inns(float*)",
            "void ns::__device_stub__tin<float>(float*)",
            "void __device_stub__t<(anonymous namespace)::A>(float*)",
            "(anonymous namespace)::__device_stub__anon(float*)",
            "void Block<ns::Shape<4>, {lambda(int)#1}>::__device_stub__run<2>(float*)",
        ] {
            assert!(is_stub(stub), "{stub}");
        }
        for written in [
            "launch(int)",
            "void hipLaunchKernelGGL<void (*)(float*)>(void (*)(float*))",
            "void launch<&ns::__device_stub__k>(int)",
            "void launch<void (&ns::__device_stub__k)(float*)>(int)",
            "my__device_stub__thing()",
            "ns::of(__device_stub__t*)",
        ] {
            assert!(!is_stub(written), "{written}");
        }
    }

    #[test]
    fn calls_in_a_function_without_lines_have_their_distance() {
        let mut sites = Sites::default();
        let process = ProcessId(0);
        sites.add(process, &module(0, "/home/me/train"));
        for (site, distance) in [(1, 0x1a4), (2, 0x1f0), (3, 0)] {
            let frame = frame(0, 0x1000 + distance);
            sites.add(process, &path(site, &[frame]));
            let line = Line {
                function: "train(int)".into(),
                distance,
                ..Line::default()
            };
            let lines = vec![line];
            sites.add(process, &SiteFact::Names { frame, lines });
        }
        sites.settle();
        let found = [1, 2, 3].map(|site| sites.path_of(process, SiteNumber(site)).expect("it is known"));
        let labels = found.map(|path| sites.label(path));
        assert_eq!(labels, ["train(int)+0x1a4", "train(int)+0x1f0", "train(int)"]);
        let texts = found.map(|path| sites.functions_text(path));
        assert_eq!(texts, ["train(int)\n"; 3], "one function");
    }

    #[test]
    fn label_is_no_template_of_hips_headers() {
        let label = |inner: (&'static str, &'static str, u32)| {
            let mut sites = Sites::default();
            let process = ProcessId(0);
            sites.add(process, &module(0, "/home/me/train"));
            sites.add(process, &path(1, &[frame(0, 0x10)]));
            sites.add(
                process,
                &names(frame(0, 0x10), &[inner, ("load()", "/src/load.cpp", 12)]),
            );
            sites.settle();
            let id = sites.path_of(process, SiteNumber(1)).expect("it is known");
            sites.label(id).to_owned()
        };
        let wrapped = "hipError_t hipMalloc<int>(int**, unsigned long)";
        for header in [
            "/usr/include/hip/hip_runtime_api.h",
            "/opt/rocm/include/hip/amd_detail/amd_hip_runtime.h",
            "",
        ] {
            assert_eq!(label((wrapped, header, 6729)), "load.cpp:12 load()", "{header}");
        }
        for (function, file, text) in [
            (
                "hipMalloc_or_exit<int>()",
                "/src/hip/hip_check.cpp",
                "hip_check.cpp:7 hipMalloc_or_exit<int>()",
            ),
            ("hipError_t hipChecked()", "", "hipError_t hipChecked()"),
            (
                "at::empty()",
                "/src/ATen/hip/HIPContext.h",
                "HIPContext.h:7 at::empty()",
            ),
        ] {
            assert_eq!(label((function, file, 7)), text);
        }
    }

    #[test]
    fn label_of_a_python_program_is_its_innermost_own_line() {
        let mut sites = Sites::default();
        let process = ProcessId(0);
        sites.add(process, &module(0, "/opt/lib/libtorch_hip.so"));
        for (number, path) in [
            (8, "/usr/lib/python3/dist-packages/torch/nn/linear.py"),
            (9, "/home/model.py"),
        ] {
            let file = Module {
                number,
                path: path.into(),
                is_python: true,
                ..Module::default()
            };
            sites.add(process, &SiteFact::Module(file));
        }
        let name = |frame, function, file, line| names(frame, &[(function, file, line)]);
        sites.add(process, &path(1, &[frame(0, 1), frame(8, 2), frame(9, 3)]));
        sites.add(process, &path(2, &[frame(0, 1), frame(8, 2)]));
        let installed = "/usr/lib/python3/dist-packages/torch/nn/linear.py";
        sites.add(process, &name(frame(0, 1), "at::native::addmm()", "", 0));
        sites.add(process, &name(frame(8, 2), "Linear.forward", installed, 114));
        sites.add(process, &name(frame(9, 3), "Model.forward", "/home/model.py", 0));
        let label = |number| sites.path_of(process, SiteNumber(number)).map(|path| sites.label(path));
        assert_eq!(label(1), Some("model.py Model.forward"));
        assert_eq!(label(2), Some("linear.py:114 Linear.forward"));
    }

    #[test]
    fn operator_and_module_come_from_the_names_of_frames() {
        let mut sites = Sites::default();
        let process = ProcessId(0);
        sites.add(process, &module(0, "libtorch_hip.so"));
        let torch = Module {
            number: 1,
            path: "/opt/torch/nn/modules/module.py".into(),
            is_python: true,
            ..Module::default()
        };
        sites.add(process, &SiteFact::Module(torch));
        let functions = [
            (0, "at::native::addmm_out_cuda_impl(at::Tensor&)"),
            (0, "at::_ops::addmm::call(at::Tensor const&)"),
            (0, "at::_ops::linear::call(at::Tensor const&)"),
            (1, "Linear.forward"),
            (1, "Module._call_impl"),
            (1, "Module._wrapped_call_impl"),
            (1, "helper"),
            (1, "Net.forward"),
            (1, "Module._call_impl"),
            (1, "<module>"),
        ];
        let mut frames = Vec::new();
        for (offset, (file, function)) in (0..).zip(functions) {
            frames.push(frame(file, offset));
            sites.add(process, &names(frame(file, offset), &[(function, "f", 1)]));
        }
        sites.add(process, &path(1, &frames));
        sites.add(process, &path(2, &frames[7..]));
        let [one, other] = [1, 2].map(|number| sites.path_of(process, SiteNumber(number)).expect("it is known"));
        assert_eq!(
            (sites.operator(one), sites.torch_module(one)),
            ("aten::addmm", "Net/Linear")
        );
        assert_eq!((sites.operator(other), sites.torch_module(other)), ("", "Net"));
        assert!(sites.functions_text(one).contains("Net/Linear\n"));
    }

    #[test]
    fn checks_replace_earlier_ones_and_add_up_over_sites() {
        let mut sites = Sites::default();
        let process = ProcessId(0);
        sites.add(process, &path(1, &[frame(0, 0x10)]));
        sites.add(process, &path(2, &[frame(0, 0x10)]));
        let id = sites.path_of(process, SiteNumber(1)).expect("it is known");
        let check = |site, copies, different| SiteFact::Checked {
            site: SiteNumber(site),
            copies,
            different,
        };
        sites.add(process, &check(1, 3, 0));
        assert!(!sites.is_ambiguous(id));
        sites.add(process, &check(1, 4, 1));
        sites.add(process, &check(2, 10, 0));
        let known = sites.path(id).expect("it is known");
        assert_eq!((known.copies, known.different), (14, 1));
        assert!(sites.is_ambiguous(id));
    }

    #[test]
    fn work_is_counted_by_site_and_kernel() {
        let mut table = SiteTable::default();
        let dispatch = |site, kernel, nanos: u64| Dispatch {
            kernel: KernelId(kernel),
            span: Span {
                begin: 100,
                end: 100 + nanos,
            },
            site: SiteNumber(site),
            ..Dispatch::default()
        };
        table.dispatches(&[
            dispatch(1, 3, 10),
            dispatch(2, 3, 20),
            dispatch(1, 3, 30),
            dispatch(0, 3, 5),
        ]);
        let rows: Vec<_> = table
            .rows()
            .iter()
            .map(|row| (row.site.0, row.sum.calls, row.sum.total))
            .collect();
        assert_eq!(rows, [(1, 2, 40), (2, 1, 20)]);
        assert_eq!(table.left_out(), 0);
    }

    #[test]
    fn every_launch_is_counted_while_the_lookup_table_grows() {
        const KERNELS: u32 = 5000;
        let mut table = SiteTable::default();
        let dispatch = |number: u32| Dispatch {
            kernel: KernelId(number % KERNELS),
            site: SiteNumber(1 + (number % 3) as u16),
            span: Span { begin: 1, end: 11 },
            ..Dispatch::default()
        };
        for round in 0..12 {
            let all: Vec<Dispatch> = (0..KERNELS).map(|at| dispatch(round * KERNELS + at)).collect();
            table.dispatches(&all);
        }
        assert_eq!(table.rows().len(), 3 * KERNELS as usize);
        assert!(table.rows().iter().all(|row| (row.sum.calls, row.sum.total) == (4, 40)));
        assert!(table.near.len() >= table.rows().len(), "{}", table.near.len());
    }
}
