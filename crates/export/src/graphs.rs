//! Launches of executable graphs, numbered as rocprofiler-sdk numbers them, and the kernels of each. Their handles are in arguments of
//! calls; without these nothing is known.

use crate::arguments;
use crate::numbers::Numbers;
use crate::records::Row;
use crate::sort::{Entry, Sorter};
use crate::view::View;
use roctop_trace::item::{AgentId, ApiCall};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io;

/// Memory for numbers while they are sorted, bytes.
const SORT_BUFFER_BYTES: usize = 8 << 20;

/// A number of a launch, by correlation id.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Numbered {
    id: u64,
    number: u32,
}

impl Entry for Numbered {
    type Key = (u64, u32);

    fn key(&self) -> Self::Key {
        (self.id, self.number)
    }
}

/// A launch.
pub(crate) struct Launch {
    /// Number of the executable graph, from 1.
    pub(crate) graph: u32,
    /// Number of its kernels.
    pub(crate) kernels: u32,
    /// Agent of a kernel, if there is one.
    pub(crate) agent: Option<AgentId>,
}

/// The launches of a process, by correlation id.
#[derive(Default)]
pub(crate) struct Graphs {
    /// Whether there are any.
    are_known: bool,
    /// Number of the executable graph.
    executables: Numbers,
    kernels: Numbers,
    /// One more than the agent.
    agents: Numbers,
}

impl Graphs {
    pub(crate) fn new(view: &View<'_>) -> io::Result<Self> {
        let known = |id: &roctop_trace::item::OperationId| view.run.operations.get(id.0 as usize);
        let mut called = view.rows.operations.iter().filter_map(known);
        if !called.any(|operation| operation.name.starts_with(LAUNCH)) {
            return Ok(Self::default());
        }
        let mut launches = Sorter::new(view.place, SORT_BUFFER_BYTES);
        let (mut graphs, mut last): (HashMap<u64, u32>, u32) = (HashMap::new(), 0);
        for row in view.rows.hip.iter() {
            let row = row?;
            let Some(act) = Act::of(view, &row.record) else {
                continue;
            };
            let Some(handle) = handle(view, &row.record, act) else {
                continue;
            };
            if act == Act::Destroy {
                graphs.remove(&handle);
                continue;
            }
            let number = *graphs.entry(handle).or_insert_with(|| {
                last += 1;
                last
            });
            if act == Act::Launch {
                launches.put(Numbered { id: row.id, number })?;
            }
        }
        let launches = launches.finish()?;
        let graphs = Numbers::new(
            view.place,
            launches.iter().map(|one| one.map(|one| (one.id, one.number))),
        )?;
        let mut agents = Sorter::new(view.place, SORT_BUFFER_BYTES);
        for row in view.rows.dispatches.iter() {
            let row = row?;
            let launch = [row.id, row.ancestor].into_iter().find(|id| graphs.get(*id) != 0);
            if let Some(id) = launch {
                let number = row.record.agent.0 + 1;
                agents.put(Numbered { id, number })?;
            }
        }
        let agents = agents.finish()?;
        let (mut of, mut count) = (0, 0);
        let counted = agents.iter().map(|one| {
            let id = one?.id;
            count = if id == of { count + 1 } else { 1 };
            of = id;
            Ok((id, count))
        });
        Ok(Self {
            are_known: true,
            executables: graphs,
            kernels: Numbers::new(view.place, counted)?,
            agents: Numbers::new(view.place, agents.iter().map(|one| one.map(|one| (one.id, one.number))))?,
        })
    }

    /// Number of the executable graph to which a kernel or copy belongs; 0 if none.
    pub(crate) fn of_work<T>(&self, row: &Row<T>) -> u32 {
        let ids = [row.id, row.ancestor].into_iter();
        ids.map(|id| self.executables.get(id))
            .find(|graph| *graph != 0)
            .unwrap_or(0)
    }

    /// The launch that a call makes.
    fn launch(&self, call: &Row<ApiCall>) -> Option<Launch> {
        let graph = self.executables.get(call.id);
        (graph != 0).then(|| Launch {
            graph,
            kernels: self.kernels.get(call.id),
            agent: self.agents.get(call.id).checked_sub(1).map(AgentId),
        })
    }

    /// The calls that launch.
    pub(crate) fn launches<'a>(
        &'a self,
        view: &'a View<'_>,
    ) -> impl Iterator<Item = io::Result<(Row<ApiCall>, Launch)>> + 'a {
        let calls = self.are_known.then(|| view.rows.hip.iter()).into_iter().flatten();
        calls.filter_map(|row| row.map(|row| self.launch(&row).map(|launch| (row, launch))).transpose())
    }

    /// Errors: one of the numbers could not be read.
    pub(crate) fn check(&self) -> io::Result<()> {
        [&self.executables, &self.kernels, &self.agents]
            .into_iter()
            .try_for_each(Numbers::check)
    }
}

/// Begin of the names of calls that launch.
const LAUNCH: &str = "hipGraphLaunch";

/// What a call does with an executable graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Make,
    Launch,
    Destroy,
}

impl Act {
    /// `None` for a call that failed.
    fn of(view: &View<'_>, call: &ApiCall) -> Option<Self> {
        let act = match view.function(call) {
            "hipGraphExecDestroy" => Self::Destroy,
            name if name.starts_with(LAUNCH) => Self::Launch,
            name if name.starts_with("hipGraphInstantiate") => Self::Make,
            _ => return None,
        };
        (call.status.unwrap_or(0) == 0).then_some(act)
    }
}

/// Handle of the executable graph of a call: its first argument, or what that points at.
fn handle(view: &View<'_>, call: &ApiCall, act: Act) -> Option<u64> {
    let first = arguments::of(view, call).into_iter().next()?;
    let text = if act == Act::Make { first.given? } else { first.value };
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}
