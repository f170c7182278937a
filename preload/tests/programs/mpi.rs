//! Calls of MPI, with a stand-in for the library: what is recorded, what is asked, and that nothing else changes.

use crate::place::{TestDir, library, out};
use crate::ring::Ring;
use roctop_ring::record::mpi::{self, UNKNOWN};
use roctop_ring::record::{Body, Domain, MpiCall, status};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Mpi {
    place: TestDir,
    link: Vec<String>,
}

impl Mpi {
    fn new() -> Option<Self> {
        let place = TestDir::new()?;
        place.compile(
            "stand_in_mpi",
            "libmpi.so.40",
            &["-shared", "-fPIC", "-Wl,-soname,libmpi.so.40"],
        );
        let folder = place.dir.display().to_string();
        let link = [
            format!("-L{folder}"),
            "-l:libmpi.so.40".to_owned(),
            format!("-Wl,-rpath,{folder}"),
            "-ldl".to_owned(),
        ];
        Some(Self {
            place,
            link: link.to_vec(),
        })
    }

    fn compile(&self, source: &str, result: &str, more: &[&str]) -> PathBuf {
        let link = self.link.iter().map(String::as_str);
        self.place
            .compile(source, result, &more.iter().copied().chain(link).collect::<Vec<_>>())
    }

    fn tool(&self) -> PathBuf {
        self.compile("mpi_tool", "libtool.so", &["-shared", "-fPIC"])
    }
}

/// Calls of MPI by name, with return code and arguments.
fn calls(ring: &Ring) -> Vec<(String, i32, MpiCall)> {
    let names = ring.operations();
    let of_mpi = ring.records.iter().filter_map(|(_, domain, body)| match body {
        Body::ExplainedCall(call, arguments) if Domain(*domain) == Domain::MPI => {
            assert!(call.start <= call.end && call.knows_status());
            let name = names[&(u32::from(*domain), u32::from(call.op))].clone();
            Some((name, call.status, MpiCall::of(arguments.registers)))
        }
        _ => None,
    });
    of_mpi.collect()
}

/// A program for two ranks: compiler, source, what the source is compiled with, and what `mpi_truth.c` is.
type Tour = (
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);
const TOURS: [Tour; 4] = [
    ("mpicc", "mpi_tour.c", &[], &[]),
    ("mpif90", "mpi_tour.F", &["-std=legacy", "-ffixed-form"], &["-DFORTRAN"]),
    (
        "mpif90",
        "mpi_tour.F",
        &["-std=legacy", "-ffree-form", "-DMODULE"],
        &["-DFORTRAN"],
    ),
    (
        "mpif90",
        "mpi_tour.F",
        &["-std=legacy", "-ffree-form", "-DF08"],
        &["-DFORTRAN"],
    ),
];

/// Whether a program is installed.
fn is_there(program: &str) -> bool {
    let is_it = Command::new(program).arg("--version").output().is_ok();
    assert!(
        is_it || std::env::var_os("ROCTOP_REQUIRE_MPI").is_none(),
        "needs {program}"
    );
    if !is_it {
        eprintln!("skipped: needs {program}");
    }
    is_it
}

/// Compiles for MPI.
fn compile(place: &TestDir, compiler: &str, name: &str, result: &str, more: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name);
    let result = place.dir.join(result);
    let mut command = Command::new(compiler);
    command.args(["-w", "-O1", "-o"]).arg(&result).arg(source).args(more);
    assert!(command.status().unwrap().success(), "{compiler}: {name} {more:?}");
    result
}

/// The launcher's command for two ranks that write what they called to `truth.RANK`.
fn ranks(place: &TestDir, implementation: &str, is_traced: bool) -> Command {
    let mut command = Command::new(format!("mpirun.{implementation}"));
    if implementation == "openmpi" {
        command.arg("--oversubscribe");
    }
    command.args(["-n", "2", "env"]);
    command.arg(format!("MPI_TRUTH={}", place.dir.join("truth").display()));
    if is_traced {
        command.arg(format!("LD_PRELOAD={}", library().display()));
        command.arg(format!("ROCTOP_SESSION={}", place.session().display()));
    }
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

/// What the ranks print, in order.
fn lines(command: &mut Command) -> Vec<String> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    let mut lines: Vec<String> = out(&output).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Runs a tour with an implementation, by the end of the names of its compilers and launcher; what the ranks print, and for each rank the calls of MPI with their times, peers or
/// roots, bytes, and empty tests.
fn tour(implementation: &str, (compiler, source, more, of_truth): Tour) {
    let (compiler, truth_compiler) = [compiler, "mpicc"]
        .map(|name| format!("{name}.{implementation}"))
        .into();
    if !is_there(&compiler) || !is_there(&truth_compiler) {
        return;
    }
    let Some(place) = TestDir::new() else { return };
    let folder = place.dir.display();
    // In front of MPI, where programs find it first: below roctop.
    let shared = [&["-shared", "-fPIC"], of_truth].concat();
    compile(&place, &truth_compiler, "mpi_truth.c", "libtruth.so", &shared);
    let linked = [
        format!("-L{folder}"),
        "-Wl,--no-as-needed".to_owned(),
        "-ltruth".to_owned(),
        format!("-Wl,-rpath,{folder}"),
    ];
    let all: Vec<&str> = more.iter().copied().chain(linked.iter().map(String::as_str)).collect();
    let program = compile(&place, &compiler, source, "tour", &all);
    let run = |is_traced| {
        let mut command = ranks(&place, implementation, is_traced);
        lines(command.arg(&program).arg(place.dir.join("file")))
    };
    let what = format!("{compiler} {more:?}");
    assert_eq!(run(false), run(true), "{what}");
    compare_ranks(&place, &what);
}

/// The rank that calls are of.
fn rank(calls: &[(String, i32, MpiCall)]) -> u32 {
    let mut of_world = calls.iter().filter(|(.., call)| call.communicator == mpi::WORLD);
    of_world.next().unwrap().2.rank
}

/// Compares what is recorded of two ranks with what they wrote.
fn compare_ranks(place: &TestDir, what: &str) {
    let rings = place.rings();
    assert_eq!(rings.len(), 2, "{what}");
    for ring in &rings {
        let found = calls(ring);
        let truth = place.dir.join(format!("truth.{}", rank(&found)));
        compare(ring, &found, &std::fs::read_to_string(truth).unwrap(), what);
    }
}

/// Compares what is recorded with the lines of `mpi_truth.c`.
fn compare(ring: &Ring, found: &[(String, i32, MpiCall)], truth: &str, what: &str) {
    let times = ring.records.iter().filter_map(|(_, domain, body)| match body {
        Body::ExplainedCall(call, _) if Domain(*domain) == Domain::MPI => Some([call.start, call.end]),
        _ => None,
    });
    let mut found = found.iter().zip(times);
    let (mut empty, mut around) = (0, Vec::new());
    for line in truth.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, begin, end, peer, bytes] = words[..] else {
            panic!("{line}")
        };
        if name == "empty" {
            empty += 1;
            continue;
        }
        let ((known, status, call), [start, stop]) = found.next().unwrap();
        assert_eq!(known, name, "{what}: {line}");
        assert_eq!(call.empty_tests, std::mem::take(&mut empty), "{what}: {line}");
        let [begin, end]: [u64; 2] = [begin, end].map(|ticks| ticks.parse().unwrap());
        assert!(start <= begin && end <= stop, "{what}: {line}");
        around.push((stop - start) - (end - begin));
        if *status != 0 {
            assert_eq!(
                (call.bytes, call.peer, call.communicator),
                (None, UNKNOWN, 0),
                "{what}: {line}"
            );
            continue;
        }
        let [peer, bytes]: [i64; 2] = [peer, bytes].map(|number| number.parse().unwrap());
        let own = if call.root == UNKNOWN { call.peer } else { call.root };
        // Wildcards have other numbers in each implementation.
        if peer >= 0 || peer == -1000 {
            assert_eq!(
                i64::from(own),
                if peer < 0 { i64::from(UNKNOWN) } else { peer },
                "{what}: {line}"
            );
        } else {
            assert!(own == mpi::ANY || own == mpi::NO_RANK, "{what}: {line}");
        }
        assert_eq!(call.bytes, u64::try_from(bytes).ok(), "{what}: {line}");
    }
    assert_eq!(found.count(), 0, "{what}");
    around.sort_unstable();
    println!(
        "{what}: {} calls, median of the time around them {} ticks",
        around.len(),
        around[around.len() / 2]
    );
}

#[test]
fn open_mpi_says_the_same_as_its_own_interface() {
    for program in TOURS {
        tour("openmpi", program);
    }
}

#[test]
fn mpich_says_the_same_as_its_own_interface() {
    for program in TOURS {
        tour("mpich", program);
    }
}

/// Calls of one rank.
type Calls = BTreeMap<u32, Vec<(String, i32, MpiCall)>>;

/// Python opens MPI with its module: each call once, as a library says that is opened before.
#[test]
fn calls_of_python_are_recorded_once() {
    let ask = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; print(MPI.get_vendor()[0])";
    let vendor = |python: &&str| {
        let output = Command::new(python).args(["-c", ask]).output().ok()?;
        output.status.success().then(|| out(&output))
    };
    let mut pythons = ["python3", "/usr/bin/python3"].into_iter();
    let Some((python, vendor)) = pythons.find_map(|python| Some((python, vendor(&python)?))) else {
        assert!(std::env::var_os("ROCTOP_REQUIRE_MPI").is_none(), "needs mpi4py");
        eprintln!("skipped: needs mpi4py");
        return;
    };
    let implementation = match vendor.trim() {
        "Open MPI" => "openmpi",
        "MPICH" => "mpich",
        other => return eprintln!("skipped: mpi4py is for {other}"),
    };
    let compiler = format!("mpicc.{implementation}");
    let Some(place) = TestDir::new().filter(|_| is_there(&compiler)) else {
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/mpi_tour.py");
    let truth = compile(&place, &compiler, "mpi_truth.c", "libtruth.so", &["-shared", "-fPIC"]);
    let run = |is_traced, variables: &[&str]| {
        let mut command = ranks(&place, implementation, is_traced);
        command.args(variables).arg(python).arg(&script);
        command
    };
    let plain = lines(&mut run(false, &[]));
    // The loader binds functions at their first calls, as it is used to.
    assert_eq!(lines(&mut run(true, &[])), plain);
    let by_rank = |rings: Vec<Ring>| {
        rings
            .iter()
            .map(|ring| (rank(&calls(ring)), calls(ring)))
            .collect::<Calls>()
    };
    let found = by_rank(place.rings());
    std::fs::remove_dir_all(place.session()).unwrap();
    std::fs::create_dir(place.session()).unwrap();
    // At once, to what is first: which of two that is, is not certain later.
    assert_eq!(lines(run(true, &["LD_BIND_NOW=1"]).arg(&truth)), plain);
    compare_ranks(&place, "mpi4py");
    assert_eq!(found, by_rank(place.rings()));
    assert_eq!(found.len(), 2);
}

/// A name of Fortran means Fortran only beside its library; what that does not call is not known.
#[test]
fn a_call_of_fortran_is_recorded_once_with_what_is_known_of_it() {
    let Some(mpi) = Mpi::new() else { return };
    let main = "int MPI_Init(int *, char ***), MPI_Finalize(void); void mpi_barrier(void *);
        extern char ompi_mpi_comm_world;
        int main(void) { MPI_Init(0, 0); mpi_barrier(&ompi_mpi_comm_world); return MPI_Finalize(); }";
    let barrier = "int PMPI_Barrier(void *), PMPI_Send(void *, int, void *, int, int, void *), MPI_Barrier(void *);";
    let of_c = format!("{barrier} void mpi_barrier(void *comm) {{ MPI_Barrier(comm); }}");
    let of_fortran = format!(
        "{barrier} void mpi_init_(void) {{}} void mpi_barrier(void *comm) {{
            PMPI_Send(0, 0, 0, 0, 0, comm); PMPI_Barrier(comm); PMPI_Barrier(comm); }}"
    );
    let alone = "void mpi_init_(void) {} void mpi_barrier(void *comm) { (void)comm; }".to_owned();
    for (source, is_known) in [(of_c, true), (of_fortran, true), (alone, false)] {
        let build = |name: &str, text: &str, more: &[&str]| {
            let path = mpi.place.dir.join(format!("{name}.c"));
            std::fs::write(&path, text).unwrap();
            let mut command = Command::new("cc");
            command.arg("-o").arg(mpi.place.dir.join(name)).arg(&path).args(more);
            assert!(command.args(&mpi.link).status().unwrap().success());
        };
        build("libbarrier.so", &source, &["-shared", "-fPIC"]);
        let folder = format!("-L{}", mpi.place.dir.display());
        build("main", main, &[&folder, "-l:libbarrier.so"]);
        let traced = mpi.place.traced(&mpi.place.dir.join("main")).output().unwrap();
        assert!(traced.status.success(), "{source}");
        let ring = mpi.place.rings().remove(0);
        let names = ring.operations();
        let found = ring.records.iter().filter_map(|(_, domain, body)| match body {
            Body::ExplainedCall(call, about) if Domain(*domain) == Domain::MPI => {
                let name = names[&(u32::from(*domain), u32::from(call.op))].as_str();
                Some((name, call.knows_status(), MpiCall::of(about.registers).communicator))
            }
            _ => None,
        });
        let barrier = ("MPI_Barrier", is_known, if is_known { mpi::WORLD } else { 0 });
        let expected = [("MPI_Init", true, 0), barrier, ("MPI_Finalize", true, 0)];
        assert_eq!(found.collect::<Vec<_>>(), expected, "{source}");
        std::fs::remove_dir_all(mpi.place.session()).unwrap();
        std::fs::create_dir(mpi.place.session()).unwrap();
    }
}

const RETURNED: &str = "errno 77 codes 0 0 0 3 3 5 0 0 0 0 5 0";

/// What the program of `mpi_user.c` must have left in the ring.
fn check(ring: &Ring) {
    let calls = calls(ring);
    let one = |name: &str, status, call: MpiCall| (name.to_owned(), status, call);
    let world = MpiCall {
        communicator: mpi::WORLD,
        size: 1,
        ..MpiCall::default()
    };
    let none = MpiCall::default();
    let send = |peer, tag, bytes| MpiCall {
        peer,
        tag,
        bytes: Some(bytes),
        ..world
    };
    let copy = |communicator| MpiCall { communicator, ..world };
    let expected = [
        one("MPI_Init", 0, none),
        one("MPI_Barrier", 0, world),
        one("MPI_Send", 0, send(5, 42, 24)),
        one("MPI_Send", 3, none),
        one("MPI_Send", 3, none),
        one("MPI_Barrier", 5, none),
        one("MPI_Send", 0, send(0, 0, 0)),
        one("MPI_Send", 0, send(mpi::NO_RANK, 0, 0)),
        one(
            "MPI_Gather",
            0,
            MpiCall {
                root: 1,
                bytes: Some(8),
                ..world
            },
        ),
        one("MPI_Test", 0, MpiCall { empty_tests: 4, ..none }),
        one(
            "MPI_Allreduce",
            0,
            MpiCall {
                operator: 3,
                bytes: Some(8),
                ..world
            },
        ),
        one(
            "MPI_Bcast",
            0,
            MpiCall {
                root: 0,
                bytes: Some(4),
                ..world
            },
        ),
        one("MPI_Comm_dup", 0, world),
        one("MPI_Barrier", 0, copy(3)),
        one("MPI_Comm_free", 0, none),
        one("MPI_Barrier", 5, none),
        one("MPI_Comm_dup", 0, world),
        one("MPI_Barrier", 0, copy(4)),
        one("MPI_Finalize", 0, none),
    ];
    for (found, expected) in calls.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(calls.len(), expected.len());
    assert_eq!(none.peer, UNKNOWN);
}

#[test]
fn calls_of_the_program_are_recorded_once_however_it_is_bound() {
    let Some(mpi) = Mpi::new() else { return };
    for binding in ["-Wl,-z,lazy", "-Wl,-z,now", "-fno-plt", "-no-pie"] {
        let program = mpi.compile("mpi_user", "user", &[binding]);
        let plain = Command::new(&program).output().unwrap();
        let traced = mpi.place.traced(&program).output().unwrap();
        let (plain, traced) = (out(&plain), out(&traced));
        assert!(plain.starts_with(RETURNED), "{plain}");
        // The rights of the table are those that it has without the collector.
        let without = |text: &str| {
            text.replace("reference to MPI\n", "")
                .replace("reference to another library\n", "")
        };
        assert_eq!(without(&plain), without(&traced), "{binding}");
        let rings = mpi.place.rings();
        let [ring] = &rings[..] else { panic!("one ring") };
        check(ring);
        std::fs::remove_dir_all(mpi.place.session()).unwrap();
        std::fs::create_dir(mpi.place.session()).unwrap();
    }
}

#[test]
fn a_library_that_is_opened_late_is_seen() {
    let Some(mpi) = Mpi::new() else { return };
    let loader = mpi.place.compile("mpi_late", "late", &["-ldl"]);
    for binding in ["-Wl,-z,lazy", "-Wl,-z,now"] {
        let user = mpi.compile("mpi_user", "libuser.so", &["-DLATE", "-shared", "-fPIC", binding]);
        let traced = mpi.place.traced(&loader).arg(&user).output().unwrap();
        assert!(out(&traced).starts_with(RETURNED), "{}", out(&traced));
        let rings = mpi.place.rings();
        check(rings.last().unwrap());
        std::fs::remove_dir_all(mpi.place.session()).unwrap();
        std::fs::create_dir(mpi.place.session()).unwrap();
    }
    // MPI itself, by a handle.
    let traced = mpi
        .place
        .traced(&loader)
        .arg(mpi.place.dir.join("libmpi.so.40"))
        .output()
        .unwrap();
    assert_eq!(out(&traced), "0 0 0\n");
    let rings = mpi.place.rings();
    let names: Vec<String> = calls(&rings[0]).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(names, ["MPI_Init", "MPI_Barrier", "MPI_Finalize"]);
}

#[test]
fn another_profiler_of_mpi_sees_what_it_saw() {
    let Some(mpi) = Mpi::new() else { return };
    let (program, tool) = (mpi.compile("mpi_user", "user", &[]), mpi.tool());
    let plain = Command::new(&program).env("LD_PRELOAD", &tool).output().unwrap();
    assert!(out(&plain).contains("tool saw 6 sends"), "{}", out(&plain));
    let (ours, tool) = (library(), tool.display().to_string());
    for preload in [
        format!("{}:{tool}", ours.display()),
        format!("{tool}:{}", ours.display()),
    ] {
        let traced = mpi.place.traced(&program).env("LD_PRELOAD", preload).output().unwrap();
        let text = out(&traced);
        assert!(text.contains("tool saw 6 sends") && text.contains(RETURNED), "{text}");
        check(&mpi.place.rings()[0]);
        std::fs::remove_dir_all(mpi.place.session()).unwrap();
        std::fs::create_dir(mpi.place.session()).unwrap();
    }
}

#[test]
fn tables_that_a_tool_left_writable_are_seen() {
    let Some(mpi) = Mpi::new() else { return };
    let program = mpi.compile("mpi_user", "user", &["-Wl,-z,now"]);
    let tool = mpi
        .place
        .compile("mpi_opens_tables", "libopens.so", &["-shared", "-fPIC"]);
    let (ours, tool) = (library().display().to_string(), tool.display().to_string());
    // The tool's constructor is before ours in one of these.
    for preload in [format!("{ours}:{tool}"), format!("{tool}:{ours}")] {
        let traced = mpi.place.traced(&program).env("LD_PRELOAD", &preload).output().unwrap();
        assert!(out(&traced).starts_with(RETURNED), "{}", out(&traced));
        check(&mpi.place.rings()[0]);
        std::fs::remove_dir_all(mpi.place.session()).unwrap();
        std::fs::create_dir(mpi.place.session()).unwrap();
    }
}

#[test]
fn switched_off_nothing_is_rewritten() {
    let Some(mpi) = Mpi::new() else { return };
    let program = mpi.compile("mpi_user", "user", &[]);
    let plain = Command::new(&program).output().unwrap();
    let traced = mpi.place.traced(&program).env("ROCTOP_MPI", "off").output().unwrap();
    assert!(out(&plain).contains("reference to MPI"), "{}", out(&plain));
    assert_eq!(out(&plain), out(&traced));
    assert_eq!(mpi.place.rings().len(), 0);
}

#[test]
fn a_program_without_mpi_finds_none() {
    let Some(place) = TestDir::new() else { return };
    let program = place.compile("mpi_none", "none", &["-ldl"]);
    let traced = place.traced(&program).output().unwrap();
    assert_eq!(out(&traced), "0 0 0 0 0\n");
    assert_eq!(place.rings().len(), 0);
}

#[test]
fn of_an_unknown_mpi_nothing_is_asked() {
    let Some(mpi) = Mpi::new() else { return };
    // Two libraries: whose a handle is, is not known.
    let source = "int PMPI_Type_size(void *type, int *size) { return 1; }";
    let path = mpi.place.dir.join("second.c");
    std::fs::write(&path, source).unwrap();
    let second = mpi.place.dir.join("libsecond.so");
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-w", "-o"])
        .arg(&second)
        .arg(&path)
        .status()
        .unwrap();
    assert!(made.success());
    let program = mpi.compile("mpi_user", "user", &[]);
    let preload = format!("{}:{}", library().display(), second.display());
    let traced = mpi.place.traced(&program).env("LD_PRELOAD", preload).output().unwrap();
    assert!(out(&traced).starts_with(RETURNED), "{}", out(&traced));
    let rings = mpi.place.rings();
    let [ring] = &rings[..] else { panic!("one ring") };
    let calls = calls(ring);
    assert_eq!(calls.len(), 19);
    assert!(
        calls
            .iter()
            .all(|(_, _, call)| call.communicator == 0 && call.bytes.is_none())
    );
    let said = ring.said(status::BACKEND);
    assert!(said.iter().any(|text| text.starts_with("unknown MPI")), "{said:?}");
}
