//! Ranks of real implementations of MPI, matched with each other; the truth is what they wrote of their own calls.

mod messages;
mod shares;

use crate::kit::directory::place;
use crate::kit::patience;
use crate::kit::table::Table;
use roctop::model::collectives::MACHINE_ERROR;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Compilers of C for MPI and their launchers.
const IMPLEMENTATIONS: [(&str, &str); 2] = [("mpicc.openmpi", "mpirun.openmpi"), ("mpicc.mpich", "mpirun.mpich")];
const RANKS: usize = 4;

/// Calls `act` for each installed implementation, with a directory that has the program of this source.
fn each(test: &str, source: &str, act: impl Fn(&Ranks)) {
    for (compiler, launcher) in IMPLEMENTATIONS {
        if Command::new(compiler).arg("--version").output().is_err() {
            assert!(std::env::var_os("ROCTOP_REQUIRE_MPI").is_none(), "needs {compiler}");
            println!("skipped: needs {compiler}");
            continue;
        }
        let place = place(&format!("mpi-{test}-{launcher}"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/integration/kit")
            .join(source);
        let compile = |result: &str, more: &[&str]| {
            let mut command = Command::new(compiler);
            command
                .args(["-Wall", "-O1", "-o"])
                .arg(place.join(result))
                .arg(&source);
            assert!(command.args(more).status().unwrap().success(), "{compiler}");
        };
        compile("libbelow.so", &["-DBELOW", "-shared", "-fPIC"]);
        let folder = place.display();
        compile(
            "ranks",
            &[&format!("-L{folder}"), "-lbelow", &format!("-Wl,-rpath,{folder}")],
        );
        act(&Ranks { place, launcher });
    }
}

/// The program with an implementation.
struct Ranks {
    place: PathBuf,
    launcher: &'static str,
}

/// A call that a rank wrote of: it began between the first two times and ended between the last two.
#[derive(Clone, Debug)]
struct Fact {
    pid: u32,
    function: String,
    communicator: String,
    begin: [u64; 2],
    end: [u64; 2],
}

impl Ranks {
    /// The launcher's command for so many ranks.
    fn launch(&self, ranks: usize) -> Vec<String> {
        let mut words = vec![self.launcher.to_owned()];
        if self.launcher.ends_with("openmpi") {
            words.push("--oversubscribe".to_owned());
        }
        words.extend(["-n".to_owned(), ranks.to_string()]);
        words
    }

    fn program(&self) -> Vec<String> {
        let path = |name| self.place.join(name).to_str().unwrap().to_owned();
        vec![path("ranks"), path("truth")]
    }

    /// Runs a command, which prints and ends with this code.
    fn ends(&self, words: &[String], code: i32) -> String {
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .env("ROCTOP_CONFIG", "/dev/null")
            .current_dir(&self.place)
            .stdin(Stdio::null());
        let output = patience::output(&mut command);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {output:?}");
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    fn run(&self, words: &[String]) {
        self.ends(words, 0);
    }

    /// Runs roctop, which prints and ends with this code.
    fn roctop_ends(&self, words: &[&str], code: i32) -> String {
        let all = [env!("CARGO_BIN_EXE_roctop")].into_iter().chain(words.iter().copied());
        self.ends(&all.map(str::to_owned).collect::<Vec<_>>(), code)
    }

    fn roctop(&self, words: &[&str]) -> String {
        self.roctop_ends(words, 0)
    }

    /// Records all ranks by one roctop.
    fn record(&self, ranks: usize, more: &[&str]) {
        let words = ["record", "-o", "rec", "--"].map(str::to_owned).to_vec();
        let more: Vec<String> = more.iter().map(ToString::to_string).collect();
        let words = [words, self.launch(ranks), self.program(), more].concat();
        self.roctop(&words.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// What the ranks wrote, by communicator and number in it; of those that have one rank, nothing.
    fn truth(&self) -> BTreeMap<(String, usize), BTreeMap<usize, Fact>> {
        let mut found: BTreeMap<_, BTreeMap<usize, Fact>> = BTreeMap::new();
        for rank in 0..RANKS {
            let Ok(text) = std::fs::read_to_string(self.place.join(format!("truth.{rank}"))) else {
                continue;
            };
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            for line in text.lines() {
                let words: Vec<&str> = line.split(' ').collect();
                let time = |at: usize| words[at].parse().unwrap();
                let fact = Fact {
                    pid: words[0].parse().unwrap(),
                    function: words[1].to_owned(),
                    communicator: words[2].to_owned(),
                    begin: [time(3), time(4)],
                    end: [time(5), time(6)],
                };
                let count = counts.entry(fact.communicator.clone()).or_default();
                *count += 1;
                let key = (fact.communicator.clone(), *count);
                found.entry(key).or_default().insert(rank, fact);
            }
        }
        found.retain(|_, facts| facts.len() > 1);
        found
    }
}

/// Bounds of the wait of a rank, by what its function is defined to need.
fn wait(facts: &BTreeMap<usize, Fact>, rank: usize) -> [u64; 2] {
    let own = &facts[&rank];
    let needed = facts.iter().filter(|(other, _)| match own.function.as_str() {
        "MPI_Bcast" => **other == 0,
        "MPI_Reduce" => rank == 0,
        _ => true,
    });
    let needed = needed.map(|(_, fact)| fact.begin);
    let [least, most] = needed.fold([0, 0], |last, begin| [last[0].max(begin[0]), last[1].max(begin[1])]);
    [least.saturating_sub(own.begin[1]), most.saturating_sub(own.begin[0])]
}

/// Function, end and `Wait_ns` of calls, by process and begin.
type Calls = BTreeMap<(u32, u64), (String, u64, String)>;

/// All calls of MPI in files.
fn calls_of(ranks: &Ranks, folder: &str) -> Calls {
    let mut calls = Calls::new();
    for entry in std::fs::read_dir(ranks.place.join(folder)).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_str().unwrap().ends_with("mpi_api_trace.csv") {
            continue;
        }
        let table = Table::read(&path);
        let (pids, begins, ends) = (
            table.numbers("Process_Id"),
            table.numbers("Start_Timestamp"),
            table.numbers("End_Timestamp"),
        );
        for (at, (function, wait)) in table
            .column("Function")
            .into_iter()
            .zip(table.column("Wait_ns"))
            .enumerate()
        {
            let key = (pids[at] as u32, begins[at]);
            calls.insert(key, (function.to_owned(), ends[at], wait.to_owned()));
        }
    }
    calls
}

/// Checks `Wait_ns` of all calls in files against what the ranks wrote.
fn check_waits(ranks: &Ranks, folder: &str) {
    let truth = ranks.truth();
    // An interval of the program contains one call.
    let calls = calls_of(ranks, folder);
    let mut matched = calls.values().filter(|call| !call.2.is_empty()).count();
    for ((communicator, number), facts) in &truth {
        for (rank, fact) in facts {
            let range =
                (fact.pid, fact.begin[0].saturating_sub(MACHINE_ERROR))..=(fact.pid, fact.begin[1] + MACHINE_ERROR);
            let found: Vec<_> = calls.range(range).filter(|(_, call)| call.0 == fact.function).collect();
            let [(_, (_, end, known))] = found[..] else {
                panic!("{fact:?}: {found:?}")
            };
            assert!(
                fact.end[0] <= end + MACHINE_ERROR && *end <= fact.end[1] + MACHINE_ERROR,
                "{fact:?} {end}"
            );
            let [least, most] = wait(facts, *rank);
            let known: u64 = known.parse().unwrap_or_else(|_| panic!("not matched: {fact:?}"));
            assert!(
                known + 2 * MACHINE_ERROR >= least && known <= most + 2 * MACHINE_ERROR,
                "rank {rank} waited {known} ns for #{number} of {communicator}, not {least} to {most}: {facts:?}"
            );
            matched -= 1;
        }
    }
    assert_eq!(matched, 0, "calls are matched that no rank wrote of");
}

#[test]
fn ranks_wait_as_long_as_their_own_times_say() {
    each("waits", "mpi_ranks.c", |ranks| {
        ranks.record(RANKS, &[]);
        ranks.roctop(&["export", "rec", "--format", "csv", "-d", "out"]);
        check_waits(ranks, "out");
        check_sums(ranks);
        check_threshold(ranks, &["rec"]);
        shares::check(ranks);
        let table = ranks.roctop(&["summary", "rec"]);
        assert!(table.contains("  MPI_Allreduce of comm 0\n"), "{table}");
        assert!(
            !table.contains("there is twice") && !table.contains("instead of"),
            "{table}"
        );
    });
}

/// Checks the numbers of `MPI_Allreduce` of all ranks.
fn check_sums(ranks: &Ranks) {
    let truth = ranks.truth();
    let reduces: Vec<_> = truth
        .values()
        .filter(|facts| facts[&0].function == "MPI_Allreduce")
        .collect();
    let mut bounds = [[0, 0]; 2];
    for facts in &reduces {
        let begins = |at: usize| facts.values().map(move |fact| fact.begin[at]);
        let [first, last] = [0, 1].map(|at| (begins(at).min().unwrap(), begins(at).max().unwrap()));
        bounds[0][0] += first.1.saturating_sub(last.0);
        bounds[0][1] += last.1 - first.0;
        for rank in facts.keys() {
            let [least, most] = wait(facts, *rank);
            (bounds[1][0], bounds[1][1]) = (bounds[1][0] + least, bounds[1][1] + most);
        }
    }
    let answer = ranks.roctop(&["ask", "rec", "top collectives", "--format", "json"]);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let rows = answer["rows"].as_array().unwrap().iter().map(|row| &row["values"]);
    let row = rows
        .into_iter()
        .find(|row| row["Operation"] == "MPI_Allreduce")
        .unwrap();
    let count = reduces.len() as u64;
    assert_eq!(row["Count"].as_u64(), Some(count), "{row}");
    let found = [
        row["Skew_ns"].as_u64().unwrap() * count,
        row["Wait_ns"].as_u64().unwrap(),
    ];
    for (found, [least, most]) in found.into_iter().zip(bounds) {
        let error = 2 * MACHINE_ERROR * count * RANKS as u64;
        assert!(
            found + error >= least && found <= most + error,
            "{found} not {least} to {most}: {row}"
        );
    }
}

/// Checks that a wait exceeds what some rank waited at least, by the ranks' own times.
fn check_threshold(ranks: &Ranks, recordings: &[&str]) {
    let truth = ranks.truth();
    let reduces = truth.values().filter(|facts| facts[&0].function == "MPI_Allreduce");
    let waits = reduces.flat_map(|facts| facts.keys().map(|rank| wait(facts, *rank)[0]));
    let longest = waits.max().unwrap();
    let limit = format!(
        "wait(MPI_Allreduce) > {}ns",
        longest.saturating_sub(2 * MACHINE_ERROR + 1)
    );
    let text = ranks.roctop_ends(&[&["summary"], recordings, &["--fail-if", &limit]].concat(), 3);
    assert!(text.contains("in MPI_Allreduce of comm 0"), "{text}");
}

/// Each rank has its own roctop, and the recordings are opened together.
#[test]
fn recordings_of_ranks_are_matched_when_they_are_read_together() {
    each("together", "mpi_ranks.c", |ranks| {
        let own = ["record", "-o", "run/rank-%rank%", "--"].map(str::to_owned).to_vec();
        let roctop = vec![env!("CARGO_BIN_EXE_roctop").to_owned()];
        let words = [ranks.launch(RANKS), roctop, own, ranks.program()].concat();
        ranks.run(&words);
        let recordings: Vec<String> = std::fs::read_dir(ranks.place.join("run"))
            .unwrap()
            .map(|entry| entry.unwrap().path().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(recordings.len(), RANKS);
        let mut words = vec!["export"];
        words.extend(recordings.iter().map(String::as_str));
        ranks.roctop(&[&words[..], &["--format", "csv", "-d", "out"]].concat());
        check_waits(ranks, "out");
        check_threshold(ranks, &recordings.iter().map(String::as_str).collect::<Vec<_>>());
        // Of one rank, nobody knows who waits.
        for function in ["MPI_Barrier", "MPI_Allreduce"] {
            let limit = format!("wait({function}) > 5ms");
            let text = ranks.roctop_ends(&["summary", &recordings[0], "--fail-if", &limit], 1);
            assert!(text.contains(&format!("'dur({function})'")), "{text}");
        }
    });
}

#[test]
fn calls_of_fortran_are_matched_across_ranks() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("preload/tests/c/mpi_tour.F");
    each("fortran", "mpi_ranks.c", |ranks| {
        let compiler = ranks.launcher.replace("mpirun", "mpif90");
        if Command::new(&compiler).arg("--version").output().is_err() {
            assert!(std::env::var_os("ROCTOP_REQUIRE_MPI").is_none(), "needs {compiler}");
            println!("skipped: needs {compiler}");
            return;
        }
        let mut command = Command::new(&compiler);
        command
            .args(["-w", "-ffree-form", "-DF08", "-o"])
            .arg(ranks.place.join("ranks"));
        assert!(command.arg(&source).status().unwrap().success(), "{compiler}");
        ranks.record(2, &[]);
        ranks.roctop(&["export", "rec", "--format", "csv", "-d", "out"]);
        let files = std::fs::read_dir(ranks.place.join("out")).unwrap();
        let files = files.map(|entry| entry.unwrap().path());
        let files: Vec<_> = files
            .filter(|path| path.to_str().unwrap().ends_with("mpi_api_trace.csv"))
            .collect();
        assert_eq!(files.len(), 2);
        for file in files {
            let table = Table::read(&file);
            let columns = ["Function", "Bytes", "Wait_ns"].map(|name| table.column(name));
            let [functions, bytes, waits] = columns;
            let rows = functions.into_iter().zip(bytes).zip(waits);
            let reduces: Vec<_> = rows.filter(|((function, _), _)| *function == "MPI_Allreduce").collect();
            // The last one fails.
            assert_eq!(reduces.len(), 1001);
            for (at, ((_, bytes), wait)) in reduces.into_iter().enumerate() {
                let known = if at < 1000 {
                    (at % 64 * 8).to_string()
                } else {
                    String::new()
                };
                assert_eq!((bytes, wait.is_empty()), (known.as_str(), at == 1000), "#{at}");
            }
        }
        // It may miss something else on this machine.
        let mut doctor = Command::new(env!("CARGO_BIN_EXE_roctop"));
        let doctor = doctor
            .args(["doctor", "./ranks"])
            .env("ROCTOP_CONFIG", "/dev/null")
            .current_dir(&ranks.place);
        let text = String::from_utf8(doctor.output().unwrap().stdout).unwrap();
        let family = if ranks.launcher.ends_with("openmpi") {
            "(Open MPI); "
        } else {
            "(MPICH or its kin); "
        };
        assert!(text.contains(family), "{text}");
    });
}
