//! The past that the screen has dropped, read back from the recording: while it is written, and when it is opened.

use super::segment;
use crate::kit::directory::place;
use crate::kit::made::{BEGIN, Made, make};
use roctop::decode::Decoder;
use roctop::item::{ProcessId, Span};
use roctop::live::past::{PastReader, SharedDecoder};
use roctop::model::recall::{Recall, Window};
use roctop::model::{Fresh, Lane, Options, Resolution, Store};
use roctop::raw::{Raw, RawSink, Tee};
use roctop::recording::{History, Merged, Recorder, Recording};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const COLUMNS: usize = 150;
/// The synthetic program begins a step so often, ns.
const STEP: u64 = 2_500;

fn store(slices: usize) -> Arc<Mutex<Store>> {
    Arc::new(Mutex::new(Store::new(Options {
        slices,
        keep: 1,
        ..Options::default()
    })))
}

fn window(begin: u64, width: u64) -> Window {
    Window {
        span: Span {
            begin,
            end: begin + width * COLUMNS as u64,
        },
        width,
    }
}

/// Asks for a window and waits for what comes of it.
fn read(reader: &PastReader, store: &Mutex<Store>, window: Window) -> Recall {
    let asked = Instant::now();
    reader.wish(Some(window));
    loop {
        std::thread::sleep(Duration::from_millis(5));
        let recall = store.lock().unwrap().recalled().clone();
        match &recall {
            Recall::Done(span) if span.begin <= window.span.begin && span.end >= window.span.end => return recall,
            Recall::Failed(span, _) if *span == window.span => return recall,
            _ => assert!(asked.elapsed() < Duration::from_mins(1), "{recall:?}"),
        }
    }
}

/// Busy time, pieces of work and exactness of a column.
type Column = (u64, u32, Resolution);

/// What a lane shows: busy time and pieces of work by column, how exact they are, and its slices.
fn shown(lane: &Lane, window: Window) -> (Vec<Column>, Option<Vec<String>>) {
    let columns = lane.columns(window.span.begin, window.width, COLUMNS, |_| true);
    let slices = lane.slices(window.span.begin, window.span.end, 50_000);
    let columns = columns
        .iter()
        .map(|one| (one.sums.busy, one.sums.count, one.resolution));
    let words = |slices: Vec<roctop::model::Slice>| slices.iter().map(|slice| format!("{slice:?}")).collect();
    (columns.collect(), slices.map(words))
}

/// Compares all lanes in a window; how many were averages before.
fn compare(whole: &Mutex<Store>, limited: &Mutex<Store>, reader: &PastReader, window: Window) -> usize {
    let (truth, before) = (
        whole.lock().unwrap().snapshot(Fresh::Head),
        limited.lock().unwrap().snapshot(Fresh::Head),
    );
    let recall = read(reader, limited, window);
    assert!(matches!(recall, Recall::Done(_)), "{recall:?}");
    let after = limited.lock().unwrap().snapshot(Fresh::Head);
    let mut averages = 0;
    for lane in truth.lanes.iter().filter(|lane| lane.kept() > 0) {
        let (wanted, was) = (shown(lane, window), shown(before.lane(lane.key).unwrap(), window));
        assert_eq!(shown(after.lane(lane.key).unwrap(), window), wanted, "{:?}", lane.key);
        averages += usize::from(was != wanted);
    }
    averages
}

/// Gives everything to a store, as the thread does that decodes.
struct Feeder<'a> {
    decoder: &'a Mutex<Decoder>,
    store: &'a Mutex<Store>,
}

impl RawSink for Feeder<'_> {
    fn take(&mut self, process: ProcessId, raw: &Raw<'_>) {
        let mut decoder = self.decoder.lock().unwrap();
        decoder.take(process, raw);
        self.store.lock().unwrap().take(&decoder.decoded());
        decoder.clear();
    }
}

fn by_kind() -> SharedDecoder {
    Arc::new(Mutex::new(Decoder::by_kind()))
}

/// A run of which the screen has kept the end alone, and that is being recorded at `path`.
struct Run {
    whole: Arc<Mutex<Store>>,
    limited: Arc<Mutex<Store>>,
    reader: PastReader,
    recorder: Recorder,
}

fn run(made: &Recording, path: &Path) -> Run {
    let mut recorder = Recorder::create(path, &["./train".to_owned()], &[]).unwrap();
    let (whole, limited, decoder) = (store(10_000_000), store(64_000), by_kind());
    let (written, history) = (
        recorder.written(),
        History::of_written(path.to_owned(), recorder.written()),
    );
    let reader = PastReader::start(history, Some(written), decoder.clone(), limited.clone()).unwrap();
    let other = by_kind();
    let mut first = Feeder {
        decoder: &other,
        store: &whole,
    };
    let mut second = Feeder {
        decoder: &decoder,
        store: &limited,
    };
    made.deliver(&mut Tee(&mut first, &mut Tee(&mut second, &mut recorder)))
        .unwrap();
    // What is held for a quarter of a second is written with the next poll.
    std::thread::sleep(Duration::from_millis(260));
    recorder.take(ProcessId(0), &Raw::Now(BEGIN + 60_000_000_000));
    Run {
        whole,
        limited,
        reader,
        recorder,
    }
}

#[test]
fn the_dropped_past_of_a_run_that_is_being_recorded_is_exact() {
    let (base, steps) = (place("past-live"), 100_000);
    let path = base.join("rec");
    make(
        &base.join("made"),
        &Made {
            records: 2 * steps,
            threads: 3,
            ..Made::default()
        },
    );
    let run = run(&Recording::open(&base.join("made")).unwrap(), &path);
    let mut averages = 0;
    for part in 0..8 {
        let wish = window(BEGIN + part * (steps * STEP / 8), [2_000, 20_000][part as usize % 2]);
        averages += compare(&run.whole, &run.limited, &run.reader, wish);
    }
    assert!(averages > 15, "{averages} lanes");

    // Damage in one stretch: what is drawn there stays, and the reason is given.
    let bytes = std::fs::read(segment(&path)).unwrap();
    let mut wrong = bytes.clone();
    wrong[2_000] ^= 1;
    std::fs::write(segment(&path), &wrong).unwrap();
    let wish = window(BEGIN + 1_000_000, 2_000);
    let recall = read(&run.reader, &run.limited, wish);
    let Recall::Failed(_, reason) = recall else {
        panic!("{recall:?}")
    };
    assert_eq!(&*reason, "the recording is damaged here");
    let snap = run.limited.lock().unwrap().snapshot(Fresh::Head);
    let lane = snap.lanes.iter().find(|lane| lane.forgotten().is_some()).unwrap();
    let columns = lane.columns(wish.span.begin, wish.width, COLUMNS, |_| true);
    let average = |one: &roctop::model::Column| matches!(one.resolution, Resolution::Average(_));
    assert!(columns.iter().any(average), "{columns:?}");
    // The rest is as exact as before.
    let other = window(BEGIN + (steps / 2) * STEP, 2_000);
    assert!(compare(&run.whole, &run.limited, &run.reader, other) > 0);
    std::fs::write(segment(&path), &bytes).unwrap();
    assert!(compare(&run.whole, &run.limited, &run.reader, wish) > 0);
    run.recorder.finish().unwrap();
}

#[test]
fn a_recording_larger_than_memory_is_exact_at_every_zoom() {
    let (path, steps) = (place("past-open").join("rec"), 100_000);
    make(
        &path,
        &Made {
            records: 2 * steps,
            marks: true,
            ..Made::default()
        },
    );
    let recording = Recording::open(&path).unwrap();
    let merged = Merged::new(vec![&recording]).unwrap();
    let (whole, limited, decoder) = (store(10_000_000), store(64_000), by_kind());
    let reader = PastReader::start(merged.history(), None, decoder.clone(), limited.clone()).unwrap();
    for (store, decoder) in [(&whole, by_kind()), (&limited, decoder)] {
        merged
            .feed(&decoder, None, &mut |_| (), &mut |decoded| {
                store.lock().unwrap().take(decoded);
            })
            .unwrap();
    }
    let mut averages = 0;
    for width in [10, 1_000, 20_000] {
        averages += compare(&whole, &limited, &reader, window(BEGIN + steps * STEP / 5, width));
    }
    assert!(averages > 8, "{averages} lanes");
    // More than there is room for: sums that are not wider than a column.
    for width in [600_000, 1_200_000] {
        let wish = window(BEGIN, width);
        read(&reader, &limited, wish);
        let snap = limited.lock().unwrap().snapshot(Fresh::Head);
        for lane in snap.lanes.iter() {
            let columns = lane.columns(wish.span.begin, wish.width, COLUMNS, |_| true);
            let fine = |one: &roctop::model::Column| one.is_empty() || one.resolution <= Resolution::Sums(width);
            assert!(columns.iter().all(fine), "{:?} {width}: {columns:?}", lane.key);
        }
    }
}

#[test]
fn what_a_limited_recording_dropped_is_named() {
    let base = place("past-dropped");
    let path = base.join("rec");
    make(
        &path,
        &Made {
            records: 400_000,
            most: Some(4 << 20),
            ..Made::default()
        },
    );
    let recording = Recording::open(&path).unwrap();
    let merged = Merged::new(vec![&recording]).unwrap();
    let (limited, decoder) = (store(24_000), by_kind());
    let reader = PastReader::start(merged.history(), None, decoder.clone(), limited.clone()).unwrap();
    merged
        .feed(&decoder, None, &mut |_| (), &mut |decoded| {
            limited.lock().unwrap().take(decoded);
        })
        .unwrap();
    let recall = read(&reader, &limited, window(BEGIN, 2_000));
    let reason = "the recording has dropped this time to keep its size";
    assert!(
        matches!(&recall, Recall::Failed(_, given) if &**given == reason),
        "{recall:?}"
    );
}
