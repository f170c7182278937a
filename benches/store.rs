//! What the store costs: per item told, and per snapshot, while a screen holds the last one.
//!
//! `cargo bench --bench store` prints a table. A snapshot is taken after each 100 000 items (ten a second at a million
//! items a second), the values in it are made anew in each fifth, and the one before is held meanwhile. Times are those
//! of the processor, so that what else runs on the machine disturbs little.

use std::sync::Arc;
use std::time::Duration;

use roctop::clocks::of_thread;
use roctop::item::{
    Agent, AgentId, ApiCall, Dispatch, Item, Kernel, KernelId, Operation, OperationId, Process, ProcessId, Queue,
    QueueId, Span, Stream, StreamId, Thread, ThreadId,
};
use roctop::model::{Fresh, Options, Snapshot, Store};

const BEGIN: u64 = 1_000_000_000_000;
const BETWEEN: usize = 100_000;

/// What a program does.
struct Load {
    name: &'static str,
    kernels: u32,
    streams: u32,
    agents: u32,
    threads: u32,
    operations: u32,
    /// Of ten items, how many are calls.
    calls: u64,
    items: usize,
    /// From the begin of an item to that of the next, ns.
    step: u64,
}

const LOADS: [Load; 4] = [
    Load {
        name: "typical",
        kernels: 300,
        streams: 24,
        agents: 8,
        threads: 8,
        operations: 30,
        calls: 5,
        items: 3_000_000,
        step: 1000,
    },
    Load {
        name: "dispatches",
        kernels: 300,
        streams: 16,
        agents: 4,
        threads: 1,
        operations: 1,
        calls: 0,
        items: 3_000_000,
        step: 1000,
    },
    Load {
        name: "calls",
        kernels: 1,
        streams: 1,
        agents: 1,
        threads: 32,
        operations: 60,
        calls: 10,
        items: 3_000_000,
        step: 300,
    },
    Load {
        name: "hostile",
        kernels: 10_000,
        streams: 64,
        agents: 8,
        threads: 1,
        operations: 1,
        calls: 0,
        items: 3_000_000,
        step: 1000,
    },
];

struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most.max(1)
    }
}

fn facts(load: &Load) -> Vec<Item> {
    let mut out = vec![Item::Process(Process {
        command: "./load".into(),
        since: BEGIN,
        ..Process::default()
    })];
    out.extend((0..load.agents).map(|id| {
        Item::Agent(Agent {
            id: AgentId(id),
            number: id,
            name: "gfx942".into(),
            ..Agent::default()
        })
    }));
    out.extend((0..load.kernels).map(|id| {
        Item::Kernel(Kernel {
            id: KernelId(id),
            name: format!("kernel_{id}").into(),
            ..Kernel::default()
        })
    }));
    for id in 0..load.streams {
        out.push(Item::Queue(Queue {
            id: QueueId(id),
            number: id + 1,
            agent: AgentId(id % load.agents),
            ..Queue::default()
        }));
        out.push(Item::Stream(Stream {
            id: StreamId(id),
            number: id,
            ..Stream::default()
        }));
    }
    out.extend((0..load.threads).map(|id| {
        Item::Thread(Thread {
            id: ThreadId(id),
            tid: id + 100,
            ..Thread::default()
        })
    }));
    out.extend((0..load.operations).map(|id| {
        Item::Operation(Operation {
            id: OperationId(id),
            domain: 1,
            name: format!("hipOperation{id}").into(),
        })
    }));
    out
}

/// The next so many items, in the order in which they end.
fn items(load: &Load, dice: &mut Dice, first: usize) -> Vec<Item> {
    let mut out = Vec::with_capacity(BETWEEN);
    for number in first..first + BETWEEN {
        let end = BEGIN + number as u64 * load.step;
        let long = if dice.below(10) < load.calls {
            u64::from(load.threads) * load.step
        } else {
            0
        };
        if long > 0 {
            out.push(Item::Api(ApiCall {
                thread: ThreadId(dice.below(u64::from(load.threads)) as u32),
                operation: OperationId(dice.below(u64::from(load.operations)) as u32),
                span: Span {
                    begin: end.saturating_sub(long / 2 + dice.below(long)),
                    end,
                },
                correlation: number as u64 + 1,
                status: Some(0),
                ..ApiCall::default()
            }));
            continue;
        }
        let stream = dice.below(u64::from(load.streams)) as u32;
        let kernel = dice.below(u64::from(load.kernels)) as u32;
        let long = u64::from(load.streams) * load.step;
        let begin = end.saturating_sub(long / 2 + dice.below(long));
        out.push(Item::Dispatch(Dispatch {
            process: ProcessId(0),
            kernel: KernelId(kernel),
            agent: AgentId(stream % load.agents),
            queue: QueueId(stream),
            stream: Some(StreamId(stream)),
            span: Span { begin, end },
            submit: begin - 5_000,
            correlation: number as u64 + 1,
            dispatch_id: number as u64 + 1,
            grid: [256 * (kernel % 97), 1, 1],
            workgroup: [256, 1, 1],
            ..Dispatch::default()
        }));
    }
    out
}

/// Resident memory, bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or_default();
    pages * 4096
}

fn run(load: &Load) {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut store = Store::new(Options::default());
    let before = resident();
    store.apply_all(&facts(load));
    let mut held: Option<Arc<Snapshot>> = None;
    let (mut told, mut best) = (Duration::ZERO, Duration::MAX);
    let (mut all, mut heads) = (Vec::new(), Vec::new());
    for turn in 0..load.items / BETWEEN {
        let items = items(load, &mut dice, turn * BETWEEN);
        let began = of_thread();
        store.apply_all(&items);
        let took = of_thread().saturating_sub(began);
        told += took;
        best = best.min(took);
        store.apply(&Item::Now(BEGIN + ((turn + 1) * BETWEEN) as u64 * load.step));
        let fresh = if turn % 5 == 0 { Fresh::All } else { Fresh::Head };
        let began = of_thread();
        let snapshot = store.snapshot(fresh);
        let times = if fresh == Fresh::All { &mut all } else { &mut heads };
        times.push(of_thread().saturating_sub(began));
        held = Some(snapshot);
    }
    let count = held.map_or(0, |snapshot| snapshot.values.totals.records());
    assert!(count > 0, "the snapshot holds what was told");
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let mean = |times: &[Duration]| micros(times.iter().sum::<Duration>()) / times.len() as f64;
    let worst = |times: &[Duration]| times.iter().copied().map(micros).fold(0.0, f64::max);
    println!(
        "| {} | {:.3} | {:.3} | {:.2} M | {:.0} / {:.0} | {:.0} / {:.0} | {} |",
        load.name,
        micros(told) / load.items as f64,
        micros(best) / BETWEEN as f64,
        load.items as f64 / told.as_secs_f64() / 1e6,
        mean(&heads),
        worst(&heads),
        mean(&all),
        worst(&all),
        (resident() - before.min(resident())) >> 20
    );
}

fn main() {
    // `cargo test --benches` only asks whether this runs.
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--test") {
        return;
    }
    println!(
        "| load | µs an item | best | items a second | head µs mean / worst | values µs mean / worst | grown MiB |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for load in LOADS
        .iter()
        .filter(|load| words.iter().all(|word| word.starts_with('-') || load.name == word))
    {
        run(load);
    }
}
