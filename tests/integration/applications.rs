//! Programs that others wrote, as Debian's later suites have them, on the emulated GPU: they end and say the same untraced
//! and recorded, and the recording is what the emulated GPU's log has. A small one runs with every test; the others need
//! some 6 GB and are run by `.ci/matrix`, which makes the table of docs/verification.md from their rows.

mod alike;
mod comparison;
mod gguf;
mod rccl;

use crate::kit::rig::{Recorded, Rig, rig};
use comparison::Comparison;
use roctop::item::{LossReason, ProcessId};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// The release that most programs are linked with.
const RELEASE: &str = "6.4.3";
/// Runs of each kind: what varies between untraced ones may differ, and the shortest tell the time added.
const RUNS: usize = 3;
/// Where Debian puts the programs of ROCm's libraries.
const LIBEXEC: &str = "/usr/libexec/rocm";

/// A prefix of the release with more packages.
struct Suite {
    rig: Rig,
    prefix: PathBuf,
    /// Where programs keep what they compile.
    home: PathBuf,
}

/// What is fetched under a name.
fn packages(name: &str) -> Vec<String> {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/applications/packages");
    let list = std::fs::read_to_string(list).unwrap();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut lines = list
        .lines()
        .map(words)
        .filter(|words| words.first().is_some_and(|first| first == name));
    lines
        .next()
        .unwrap_or_else(|| panic!("no packages for {name}"))
        .split_off(1)
}

/// The prefix of that name of [`RELEASE`].
fn suite(name: &str) -> Option<Suite> {
    suite_of(RELEASE, name)
}

/// The prefix of that name of a release, fetched when it is not there; none, with the reason printed, where it cannot be.
fn suite_of(release: &str, name: &str) -> Option<Suite> {
    let rig = rig()?;
    let mut fetch = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runtimes/fetch"));
    for package in packages(name) {
        fetch.args(["--and", &package]);
    }
    let output = fetch.args(["--as", name, release]).output().unwrap();
    let (said, why) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    if !output.status.success() {
        println!("skipped: {name}: {}", why.lines().last().unwrap_or("fetch failed"));
        return None;
    }
    Some(Suite {
        rig: rig.with_prefix(&format!("{release}+{name}")),
        prefix: said.lines().last()?.into(),
        home: Rig::place(&format!("home-{name}")),
    })
}

impl Suite {
    /// A file that the programs use.
    fn file(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    fn version(&self, package: &str) -> String {
        let versions = std::fs::read_to_string(self.prefix.join("versions")).unwrap();
        let mut lines = versions.lines().filter_map(|line| line.split_once(' '));
        let found = lines.find(|(name, _)| *name == package);
        found.map_or_else(|| "?".into(), |(_, version)| version.to_owned())
    }

    fn command(&self, place: &Path, options: &[&str], words: &[&str]) -> Command {
        let mut command = self.rig.command(place, options, words);
        // The prefixes are below the real home.
        command.env("ROCTOP_RUNTIMES", self.prefix.parent().unwrap());
        command
            .env("HOME", &self.home)
            .env("XDG_CACHE_HOME", self.home.join("cache"));
        command
    }

    fn on(&self, machine: &[(&'static str, &'static str)]) -> Self {
        Self {
            rig: self.rig.on(machine),
            prefix: self.prefix.clone(),
            home: self.home.clone(),
        }
    }
}

/// How long a command takes, with what came of it.
fn timed(command: &mut Command) -> (Duration, Output) {
    let begin = Instant::now();
    let output = Rig::ended(command);
    (begin.elapsed(), output)
}

/// A program, as the table has it.
struct Application<'a> {
    name: &'a str,
    package: &'a str,
    words: &'a [&'a str],
    /// The code that it exits with.
    code: i32,
    /// Does HIP make copies of it by kernels without a signal? They are recorded without times.
    lacks_times: bool,
}

/// What the runs of a program came to.
struct Outcome {
    difference: Option<String>,
    comparison: Comparison,
    /// The shortest run, untraced and recorded.
    shortest: [Duration; 2],
}

impl Outcome {
    fn row(&self, name: &str, version: &str) -> String {
        let Comparison {
            kernels,
            blits,
            copies,
            worst,
            misnamed,
            names,
        } = &self.comparison;
        let alike = if self.difference.is_none() { "yes" } else { "NO" };
        let named = names - misnamed.len();
        let [plain, recorded] = self.shortest.map(|time| time.as_secs_f64());
        let added = 1000.0 * (recorded - plain);
        format!(
            "| {name} | {version} | {alike} | {kernels} | {named}/{names} | {blits} | {copies} | {worst} ns | {added:+.0} ms of {plain:.2} s |"
        )
    }
}

/// Runs a program untraced and recorded in turns, and compares each recording.
fn outcome(suite: &Suite, app: &Application<'_>, name: &str) -> Outcome {
    let plain = Rig::place(&format!("plain-{name}"));
    // The first run fills caches.
    let first = Rig::ended(&mut suite.command(&plain, &[], app.words));
    let mut plains = vec![first];
    let mut shortest = [Duration::MAX; 2];
    let mut recorded = Vec::new();
    for _ in 0..RUNS {
        let (time, output) = timed(&mut suite.command(&plain, &[], app.words));
        shortest[0] = shortest[0].min(time);
        plains.push(output);
        let place = Rig::place(name);
        let recording = place.join("rec");
        let options = ["record", "-o", recording.to_str().unwrap()];
        let (time, output) = timed(&mut suite.command(&place, &options, app.words));
        shortest[1] = shortest[1].min(time);
        let one = Recorded::load(&place, output);
        let is_lost = |(_, reason): &(ProcessId, LossReason)| !(app.lacks_times && *reason == LossReason::Untimed);
        let lost = one
            .run
            .lost
            .iter()
            .filter(|(what, records)| **records > 0 && is_lost(what));
        assert_eq!(lost.count(), 0, "{:?}", one.run.lost);
        one.check_nesting();
        let comparison = Comparison::of(&one);
        let is_wrong = !comparison.is_right();
        recorded.push((one, comparison));
        if is_wrong {
            break;
        }
    }
    for output in &plains {
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(app.code), "{} untraced: {said}", app.name);
    }
    let differences = recorded.iter().map(|(one, _)| difference(one, &plains));
    let difference = differences.flatten().next();
    let (_, comparison) = recorded.pop().unwrap();
    Outcome {
        difference,
        comparison,
        shortest,
    }
}

/// Where a recorded run's end or output differs from those of untraced ones.
fn difference(recorded: &Recorded, plains: &[Output]) -> Option<String> {
    if recorded.output.status != plains[0].status {
        let said = String::from_utf8_lossy(&recorded.output.stderr);
        return Some(format!("{:?}: {said}", recorded.output.status));
    }
    let outputs: Vec<&[u8]> = plains.iter().map(|plain| &*plain.stdout).collect();
    let errors: Vec<&[u8]> = plains.iter().map(|plain| &*plain.stderr).collect();
    alike::difference(&recorded.output.stdout, &outputs).or_else(|| alike::difference(&recorded.output.stderr, &errors))
}

/// Prints a program's row of the table; an error says what in it is not as it has to be.
fn check(suite: &Suite, app: &Application<'_>) -> Result<(), String> {
    let of_name = |c: char| if c.is_alphanumeric() { c } else { '-' };
    let name: String = app.name.chars().map(of_name).collect();
    let outcome = outcome(suite, app, &name);
    println!("row: {}", outcome.row(app.name, &suite.version(app.package)));
    if let Some(difference) = outcome.difference {
        return Err(format!("{}: {difference}", app.name));
    }
    let mut comparison = outcome.comparison;
    if comparison.kernels.logged == 0 {
        return Err(format!("{}: no kernel ran", app.name));
    }
    if comparison.is_right() {
        return Ok(());
    }
    // One name is enough to see what is wrong.
    comparison.misnamed.truncate(1);
    Err(format!("{}: {comparison:?}", app.name))
}

#[test]
#[ignore = "a later suite: .ci/matrix"]
fn clpeak_is_recorded_as_it_happened() {
    let Some(suite) = suite("clpeak") else { return };
    let app = Application {
        name: "clpeak --kernel-latency",
        package: "clpeak",
        words: &["/usr/bin/clpeak", "--kernel-latency"],
        code: 0,
        lacks_times: false,
    };
    check(&suite, &app).unwrap();
}

/// Checks a program of the large suite that exits with a code.
fn check_large(name: &str, package: &str, words: &[&str], code: i32) -> Result<(), String> {
    let Some(suite) = suite("applications") else {
        return Ok(());
    };
    check(
        &suite,
        &Application {
            name,
            package,
            words,
            code,
            lacks_times: false,
        },
    )
}

fn model(suite: &Suite, layers: u32) -> String {
    let path = suite.file(&format!("{layers}.gguf"));
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    gguf::write(&mut file, &gguf::Shape { layers, embedding: 256 }).unwrap();
    path.into_os_string().into_string().unwrap()
}

const LLAMA_BENCH: [&str; 10] = ["-ngl", "99", "-p", "32", "-n", "32", "-r", "3", "-m", "MODEL"];

/// Words of a program, with the model's path for `MODEL`.
fn with_model<'a>(program: &'a str, words: &[&'a str], model: &'a str) -> Vec<&'a str> {
    let given = words.iter().map(|&word| if word == "MODEL" { model } else { word });
    std::iter::once(program).chain(given).collect()
}

fn check_llama(name: &str, machine: &[(&'static str, &'static str)], program: &str, words: &[&str]) {
    let Some(suite) = suite("applications") else { return };
    let model = model(&suite, 4);
    let app = Application {
        name,
        package: "llama.cpp-tools",
        words: &with_model(program, words, &model),
        code: 0,
        // Small copies between GPUs, on HSA 6.2 to 6.4.
        lacks_times: machine.iter().any(|(name, _)| *name == "EMULATED_GPU_COUNT"),
    };
    check(&suite.on(machine), &app).unwrap();
}

#[test]
#[ignore = "large: .ci/matrix runs it"]
fn llama_bench() {
    check_llama("llama-bench", &[], "/usr/bin/llama-bench", &LLAMA_BENCH);
}

#[test]
#[ignore = "large: .ci/matrix runs it"]
fn llama_bench_on_gfx1030() {
    let machine = [("EMULATED_GPU_TARGET", "gfx1030")];
    check_llama("llama-bench, gfx1030", &machine, "/usr/bin/llama-bench", &LLAMA_BENCH);
}

#[test]
#[ignore = "large: .ci/matrix runs it"]
fn llama_bench_on_three_gpus() {
    let machine = [("EMULATED_GPU_COUNT", "3")];
    let words = [&LLAMA_BENCH[..], &["-sm", "layer"]].concat();
    check_llama(
        "llama-bench -sm layer, 3 GPUs",
        &machine,
        "/usr/bin/llama-bench",
        &words,
    );
}

#[test]
#[ignore = "large: .ci/matrix runs it"]
fn llama_completion() {
    let words = [
        "-ngl",
        "99",
        "-m",
        "MODEL",
        "-p",
        "one two three",
        "-n",
        "64",
        "--temp",
        "0",
        "--seed",
        "1",
        "-no-cnv",
        "--ignore-eos",
    ];
    check_llama("llama-completion", &[], "/usr/bin/llama-completion", &words);
}

#[test]
#[ignore = "large: .ci/matrix runs it"]
fn rocblas_bench() {
    let program = format!("{LIBEXEC}/librocblas4-bench/rocblas-bench");
    let types = [
        "--a_type",
        "f16_r",
        "--b_type",
        "f16_r",
        "--c_type",
        "f16_r",
        "--d_type",
        "f16_r",
        "--compute_type",
        "f32_r",
    ];
    let sizes = ["-m", "256", "-n", "256", "-k", "256", "-i", "100", "-j", "2"];
    let words = [&[&*program, "-f", "gemm_ex"][..], &types, &sizes].concat();
    check_large("rocblas-bench gemm_ex", "librocblas4-bench", &words, 0).unwrap();
}

#[test]
#[ignore = "large: .ci/matrix runs it"]
fn hipblaslt_bench() {
    let Some(suite) = suite("hipblaslt") else { return };
    let program = format!("{LIBEXEC}/libhipblaslt1-bench/hipblaslt-bench");
    // The package has no kernels for gfx906.
    let suite = suite.on(&[("EMULATED_GPU_TARGET", "gfx1100")]);
    let app = Application {
        name: "hipblaslt-bench, gfx1100",
        package: "libhipblaslt1-bench",
        words: &[&program, "-m", "256", "-n", "256", "-k", "256", "-i", "100", "-j", "2"],
        code: 0,
        lacks_times: false,
    };
    check(&suite, &app).unwrap();
}

#[test]
#[ignore = "large: .ci/matrix runs it"]
fn tests_of_rocrand() {
    // Each has its row, whatever becomes of the others.
    let results = ["hipgraphs", "basic", "generate_uniform", "generate_normal"].map(|name| {
        let program = format!("{LIBEXEC}/librocrand1-tests/test_rocrand_{name}");
        let row = format!("test_rocrand_{name}");
        check_large(&row, "librocrand1-tests", &[&program, "--gtest_print_time=0"], 0)
    });
    results.into_iter().collect::<Result<Vec<_>, _>>().unwrap();
}

#[test]
#[ignore = "large: .ci/matrix runs it"]
fn rocsolver_bench() {
    let program = format!("{LIBEXEC}/librocsolver0-bench/rocsolver-bench");
    let results = [("getrf", &["-m", "64"][..]), ("syevd", &[])].map(|(function, more)| {
        let row = format!("rocsolver-bench {function}");
        let words = [&[&*program, "-f", function, "-n", "64", "--iters", "5"][..], more].concat();
        check_large(&row, "librocsolver0-bench", &words, 0)
    });
    results.into_iter().collect::<Result<Vec<_>, _>>().unwrap();
}

#[test]
#[ignore = "large: .ci/matrix runs it"]
fn hashcat() {
    let words = ["/usr/bin/hashcat", "-b", "-m", "0", "--runtime", "4"];
    check_large("hashcat -b -m 0", "hashcat", &words, 0).unwrap();
}

#[test]
#[ignore = "large: .ci/matrix runs it"]
fn test_of_rocfft() {
    let program = format!("{LIBEXEC}/librocfft0-tests/rocfft-test");
    let options = [
        "--seed",
        "1",
        "--gtest_print_time=0",
        "--gtest_filter=rocfft_UnitTest.hipGraph_execution",
    ];
    let words = [&[&*program][..], &options].concat();
    // It checks the transform, and kernels are not executed.
    check_large("rocfft-test hipGraph_execution", "librocfft0-tests", &words, 1).unwrap();
}

#[test]
#[ignore = "large: .ci/matrix runs it"]
fn threads_of_pyopencl() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/applications/opencl_threads.py");
    let words = ["/usr/bin/python3", script.to_str().unwrap()];
    check_large("pyopencl, 2 processes x 3 threads", "python3-pyopencl", &words, 0).unwrap();
}

#[test]
#[ignore = "large: .ci/matrix runs it"]
fn driver_of_miopen() {
    let program = format!("{LIBEXEC}/libmiopen1-tests/MIOpenDriver");
    let convolution = [
        "conv", "-n", "1", "-c", "4", "-H", "8", "-W", "8", "-k", "4", "-y", "3", "-x", "3", "-p", "1", "-q", "1",
        "-F", "0",
    ];
    let results = [("conv", &convolution[..]), ("softmax", &["softmax"])].map(|(name, options)| {
        // What kernels do is not verified: they are not executed.
        let words = [&[&*program], options, &["-V", "0", "-i", "2"]].concat();
        check_large(&format!("MIOpenDriver {name}"), "libmiopen1-tests", &words, 0)
    });
    results.into_iter().collect::<Result<Vec<_>, _>>().unwrap();
}
