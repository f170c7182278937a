//! The files of a host: the rows of all its processes, in a file per kind. With thousands of small files, a query spends its time on
//! opening them.
//!
//! Processes come one after the other, so that all files stay unfinished until the last process. Each process adds its
//! own row groups, and their statistics let a reader skip ranks. Between two pieces a file takes no descriptor.

use super::file::{Encode, Group, Schema, Sheet, Writer, append};
use super::{Rows, Table, folder, step_table, tables};
use crate::error::{Error, Result};
use crate::files::{beside, complete};
use crate::steps;
use crate::view::View;
use parquet::file::metadata::KeyValue;
use parquet::file::reader::{FileReader, SerializedFileReader};
use roctop_source::progress::Progress;
use std::collections::BTreeMap;
use std::fs::{File, read_dir};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Bytes that a file holds before it appends them.
const BUFFER_BYTES: usize = 256 << 10;
/// Key of a file's metadata: its parts, separated by blanks.
const PROCESSES: &str = "roctop.processes";

/// A process in a file, and from when to when its records are.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    /// Process id and start time.
    process: String,
    first: u64,
    last: u64,
}

impl Part {
    fn new(view: &View<'_>) -> Self {
        let process = view.process;
        let began = [process.created, process.since].into_iter().find(|time| *time > 0);
        let (first, last) = view.times();
        Self {
            process: format!("{}@{}", process.pid, began.unwrap_or(0)),
            first,
            last,
        }
    }

    /// In the metadata of a file.
    fn word(&self) -> String {
        format!("{}/{}-{}", self.process, self.first, self.last)
    }

    fn of_word(word: &str) -> Option<Self> {
        let (process, times) = word.split_once('/')?;
        let (first, last) = times.split_once('-')?;
        Some(Self {
            process: process.to_owned(),
            first: first.parse().ok()?,
            last: last.parse().ok()?,
        })
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.process == other.process && self.first <= other.last && other.first <= self.last
    }
}

/// Appends to a file and closes it again.
struct Appender {
    path: PathBuf,
    held: Vec<u8>,
}

impl Appender {
    /// Creates an empty file.
    fn create(path: &Path) -> io::Result<Self> {
        File::create(path)?;
        Ok(Self {
            path: path.to_owned(),
            held: Vec::new(),
        })
    }
}

impl Write for Appender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        if self.held.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.held.is_empty() {
            File::options().append(true).open(&self.path)?.write_all(&self.held)?;
            self.held = Vec::new();
        }
        Ok(())
    }
}

/// A file that is not finished.
struct Unfinished {
    writer: Writer,
    parts: Vec<Part>,
    /// Other files of its folder, with their parts.
    others: Vec<(PathBuf, Vec<Part>)>,
}

impl Unfinished {
    /// Begins to add a process.
    ///
    /// Errors: another file has the same. A reader of the folder would count it twice.
    fn take(&mut self, part: &Part) -> io::Result<()> {
        if self.parts.contains(part) {
            return Ok(());
        }
        let has_it = |(_, parts): &&(PathBuf, Vec<Part>)| parts.iter().any(|other| other.overlaps(part));
        if let Some((path, _)) = self.others.iter().find(has_it) {
            return Err(twice(path));
        }
        self.parts.push(part.clone());
        Ok(())
    }
}

fn twice(path: &Path) -> io::Error {
    let why = "has the same records, so that readers of the folder would count them twice; choose another folder or remove it";
    io::Error::other(format!("{} {why}", path.display()))
}

/// The files of all hosts and kinds.
pub(crate) struct SharedFiles<'a> {
    progress: &'a Progress,
    /// By path.
    open: BTreeMap<PathBuf, Unfinished>,
    /// Name of each host's files: that of its first process.
    names: BTreeMap<PathBuf, String>,
}

impl<'a> SharedFiles<'a> {
    pub(crate) const fn new(progress: &'a Progress) -> Self {
        Self {
            progress,
            open: BTreeMap::new(),
            names: BTreeMap::new(),
        }
    }

    /// Adds the tables of a process below `base`. `name` is the name of its files.
    pub(crate) fn add(&mut self, view: &View<'_>, base: &Path, name: &str) -> Result<()> {
        let tables = tables(view);
        // Steps are found while the other tables are written.
        let written = || self.write(view, &tables, base, name);
        let (steps, written) = view.place.both(|| steps::steps(view), written);
        written?;
        let steps = steps?;
        step_table(view, &steps).map_or(Ok(()), |table| self.write(view, &[table], base, name))
    }

    /// Writes tables one after another. Their row groups are encoded as one sequence: threads go on with the next table while the
    /// last groups of one are encoded.
    fn write(&mut self, view: &View<'_>, tables: &[Table<'_>], base: &Path, name: &str) -> Result<()> {
        let part = Part::new(view);
        let (mut paths, mut schemas) = (Vec::new(), Vec::new());
        for table in tables {
            let folder = base.join(folder(view, table.kind));
            let name = self.names.entry(folder.clone()).or_insert_with(|| name.to_owned());
            paths.push(folder.join(format!("{name}.parquet")));
            schemas.push(Schema::new(table.columns, view.process.rank)?);
        }
        let groups = tables.iter().enumerate().flat_map(|(table, own)| match &own.rows {
            Rows::Groups(groups) => groups().into_iter().map(|group| (table, Some(group))).collect(),
            Rows::OneByOne(_) => vec![(table, None)],
        });
        let encoded = |(table, group): (usize, Option<Encode<'_>>)| -> Result<_> {
            let group = group.map(|encode| encode(&schemas[table])).transpose();
            Ok((table, group.map_err(Error::at("cannot write", &paths[table]))?))
        };
        let append = |(table, group): (usize, Option<Group>)| {
            let (path, schema) = (&paths[table], &schemas[table]);
            let added = self.file(path, schema, &part).and_then(|file| {
                match (group, &tables[table].rows) {
                    (Some(group), _) => append(file, group)?,
                    (None, Rows::OneByOne(fill)) => {
                        let mut sheet = Sheet::new(file, schema);
                        fill(&mut sheet)?;
                        sheet.finish()?;
                    }
                    (None, Rows::Groups(_)) => {}
                }
                Ok(view.check()?)
            });
            added.map_err(Error::at::<Error>("cannot write", path))
        };
        view.place.in_order(groups, encoded, append)?;
        for path in &paths {
            let file = self.open.get_mut(path);
            let flushed = file.map_or(Ok(()), |file| file.writer.flush());
            flushed.map_err(Error::at("cannot write", path))?;
        }
        Ok(())
    }

    /// The file at `path`, begun if it is not there.
    fn file(&mut self, path: &Path, schema: &Schema, part: &Part) -> Result<&mut Writer> {
        if !self.open.contains_key(path) {
            self.progress.begin(&format!("writing {}", path.display()), 0);
            let folder = path.parent().unwrap_or(path);
            std::fs::create_dir_all(folder)?;
            let others = others(folder, path)?;
            let out = Appender::create(&beside(path))?;
            let file = Unfinished {
                writer: schema.begin(Box::new(out))?,
                parts: Vec::new(),
                others,
            };
            self.open.insert(path.to_owned(), file);
        }
        let gone = || io::Error::other("a file that was just begun is gone");
        let file = self.open.get_mut(path).ok_or_else(gone)?;
        file.take(part)?;
        Ok(&mut file.writer)
    }

    /// Completes all files; their paths are added to `made`.
    ///
    /// Errors: a file that is to be replaced has processes of this export, and others.
    pub(crate) fn finish(mut self, made: &mut Vec<PathBuf>) -> Result<()> {
        for (path, file) in &self.open {
            let replaced = parts(path);
            let is_own = |part: &Part| file.parts.iter().any(|own| own.process == part.process);
            if replaced.iter().any(is_own) && !replaced.iter().all(is_own) {
                let why = "it also has processes that this export does not have; choose another folder or remove it";
                return Err(Error::at::<io::Error>("cannot replace", path)(io::Error::other(why)));
            }
        }
        while let Some(mut entry) = self.open.first_entry() {
            let path = entry.key().clone();
            let file = entry.get_mut();
            let parts: Vec<String> = file.parts.iter().map(Part::word).collect();
            file.writer
                .append_key_value_metadata(KeyValue::new(PROCESSES.to_owned(), parts.join(" ")));
            let finished = file.writer.finish().map_err(Error::from).and_then(|_| {
                file.writer.flush()?;
                Ok(complete(&path)?)
            });
            finished.map_err(Error::at::<Error>("cannot write", &path))?;
            entry.remove();
            made.push(path);
        }
        Ok(())
    }
}

impl Drop for SharedFiles<'_> {
    /// Removes unfinished files.
    fn drop(&mut self) {
        for path in self.open.keys() {
            let _ = std::fs::remove_file(beside(path));
        }
    }
}

/// The tables in a folder other than `own`, with their parts.
///
/// Errors: there are folders of ranks, which roctop 0.1 wrote.
fn others(folder: &Path, own: &Path) -> io::Result<Vec<(PathBuf, Vec<Part>)>> {
    let mut others = Vec::new();
    for entry in read_dir(folder)? {
        let path = entry?.path();
        if path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"rank="))
        {
            return Err(twice(&path));
        }
        if path != own && path.extension().is_some_and(|ending| ending == "parquet") {
            let parts = parts(&path);
            others.push((path, parts));
        }
    }
    Ok(others)
}

/// The parts of a file; none of one that cannot be read.
fn parts(path: &Path) -> Vec<Part> {
    let reader = File::open(path)
        .ok()
        .and_then(|file| SerializedFileReader::new(file).ok());
    let metadata = reader
        .as_ref()
        .and_then(|reader| reader.metadata().file_metadata().key_value_metadata());
    let pairs = metadata.into_iter().flatten().filter(|pair| pair.key == PROCESSES);
    let words = pairs
        .filter_map(|pair| pair.value.as_deref())
        .flat_map(|words| words.split(' '));
    words.filter_map(Part::of_word).collect()
}
