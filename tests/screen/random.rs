//! Random items, keys and sizes: nothing panics, nothing is drawn outside, totals add up.

use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use roctop::gauge::{Count, Counter, Device, Scope};
use roctop::item::*;
use roctop::model::{Fresh, Mode, Options, Store};
use roctop::ui::key::{Key, Mouse, MouseKind};
use roctop::ui::theme::{Depth, Theme};
use roctop::ui::{Msg, Ui, update, view};
use roctop_trace::site::SiteNumber;

struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, most: u64) -> u64 {
        self.next() % most.max(1)
    }
    fn node(&mut self) -> NodeId {
        NodeId {
            machine: self.below(2) as u32,
            node: self.id(),
        }
    }

    fn id(&mut self) -> u32 {
        if self.below(50) == 0 {
            self.next() as u32
        } else {
            self.below(6) as u32
        }
    }
    fn time(&mut self) -> u64 {
        match self.below(40) {
            0 => self.next(),
            1 => 0,
            2 => u64::MAX,
            _ => 5_000_000_000 + self.below(3_000_000_000),
        }
    }
    fn span(&mut self) -> Span {
        let begin = self.time();
        let end = if self.below(8) == 0 {
            self.time()
        } else {
            begin.saturating_add(self.below(3_000_000))
        };
        Span { begin, end }
    }
    fn text(&mut self) -> Arc<str> {
        const TEXTS: [&str; 8] = [
            "",
            "gemm",
            "void a::b<c<d>, 4>(int)",
            "日本語カーネル",
            "x\u{301}\u{202e}",
            "<<<(((",
            "step 12",
            "a,b\"c\n",
        ];
        TEXTS[self.below(8) as usize].into()
    }
}

fn call(dice: &mut Dice) -> ApiCall {
    ApiCall {
        process: ProcessId(dice.id()),
        thread: ThreadId(dice.id()),
        operation: OperationId(dice.id()),
        span: dice.span(),
        correlation: dice.below(40),
        parent: dice.below(2),
        status: (dice.below(3) == 0).then(|| dice.next() as i32),
        arguments: (dice.below(3) == 0).then(|| TextId(dice.id())),
        site: SiteNumber(dice.below(9) as u16),
    }
}

fn dispatch(dice: &mut Dice) -> Dispatch {
    Dispatch {
        process: ProcessId(dice.id()),
        kernel: KernelId(dice.id()),
        agent: AgentId(dice.id()),
        queue: QueueId(dice.id()),
        stream: (dice.below(2) == 0).then(|| StreamId(dice.id())),
        thread: None,
        span: dice.span(),
        submit: dice.time(),
        correlation: dice.below(40),
        dispatch_id: dice.next(),
        grid: [dice.next() as u32, 1, 1],
        workgroup: [dice.next() as u16, 1, 1],
        group_size: dice.next() as u32,
        private_size: 0,
        site: SiteNumber(dice.below(9) as u16),
        flags: dice.next() as u8,
    }
}

fn marker(dice: &mut Dice) -> Marker {
    Marker {
        process: ProcessId(dice.id()),
        thread: ThreadId(dice.id()),
        text: TextId(dice.id()),
        span: dice.span(),
        correlation: dice.below(40),
        level: dice.below(3) as u16,
        range_id: dice.below(2),
    }
}

fn gauge(dice: &mut Dice) -> Item {
    match dice.below(3) {
        0 => Item::Device(Arc::new(Device {
            node: dice.node(),
            number: dice.id(),
            name: dice.text(),
            product: dice.text(),
            at: dice.time(),
            busy: Ok(f64::from_bits(dice.next())),
            memory_used: Ok(dice.next()),
            power: Err(dice.text()),
            junction: Ok(dice.next() as f64),
            ..Device::default()
        })),
        1 => Item::Counter(Arc::new(Counter {
            id: dice.id(),
            name: dice.text(),
            node: (dice.below(2) == 0).then(|| dice.node()),
            scope: if dice.below(2) == 0 {
                Scope::Device
            } else {
                Scope::Dispatch
            },
            state: if dice.below(2) == 0 { Ok(()) } else { Err(dice.text()) },
            perturbs: dice.text(),
            ..Counter::default()
        })),
        _ => Item::Count(Count {
            counter: dice.id(),
            at: dice.time(),
            value: f64::from_bits(dice.next()),
            kernel: (dice.below(2) == 0).then(|| KernelId(dice.id())),
        }),
    }
}

fn item(dice: &mut Dice) -> Item {
    match dice.below(28) {
        0 => Item::Process(Process {
            id: ProcessId(dice.id()),
            command: dice.text(),
            since: dice.time(),
            ..Process::default()
        }),
        1 => Item::Ended {
            process: ProcessId(dice.id()),
            exit: Exit::Signal(dice.next() as i32),
            at: dice.time(),
        },
        2 => Item::Agent(Agent {
            id: AgentId(dice.id()),
            name: dice.text(),
            product: dice.text(),
            ..Agent::default()
        }),
        3 => Item::Kernel(Kernel {
            id: KernelId(dice.id()),
            name: dice.text(),
            mangled: dice.text(),
            internal: dice.below(2) == 0,
            ..Kernel::default()
        }),
        4 => Item::Thread(Thread {
            id: ThreadId(dice.id()),
            name: dice.text(),
            ..Thread::default()
        }),
        5 => Item::Operation(Operation {
            id: OperationId(dice.id()),
            domain: dice.next() as u8,
            name: dice.text(),
        }),
        6 => Item::Text(TextId(dice.id()), dice.text()),
        7 => Item::Open(Open {
            process: ProcessId(dice.id()),
            calls: vec![call(dice)],
            ranges: vec![marker(dice)],
            dispatches: vec![dispatch(dice)],
            copies: 0,
            queues: Vec::new(),
        }),
        8 => Item::Lost {
            process: ProcessId(dice.id()),
            reason: LossReason::NoRing,
            records: dice.below(1000),
        },
        9 => Item::Status {
            process: ProcessId(dice.id()),
            code: dice.id(),
            text: dice.text(),
        },
        10 => Item::Output((0..dice.below(60)).map(|_| dice.next() as u8).collect()),
        11 => Item::Now(dice.time() / 2),
        12 => Item::Mark(marker(dice)),
        13 => Item::Range(marker(dice)),
        14 => Item::Stream(Stream {
            id: StreamId(dice.id()),
            name: dice.text(),
            ..Stream::default()
        }),
        15 => Item::Queue(Queue {
            id: QueueId(dice.id()),
            ..Queue::default()
        }),
        16..=18 => Item::Api(call(dice)),
        19..=21 => Item::Dispatch(dispatch(dice)),
        22..=24 => gauge(dice),
        25 => Item::Allocation(Allocation {
            process: ProcessId(dice.id()),
            thread: ThreadId(dice.id()),
            agent: (dice.below(2) == 0).then(|| AgentId(dice.id())),
            operation: dice.below(8) as u16,
            span: dice.span(),
            address: dice.below(50),
            bytes: dice.next() >> dice.below(64),
            total: dice.next(),
            ..Allocation::default()
        }),
        _ => Item::Copy(Copy {
            process: ProcessId(dice.id()),
            source: (dice.below(2) == 0).then(|| AgentId(dice.id())),
            destination: (dice.below(2) == 0).then(|| AgentId(dice.id())),
            stream: None,
            span: dice.span(),
            bytes: dice.next() >> dice.below(64),
            direction: dice.below(8) as u16,
            engine: dice.below(4) as u16,
            ..Copy::default()
        }),
    }
}

fn message(dice: &mut Dice) -> Msg {
    const KEYS: &str = "1234567890AWIDM jkgGt/ f+-hlw[]{}nNvvm';zzoobFXysS<>tHe?qxcdzi: dur>1ms&|()!~\"5";
    match dice.below(30) {
        0 => Msg::Resize(dice.below(210) as u16, dice.below(60) as u16),
        1 | 2 => Msg::Mouse(Mouse {
            kind: match dice.below(8) {
                0 => MouseKind::WheelUp,
                1 => MouseKind::WheelDown,
                2..=4 => MouseKind::Release,
                _ => MouseKind::Press,
            },
            x: dice.below(200) as u16,
            y: dice.below(60) as u16,
        }),
        9 => Msg::Key(Key::Tab),
        10 => Msg::Key(if dice.below(2) == 0 {
            Key::Ctrl('o')
        } else {
            Key::BackTab
        }),
        3 | 4 => Msg::Key(Key::Enter),
        5 => Msg::Key(Key::Esc),
        6 => Msg::Key(Key::PageDown),
        7 => Msg::Key(Key::Backspace),
        8 => Msg::Say("said".into()),
        11 => Msg::Tick,
        12 => Msg::Key(Key::Ctrl('c')),
        13 => Msg::Typed(vec![dice.below(256) as u8; dice.below(4) as usize]),
        _ => {
            let at = dice.below(KEYS.len() as u64) as usize;
            Msg::Key(Key::Char(KEYS.as_bytes()[at] as char))
        }
    }
}

#[test]
fn random_items_keys_and_sizes_never_panic() {
    for seed in 1..=24u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mode = if seed.is_multiple_of(3) {
            Mode::Replay
        } else {
            Mode::Live
        };
        let mut store = Store::new(Options {
            mode,
            slices: 400,
            ..Options::default()
        });
        let mut ui = Ui::new(mode);
        let theme = Theme::named(if seed.is_multiple_of(2) { "mono" } else { "light" }, Depth::C256).unwrap();
        for turn in 0..120 {
            for _ in 0..dice.below(40) {
                store.apply(&item(&mut dice));
            }
            let snap = store.snapshot(if turn % 3 == 0 { Fresh::All } else { Fresh::Head });
            for _ in 0..dice.below(4) {
                let message = message(&mut dice);
                update(&mut ui, &snap, message);
            }
            let mut buffer = Buffer::empty(Rect::new(0, 0, ui.size.0, ui.size.1));
            view(&ui, &snap, &theme, &mut buffer);
            is_whole(&buffer);
        }
    }
}

/// No glyph is cut by the edge of the screen.
fn is_whole(buffer: &Buffer) {
    let width = buffer.area.width as usize;
    for row in buffer.content().chunks(width.max(1)) {
        let last = row.last().map_or(" ", ratatui::buffer::Cell::symbol);
        assert!(roctop::units::width(last) <= 1, "{last} is cut");
        assert!(row.iter().all(|cell| !cell.symbol().contains(char::is_control)));
    }
}

#[test]
fn what_was_told_is_counted_once() {
    let mut dice = Dice(99);
    let mut store = Store::new(Options {
        slices: 300,
        ..Options::default()
    });
    let (mut calls, mut dispatches, mut copies, mut markers) = (0, 0, 0, 0);
    for _ in 0..5000 {
        let item = item(&mut dice);
        match item {
            Item::Api(_) => calls += 1,
            Item::Dispatch(_) => dispatches += 1,
            Item::Copy(_) => copies += 1,
            Item::Mark(_) | Item::Range(_) => markers += 1,
            _ => {}
        }
        store.apply(&item);
    }
    let snap = store.snapshot(Fresh::All);
    let totals = snap.values.totals;
    assert_eq!(
        (totals.calls, totals.dispatches, totals.copies, totals.markers),
        (calls, dispatches, copies, markers)
    );
    let kept: usize = snap.lanes.iter().map(|lane| lane.kept()).sum();
    assert!(kept <= 300 + 256 * snap.lanes.len(), "details are bounded: {kept}");
}
