//! What the filter does in each view: launches are counted again, and names relate.

use super::driven::{Driven, snapshot};
use roctop::item::{
    Agent, AgentId, AgentKind, ApiCall, Copy, Dispatch, Item, Kernel, KernelId, Marker, OperationId, ProcessId,
    QueueId, Span, Stream, StreamId, TextId, ThreadId, Transfer,
};
use roctop::model::snapshot::Loading;
use roctop::model::table::{Copied, Placement};
use roctop::model::tally::{Counting, State, Tally};
use roctop::model::{Fresh, Mode, Options, Snapshot, Store};
use roctop::ui::Effect;
use roctop::ui::key::Key;
use roctop_ring::record::{direction, engine};
use std::sync::Arc;

const MICROSECOND: u64 = 1_000;

/// A store with a kernel.
fn with_gemm(slices: usize) -> Store {
    let mut store = Store::new(Options {
        slices,
        ..Options::default()
    });
    store.apply(&Item::Kernel(Kernel {
        id: KernelId(0),
        name: "gemm".into(),
        mangled: "gemm".into(),
        ..Kernel::default()
    }));
    store
}

/// 1000 launches of 100 µs on stream 0 of GPU 0, and 10 of 2 ms on stream 1 of GPU 1; a long one and a short one are of each.
fn launches(slices: usize) -> Arc<Snapshot> {
    let mut store = with_gemm(slices);
    for number in 0..1010 {
        let is_long = number % 101 == 100;
        let begin = 1_000_000_000 + number * 10_000 * MICROSECOND;
        let nanos = if is_long { 2_000 } else { 100 } * MICROSECOND;
        store.apply(&Item::Dispatch(Dispatch {
            process: ProcessId(0),
            kernel: KernelId(0),
            agent: AgentId(u32::from(is_long)),
            stream: Some(StreamId(u32::from(is_long))),
            grid: [if is_long { 4096 } else { 64 }, 1, 1],
            span: Span {
                begin,
                end: begin + nanos,
            },
            ..Dispatch::default()
        }));
    }
    store.snapshot(Fresh::All)
}

/// The line of the first row of the kernels with a filter.
fn first_row(snap: &Arc<Snapshot>, filter: &str) -> String {
    let mut driven = Driven::new(snap.clone(), (200, 50));
    let screen = driven.typed(&format!("3/{filter}")).text();
    driven.key(Key::Enter);
    let line = screen
        .lines()
        .find(|line| line.contains("gemm") && !line.contains("filter"));
    let line = line.map_or_else(|| "no row".into(), ToString::to_string);
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn launches_that_pass_are_counted_again() {
    let all = launches(1_000_000);
    for (filter, numbers) in [
        ("gemm", "gemm 1,010 120 ms 100 "),
        ("dur>1ms", "gemm 10 20.0 ms 16.7 2.00 ms"),
        ("dur<1ms", "gemm 1,000 100 ms 83.3 100 µs"),
        ("gemm dur>1ms", "gemm 10 20.0 ms"),
        ("grid>1000", "gemm 10 20.0 ms"),
        ("dur>1ms | grid=64", "gemm 1,010 120 ms"),
        ("!(dur>1ms)", "gemm 1,000 100 ms"),
        ("dur>3ms", "no row"),
        ("grid=64 dur>1ms", "no row"),
    ] {
        let row = first_row(&all, filter);
        assert!(row.contains(numbers) && !row.contains('≈'), "{filter}: {row}");
    }
}

/// Three launches of 100 µs on each of a hundred streams.
fn many_streams(slices: usize) -> Arc<Snapshot> {
    let mut store = with_gemm(slices);
    for number in 0..100 {
        store.apply(&Item::Stream(Stream {
            id: StreamId(number),
            number,
            ..Stream::default()
        }));
    }
    for number in 0..300 {
        let begin = 1_000_000_000 + u64::from(number) * 1_000 * MICROSECOND;
        store.apply(&Item::Dispatch(Dispatch {
            kernel: KernelId(0),
            stream: Some(StreamId(number % 100)),
            span: Span {
                begin,
                end: begin + 100 * MICROSECOND,
            },
            ..Dispatch::default()
        }));
    }
    store.snapshot(Fresh::All)
}

#[test]
fn streams_beyond_those_counted_apart_are_filtered_too() {
    let all = many_streams(1_000_000);
    for (filter, numbers) in [
        ("stream=3", "gemm 3 300 µs"),
        ("stream=90", "gemm 3 300 µs"),
        ("stream<90", "gemm 270 27.0 ms"),
        ("stream=100", "no row"),
    ] {
        let row = first_row(&all, filter);
        assert!(row.contains(numbers) && !row.contains('≈'), "{filter}: {row}");
    }
    let row = first_row(&many_streams(128), "stream<90");
    assert!(row.contains("gemm ≈2"), "{row}");
}

#[test]
fn panes_of_a_kernel_say_what_they_are_of() {
    let all = launches(1_000_000);
    let panes = |filter: &str| {
        let screen = Driven::new(all.clone(), (200, 50)).typed(&format!("3/{filter}")).text();
        let places = screen
            .lines()
            .filter(|line| line.contains(" calls ") && line.contains(" total"));
        let counts = places.map(|line| {
            let before = line.split(" calls ").next().unwrap_or_default();
            before.split_whitespace().last().unwrap_or_default().to_owned()
        });
        (
            counts.collect::<Vec<_>>(),
            screen.contains("GPU time per second of all launches"),
        )
    };
    let all_counts = vec!["1,000".to_owned(), "10".to_owned()];
    assert_eq!(panes("gemm"), (all_counts, false));
    assert_eq!(panes("dur>1ms"), (vec!["10".into()], true));
    assert_eq!(panes("grid=64"), (vec!["1,000".into()], true));
}

#[test]
fn launches_that_are_no_longer_kept_are_estimated() {
    let few = launches(512);
    for (filter, numbers) in [("dur>1ms", "gemm ≈10 20"), ("dur<1ms", "gemm ≈1,000 10")] {
        let row = first_row(&few, filter);
        assert!(row.contains(numbers), "{filter}: {row}");
    }
    // In proportion to the launches that are kept.
    let row = first_row(&few, "grid>1000");
    assert!(row.contains("gemm ≈"), "{row}");
    assert!(!first_row(&few, "gemm").contains('≈'));
}

#[test]
fn what_was_counted_in_the_recording_is_exact() {
    let few = launches(512);
    let place = Placement {
        process: ProcessId(0),
        agent: AgentId(1),
        queue: QueueId(0),
        stream: Some(StreamId(1)),
    };
    let counted = |filter: &str, state| {
        let counting = Some(Arc::new(Counting {
            filter: filter.into(),
            state,
        }));
        Arc::new(Snapshot {
            counting,
            ..(*few).clone()
        })
    };
    let tally = || {
        let mut tally = Tally::default();
        (0..10).for_each(|_| tally.kernel(0, place, 2_000 * MICROSECOND));
        tally
    };
    let row = first_row(&counted("grid>1000", State::Done(tally())), "grid>1000");
    assert!(row.contains("gemm 10 20"), "{row}");
    // Neither numbers of another filter nor those of a part.
    let row = first_row(&counted("grid>999", State::Done(tally())), "grid>1000");
    assert!(row.contains("gemm ≈"), "{row}");
    let running = counted("grid>1000", State::Running(37));
    assert!(first_row(&running, "grid>1000").contains("gemm ≈"));
    let mut driven = Driven::new(running, (200, 50));
    let screen = driven.typed("3/grid>1000").text();
    assert!(screen.contains("(each launch, counting 37 %)"), "{screen}");
}

#[test]
fn a_recording_that_is_being_read_looks_so() {
    let snap = |loading| {
        let mut store = Store::new(Options {
            mode: Mode::Replay,
            ..Options::default()
        });
        store.set_loading(loading);
        store.snapshot(Fresh::All)
    };
    for size in [(80, 24), (200, 50)] {
        let text = |loading| Driven::new(snap(loading), size).text();
        let reading = text(Loading::Reading { done: 3, total: 8 });
        assert!(
            reading.contains("LOADING 37 %") && reading.contains("the recording is being read"),
            "{reading}"
        );
        let failed = text(Loading::Failed);
        assert!(failed.contains("NOT READ TO THE END"), "{failed}");
        let done = text(Loading::Done);
        assert!(
            done.contains("REPLAY") && done.contains("the recording has no process"),
            "{done}"
        );
    }
}

#[test]
fn names_relate_and_empty_no_other_view() {
    let training = snapshot("training", Mode::Live, 20_050);
    let screen = |keys: &str| {
        let mut driven = Driven::new(training.clone(), (120, 36));
        driven.typed(keys);
        driven.key(Key::Enter);
        driven.text()
    };
    // (filter, view, what is there, what is not)
    for (filter, view, there, not) in [
        ("Cijk", '3', "Cijk", "layer_norm"),
        ("Cijk", '5', "hipLaunchKernel", "hipMemcpyAsync"),
        ("Cijk", '5', "calls that launched them", "0 of"),
        ("Cijk", '8', "ranges over them", "0 of"),
        ("Cijk", '8', "forward", "0 of"),
        ("Cijk", '4', "copies beside them", "0 of"),
        ("Cijk", '7', "not used here", "match the filter"),
        ("Cijk dev=0", '7', "words hide nothing here", "match the filter"),
        ("Cijk", '7', "GPU1", "match the filter"),
        ("Cijk", '9', "4242", "0 of"),
        ("Cijk", 'A', "not used here", "0 of"),
        ("Cijk", 'M', "not used here", "0 of"),
        ("backward", '3', "in these ranges", "0 of"),
        ("hipMemcpyAsync", '4', "copies by these calls", "0 of"),
    ] {
        let screen = screen(&format!("{view}/{filter}"));
        assert!(screen.contains(there), "{filter} in {view}: no {there} on\n{screen}");
        assert!(!screen.contains(not), "{filter} in {view}: {not} is on\n{screen}");
    }
}

#[test]
fn calls_that_pass_are_counted_again() {
    let mut store = Store::new(Options::default());
    for number in 0..100 {
        let begin = 1_000_000_000 + number * 1_000 * MICROSECOND;
        let nanos = if number < 90 { 10 } else { 500 } * MICROSECOND;
        store.apply(&Item::Api(ApiCall {
            operation: OperationId(0),
            thread: ThreadId(0),
            correlation: number + 1,
            span: Span {
                begin,
                end: begin + nanos,
            },
            ..ApiCall::default()
        }));
    }
    let mut driven = Driven::new(store.snapshot(Fresh::All), (120, 36));
    let screen = driven.typed("5/dur>100us").text();
    let row = screen.lines().find(|line| line.contains("5.00 ms"));
    assert!(row.is_some_and(|row| row.contains(" 10 ")), "{screen}");
}

/// A host, a GPU with two streams, and whatever follows.
fn with_gpu(slices: usize) -> Store {
    let mut store = Store::new(Options {
        slices,
        ..Options::default()
    });
    for (id, kind) in [(0, AgentKind::Cpu), (1, AgentKind::Gpu)] {
        store.apply(&Item::Agent(Agent {
            id: AgentId(id),
            kind,
            ..Agent::default()
        }));
    }
    for number in 0..2 {
        store.apply(&Item::Stream(Stream {
            id: StreamId(number),
            number,
            ..Stream::default()
        }));
    }
    store
}

/// 300 copies of 1 MiB to the GPU, of 100 µs on stream 0; each twentieth takes 2 ms on stream 1.
fn copies(slices: usize) -> Arc<Snapshot> {
    let mut store = with_gpu(slices);
    for number in 0..300 {
        let is_long = number % 20 == 19;
        let begin = 1_000_000_000 + number * 10_000 * MICROSECOND;
        let nanos = if is_long { 2_000 } else { 100 } * MICROSECOND;
        store.apply(&Item::Copy(Copy {
            source: Some(AgentId(0)),
            destination: Some(AgentId(1)),
            direction: direction::H2D,
            engine: engine::SDMA,
            stream: Some(StreamId(u32::from(is_long))),
            bytes: 1 << 20,
            span: Span {
                begin,
                end: begin + nanos,
            },
            ..Copy::default()
        }));
    }
    store.snapshot(Fresh::All)
}

/// The line of the first route with a filter: direction, route, count, bytes.
fn first_route(snap: &Arc<Snapshot>, filter: &str) -> String {
    let mut driven = Driven::new(snap.clone(), (200, 50));
    let screen = driven.typed(&format!("4/{filter}")).text();
    let is_route = |line: &&str| line.starts_with("│  H2D ") || line.starts_with("│  ~D2D ");
    let line = screen.lines().find(is_route);
    let line = line.map_or_else(|| "no row".into(), ToString::to_string);
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn copies_that_pass_are_counted_again() {
    let all = copies(1_000_000);
    for (filter, numbers) in [
        ("h2d", "host→GPU0 300 300 MiB"),
        ("dur>1ms", "host→GPU0 15 15.0 MiB"),
        ("dur<1ms", "host→GPU0 285 285 MiB"),
        ("stream=1", "host→GPU0 15 15.0 MiB"),
        ("GPU0 stream=1", "host→GPU0 15 15.0 MiB"),
        ("bw<1GB/s", "host→GPU0 15 15.0 MiB"),
        ("bytes>1KiB", "host→GPU0 300 300 MiB"),
        ("stream=1 | dur>50us", "host→GPU0 300 300 MiB"),
        ("dur>1ms stream=0", "no row"),
        ("bytes>1MiB", "no row"),
    ] {
        let row = first_route(&all, filter);
        assert!(row.contains(numbers) && !row.contains('≈'), "{filter}: {row}");
    }
    // The charts below are of the same copies.
    let mut driven = Driven::new(all, (200, 50));
    let screen = driven.typed("4/dur>1ms").text();
    assert!(screen.contains("(each copy)"), "{screen}");
    let sizes = screen.lines().find(|line| line.contains("≤ 1 MiB"));
    let sizes = sizes.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    assert!(
        sizes.as_ref().is_some_and(|line| line.contains("≤ 1 MiB 15 15.0 MiB")),
        "{sizes:?}"
    );
}

#[test]
fn copies_that_are_no_longer_kept_are_estimated() {
    let few = copies(128);
    for (filter, numbers) in [("dur>1ms", "host→GPU0 ≈15 "), ("stream=1", "host→GPU0 ≈")] {
        let row = first_route(&few, filter);
        assert!(row.contains(numbers), "{filter}: {row}");
    }
    assert!(!first_route(&few, "h2d").contains('≈'));
    let mut tally = Tally::default();
    for number in 0..15 {
        let begin = 1_000_000_000 + number;
        tally.copy(
            0,
            Copied {
                span: Span {
                    begin,
                    end: begin + 2_000 * MICROSECOND,
                },
                bytes: 1 << 20,
            },
        );
    }
    let counted = Arc::new(Snapshot {
        counting: Some(Arc::new(Counting {
            filter: "stream=1".into(),
            state: State::Done(tally),
        })),
        ..(*few).clone()
    });
    let row = first_route(&counted, "stream=1");
    assert!(row.contains("host→GPU0 15 15.0 MiB"), "{row}");
}

/// Copies by kernels have no route each, but their places and durations are counted.
#[test]
fn copies_by_kernels_say_what_is_not_known_of_each() {
    let mut store = with_gpu(1_000_000);
    let name = "__amd_rocclr_copyBuffer";
    store.apply(&Item::Kernel(Kernel {
        id: KernelId(0),
        name: name.into(),
        mangled: name.into(),
        internal: true,
        ..Kernel::default()
    }));
    for number in 0..40 {
        let (correlation, is_long) = (number + 1, number % 4 == 3);
        let begin = 1_000_000_000 + number * 10_000 * MICROSECOND;
        let nanos = if is_long { 2_000 } else { 100 } * MICROSECOND;
        store.apply(&Item::Transfer(Transfer {
            correlation,
            bytes: 4096,
            source: Some(AgentId(1)),
            destination: Some(AgentId(1)),
            direction: direction::D2D,
            ..Transfer::default()
        }));
        store.apply(&Item::Dispatch(Dispatch {
            agent: AgentId(1),
            stream: Some(StreamId(u32::from(is_long))),
            correlation,
            span: Span {
                begin,
                end: begin + nanos,
            },
            ..Dispatch::default()
        }));
    }
    store.snapshot(Fresh::All);
    store.snapshot(Fresh::All);
    let snap = store.snapshot(Fresh::All);
    for (filter, numbers) in [
        ("d2d", "GPU0 40 160 KiB"),
        ("stream=1", "GPU0 10 –"),
        ("stream=0,1", "GPU0 40 160 KiB"),
        ("stream=5", "no row"),
        ("dur>1ms", "GPU0 ≈10 –"),
        ("dur>1ms stream=1", "GPU0 ≤40 160 KiB"),
        ("dur>1s stream=1", "no row"),
    ] {
        let row = first_route(&snap, filter);
        assert!(row.contains(numbers), "{filter}: {row}");
    }
}

#[test]
fn marks_of_the_text_of_a_range_are_not_counted_as_ranges() {
    let mut store = Store::new(Options::default());
    store.apply(&Item::Text(TextId(0), "step 1".into()));
    for number in 0..5 {
        let begin = 1_000_000_000 + number * 1_000 * MICROSECOND;
        let marker = |nanos| Marker {
            text: TextId(0),
            span: Span {
                begin,
                end: begin + nanos,
            },
            ..Marker::default()
        };
        store.apply(&Item::Range(marker(500 * MICROSECOND)));
        if number < 2 {
            store.apply(&Item::Mark(marker(0)));
        }
    }
    let screen = Driven::new(store.snapshot(Fresh::All), (200, 50)).typed("8").text();
    assert!(screen.contains("5 ranges   2 marks"), "{screen}");
    assert!(screen.contains("duration of each of the last 5 ranges"), "{screen}");
}

#[test]
fn terms_are_chips_and_a_filter_is_saved_under_a_name() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    let screen = driven.typed("3/Cijk dur>1us").text();
    assert!(screen.contains("filter: Cijk ✕  dur>1us ✕"), "{screen}");
    driven.key(Key::Ctrl('s'));
    driven.typed("gemms");
    let effect = driven.key(Key::Enter);
    let kept = ("gemms".to_string(), "Cijk dur>1us".to_string());
    assert!(
        matches!(&effect, Effect::Keep { name, filter } if (name, filter) == (&kept.0, &kept.1)),
        "{effect:?}"
    );
    assert_eq!(driven.ui.prefs.presets, [kept]);
    driven.click("✕", 0);
    assert_eq!(driven.ui.filter.source, "dur>1us");
    driven.typed("/");
    driven.key(Key::Ctrl('u'));
    driven.typed("@gemms");
    assert_eq!(driven.ui.filter.source, "(Cijk dur>1us)");
    driven.key(Key::Esc);
    // What does not parse is not saved.
    driven.typed("/ dru>1");
    driven.key(Key::Ctrl('s'));
    assert!(driven.text().contains("did you mean dur?"), "{}", driven.text());
}
