//! Writes files for other tools. Each format is a pure function to bytes; this module creates the files under temporary
//! names and renames them when complete.
#![forbid(unsafe_code)]

pub mod agent_info;
mod arguments;
mod collapsed;
pub mod collect;
mod collectives;
mod config;
mod counted;
pub mod csv;
mod error;
pub mod facts;
mod files;
mod gauges;
mod gpu_time;
mod graphs;
mod head;
pub mod hosts;
mod json;
mod kineto;
mod level;
mod mpi;
mod nesting;
mod numbers;
pub mod operation;
pub mod options;
mod parquet;
mod pc_samples;
mod perfetto;
mod pprof;
mod protobuf;
mod range_stacks;
pub mod records;
mod rocpd;
pub mod run;
mod sample_streams;
mod scope;
mod site_time;
mod sort;
pub mod stats;
mod steps;
pub mod summary;
mod texts;
pub mod view;
pub mod workspace;

pub use error::{Error, Result};

use collect::Collected;
use facts::Facts;
use files::Files;
pub use files::{own_word, prepare_directory, write_atomic};
use hosts::Hosts;
use options::Choice;
pub use options::Format;
use roctop_model::Names;
use roctop_source::progress::Progress;
use roctop_trace::item::Process;
use stats::Domain;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use view::View;
use workspace::Workspace;

/// An export: input, selection and output.
pub struct Job<'a> {
    /// The records.
    pub collected: &'a Collected,
    /// Where it sorts, and on how many threads.
    pub place: &'a Workspace,
    /// Driver topology of each host, with agents of the run added.
    pub nodes: &'a Hosts,
    /// Facts that only exports contain.
    pub facts: &'a Facts,
    /// The recorded command line.
    pub command: &'a [String],
    /// Selected options.
    pub choice: &'a Choice,
    /// Formats to write.
    pub formats: &'a [Format],
    /// Progress display.
    pub progress: &'a Progress,
    /// Whether statistics are returned even if no file contains them.
    pub sums: bool,
    /// Path prefix of a process's files.
    pub stem: &'a dyn Fn(&Process) -> PathBuf,
}

/// Result of an export.
#[derive(Debug, Default)]
pub struct Written {
    /// Paths of the files.
    pub files: Vec<PathBuf>,
    /// Statistics of each process, if requested.
    pub sums: Vec<Sums>,
}

/// Statistics of a process.
#[derive(Debug)]
pub struct Sums {
    /// The process.
    pub process: Process,
    /// Path prefix of its files.
    pub stem: PathBuf,
    /// Statistics by domain.
    pub domains: Vec<Domain>,
}

/// Writes all files of a run, process by process. At most one process's rows are held, most of them on disk.
pub fn write(job: &Job<'_>) -> Result<Written> {
    let mut written = Written::default();
    let mut taken = HashSet::new();
    let choice = job.choice;
    // Names are looked up by filters alone.
    let names = if choice.filter.is_empty() {
        Names::default()
    } else {
        job.collected.run.names(&choice.aliases)
    };
    let source = view::Source {
        names: &names,
        collected: job.collected,
        nodes: job.nodes,
        facts: job.facts,
        place: job.place,
    };
    let mut shared = parquet::SharedFiles::new(job.progress);
    view::each(&source, choice, &mut |view| {
        let stem = free_stem(&mut taken, &(job.stem)(view.process), view.process.pid);
        let domains = if job.sums || job.choice.stats {
            stats::domains(view)?
        } else {
            Vec::new()
        };
        write_process(job, view, &stem, &domains, &mut shared, &mut written.files)?;
        written.sums.push(Sums {
            process: view.process.clone(),
            stem,
            domains,
        });
        Ok(())
    })?;
    shared.finish(&mut written.files)?;
    Ok(written)
}

/// A path prefix that no other process has: with the pid, and with a number if ranks on several machines share the pid
/// too.
fn free_stem(taken: &mut HashSet<PathBuf>, wanted: &Path, pid: u32) -> PathBuf {
    let mut stem = wanted.to_owned();
    let mut number = 1;
    while !taken.insert(stem.clone()) {
        let mut other = wanted.as_os_str().to_owned();
        other.push(format!("_{pid}"));
        if number > 1 {
            other.push(format!("_{number}"));
        }
        stem = other.into();
        number += 1;
    }
    stem
}

fn write_process(
    job: &Job<'_>,
    view: &View<'_>,
    stem: &Path,
    domains: &[Domain],
    shared: &mut parquet::SharedFiles<'_>,
    made: &mut Vec<PathBuf>,
) -> Result<()> {
    if let Some(directory) = stem.parent() {
        prepare_directory(directory)?;
    }
    let mut files = Files {
        stem: stem.to_owned(),
        made,
        progress: job.progress,
        check: &|| view.check(),
    };
    let head = head::Head {
        stem,
        command: job.command,
        formats: job.formats,
        domains,
    };
    if job.choice.output_config {
        files.write("config.json", &|out| config::write(view, &head, out))?;
    }
    if job.choice.log_periods {
        files.write("collection_periods.log", &|out| config::periods(view, out))?;
    }
    if level::steps(view).next().is_some() {
        files.write("timing_level.csv", &|out| level::csv(view, out))?;
    }
    for format in job.formats {
        match format {
            Format::Csv => csv::export(view, domains, &mut files)?,
            Format::Pftrace => pftrace(job, view, &mut files)?,
            Format::Json => files.write("results.json", &|out| json::write(view, &head, out))?,
            Format::Rocpd => {
                let path = files.path("results.db");
                files.write_at(path, &|path| rocpd::write(view, &head, path))?;
            }
            Format::Kineto => files.write("kineto.pt.trace.json", &|out| kineto::write(view, stem, out))?,
            Format::Pprof => {
                files.write("gpu.pb.gz", &|out| pprof::write(view, out))?;
                if !site_time::is_empty(view) {
                    files.write("sites.pb.gz", &|out| pprof::write_sites(view, out))?;
                }
            }
            Format::Collapsed => {
                files.write("gpu.collapsed.txt", &|out| collapsed::write(view, out))?;
                if !site_time::is_empty(view) {
                    files.write("sites.collapsed.txt", &|out| collapsed::write_sites(view, out))?;
                }
            }
            Format::Parquet => {
                let name = stem.file_name().unwrap_or_default().to_string_lossy();
                shared.add(view, &parquet::base(stem), &name)?;
            }
        }
    }
    Ok(())
}

/// Writes the Perfetto trace of a process, in several files if it is large.
fn pftrace(job: &Job<'_>, view: &View<'_>, files: &mut Files<'_>) -> Result<()> {
    let limit = job.choice.pftrace_bytes.unwrap_or(perfetto::MAX_BYTES);
    let (mut number, count) = (0, std::cell::Cell::new(1));
    while number < count.get() {
        files.write(&perfetto::file_name(number), &|out| {
            count.set(perfetto::write(view, number, limit, out)?);
            Ok(())
        })?;
        number += 1;
    }
    // Of an earlier, longer trace.
    while std::fs::remove_file(files.path(&perfetto::file_name(number))).is_ok() {
        number += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_processes_share_a_name() {
        let mut taken = HashSet::new();
        let mut next = || free_stem(&mut taken, Path::new("out/n"), 7).display().to_string();
        assert_eq!(
            [next(), next(), next(), next()],
            ["out/n", "out/n_7", "out/n_7_2", "out/n_7_3"]
        );
    }
}
