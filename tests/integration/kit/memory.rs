//! Allocations: the program's own counts against the recorded ones.

use super::recorded::Recorded;
use roctop::item::{AgentKind, Allocation};
use roctop_ring::record::memory;

impl Recorded {
    /// Checks that every line of the program (call, bytes, bytes held after it, owner) has a recorded call with its
    /// allocation, and that the GPU's recorded total is what the program holds, apart from what the run-time held
    /// before. Returns the number of lines.
    pub(crate) fn check_memory(&self) -> usize {
        let text = std::fs::read_to_string(self.place.join("memory")).unwrap();
        let counted: Vec<(&str, u64, u64, &str)> = text.lines().map(line).collect();
        let names: std::collections::BTreeSet<&str> = counted.iter().map(|(name, ..)| *name).collect();
        let mut calls: Vec<_> = self
            .run
            .calls
            .iter()
            .filter(|call| call.parent == 0 && call.status == Some(0))
            .filter(|call| names.contains(&*self.run.operations[call.operation.0 as usize].name))
            .collect();
        calls.sort_by_key(|call| call.span.begin);
        assert_eq!(calls.len(), counted.len(), "calls that succeeded");
        let mut own = None;
        let mut sizes = std::collections::BTreeMap::new();
        for (call, &(name, bytes, held, whose)) in calls.iter().zip(&counted) {
            let of_call = |row: &&Allocation| row.correlation == call.correlation && row.process == call.process;
            let rows: Vec<&Allocation> = self.run.allocations.iter().filter(of_call).collect();
            let wanted = match name {
                "hipMalloc" | "hipHostMalloc" | "hsa_amd_memory_pool_allocate" | "hsa_memory_allocate" => {
                    memory::ALLOCATE
                }
                "hipFree" | "hipHostFree" | "hsa_amd_memory_pool_free" | "hsa_memory_free" => memory::FREE,
                "hipMemCreate" | "hsa_amd_vmem_handle_create" => memory::VMEM_ALLOCATE,
                "hipMemMap" | "hsa_amd_vmem_map" => memory::VMEM_MAP,
                "hipMemUnmap" | "hsa_amd_vmem_unmap" => memory::VMEM_UNMAP,
                "hipMemRelease" | "hsa_amd_vmem_handle_release" => memory::VMEM_FREE,
                _ => panic!("{name}"),
            };
            // At the first allocations the run-time still makes its own.
            let found = rows.iter().rev().find(|row| row.operation == wanted);
            let row = found.unwrap_or_else(|| panic!("{name} {bytes} has no allocation: {rows:?}"));
            let (begin, end) = (row.span.begin, row.span.end);
            assert!(
                call.span.begin <= begin && begin <= end && end <= call.span.end,
                "{row:?}"
            );
            assert_eq!(row.thread, call.thread);
            assert_eq!(row.bytes, bytes, "{name}: {row:?}");
            match wanted {
                memory::ALLOCATE => assert!(sizes.insert(row.address, bytes).is_none(), "{row:?}"),
                memory::FREE => assert_eq!(sizes.remove(&row.address), Some(bytes), "{row:?}"),
                _ => {}
            }
            let kind = row.agent.map(|agent| self.run.agents[agent.0 as usize].kind);
            if whose == "cpu" {
                assert_eq!(kind, Some(AgentKind::Cpu), "{row:?}");
            } else {
                assert_eq!(kind, Some(AgentKind::Gpu), "{row:?}");
                // After the first launch, what the run-time itself holds of the GPU does not change.
                if row.bytes != 4096 {
                    let before = *own.get_or_insert(row.total - held);
                    assert_eq!(row.total, held + before, "{name}: {row:?}");
                }
            }
        }
        assert!(sizes.is_empty(), "not freed: {sizes:?}");
        counted.len()
    }
}

fn line(text: &str) -> (&str, u64, u64, &str) {
    let mut cells = text.split(' ');
    let mut next = || cells.next().unwrap();
    (next(), next().parse().unwrap(), next().parse().unwrap(), next())
}
