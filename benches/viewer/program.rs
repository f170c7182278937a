//! A synthetic program: the collector's own writer writes its ring file, at any speed.

use std::ops::Range;
use std::path::Path;

use roctop_ring::layout::{Header, Spec, clock};
use roctop_ring::map::{Claim, RingFile};
use roctop_ring::record::{
    Agent, ApiCall, Dispatch, Domain, KernelSymbol, OperationName, Queue, Stream, ThreadStart, flag,
};

/// Time zero of the program, ns; its ticks are nanoseconds.
pub(crate) const BEGIN: u64 = 1_000_000_000_000;
const AGENTS: u32 = 8;
const OPERATIONS: u32 = 40;

/// The work of a program.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) name: &'static str,
    pub(crate) rings: u32,
    pub(crate) slots: u64,
    pub(crate) kernels: u32,
    /// Dispatches per ten records; the rest are calls.
    pub(crate) dispatches: u64,
    /// Number of streams that run each kernel; every ring is a stream.
    pub(crate) streams: u32,
    /// Call sites that launch, and as many that call; 0: records have none.
    pub(crate) sites: u16,
}

impl Load {
    /// One of the kernels of a ring.
    fn kernel(&self, ring: u32, dice: &mut Dice) -> u32 {
        let groups = (self.rings / self.streams).max(1);
        let each = (self.kernels / groups).max(1);
        (dice.below(u64::from(each)) as u32 * groups + ring % groups) % self.kernels
    }

    /// The site of a launch or call; 0 for none.
    fn site(&self, number: u32) -> u16 {
        number.checked_rem(self.sites.into()).map_or(0, |site| site as u16 + 1)
    }
}

/// A pseudo-random number generator.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most.max(1)
    }
}

/// Creates the ring file with all facts; `boottime` is CLOCK_BOOTTIME at the program's time [`BEGIN`], ns, and `start` the
/// process's start as /proc has it, ticks.
pub(crate) fn make(dir: &Path, load: &Load, boottime: u64, start: u64) -> std::io::Result<RingFile> {
    let spec = Spec {
        ordinal: 0,
        rings: vec![load.slots; load.rings as usize],
        facts: u64::from(load.kernels) * 2 + 4096,
        strings: u64::from(load.kernels) + 256,
        string_bytes: u64::from(load.kernels) * 64 + (1 << 16),
    };
    let header = Header {
        pid: std::process::id(),
        start_ticks: start,
        command: "./load".into(),
        exe: "load".into(),
        rank: -1,
        ..Header::default()
    };
    let file = RingFile::create(
        dir,
        &roctop_ring::session::ring_name(header.pid, start, 0),
        &spec,
        header,
    )?;
    for second in [0, 3600 * 24] {
        let mut sample = [0; clock::WORDS];
        sample[clock::TICKS] = BEGIN + second * 1_000_000_000;
        sample[clock::BOOTTIME] = boottime + second * 1_000_000_000;
        sample[clock::HSA] = BEGIN + second * 1_000_000_000;
        sample[clock::WIDTH] = 20;
        file.calibrate(sample);
    }
    let (Some(strings), Some(facts)) = (file.strings(), file.facts()) else {
        return Err(std::io::Error::other("no facts"));
    };
    let gfx = strings.add(b"gfx942");
    for index in 0..AGENTS {
        let agent = Agent {
            index,
            kind: 1,
            name: gfx,
            ..Agent::default()
        };
        facts.append(Agent::head(0, Domain::NONE), &agent.payload());
    }
    for number in 0..load.kernels {
        let symbol = KernelSymbol {
            kernel_object: object(number),
            name: strings.add(format!("kernel_of_some_length_{number}").as_bytes()),
            agent: number % AGENTS,
            ..KernelSymbol::default()
        };
        facts.append(KernelSymbol::head(0, Domain::NONE), &symbol.payload());
    }
    for op in 0..OPERATIONS {
        let name = OperationName {
            domain: u32::from(Domain::HIP.0),
            op,
            name: strings.add(format!("hipOperation{op}").as_bytes()),
            reserved: 0,
        };
        facts.append(OperationName::head(0, Domain::NONE), &name.payload());
    }
    for id in 0..load.rings {
        let queue = Queue {
            id: id + 1,
            agent: id % AGENTS,
            state: 1,
            ..Queue::default()
        };
        facts.append(Queue::head(0, Domain::NONE), &queue.payload());
        let stream = Stream {
            id,
            state: 1,
            ..Stream::default()
        };
        facts.append(Stream::head(0, Domain::NONE), &stream.payload());
    }
    Ok(file)
}

fn object(kernel: u32) -> u64 {
    0x7f00_0000_0000 + u64::from(kernel) * 64
}

/// The program's threads.
pub(crate) struct Writer<'m> {
    load: Load,
    claims: Vec<Claim<'m>>,
    /// Index of the first ring.
    first: u32,
    dice: Dice,
    /// Records written.
    pub(crate) written: u64,
}

impl<'m> Writer<'m> {
    /// All threads.
    pub(crate) fn new(file: &'m RingFile, load: &Load) -> Self {
        Self::of(file, load, 0..load.rings)
    }

    /// The threads of these rings.
    pub(crate) fn of(file: &'m RingFile, load: &Load, rings: Range<u32>) -> Self {
        let first = rings.start;
        let claims: Vec<Claim<'m>> = rings
            .filter_map(|index| file.claim(index as usize, 1000 + index, BEGIN, [0; 2]))
            .collect();
        for (index, claim) in (1000 + first..).zip(&claims) {
            let start = ThreadStart {
                time: BEGIN,
                tid: index,
                generation: claim.generation,
                ..ThreadStart::default()
            };
            claim.ring.push(ThreadStart::head(0, Domain::NONE), &start.payload());
        }
        Self {
            load: *load,
            written: claims.len() as u64,
            claims,
            first,
            dice: Dice(0x9e37_79b9_7f4a_7c15 + u64::from(first)),
        }
    }

    /// Writes `count` records; `at` is the program's time at which the last of them ends, ns since its begin.
    pub(crate) fn write(&mut self, count: u64, at: u64, step: u64) {
        let rings = self.claims.len() as u64;
        for number in 0..count {
            let end = BEGIN + at - (count - 1 - number) * step;
            let index = self.written % rings;
            let (ring, claim) = (u64::from(self.first) + index, &self.claims[index as usize]);
            let long = rings * step;
            let begin = end - (long / 2 + self.dice.below(long / 3));
            if self.dice.below(10) < self.load.dispatches {
                let kernel = self.load.kernel(ring as u32, &mut self.dice);
                let dispatch = Dispatch {
                    begin,
                    end,
                    submit: begin - 5_000,
                    correlation: self.written + 1,
                    kernel_object: object(kernel),
                    dispatch_id: self.written + 1,
                    grid_x: 256 * (kernel % 97 + 1),
                    grid_y: 1,
                    grid_z: 1,
                    workgroup_x: 256,
                    workgroup_y: 1,
                    workgroup_z: 1,
                    source: 1,
                    agent: ring as u32 % AGENTS,
                    queue: ring as u32 + 1,
                    stream: ring as u32 + 1,
                    tid: 1000 + ring as u32,
                    name: self.load.site(kernel).into(),
                    ..Dispatch::default()
                };
                let flags = if self.load.sites > 0 { flag::SITE } else { 0 };
                claim
                    .ring
                    .push(Dispatch::head(flags, Domain::NONE), &dispatch.payload());
            } else {
                let op = self.dice.below(u64::from(OPERATIONS)) as u16;
                let site = self.load.site(op.into());
                let call = ApiCall {
                    start: begin,
                    end,
                    correlation: self.written + 1,
                    op,
                    has_status: ApiCall::status_word(true, site),
                    ..ApiCall::default()
                };
                claim.ring.push(ApiCall::head(0, Domain::HIP), &call.payload());
            }
            self.written += 1;
        }
    }
}
