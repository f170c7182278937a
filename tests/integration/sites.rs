//! Call paths, from the program to the files: what roctop says of each call is what the program noted of it.

mod graphs;
mod python;
mod pytorch;

use crate::kit::records::{parquet_number, parquet_rows, parquet_text};
use crate::kit::rig::{Rig, rig};
use crate::real_run_time::sites::has_canary;
use roctop::item::{ApiCall, Item, ProcessId};
use roctop::model::sites::{PathId, Sites};
use roctop::model::{Fresh, Options, Store};
use roctop::recording::Recording;
use roctop_trace::site::SiteFact;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a recording says of calls with a site, by thread and in order.
struct Read {
    calls: BTreeMap<u32, Vec<(ProcessId, ApiCall)>>,
    sites: Sites,
    facts: Vec<SiteFact>,
}

fn read(recording: &Path) -> Read {
    let (mut store, mut calls, mut threads) = (Store::new(Options::default()), Vec::new(), HashMap::new());
    let mut facts = Vec::new();
    let mut take = |item: &Item| {
        match item {
            Item::Api(call) if call.site.is_known() => calls.push(*call),
            Item::Thread(thread) => drop(threads.insert(thread.id, (thread.process, thread.tid))),
            Item::Site(_, fact) => facts.push(fact.clone()),
            _ => {}
        }
        store.apply(item);
    };
    let recording = Recording::open(recording).unwrap();
    recording.items(&mut |items| items.iter().for_each(&mut take)).unwrap();
    let mut by_thread: BTreeMap<u32, Vec<_>> = BTreeMap::new();
    calls.sort_by_key(|call| call.span.begin);
    for call in calls {
        let (process, tid) = threads[&call.thread];
        by_thread.entry(tid).or_default().push((process, call));
    }
    let mut sites = Sites::clone(&store.snapshot(Fresh::All).sites);
    roctop::sites::name(&mut sites);
    Read {
        calls: by_thread,
        sites,
        facts,
    }
}

/// Records the program whose calls are noted: its recording, and the noted path of each call by thread.
fn recorded(name: &str, options: &[&str]) -> Option<(PathBuf, BTreeMap<u32, Vec<u64>>)> {
    let place = Rig::place(name);
    let recording = place.join("rec");
    let mut all = vec!["record", "-o", recording.to_str().unwrap()];
    all.extend(options);
    let mut command = rig()?.command(&place, &all, &["sites", "40", "3"]);
    let output = Rig::ended(command.env("APP_SITES", place.join("paths")));
    assert!(output.status.success(), "{output:?}");
    let mut noted: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for line in std::fs::read_to_string(place.join("paths")).unwrap().lines() {
        let (thread, path) = line.split_once(' ').unwrap();
        let paths = noted.entry(thread.parse().unwrap()).or_default();
        paths.push(path.parse().unwrap());
    }
    Some((recording, noted))
}

#[test]
fn calls_have_the_call_path_that_the_program_noted() {
    let Some((recording, noted)) = recorded("sites-recorded", &[]) else {
        return;
    };
    let read = read(&recording);
    let (mut all, mut unknown, mut ambiguous) = (0u64, 0u64, 0u64);
    // What is written beside the noted path: the functions, so that equal paths in different words are equal.
    let mut noted_of: HashMap<PathId, HashMap<u64, u64>> = HashMap::new();
    for (thread, noted) in &noted {
        let calls = &read.calls[thread];
        assert_eq!(calls.len(), noted.len(), "thread {thread}");
        for ((process, call), path) in calls.iter().zip(noted) {
            all += 1;
            match read.sites.path_of(*process, call.site) {
                None => unknown += 1,
                Some(id) if read.sites.is_ambiguous(id) => ambiguous += 1,
                Some(id) => *noted_of.entry(id).or_default().entry(*path).or_default() += 1,
            }
        }
    }
    let others = |paths: &HashMap<u64, u64>| paths.values().sum::<u64>() - paths.values().max().unwrap_or(&0);
    let wrong: u64 = noted_of.values().map(others).sum();
    println!(
        "sites: {all} calls, {} call paths, {wrong} wrong, {unknown} unknown, {ambiguous} ambiguous",
        noted_of.len()
    );
    for (id, paths) in noted_of.iter().filter(|(_, paths)| paths.len() > 1) {
        println!("{paths:?}: {}", read.sites.functions_text(*id).replace('\n', " < "));
    }
    assert!(all > 15_000 && noted_of.len() > 150);
    assert!(
        (wrong + unknown) * 1000 <= all,
        "{wrong} wrong, {unknown} unknown of {all}"
    );
    let innermost = |id: &PathId| read.sites.label(*id).to_owned();
    let launches = noted_of
        .keys()
        .map(innermost)
        .filter(|label| label.contains("launch()"));
    assert!(launches.count() > 50, "the launching function has a name");
}

#[test]
fn a_library_at_the_address_of_another_has_its_own_call_paths() {
    let Some(rig) = rig().filter(|rig| rig.is_oldest()) else {
        return;
    };
    let place = Rig::place("sites-replaced");
    let recording = place.join("rec");
    let words = ["replaced", "liblaunch.so", "libpass_a.so", "libpass_b.so"].map(|name| rig.app(name));
    let mut words = words.map(|path| path.to_str().unwrap().to_owned());
    words[0] = "replaced".into();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let options = ["record", "-o", recording.to_str().unwrap()];
    let output = Rig::ended(&mut rig.command(&place, &options, &words));
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let noted: Vec<(&str, &str)> = printed.lines().filter_map(|line| line.split_once(' ')).collect();
    let is_replaced = |pair: &[(&str, &str)]| pair[0].0 != pair[1].0 && pair[0].1 == pair[1].1;
    assert!(noted.windows(2).any(is_replaced), "{noted:?}");
    let read = read(&recording);
    let functions = |(process, call): &(ProcessId, ApiCall)| {
        let path = read.sites.path_of(*process, call.site)?;
        Some(read.sites.functions_text(path))
    };
    let paths = read.calls.values().flatten().filter_map(functions);
    let launched: Vec<&str> = paths.filter(|path| path.contains("launch_kernel")).collect();
    assert_eq!(launched.len(), 3 * noted.len());
    for (path, (letter, _)) in launched.iter().zip(noted.iter().flat_map(|one| [*one; 3])) {
        assert!(path.contains(&format!("pass_{letter}")), "{letter}: {path}");
    }
}

#[test]
fn names_are_in_a_recording_only_where_they_are_wanted() {
    let Some((without, _)) = recorded("sites-unnamed", &[]) else {
        return;
    };
    let Some((with, _)) = recorded("sites-named", &["--symbols"]) else {
        return;
    };
    let names = |facts: &[SiteFact]| {
        let is_name = |fact: &&SiteFact| matches!(fact, SiteFact::Names { lines, .. } if !lines.is_empty());
        facts.iter().filter(is_name).count()
    };
    assert_eq!(names(&read(&without).facts), 0);
    let named = read(&with);
    assert!(names(&named.facts) > 50);
    let is_main = |fact: &SiteFact| matches!(fact, SiteFact::Names { lines, .. } if lines.iter().any(|line| line.function == "main"));
    assert!(named.facts.iter().any(is_main));
}

#[test]
fn without_sites_no_call_has_one_and_no_stack_is_copied() {
    let place = Rig::place("sites-off");
    let recording = place.join("rec");
    let options = ["record", "-o", recording.to_str().unwrap(), "--sites", "off"];
    let Some(rig) = rig() else { return };
    let mut command = rig.command(&place, &options, &["sites", "5", "1"]);
    let output = Rig::ended(command.env("APP_SITES", place.join("paths")));
    assert!(output.status.success(), "{output:?}");
    let read = read(&recording);
    assert!(read.calls.is_empty() && read.facts.is_empty());
}

#[test]
fn files_for_other_tools_have_call_paths() {
    let Some((recording, _)) = recorded("sites-exported", &[]) else {
        return;
    };
    let to = recording.with_file_name("out");
    assert!(all_files(&recording).len() > 2);
    let leaks = |place: &Path| {
        let files = all_files(place).into_iter();
        let with: Vec<PathBuf> = files.filter(|path| has_canary(&std::fs::read(path).unwrap())).collect();
        with
    };
    assert_eq!(
        leaks(&recording),
        Vec::<PathBuf>::new(),
        "bytes of a stack in the recording"
    );
    // Blocks of a recording may be compressed.
    let facts = format!("{:?}", read(&recording).facts);
    assert!(facts.len() > 1_000 && !has_canary(facts.as_bytes()));
    let mut export = Command::new(env!("CARGO_BIN_EXE_roctop"));
    export.args([
        "export",
        "--format",
        "collapsed,pftrace,parquet,pprof,csv,json,rocpd,kineto",
        "-d",
    ]);
    let output = Rig::ended(export.arg(&to).arg(&recording));
    assert!(output.status.success(), "{output:?}");
    let files: Vec<PathBuf> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(PathBuf::from)
        .collect();
    let file = |ending: &str| {
        let name = files.iter().find(|path| path.to_string_lossy().ends_with(ending));
        std::fs::read(name.unwrap_or_else(|| panic!("no {ending} in {files:?}"))).unwrap()
    };
    let stacks = String::from_utf8(file("sites.collapsed.txt")).unwrap();
    let by_two_lines = stacks
        .lines()
        .find(|line| line.contains("two_lines()") && line.contains("launch()"));
    let line = by_two_lines.unwrap_or_else(|| panic!("{stacks}"));
    let at = |name: &str| line.find(name).unwrap();
    assert!(at("two_lines()") < at("launch()"), "outermost first: {line}");
    assert!(file("sites.pb.gz").starts_with(&[0x1f, 0x8b]));
    let trace = file(".pftrace");
    let has = |text: &[u8]| trace.windows(text.len()).any(|window| window == text);
    assert!(has(b"launch()"), "slices have their site");
    assert_eq!(leaks(&to), Vec::<PathBuf>::new(), "bytes of a stack in an export");
    // A launch has the site of its kernel.
    let sites = |kind: &str| -> BTreeMap<u64, String> {
        let rows = parquet_rows(&to, kind);
        let rows = rows.iter().map(|row| {
            (
                parquet_number(row, "correlation_id"),
                parquet_text(row, "site").to_owned(),
            )
        });
        rows.collect()
    };
    let (calls, kernels) = (sites("hip_api"), sites("kernel_dispatch"));
    let known = kernels.iter().filter(|(_, site)| !site.is_empty());
    let known: Vec<_> = known.collect();
    assert!(!known.is_empty() && known.iter().all(|(id, site)| calls.get(id) == Some(site)));
    assert!(
        sites("memory_allocation")
            .values()
            .any(|site| site.contains("allocate"))
    );
}

#[test]
fn allocations_pass_a_filter_on_sites() {
    let Some((recording, _)) = recorded("sites-allocated", &[]) else {
        return;
    };
    let count = |name: &str, filter: &[&str]| {
        let to = recording.with_file_name(name);
        let mut export = Command::new(env!("CARGO_BIN_EXE_roctop"));
        export.args(["export", "--format", "csv", "-o", "t", "-d"]).arg(&to);
        let output = Rig::ended(export.arg(&recording).args(filter));
        assert!(output.status.success(), "{output:?}");
        let file = std::fs::read_to_string(to.join("t_memory_allocation_trace.csv"));
        file.map_or(0, |text| text.lines().count() - 1)
    };
    let all = count("all", &[]);
    // The run-time's own allocations have no site.
    let without = count("without", &["--filter", "site~no_such_function"]);
    let allocated = count("allocated", &["--filter", "site~allocate"]);
    let outside = count("outside", &["--filter", "!(site~allocate)"]);
    assert!(
        without < outside && outside < allocated && allocated < all,
        "{without} {outside} {allocated} {all}"
    );
    assert_eq!(allocated + outside, all + without);
}

/// All files below a directory.
fn all_files(place: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(place).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            found.extend(all_files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

#[test]
fn answers_name_the_lines_that_launch() {
    let Some((recording, noted)) = recorded("sites-asked", &[]) else {
        return;
    };
    let mut ask = Command::new(env!("CARGO_BIN_EXE_roctop"));
    ask.arg("ask")
        .arg(&recording)
        .args(["top sites limit 1000", "--format", "json"]);
    let output = Rig::ended(&mut ask);
    assert!(output.status.success(), "{output:?}");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = answer["rows"].as_array().unwrap();
    let sum = |name: &str| -> u64 {
        let values = rows.iter().map(|row| row["values"][name].as_u64().unwrap());
        values.sum()
    };
    let all: usize = noted.values().map(Vec::len).sum();
    let counted = sum("Launches") + sum("Copies");
    assert!(counted > 10_000 && counted <= all as u64, "{counted} of {all}");
}
