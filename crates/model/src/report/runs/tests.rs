use super::*;
use crate::report::runs::statistics::Random;
use roctop_trace::item::Code;

/// A run with these means of kernels, and a GPU.
fn run(kernels: &[(&str, f64)]) -> Sums {
    let mut sums = Sums {
        gpus: vec!["gfx90a".into()],
        ..Sums::default()
    };
    for (name, mean) in kernels {
        let row = Row {
            calls: 1000,
            timed: 1000,
            total: (mean * 1000.0) as u64,
            ..Row::default()
        };
        sums.rows.entry(Kind::Kernel).or_default().insert((*name).into(), row);
    }
    sums
}

fn side(means: &[f64]) -> Side {
    Side {
        runs: means.iter().map(|mean| run(&[("gemm", *mean)])).collect(),
        ..Side::default()
    }
}

const USUAL: [f64; 7] = [100e3, 101e3, 99e3, 100.5e3, 99.5e3, 100.2e3, 99.8e3];

#[test]
fn a_slower_kernel_is_named_with_its_change() {
    let slow: Vec<f64> = USUAL.iter().map(|mean| mean * 1.05).collect();
    let (before, mut after) = (side(&USUAL), side(&slow));
    let found = compare(&before, &after).unwrap();
    let row = found.slower().next().unwrap();
    let sentence = row.sentence().unwrap();
    assert!(
        sentence.starts_with("slower by 5.0 % (±") && sentence.ends_with("between runs"),
        "{sentence}"
    );
    let [low, high] = row.interval.unwrap();
    assert!(low < 0.05 && 0.05 < high, "{low} {high}");
    assert_eq!(compare(&before, &before).unwrap().slower().count(), 0);
    assert_eq!(
        compare(&after, &before).unwrap().rows[0].change.verdict,
        Verdict::Better
    );
    after.runs[0]
        .rows
        .entry(Kind::Kernel)
        .or_default()
        .insert("new".into(), Row::default());
    let words: Vec<Verdict> = compare(&before, &after)
        .unwrap()
        .rows
        .iter()
        .map(|row| row.change.verdict)
        .collect();
    assert_eq!(words, [Verdict::Worse, Verdict::New]);
}

#[test]
fn code_and_clock_are_named_beside_a_change() {
    let with = |mut side: Side, code: Code, clock: f64| {
        for run in &mut side.runs {
            run.clock = Some(clock);
            run.rows.get_mut(&Kind::Kernel).unwrap().get_mut("gemm").unwrap().code = Some(code);
        }
        side
    };
    let code = Code {
        vgpr: Some(483),
        hash: Some(1),
        ..Code::default()
    };
    let spilled = Code {
        vgpr: Some(512),
        ..code
    };
    let slow: Vec<f64> = USUAL.iter().map(|mean| mean * 1.1).collect();
    let before = with(side(&USUAL), code, 1700.0);
    let sentence = |code, clock| {
        let after = with(side(&slow), code, clock);
        compare(&before, &after).unwrap().rows[0].code.clone().unwrap()
    };
    assert_eq!(sentence(code, 1500.0), "same code, slower clock: 1700 → 1500 MHz");
    assert_eq!(sentence(code, 1701.0), "same code");
    assert_eq!(sentence(spilled, 1500.0), "code changed: VGPR 483 → 512");
}

#[test]
fn power_is_named_where_it_is_known() {
    let with = |power: f64| {
        let mut side = side(&USUAL);
        for run in &mut side.runs {
            run.power = Some(power);
        }
        side
    };
    let (before, after) = (with(200.0), with(150.0));
    let mut out = Vec::new();
    let found = compare(&before, &after).unwrap();
    write(Format::Table, [&before, &after], Ok(&found), None, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("power: 200 W before, 150 W after\n"), "{text}");
}

#[test]
fn another_placement_is_named_beside_what_is_slower() {
    let placed = |mut side: Side, words: &[&str]| {
        for (run, words) in side.runs.iter_mut().zip(words) {
            run.placement = vec![(*words).into()];
        }
        side
    };
    let slow: Vec<f64> = USUAL.iter().map(|mean| mean * 1.05).collect();
    let (near, far) = (
        ["CPUs 0 at NUMA node 0, GPU 0 at NUMA node 0"; 7],
        ["CPUs 9 at NUMA node 1, GPU 0 at NUMA node 0"; 7],
    );
    let text = |before: &Side, after: &Side, format| {
        let found = compare(before, after).unwrap();
        let mut out = Vec::new();
        write(format, [before, after], Ok(&found), None, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let before = placed(side(&USUAL), &near);
    let after = placed(side(&slow), &far);
    for format in [Format::Table, Format::Md] {
        let text = text(&before, &after, format);
        assert!(
            text.contains(&format!("placement differs: {} before, {} after", near[0], far[0])),
            "{text}"
        );
        assert_eq!(
            text.matches("the placement differs, which may be why").count(),
            1,
            "{text}"
        );
    }
    let json: serde_json::Value = serde_json::from_str(&text(&before, &after, Format::Json)).unwrap();
    assert_eq!(
        (&json["before"]["placement"], &json["after"]["placement"]),
        (&near[0].into(), &far[0].into())
    );
    assert!(text(&before, &after, Format::Junit).contains("the placement differs"));
    // Alike, and not slower.
    let same = text(&before, &placed(side(&slow), &near), Format::Table);
    assert!(
        same.contains(&format!("placement: {}\n", near[0])) && !same.contains("placement differs"),
        "{same}"
    );
    let well = text(&before, &placed(side(&USUAL), &far), Format::Table);
    assert!(
        well.contains("placement differs") && !well.contains("may be why"),
        "{well}"
    );
    // One run of them ran there before, too.
    let mut mixed = near;
    mixed[0] = far[0];
    let mixed = text(&placed(side(&USUAL), &mixed), &after, Format::Table);
    assert!(!mixed.contains("placement differs"), "{mixed}");
    // A baseline of an earlier release has none, and some runs were too short to be read.
    let old = text(&side(&USUAL), &placed(side(&slow), &near[..3]), Format::Table);
    assert!(
        old.contains(&format!(
            "placement: {} in 3 of 7 runs after, not known before",
            near[0]
        )),
        "{old}"
    );
}

#[test]
fn few_runs_and_another_gpu_have_no_verdict() {
    assert_eq!(
        compare(&side(&USUAL), &side(&USUAL[..4])).unwrap_err(),
        NoVerdict::TooFew { before: 7, after: 4 }
    );
    let mut other = side(&USUAL);
    for run in &mut other.runs {
        run.gpus = vec!["gfx1100".into()];
    }
    let text = compare(&side(&USUAL), &other).unwrap_err().to_string();
    assert_eq!(text, "the GPUs differ: gfx90a before, gfx1100 after");
    other.runs[0].gpus.clear();
    assert!(compare(&other, &other).is_err());
}

#[test]
fn a_baseline_comes_back_and_a_bad_one_is_refused() {
    let mut before = side(&USUAL);
    before.environment.put("ROCm", Some("7.2.4".into()));
    before.runs[0].placement = vec!["CPUs 0-3".into()];
    let mut text = Vec::new();
    baseline::write(&before, &mut text).unwrap();
    assert_eq!(baseline::read(&mut &*text).unwrap(), before);
    let text = String::from_utf8(text).unwrap();
    let error = |text: &str| baseline::read(&mut text.as_bytes()).unwrap_err().to_string();
    assert!(error(&text.replace("\"roctopci\":1", "\"roctopci\":2")).contains("version 2"));
    for wrong in [
        "",
        "{}",
        "[]",
        "\0",
        &text[..text.len() / 2],
        &text.replace("1000", "-1000"),
        &"[".repeat(1 << 20),
    ] {
        assert_eq!(error(wrong), "no baseline of 'roctop ci'");
    }
    // Fields of later releases are ignored.
    assert!(
        baseline::read(
            &mut text
                .replacen("{\"roctopci\"", "{\"later\":[1],\"roctopci\"", 1)
                .as_bytes()
        )
        .is_ok()
    );
}

#[test]
fn every_format_names_the_slower_row() {
    let slow: Vec<f64> = USUAL.iter().map(|mean| mean * 1.05).collect();
    let (before, after) = (side(&USUAL), side(&slow));
    let found = compare(&before, &after).unwrap();
    let written = |format, failed| {
        let mut out = Vec::new();
        write(format, [&before, &after], Ok(&found), failed, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert!(written(Format::Table, None).contains("slower by 5.0 %"));
    assert!(written(Format::Md, None).contains("| slower | kernel | `gemm` |"));
    let json: serde_json::Value = serde_json::from_str(&written(Format::Json, None)).unwrap();
    assert_eq!(
        (&json["is_worse"], &json["rows"][0]["verdict"]),
        (&true.into(), &"slower".into())
    );
    assert!(written(Format::Junit, None).contains("failures=\"1\""));
    assert!(written(Format::Junit, Some(&[])).contains("failures=\"0\""));
    let reasons = ["the program failed with exit code 1 < 2".to_owned()];
    for format in [Format::Junit, Format::Md] {
        let mut out = Vec::new();
        write(format, [&before, &after], Err(&reasons), None, &mut out).unwrap();
        assert!(String::from_utf8(out).unwrap().contains("exit code 1 &lt; 2"));
    }
}

/// How a program's runs vary.
struct Noisy {
    random: Random,
    made: u64,
}

impl Noisy {
    /// From 0 to 1.
    fn uniform(&mut self) -> f64 {
        (self.random.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let angle = std::f64::consts::TAU * self.uniform();
        (-2.0 * (1.0 - self.uniform()).ln()).sqrt() * angle.cos()
    }

    /// A run of twelve kernels: steady ones, noisy ones, one with outliers, one with two modes, one that drifts, and all
    /// slower together in some runs. The first takes longer by a factor.
    fn run(&mut self, factor: f64) -> Vec<f64> {
        self.made += 1;
        let disturbed = if self.uniform() < 0.05 { 1.2 } else { 1.0 };
        let drift = 1.0 + 0.02 * (self.made as f64 / 300.0).sin();
        let kernel = |at| {
            let own = match at {
                0..=5 => 1.0 + 0.01 * self.normal(),
                6..=8 => 1.0 + 0.05 * self.normal(),
                9 if self.uniform() < 0.15 => 1.5 + self.uniform() * 3.0,
                10 if self.uniform() < 0.5 => 1.27,
                11 => drift * (1.0 + 0.002 * self.normal()),
                _ => 1.0 + 0.003 * self.normal(),
            };
            let planted = if at == 0 { factor } else { 1.0 };
            100e3 * own * disturbed * planted
        };
        (0..12).map(kernel).collect()
    }

    /// The verdicts on the kernels of as many runs a side; in those after, the first takes longer by a factor.
    fn compared(&mut self, runs: usize, factor: f64) -> Vec<Verdict> {
        let mut side = |factor: f64| (0..runs).map(|_| self.run(factor)).collect::<Vec<_>>();
        let sides = [side(1.0), side(factor)];
        let row = |at: usize| {
            let values = |side: usize| sides[side].iter().map(|run| run[at]).collect();
            (Kind::Kernel, [values(0), values(1)])
        };
        let rows: Vec<RowValues> = (0..12).map(row).collect();
        verdicts(&rows, None).into_iter().map(|found| found.0).collect()
    }
}

impl Noisy {
    fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            made: 0,
        }
    }
}

/// Number of comparisons: `.ci/long` makes 4000, and 100 for each planted change.
fn comparisons() -> usize {
    let wanted = std::env::var("ROCTOP_COMPARISONS").ok();
    wanted.and_then(|count| count.parse().ok()).unwrap_or(1000)
}

#[test]
fn a_program_with_itself_alarms_in_one_per_cent_at_most() {
    let mut noisy = Noisy::new(54);
    let mut is_alarm = || noisy.compared(7, 1.0).iter().any(|verdict| *verdict != Verdict::Same);
    let all = comparisons();
    let alarms = (0..all).filter(|_| is_alarm()).count();
    println!("{alarms} alarms in {all} comparisons of 7 runs with 7");
    assert!(alarms * 100 <= all, "{alarms}");
}

#[test]
fn planted_changes_are_found() {
    let tries = comparisons().div_ceil(40);
    let mut found = Vec::new();
    for runs in [5, 7, 15] {
        for planted in [1.03, 1.05, 1.10] {
            let mut noisy = Noisy::new(55);
            let mut is_found = || noisy.compared(runs, planted)[0] == Verdict::Worse;
            let count = (0..tries).filter(|_| is_found()).count();
            println!(
                "{runs} runs a side, +{:.0} %: found in {count} of {tries}",
                (planted - 1.0) * 100.0
            );
            found.push(count * 100 / tries);
        }
    }
    // More runs and larger changes are found more often.
    assert!(found[8] >= 90 && found[5] >= 55, "{found:?}");
    assert!(found[0] <= found[6] && found[6] <= found[8], "{found:?}");
}

/// Recorded runs that comparisons are drawn from, in a baseline that `ROCTOP_CI_SAVED` names.
struct Drawn {
    side: Side,
    random: Random,
}

impl Drawn {
    /// `None`, with a line, if no file is named.
    fn new() -> Option<Self> {
        let Some(path) = std::env::var_os("ROCTOP_CI_SAVED") else {
            println!("skipped: ROCTOP_CI_SAVED names no runs");
            return None;
        };
        let side = baseline::read(&mut std::fs::File::open(path).unwrap()).unwrap();
        assert!(side.runs.len() >= 30, "{} runs", side.runs.len());
        let seed = std::env::var("ROCTOP_CI_SEED").ok();
        let seed = seed.map_or(54, |seed| seed.parse().unwrap());
        println!("seed {seed}, {} runs", side.runs.len());
        Some(Self {
            side,
            random: Random::new(seed),
        })
    }

    /// Draws two sides of as many runs, and changes those after.
    fn rows(&mut self, runs: usize, change: &dyn Fn(Kind, &str) -> f64) -> Vec<(String, RowValues)> {
        let mut order: Vec<usize> = (0..self.side.runs.len()).collect();
        for at in 0..2 * runs {
            let other = at + self.random.below(order.len() - at);
            order.swap(at, other);
        }
        let names = self.side.names().into_iter().filter(|row| row.0 != Kind::Api);
        let rows = names.filter_map(|(kind, name)| {
            let all = self.side.values(kind, name)?;
            let value = |at: &usize| all[*at];
            let before = order[..runs].iter().map(value).collect();
            let after = order[runs..2 * runs].iter().map(value);
            let after = after.map(|value| value * change(kind, name)).collect();
            Some((name.to_owned(), (kind, [before, after])))
        });
        rows.collect()
    }

    /// The rows of a comparison that are slower or faster.
    fn changed(&mut self, runs: usize, change: &dyn Fn(Kind, &str) -> f64) -> Vec<(Kind, String, Verdict)> {
        let (names, rows): (Vec<String>, Vec<RowValues>) = self.rows(runs, change).into_iter().unzip();
        let wall = rows.iter().find(|row| row.0 == Kind::Wall).map(|row| median(&row.1[0]));
        let found = verdicts(&rows, wall).into_iter().zip(rows.iter().zip(names));
        let changed = found.filter(|((verdict, _), _)| *verdict != Verdict::Same);
        changed
            .map(|((verdict, _), (row, name))| (row.0, name, verdict))
            .collect()
    }
}

#[test]
#[ignore = "needs recorded runs: .ci/long"]
fn recorded_runs_of_one_program_alarm_in_one_per_cent_at_most() {
    let Some(mut drawn) = Drawn::new() else { return };
    let mut by_row = BTreeMap::new();
    let all = 2000;
    let mut alarms = 0;
    for _ in 0..all {
        let changed = drawn.changed(7, &|_, _| 1.0);
        alarms += usize::from(!changed.is_empty());
        for (kind, name, _) in changed {
            *by_row.entry(format!("{} {name}", kind.word())).or_insert(0) += 1;
        }
    }
    println!("{by_row:?}");
    println!("{alarms} alarms in {all} comparisons of 7 recorded runs with 7");
    assert!(alarms * 100 <= all, "{alarms}");
}

/// Changes planted in recorded runs: the row's duration in each run after is multiplied, as if that of each record were.
#[test]
#[ignore = "needs recorded runs: .ci/long"]
fn changes_planted_in_recorded_runs_are_found() {
    let Some(mut drawn) = Drawn::new() else { return };
    println!("| planted in | runs a side | +3 % | +5 % | +10 % |\n| --- | --- | --- | --- | --- |");
    let rows = [
        (Kind::Kernel, "gemm"),
        (Kind::Copy, "H2D host→GPU0 r0"),
        (Kind::Range, "prepare"),
        (Kind::Rank, "rank 1"),
    ];
    let mut most = Vec::new();
    for (kind, name) in rows {
        assert!(drawn.side.values(kind, name).is_some(), "no {} {name}", kind.word());
        for runs in [5, 7, 15] {
            let mut found = [0; 3];
            for (count, factor) in found.iter_mut().zip([1.03, 1.05, 1.10]) {
                let plant = |of: Kind, row: &str| if (of, row) == (kind, name) { factor } else { 1.0 };
                let is_found =
                    |changed: Vec<(Kind, String, Verdict)>| changed.contains(&(kind, name.into(), Verdict::Worse));
                *count = (0..100).filter(|_| is_found(drawn.changed(runs, &plant))).count();
            }
            let [a, b, c] = found;
            println!("| {} `{name}` | {runs} | {a} | {b} | {c} |", kind.word());
            most.push(found);
        }
    }
    // Kernels and ranks are steady: the rule must not be blind.
    for steady in [most[2], most[11]] {
        assert!(steady.iter().all(|found| *found >= 90), "{most:?}");
    }
}
