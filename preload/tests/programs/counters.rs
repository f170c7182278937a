//! Hardware counters through the stand-in for rocprofiler-sdk, in the releases whose structures differ.

use crate::place::{TestDir, out};
use crate::ring::Ring;
use roctop_ring::record::{Body, Counter, CounterValue, Dispatch, counter_flag, counter_source, flag, status};
use roctop_ring::session::wanted;
use std::path::PathBuf;
use std::process::Output;

/// The releases whose structures differ.
const RELEASES: [u32; 3] = [400, 600, 10_000];

struct Sdk {
    place: TestDir,
    library: PathBuf,
    program: PathBuf,
}

impl Sdk {
    fn new(version: u32, more: &[&str]) -> Option<Self> {
        let place = TestDir::new()?;
        let define = format!("-DSDK_VERSION={version}");
        let mut arguments = vec!["-shared", "-fPIC", "-ldl", define.as_str()];
        arguments.extend(more);
        let library = place.compile("stand_in_sdk", "librocprofiler-sdk.so", &arguments);
        let program = place.compile("counted", "counted", &["-ldl"]);
        Some(Self {
            place,
            library,
            program,
        })
    }

    fn run(&self, request: &str, variables: &[(&str, &str)], words: &[&str]) -> Output {
        let mut command = self.place.traced(&self.program);
        command
            .env("ROCTOP_SDK", &self.library)
            .env("ROCTOP_COUNTERS", request)
            .envs(variables.iter().copied())
            .args(words);
        command.output().unwrap()
    }

    fn ring(&self) -> Ring {
        let mut rings = self.place.rings();
        assert_eq!(rings.len(), 1, "one ring");
        rings.remove(0)
    }
}

fn text(ring: &Ring, id: u32) -> String {
    ring.strings.get(&id).cloned().unwrap_or_default()
}

fn counters(ring: &Ring) -> Vec<Counter> {
    let bodies = ring.facts.iter();
    bodies
        .filter_map(|body| {
            if let Body::Counter(found) = body {
                Some(*found)
            } else {
                None
            }
        })
        .collect()
}

fn said(ring: &Ring, code: u32) -> Vec<String> {
    let bodies = ring.facts.iter();
    bodies
        .filter_map(|body| match body {
            Body::Status(found) if found.code == code => Some(text(ring, found.text)),
            _ => None,
        })
        .collect()
}

fn dispatches(ring: &Ring) -> Vec<(u8, Dispatch)> {
    let bodies = ring.records.iter().zip(&ring.flags);
    bodies
        .filter_map(|((_, _, body), flags)| match body {
            Body::Dispatch(found) => Some((*flags, *found)),
            _ => None,
        })
        .collect()
}

fn values(ring: &Ring) -> Vec<CounterValue> {
    let bodies = ring.records.iter();
    bodies
        .filter_map(|(_, _, body)| {
            if let Body::CounterValue(found) = body {
                Some(*found)
            } else {
                None
            }
        })
        .collect()
}

#[test]
fn each_dispatch_is_counted_exactly_on_every_release() {
    for release in RELEASES {
        let Some(sdk) = Sdk::new(release, &[]) else { return };
        let request = "mode=dispatch;pmc=SQ_WAVES GRBM_COUNT";
        let result = sdk.run(request, &[], &["load", "scale", "plain", "scale"]);
        assert_eq!(out(&result), "hip 0\nhsa 0\nscale 1\nplain 1\nscale 1\n", "{release}");
        let ring = sdk.ring();
        let counters = counters(&ring);
        let names: Vec<String> = counters.iter().map(|one| text(&ring, one.name)).collect();
        assert_eq!(names, ["SQ_WAVES", "GRBM_COUNT"], "{release}");
        assert_eq!(counters.iter().map(|one| one.pass).collect::<Vec<_>>(), [1, 1]);
        let dimensions = text(&ring, counters[0].dimensions);
        assert_eq!(dimensions, "DIMENSION_INSTANCE[0:0] DIMENSION_SHADER_ENGINE[0:3]");
        let dispatches = dispatches(&ring);
        assert_eq!(dispatches.len(), 3, "{release}");
        for (flags, dispatch) in &dispatches {
            let untimed = release < 500;
            assert_eq!(flags & flag::UNTIMED != 0, untimed, "{release}");
            assert!(untimed || dispatch.end - dispatch.begin == 5000);
            assert_eq!((dispatch.source, dispatch.workgroup_x), (3, 256));
        }
        let values = values(&ring);
        let waves = |dispatch: u64| {
            let found = values
                .iter()
                .find(|one| (one.dispatch_id, one.counter) == (dispatch, 0));
            f64::from_bits(found.expect("a value").value) as u64
        };
        assert_eq!([1, 2, 3].map(waves), [1024, 2, 1024], "{release}");
        assert_eq!(values.len(), 6, "{release}");
        assert!(values.iter().all(|one| one.source == counter_source::DISPATCH));
        assert!(
            said(&ring, status::BACKEND)
                .iter()
                .any(|text| text.contains("SERIALIZED"))
        );
        assert_eq!(said(&ring, status::UNAVAILABLE), Vec::<String>::new());
    }
}

#[test]
fn kernels_and_iterations_choose_dispatches() {
    let Some(sdk) = Sdk::new(10_000, &[]) else { return };
    let request = "mode=dispatch;pmc=GRBM_COUNT;kernels=scale;iterations=2-3";
    let result = sdk.run(request, &[], &["load", "scale", "plain", "scale", "scale", "scale"]);
    assert!(out(&result).ends_with("scale 0\nplain 0\nscale 1\nscale 1\nscale 0\n"));
    let ring = sdk.ring();
    assert_eq!(values(&ring).len(), 2);
    // The other dispatches ran too, and are recorded with their times.
    let dispatches = dispatches(&ring);
    assert_eq!(dispatches.len(), 5);
    assert!(
        dispatches
            .iter()
            .all(|(flags, one)| *flags & flag::UNTIMED == 0 && one.end - one.begin == 5000)
    );
}

#[test]
fn what_does_not_fit_goes_into_another_pass() {
    let Some(sdk) = Sdk::new(10_000, &[]) else { return };
    let request = "mode=dispatch;pmc=SQ_WAVES GRBM_COUNT TCC_HIT TCC_HIT[1] L2CacheHit;pass=2";
    sdk.run(request, &[], &["load", "scale"]);
    let ring = sdk.ring();
    let plan: Vec<(String, u16)> = counters(&ring)
        .iter()
        .map(|one| (text(&ring, one.name), one.pass))
        .collect();
    let expected = [
        ("SQ_WAVES", 1),
        ("GRBM_COUNT", 1),
        ("TCC_HIT", 2),
        ("TCC_HIT[1]", 2),
        ("L2CacheHit", 2),
    ];
    assert_eq!(plan, expected.map(|(name, pass)| (name.to_owned(), pass)));
    let values: Vec<(u32, u64)> = values(&ring)
        .iter()
        .map(|one| (one.counter, f64::from_bits(one.value) as u64))
        .collect();
    let notes = said(&ring, status::NOTE);
    assert!(
        notes.iter().any(|text| text.contains("2 of them do not fit")),
        "{notes:?}"
    );
    // All 16 instances, the second of them, and the derived one.
    assert_eq!(values, [(2, 136), (3, 2), (4, 75)]);
}

#[test]
fn counters_are_listed_without_a_run_time() {
    for release in RELEASES {
        let Some(sdk) = Sdk::new(release, &[]) else { return };
        // No run-time, and no program that asks: the library is asked when the collector is loaded.
        let mut command = sdk.place.traced(std::path::Path::new("/bin/true"));
        command
            .env("ROCTOP_SDK", &sdk.library)
            .env("ROCTOP_COUNTERS", "mode=list");
        assert!(command.status().unwrap().success());
        let ring = sdk.ring();
        let counters = counters(&ring);
        let names: Vec<String> = counters.iter().map(|one| text(&ring, one.name)).collect();
        assert_eq!(names, ["SQ_WAVES", "GRBM_COUNT", "TCC_HIT", "L2CacheHit"], "{release}");
        assert_eq!(text(&ring, counters[0].block), "SQ");
        assert_eq!(counters[3].flags, counter_flag::DERIVED);
        assert!(text(&ring, counters[3].expression).starts_with("100*reduce("));
        assert!(counters.iter().all(|one| one.pass == 0));
    }
}

#[test]
fn whole_agents_are_read_again_and_again() {
    let Some(sdk) = Sdk::new(10_000, &[]) else { return };
    sdk.run("mode=device;pmc=SQ_WAVES;interval=20000", &[], &["wait"]);
    let ring = sdk.ring();
    let values = values(&ring);
    assert!(values.len() >= 3, "{} samples", values.len());
    for pair in values.windows(2) {
        let grown = f64::from_bits(pair[1].value) - f64::from_bits(pair[0].value);
        assert_eq!(grown as u64, 256);
        assert!(pair[1].time > pair[0].time);
    }
    assert!(values.iter().all(|one| one.source == counter_source::DEVICE));
}

#[test]
fn counters_rest_and_go_on_while_no_dispatch_is_missing() {
    for request in ["mode=dispatch;pmc=SQ_WAVES", "mode=dispatch;pmc=SQ_WAVES;kernels=scale"] {
        let Some(sdk) = Sdk::new(10_000, &[]) else { return };
        sdk.place.want(wanted::USUAL);
        let words = ["load", "scale", "rest", "scale", "plain", "scale", "count", "scale"];
        let result = sdk.run(request, &[], &words);
        assert!(
            out(&result).ends_with("scale 1\nscale 0\nplain 0\nscale 0\nscale 1\n"),
            "{request}: {}",
            out(&result)
        );
        let ring = sdk.ring();
        let counted: Vec<u64> = values(&ring).iter().map(|one| one.dispatch_id).collect();
        assert_eq!(counted, [1, 5], "{request}");
        let all: Vec<u64> = dispatches(&ring).iter().map(|one| one.1.dispatch_id).collect();
        assert_eq!(all, [1, 2, 3, 4, 5], "{request}");
        assert!(dispatches(&ring).iter().all(|(flags, _)| flags & flag::UNTIMED == 0));
        let count = "counters of dispatches count";
        assert_eq!(said(&ring, status::COUNTING), [count, count]);
        assert_eq!(said(&ring, status::RESTING).len(), 1);
        assert_eq!(said(&ring, status::UNAVAILABLE), Vec::<String>::new());
    }
}

#[test]
fn before_1_0_counters_cannot_rest_and_go_on_counting() {
    let Some(sdk) = Sdk::new(600, &[]) else { return };
    sdk.place.want(wanted::USUAL);
    let words = ["load", "scale", "rest", "scale"];
    let result = sdk.run("mode=dispatch;pmc=SQ_WAVES", &[], &words);
    assert!(out(&result).ends_with("scale 1\nscale 1\n"));
    let ring = sdk.ring();
    assert_eq!(values(&ring).len(), 2);
    assert_eq!(said(&ring, status::COUNTING), Vec::<String>::new());
    assert_eq!(said(&ring, status::RESTING), Vec::<String>::new());
}

#[test]
fn whole_agents_rest_and_go_on() {
    let Some(sdk) = Sdk::new(10_000, &[]) else { return };
    sdk.place.want(wanted::USUAL);
    let words = ["wait", "rest", "mark", "wait", "mark", "count"];
    sdk.run("mode=device;pmc=SQ_WAVES;interval=20000", &[], &words);
    let ring = sdk.ring();
    let marks: Vec<u64> = ring
        .records
        .iter()
        .filter_map(|(_, _, body)| match body {
            Body::Mark(mark) => Some(mark.start),
            _ => None,
        })
        .collect();
    let [from, until] = marks[..] else { panic!("{marks:?}") };
    let values = values(&ring);
    assert!(
        values.iter().all(|one| one.time < from || one.time > until),
        "they rest"
    );
    let again: Vec<_> = values.iter().filter(|one| one.time > until).collect();
    assert!(again.len() >= 2, "and go on");
    assert_eq!(said(&ring, status::COUNTING).len(), 2);
    assert_eq!(said(&ring, status::RESTING).len(), 1);
}

#[test]
fn every_failure_is_reported_with_its_reason() {
    let Some(sdk) = Sdk::new(10_000, &[]) else { return };
    let reason = |request: &str, variables: &[(&str, &str)], words: &[&str]| {
        sdk.run(request, variables, words);
        let ring = sdk.ring();
        std::fs::remove_dir_all(sdk.place.session()).unwrap();
        std::fs::create_dir(sdk.place.session()).unwrap();
        assert!(values(&ring).is_empty());
        said(&ring, status::UNAVAILABLE).join("; ")
    };
    let count = "mode=dispatch;pmc=SQ_WAVES";
    let all = &["load", "scale"];
    assert!(reason(count, &[("STAND_IN_DENY", "1")], all).contains("Permission denied: this user may not count"));
    assert!(reason("mode=dispatch;pmc=NONSENSE", &[], all).contains("NONSENSE is not known on GPU of node 1 (gfx906)"));
    assert!(reason("mode=dispatch;pmc=TCC_HIT[99]", &[], all).contains("no instance 99"));
    assert!(reason(count, &[("STAND_IN_VERSION", "300")], all).contains("rocprofiler-sdk 0.3; this release"));
    assert!(reason(count, &[("STAND_IN_VERSION", "20000")], all).contains("rocprofiler-sdk 2.0; this release"));
    assert!(reason(count, &[("ROCTOP_SDK", "/nonexistent.so")], all).contains("was not found (/nonexistent.so)"));
}

#[test]
fn a_record_of_an_unknown_size_is_counted_and_passed_over() {
    let Some(sdk) = Sdk::new(10_000, &["-DLONGER"]) else {
        return;
    };
    sdk.run("mode=dispatch;pmc=SQ_WAVES", &[], &["load", "scale", "plain"]);
    let ring = sdk.ring();
    assert!(values(&ring).is_empty() && dispatches(&ring).is_empty());
    let notes = said(&ring, status::NOTE);
    assert!(
        notes
            .iter()
            .any(|text| text.contains("dispatches of an unknown size (200 bytes)")),
        "{notes:?}"
    );
}

#[test]
fn nobody_is_disturbed_when_no_counters_are_asked_for() {
    let Some(sdk) = Sdk::new(10_000, &[]) else { return };
    let result = sdk.place.traced(&sdk.program).output().unwrap();
    // The collector wraps HIP's table itself; what stands for the one of HSA is none.
    assert_eq!(out(&result), "hip 0\nhsa 1\n");
    assert!(sdk.place.rings().is_empty());
}
