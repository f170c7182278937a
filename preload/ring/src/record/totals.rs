//! The per-thread table of call totals by operation.

use super::Domain;

/// Index of an operation in the per-thread table of totals, or `None` if the table has no entry for it.
pub const fn totals_index(domain: Domain, op: u16) -> Option<usize> {
    let [base, room] = ROOMS[(domain.0 % 16) as usize];
    if domain.0 < 16 && op < room {
        Some((base + op) as usize)
    } else if domain.0 == Domain::HIP.0 && op >= 512 && op < 512 + HIP_REST.1 {
        Some((HIP_REST.0 + op - 512) as usize)
    } else {
        None
    }
}

/// First index and number of entries for HIP operations beyond the first 512 (HIP 10 and later).
const HIP_REST: (u16, u16) = (672, 32);

/// First index and number of entries of each domain. A table, not a `match`: every traced call reads it.
const ROOMS: [[u16; 2]; 16] = {
    let mut rooms = [[0; 2]; 16];
    rooms[Domain::HIP.0 as usize] = [0, 512];
    rooms[Domain::HIP_COMPILER.0 as usize] = [512, 32];
    rooms[Domain::HSA_CORE.0 as usize] = [544, 128];
    rooms[Domain::HSA_AMD.0 as usize] = [704, 128];
    rooms[Domain::HSA_IMAGE.0 as usize] = [832, 32];
    rooms[Domain::HSA_FINALIZER.0 as usize] = [864, 16];
    rooms[Domain::MARKER.0 as usize] = [880, 32];
    rooms[Domain::RCCL.0 as usize] = [912, 64];
    rooms[Domain::ROCDECODE.0 as usize] = [976, 24];
    rooms[Domain::ROCJPEG.0 as usize] = [1000, 24];
    rooms
};

/// Number of entries in the per-thread table.
pub const TOTALS: usize = 1024;

/// Domain and operation of an index in the table.
pub const fn totals_operation(index: usize) -> Option<(Domain, u16)> {
    let (domain, base) = match index {
        0..512 => (Domain::HIP, 0),
        512..544 => (Domain::HIP_COMPILER, 512),
        544..672 => (Domain::HSA_CORE, 544),
        672..704 => return Some((Domain::HIP, (index - 672 + 512) as u16)),
        704..832 => (Domain::HSA_AMD, 704),
        832..864 => (Domain::HSA_IMAGE, 832),
        864..880 => (Domain::HSA_FINALIZER, 864),
        880..912 => (Domain::MARKER, 880),
        912..976 => (Domain::RCCL, 912),
        976..1000 => (Domain::ROCDECODE, 976),
        1000..1024 => (Domain::ROCJPEG, 1000),
        _ => return None,
    };
    Some((domain, (index - base) as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_totals_index_names_its_operation() {
        for index in 0..TOTALS {
            if let Some((domain, op)) = totals_operation(index) {
                assert_eq!(totals_index(domain, op), Some(index));
            }
        }
    }
}
