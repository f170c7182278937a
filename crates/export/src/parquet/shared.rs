//! Files that the ranks of a host share: with thousands of small files, a query spends its time on opening them.
//!
//! Processes come one after the other, so that all files stay unfinished until the last process. Each process adds its
//! own row groups, and their statistics let a reader skip ranks. Between two processes a file takes no descriptor.

use super::file::{Encode, Ranks, Schema, Writer, append};
use super::{Rows, folder, one_by_one, step_table, tables};
use crate::error::{Error, Result};
use crate::files::{beside, complete};
use crate::run::Run;
use crate::steps;
use crate::view::View;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Number of ranks from which on they share files.
const MIN_RANKS: usize = 64;
/// Bytes that a file holds before it appends them.
const BUFFER_BYTES: usize = 256 << 10;

/// Whether the ranks of a run share files.
pub(crate) fn are_shared(run: &Run) -> bool {
    let ranks: HashSet<u32> = run.processes.iter().filter_map(|process| process.rank).collect();
    ranks.len() >= MIN_RANKS
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

/// The files of all hosts and kinds.
#[derive(Default)]
pub(crate) struct SharedFiles {
    /// By path.
    open: BTreeMap<PathBuf, Writer>,
    /// Name of each host's files: that of its first process.
    names: BTreeMap<PathBuf, String>,
}

impl SharedFiles {
    /// Adds the tables of a process below `base`. `name` is the name of its files.
    pub(crate) fn add(&mut self, view: &View<'_>, base: &Path, name: &str) -> Result<()> {
        let steps = steps::steps(view)?;
        for table in tables(view).into_iter().chain(step_table(view, &steps)) {
            let folder = base.join(folder(view, table.kind));
            let name = self.names.entry(folder.clone()).or_insert_with(|| name.to_owned());
            let path = folder.join(format!("{name}.parquet"));
            let ranks = Ranks::Column(view.process.rank);
            let schema = Schema::new(table.columns, ranks)?;
            let added = self.file(&path, &schema).and_then(|file| {
                match &table.rows {
                    Rows::Groups(groups) => {
                        let encoded = |encode: Encode<'_>| encode(&schema);
                        view.place.in_order(groups(), encoded, |group| append(file, group))?;
                    }
                    Rows::OneByOne(fill) => one_by_one(fill, file, &schema)?,
                }
                view.check()?;
                Ok(file.flush()?)
            });
            added.map_err(Error::at::<Error>("cannot write", &path))?;
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, schema: &Schema) -> Result<&mut Writer> {
        if !self.open.contains_key(path) {
            if let Some(directory) = path.parent() {
                std::fs::create_dir_all(directory)?;
            }
            let out = Appender::create(&beside(path))?;
            let file = schema.begin(Box::new(out))?;
            self.open.insert(path.to_owned(), file);
        }
        self.open
            .get_mut(path)
            .ok_or_else(|| io::Error::other("a file that was just begun is gone").into())
    }

    /// Completes all files; their paths are added to `made`.
    pub(crate) fn finish(mut self, made: &mut Vec<PathBuf>) -> Result<()> {
        while let Some(mut entry) = self.open.first_entry() {
            let path = entry.key().clone();
            let file = entry.get_mut();
            let finished = file.finish().map_err(Error::from).and_then(|_| {
                file.flush()?;
                Ok(complete(&path)?)
            });
            finished.map_err(Error::at::<Error>("cannot write", &path))?;
            entry.remove();
            made.push(path);
        }
        Ok(())
    }
}

impl Drop for SharedFiles {
    /// Removes unfinished files.
    fn drop(&mut self) {
        for path in self.open.keys() {
            let _ = std::fs::remove_file(beside(path));
        }
    }
}
