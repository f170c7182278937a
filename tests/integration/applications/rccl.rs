//! The real RCCL of 7.2.4 with two ranks: kernels are timed and not executed, so no rank waits in one.

use super::{Application, check, suite_of};
use crate::kit::ranks::matched;
use crate::kit::rig::Rig;
use roctop::item::CollectiveOperation as Operation;
use roctop::model::collectives::MACHINE_ERROR;
use std::path::Path;
use std::process::Command;

/// A call, as the program noted it.
#[derive(Debug)]
struct Call {
    communicator: u32,
    operation: String,
    count: u64,
    begin: u64,
    end: u64,
}

/// The calls of a rank, in order.
fn calls(place: &Path, rank: u32) -> Vec<Call> {
    let text = std::fs::read_to_string(place.join(format!("calls.{rank}"))).unwrap();
    let call = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        Call {
            communicator: number(0) as u32,
            operation: words[1].to_owned(),
            count: number(2),
            begin: number(3),
            end: number(4),
        }
    };
    text.lines().map(call).collect()
}

#[test]
#[ignore = "large: .ci/matrix runs it"]
fn collectives_of_rccl_are_matched() {
    let Some(suite) = suite_of("7.2.4", "rccl") else { return };
    let suite = suite.on(&[("EMULATED_GPU_COUNT", "2"), ("EMULATED_GPU_TARGET", "gfx90a")]);
    let program = suite.file("rccl");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/applications/rccl.c");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O1", "-Wall", "-o"])
        .arg(&program)
        .arg(source)
        .arg("-ldl");
    assert!(compiler.status().unwrap().success());
    let program = program.to_str().unwrap();

    let place = Rig::place("rccl-collectives");
    let recording = place.join("rec");
    let options = ["record", "-o", recording.to_str().unwrap()];
    let output = Rig::ended(&mut suite.command(&place, &options, &[program]));
    assert!(output.status.success(), "{output:?}");
    let found = matched(&[&recording]);
    assert_eq!(found.values.problems, []);
    assert_eq!((found.values.unmatched, found.values.waiting.len()), (0, 0));
    let parts = found.done.iter().flat_map(|(collective, times)| {
        assert_eq!(collective.parts.len(), 2, "{collective:?}");
        assert!(times.by_kernel, "{collective:?}");
        let part = |part| (collective.key.communicator, part);
        collective.parts.iter().map(part)
    });
    let mut parts: Vec<_> = parts.collect();
    // Of an AllToAll, the messages inside it are not messages of the program.
    for rank in 0..2 {
        let all = calls(&place, rank);
        assert_eq!(all.len(), 19);
        for call in &all {
            // The second communicator has the ranks in the opposite order.
            let number = if call.communicator == 0 { rank } else { 1 - rank };
            let at = parts.iter().position(|(communicator, part)| {
                let name = match part.call.operation {
                    Operation::Receive => "Recv",
                    other => other.name(),
                };
                // Those of a group begin and end with the call that ends it.
                let is_inside = call.begin <= part.call.start + MACHINE_ERROR
                    && part
                        .returned
                        .is_some_and(|end| part.call.group != 0 || end <= call.end + MACHINE_ERROR);
                (*communicator, part.rank, name) == (call.communicator, number, &*call.operation) && is_inside
            });
            let at = at.unwrap_or_else(|| panic!("rank {rank}: {call:?} in {parts:?}"));
            assert_eq!(parts.remove(at).1.call.count, call.count);
        }
    }
    assert_eq!(parts, [], "calls that no rank made");

    let app = Application {
        name: "RCCL, 2 ranks, gfx90a",
        package: "librccl1",
        words: &[program],
        code: 0,
        lacks_times: false,
    };
    check(&suite, &app).unwrap();
}
