//! Counters and samples of program counters.

use crate::SIZES;
use crate::driven::{Driven, snapshot};
use roctop::item::{Dispatch, Item, Kernel, KernelId, Process, Span};
use roctop::model::{Fresh, Mode, Options, Store};
use roctop::ui::key::Key;
use roctop::ui::{Effect, Msg, Tab, update};

#[test]
fn sampled_kernels_are_ranked_and_lead_to_their_instructions_and_rows() {
    let mut store = Store::new(Options::default());
    store.apply(&Item::Process(Process {
        pid: 7,
        since: 1_000_000_000,
        ..Process::default()
    }));
    for (id, name) in [(1, "hot_loop(float*)"), (2, "copy_back(int*)")] {
        store.apply(&Item::Kernel(Kernel {
            id: KernelId(id),
            name: name.into(),
            mangled: name.into(),
            ..Kernel::default()
        }));
        store.apply(&Item::Dispatch(Dispatch {
            kernel: KernelId(id),
            dispatch_id: u64::from(id),
            span: Span {
                begin: 1_500_000_000,
                end: 1_600_000_000,
            },
            ..Dispatch::default()
        }));
    }
    // Of a wave that waits for memory at one place of hot_loop, and of others.
    for (dispatch, offset, reason, times) in [(1, 0x1a40, 3, 60), (1, 0x1a48, 5, 20), (2, 0x200, 3, 20)] {
        for _ in 0..times {
            store.apply(&Item::PcSample(roctop::pc_sampling::Sample {
                dispatch,
                code_object: 1,
                offset,
                reason,
                instruction: 7,
                exec_mask: 0xffff_ffff,
                method: roctop_ring::record::sampling::STOCHASTIC,
                ..roctop::pc_sampling::Sample::default()
            }));
        }
    }
    for dispatch_id in [1, 2] {
        store.apply(&Item::Dispatch(Dispatch {
            kernel: KernelId(dispatch_id),
            dispatch_id: u64::from(dispatch_id),
            ..Dispatch::default()
        }));
    }
    store.apply(&Item::Now(2_000_000_000));
    for size in SIZES {
        let mut driven = Driven::new(store.snapshot(Fresh::All), size);
        let text = driven.typed("C").text();
        let line = |word: &str| text.lines().find(|line| line.contains(word)).unwrap_or_default();
        let hottest = line("obj 1 +0x1a40").to_owned();
        assert!(
            text.contains("100 samples") && line("hot_loop").contains("80.0 %"),
            "{text}"
        );
        assert!(line("75.0 % at obj 1 +0x1a40").contains("hot_loop"), "{text}");
        assert!(!hottest.is_empty(), "{text}");
        let is_place = |line: &&str| line.contains("obj 1 +") && line.contains("WAITCNT");
        let places: Vec<&str> = text.lines().filter(is_place).collect();
        assert_eq!(places.len(), 2, "{text}");
        driven.typed("/copy_back");
        driven.key(Key::Enter);
        assert!(!driven.text().contains("hot_loop"), "{}", driven.text());
        driven.key(Key::Enter);
        assert_eq!(driven.ui.tab, Tab::Kernels);
    }
}

#[test]
fn counters_are_picked_by_name_and_the_program_is_run_again() {
    let mut driven = Driven::new(snapshot("training", Mode::Live, 20_050), (120, 36));
    driven.typed("6");
    assert_eq!(driven.key(Key::Char('p')), Effect::ListCounters);
    let names = ["GRBM_COUNT".to_string(), "SQ_WAVES".into()].into();
    update(&mut driven.ui, &driven.snap, Msg::Counters(names));
    driven.typed("waves");
    driven.key(Key::Tab);
    assert!(driven.text().contains(":pmc SQ_WAVES"), "{}", driven.text());
    assert_eq!(driven.key(Key::Enter), Effect::None, "the program runs");
    assert_eq!(driven.acts('r'), Effect::Count("SQ_WAVES".into()));
    // They are known now.
    assert_eq!(driven.key(Key::Char('p')), Effect::None);
}
