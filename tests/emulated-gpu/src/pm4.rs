//! Indirect buffers of PM4 packets that select, start, sample, stop and read performance counters.
//!
//! Other packets, such as cache operations, are skipped. Register numbers are dword offsets, as in AMD's public
//! register headers; aqlprofile 7.2.4 was observed to use these, in this order.

use crate::counters::{Block, Perf, Where};
use crate::guest;

/// Maximum number of dwords of a buffer.
const MOST_DWORDS: u32 = 1 << 16;

mod op {
    pub(super) const COPY_DATA: u32 = 0x40;
    pub(super) const SET_SH_REG: u32 = 0x76;
    pub(super) const SET_UCONFIG_REG: u32 = 0x79;
    pub(super) const INDIRECT_BUFFER: u32 = 0x3f;
}

mod register {
    pub(super) const SH: u32 = 0x2c00;
    pub(super) const UCONFIG: u32 = 0xc000;
    pub(super) const COMPUTE_PERFCOUNT_ENABLE: u32 = 0x2e0b;
    pub(super) const GRBM_GFX_INDEX: u32 = 0xc200;
    pub(super) const CP_PERFMON_CNTL: u32 = 0xd808;
}

/// Registers of a block: selects of its counters, low halves of their values, and offset from low to high half.
struct Registers {
    block: Block,
    selects: &'static [u32],
    values: &'static [u32],
    high: i32,
}

const REGISTERS: [Registers; 10] = [
    Registers {
        block: Block::Grbm,
        selects: &[0xd840, 0xd841],
        values: &[0xd040, 0xd043],
        high: 1,
    },
    Registers {
        block: Block::Cpc,
        selects: &[0xd809, 0xd803],
        values: &[0xd006, 0xd004],
        high: 1,
    },
    Registers {
        block: Block::Cpf,
        selects: &[0xd807, 0xd805],
        values: &[0xd00a, 0xd008],
        high: 1,
    },
    Registers {
        block: Block::Spi,
        selects: &[0xd980, 0xd981, 0xd982, 0xd983],
        values: &[0xd181, 0xd183, 0xd185, 0xd187],
        high: -1,
    },
    Registers {
        block: Block::Sq,
        selects: &[0xd9c0, 0xd9c1, 0xd9c2, 0xd9c3, 0xd9c4, 0xd9c5, 0xd9c6, 0xd9c7],
        values: &[0xd1c0, 0xd1c2, 0xd1c4, 0xd1c6, 0xd1c8, 0xd1ca, 0xd1cc, 0xd1ce],
        high: 1,
    },
    Registers {
        block: Block::Ta,
        selects: &[0xdac0, 0xdac2],
        values: &[0xd2c0, 0xd2c2],
        high: 1,
    },
    Registers {
        block: Block::Td,
        selects: &[0xdb00, 0xdb02],
        values: &[0xd300, 0xd302],
        high: 1,
    },
    Registers {
        block: Block::Tcp,
        selects: &[0xdb40, 0xdb42, 0xdb44, 0xdb45],
        values: &[0xd340, 0xd342, 0xd344, 0xd346],
        high: 1,
    },
    Registers {
        block: Block::Tcc,
        selects: &[0xdb80, 0xdb82, 0xdb84, 0xdb85],
        values: &[0xd380, 0xd382, 0xd384, 0xd386],
        high: 1,
    },
    Registers {
        block: Block::Tca,
        selects: &[0xdb90, 0xdb92, 0xdb94, 0xdb95],
        values: &[0xd390, 0xd392, 0xd394, 0xd396],
        high: 1,
    },
];

/// Memory of buffers and results.
pub(crate) trait Memory {
    /// Reads a dword at a GPU address.
    fn read(&self, address: u64) -> u32;
    /// Writes a dword.
    fn write(&self, address: u64, value: u32);
}

/// State that a queue keeps between buffers.
#[derive(Default)]
pub(crate) struct Pm4 {
    /// Whether its waves are counted.
    pub(crate) is_counted: bool,
}

impl Pm4 {
    /// Executes the buffer of the vendor packet at `packet`, at time `now`.
    pub(crate) fn packet(&mut self, packet: u64, memory: &dyn Memory, perf: &mut Perf, now: u64) {
        let dword = |at: u64| guest::read::<u32>(packet + at * 4);
        let header = dword(1);
        if header >> 30 != 3 || header >> 8 & 0xff != op::INDIRECT_BUFFER {
            return;
        }
        let address = u64::from(dword(2)) | u64::from(dword(3)) << 32;
        self.buffer(address, dword(4) & 0xf_ffff, memory, perf, now);
    }

    /// Executes `dwords` of packets at an address.
    pub(crate) fn buffer(&mut self, address: u64, dwords: u32, memory: &dyn Memory, perf: &mut Perf, now: u64) {
        let dwords = dwords.min(MOST_DWORDS);
        let mut at = 0;
        while at < dwords {
            let header = memory.read(address + u64::from(at) * 4);
            if header >> 30 != 3 {
                // Type 2 is one dword of padding; no other types occur.
                at += 1;
                continue;
            }
            let count = (header >> 16 & 0x3fff) + 1;
            if at + count >= dwords {
                return;
            }
            let field = |number: u32| memory.read(address + u64::from(at + 1 + number) * 4);
            match header >> 8 & 0xff {
                op::SET_UCONFIG_REG => {
                    for number in 1..count {
                        set(register::UCONFIG + field(0) + number - 1, field(number), perf, now);
                    }
                }
                op::SET_SH_REG if register::SH + field(0) == register::COMPUTE_PERFCOUNT_ENABLE => {
                    self.is_counted = field(1) & 1 != 0;
                }
                op::COPY_DATA if count >= 5 => copy_data(&[field(0), field(1), field(3), field(4)], memory, perf),
                _ => {}
            }
            at += 1 + count;
        }
    }
}

fn set(register: u32, value: u32, perf: &mut Perf, now: u64) {
    match register {
        register::GRBM_GFX_INDEX => perf.place = place(value),
        register::CP_PERFMON_CNTL => {
            match value & 0xf {
                0 => perf.reset(now),
                1 => perf.start(now),
                _ => perf.stop(now),
            }
            if value & 0x400 != 0 {
                perf.sample(now);
            }
        }
        _ => {
            for block in &REGISTERS {
                if let Some(counter) = block.selects.iter().position(|select| *select == register) {
                    perf.select(block.block, counter, value);
                }
            }
        }
    }
}

/// Bits 0-7 instance, 8-15 array, 16-23 engine; 30 all instances, 31 all engines.
fn place(index: u32) -> Where {
    Where {
        instance: (index & 1 << 30 == 0).then_some(index & 0xff),
        engine: (index & 1 << 31 == 0).then_some(index >> 16 & 0xff),
    }
}

/// Control, register, address: a register's 32 bits to memory.
fn copy_data(fields: &[u32; 4], memory: &dyn Memory, perf: &Perf) {
    let [control, source, low, high] = *fields;
    let destination = control >> 8 & 0xf;
    if control & 0xf != 0 || !matches!(destination, 2 | 5) {
        return;
    }
    let value = REGISTERS.iter().find_map(|block| {
        let mut own = block.values.iter().enumerate();
        own.find_map(|(counter, register)| {
            let value = || perf.value(block.block, counter);
            if *register == source {
                Some(value() as u32)
            } else if register.checked_add_signed(block.high) == Some(source) {
                Some((value() >> 32) as u32)
            } else {
                None
            }
        })
    });
    memory.write(u64::from(low) | u64::from(high) << 32, value.unwrap_or(0));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    struct Words(RefCell<Vec<u32>>);

    impl Memory for Words {
        fn read(&self, address: u64) -> u32 {
            self.0.borrow().get(address as usize / 4).copied().unwrap_or(0)
        }
        fn write(&self, address: u64, value: u32) {
            if let Some(word) = self.0.borrow_mut().get_mut(address as usize / 4) {
                *word = value;
            }
        }
    }

    fn uconfig(register: u32, value: u32) -> [u32; 3] {
        [
            3 << 30 | 1 << 16 | op::SET_UCONFIG_REG << 8,
            register - register::UCONFIG,
            value,
        ]
    }

    fn copy(register: u32, address: u32) -> [u32; 6] {
        [
            3 << 30 | 4 << 16 | op::COPY_DATA << 8,
            0x0200_2500,
            register,
            0,
            address,
            0,
        ]
    }

    fn run(words: Vec<u32>, perf: &mut Perf, pm4: &mut Pm4, now: u64) -> Vec<u32> {
        let dwords = words.len() as u32;
        let mut memory = words;
        memory.resize(memory.len() + 64, 0);
        let memory = Words(RefCell::new(memory));
        pm4.buffer(0, dwords, &memory, perf, now);
        memory.0.into_inner()
    }

    #[test]
    fn waves_are_counted_by_engine_and_clocks_by_time() {
        let (mut perf, mut pm4) = (Perf::new(4), Pm4::default());
        let enable = [
            3 << 30 | 1 << 16 | op::SET_SH_REG << 8,
            register::COMPUTE_PERFCOUNT_ENABLE - register::SH,
            1,
        ];
        let mut start = enable.to_vec();
        for (register, value) in [
            (register::GRBM_GFX_INDEX, 0xe000_0000),
            (register::CP_PERFMON_CNTL, 0),
            (0xd840, 0),
            (0xd841, 2),
            (0xd9c0, 4 | 0x0f0f_f000),
            (register::CP_PERFMON_CNTL, 1),
        ] {
            start.extend(uconfig(register, value));
        }
        run(start, &mut perf, &mut pm4, 1000);
        assert!(pm4.is_counted);
        perf.kernel(1500, 6500, 10, 4, 2560);
        let mut read = uconfig(register::CP_PERFMON_CNTL, 0x401).to_vec();
        let results = 4 * 60;
        let mut place = results;
        let mut add = |register| {
            let copy = copy(register, place);
            place += 4;
            copy
        };
        read.extend(add(0xd040));
        read.extend(add(0xd041));
        read.extend(add(0xd043));
        for engine in 0..4 {
            read.extend(uconfig(register::GRBM_GFX_INDEX, 0x6000_0000 | engine << 16));
            read.extend(add(0xd1c0));
        }
        assert!(read.len() <= 60);
        read.resize(60, 0x8000_0000);
        let memory = run(read, &mut perf, &mut pm4, 7000);
        assert_eq!(memory[60..67], [6000, 0, 5000, 12, 12, 8, 8]);
    }

    #[test]
    fn hostile_buffers_end() {
        let (mut perf, mut pm4) = (Perf::new(1), Pm4::default());
        let mut state = 1u32;
        for _ in 0..2000 {
            let words = (0..40)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    if state.is_multiple_of(3) {
                        3 << 30 | state >> 4
                    } else {
                        state
                    }
                })
                .collect();
            run(words, &mut perf, &mut pm4, 1);
        }
    }
}
