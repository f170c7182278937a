//! When a program registers, loads HIP and starts HSA in another order than usual.

use super::{Rig, number, program, text, told};
use std::path::{Path, PathBuf};

/// The library that the programs are linked to.
fn library(program: &Path) -> PathBuf {
    program.ancestors().nth(2).unwrap().join("lib/libroctracer64.so.4")
}

/// What the program printed when it ran with this `HSA_TOOLS_LIB`.
fn run(
    rig: &Rig,
    place: &str,
    tools: Option<String>,
    words: &[&str],
) -> std::collections::BTreeMap<String, Vec<Vec<String>>> {
    let place = Rig::place(place);
    let mut command = rig.command(&place, &[], words);
    if let Some(tools) = tools {
        command.env("HSA_TOOLS_LIB", tools);
    }
    told(&Rig::ended(&mut command))
}

#[test]
fn streams_with_callbacks_go_on_while_traced() {
    let Some((rig, program)) = program("stream_callback") else {
        return;
    };
    let program = program.to_str().unwrap();
    for what in ["callback", "callbacks", "records", "work"] {
        for late in [false, true] {
            let words: Vec<_> = [program, what].into_iter().chain(late.then_some("late")).collect();
            let told = run(rig, &format!("drop-in-stream-{what}-{late}"), None, &words);
            let expected = if late { 9 } else { 6 };
            assert_eq!(
                told["came"],
                [[expected.to_string(), "of".into(), expected.to_string()]],
                "{words:?}"
            );
            assert!(!told.contains_key("out"), "{words:?}");
            let traced = number(&told["traced"][0][0]);
            let recorded = number(&told["recorded"][0][0]);
            match what {
                "callback" => assert_eq!((traced, recorded), (2, 0), "{words:?}"),
                "callbacks" => assert!(traced > 2 * 12 && recorded == 0, "{words:?}: {traced}"),
                "records" => assert!(traced == 0 && recorded > 12, "{words:?}: {recorded}"),
                _ => assert!(traced == 0 && recorded >= 2 * expected / 3, "{words:?}: {recorded}"),
            }
        }
    }
}

#[test]
fn work_that_is_done_has_its_records_at_a_stop() {
    let Some((rig, program)) = program("stop") else {
        return;
    };
    let told = run(rig, "drop-in-stop", None, &[program.to_str().unwrap()]);
    assert_eq!(told["recorded"], [["100", "of", "100"]]);
}

#[test]
fn hsa_domains_work_with_the_tool_named_too() {
    let Some((rig, program)) = program("hsa_first") else {
        return;
    };
    let library = library(&program).to_str().unwrap().to_owned();
    let program = program.to_str().unwrap();
    for what in ["callbacks", "callback", "events", "records", "copies"] {
        let mut all = Vec::new();
        let tools = [None, Some(library.clone()), Some(format!("{library} {library}"))];
        for (number, tools) in tools.into_iter().enumerate() {
            let told = run(rig, &format!("drop-in-hsa-{what}-{number}"), tools, &[program, what]);
            all.push((told["came"].clone(), told["recorded"].clone()));
        }
        let (came, recorded) = (number(&all[0].0[0][0]), number(&all[0].1[0][0]));
        match what {
            "copies" => assert_eq!((came, recorded), (0, 3)),
            "records" => assert!(came == 0 && recorded > 20, "{recorded}"),
            _ => assert!(came > 2 && recorded == 0, "{what}: {came}"),
        }
        if matches!(what, "copies" | "callback" | "events") {
            assert!(all.iter().all(|one| *one == all[0]), "{what}: {all:?}");
        }
    }
}

#[test]
fn hip_loaded_later_is_traced() {
    let Some((rig, program)) = program("late") else {
        return;
    };
    let major = match crate::kit::rig::release().as_deref() {
        Some(release) => release.split('.').next().unwrap().to_owned(),
        None => "5".to_owned(),
    };
    let hip = format!("libamdhip64.so.{major}");
    let told = run(rig, "drop-in-late", None, &[program.to_str().unwrap(), &hip]);
    assert_eq!(told["before"][0][..2], ["0", "108"]);
    assert_eq!(told["before"][0][2..], ["0", "hipMalloc"]);
    assert_eq!(told["none"][0], ["-3", "-"]);
    assert_eq!(told["after"][0], ["0", "108", "hipMalloc"]);
    assert_eq!(number(&told["hip"][0][0]), 2 * 20);
    assert!(number(&told["hsa"][0][0]) > 100);
    assert!(number(&told["events"][0][0]) > 10);
}

#[test]
fn a_tool_gets_events_from_its_on_load() {
    let Some((rig, tool)) = program("libevent_tool.so") else {
        return;
    };
    let place = Rig::place("drop-in-event-tool");
    let mut command = rig.command(&place, &[], &["matrix_transpose"]);
    // From HSA 6.1 on the library does not look for the tables in the run-time's data: HSA has to load it before the tool.
    let is_found = matches!(crate::kit::rig::release().as_deref(), None | Some("5.7.1"));
    let tools = if is_found {
        tool.clone().into_os_string()
    } else {
        format!("{} {}", library(&tool).display(), tool.display()).into()
    };
    let output = Rig::ended(command.env("HSA_TOOLS_LIB", tools));
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}{}", text(&output.stderr));
    let count = |name: &str| {
        let line = printed
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        number(line.unwrap_or_else(|| panic!("no {name} in {printed}")))
    };
    assert_eq!(count("status"), 0);
    for event in ["allocate", "device", "codeobj"] {
        assert!(count(event) > 0, "{event}: {printed}");
    }
}
