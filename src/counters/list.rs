//! Asks the collector, in a process of roctop's own, which counters there are and how many fit at once.

use super::request::Request;
use crate::clocks::boottime;
use crate::decode::Decoder;
use crate::embedded;
use crate::item::{Agent, AgentKind, CounterInfo, Exit, Item};
use crate::pc_sampling::Configuration;
use crate::process::launch;
use crate::session::{Live, SessionDir};
use anyhow::{Context, Result};
use roctop_ring::record::status;
use std::process::{Command, Stdio};

/// First argument that makes roctop the process that lists.
const WORKER: &str = "__counters";

/// True in that process.
pub fn is_worker() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| word == WORKER)
}

/// An agent and its counters.
#[derive(Clone, Debug, Default)]
pub struct OnAgent {
    /// The agent.
    pub agent: Agent,
    /// Its counters, in the library's order.
    pub counters: Vec<CounterInfo>,
    /// Ways of sampling its program counters.
    pub sampling: Vec<Configuration>,
}

/// What the collector reported.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// GPUs with counters.
    pub agents: Vec<OnAgent>,
    /// GPUs, with counters or without.
    pub gpus: usize,
    /// What is not available, and why.
    pub problems: Vec<String>,
    /// Why program counters cannot be sampled.
    pub no_sampling: Vec<String>,
}

impl Listed {
    /// What is asked for by pass, from the first, as the GPU that takes the most passes needs it.
    pub fn plan(&self, asked: &[String]) -> Vec<Vec<String>> {
        let passes_of = |one: &OnAgent| one.counters.iter().map(|counter| counter.pass).max().unwrap_or(0);
        let mut agents: Vec<&OnAgent> = self.agents.iter().collect();
        agents.sort_by_key(|one| std::cmp::Reverse(passes_of(one)));
        let pass_of = |word: &String| {
            let (name, device) = match word.split_once(":device=") {
                Some((name, device)) => (name, device.parse().ok()),
                None => (word.as_str(), None),
            };
            let own = |one: &&&OnAgent| device.is_none_or(|device: u32| one.agent.number == device);
            let counters = agents.iter().filter(own).flat_map(|one| &one.counters);
            counters
                .filter(|counter| &*counter.name == name)
                .map(|counter| counter.pass)
                .next()
        };
        let last = agents.first().map_or(0, |one| passes_of(one));
        let of_pass = |pass: u16| {
            asked
                .iter()
                .filter(|word| pass_of(word) == Some(pass))
                .cloned()
                .collect()
        };
        (1..=last)
            .map(of_pass)
            .filter(|counters: &Vec<String>| !counters.is_empty())
            .collect()
    }
}

/// Lists counters; those of the request only when it names some, packed into passes.
///
/// Errors: the process could not be started. That no library is there is not one: it is among the problems.
pub fn list(request: &Request) -> Result<Listed> {
    let installed = embedded::install()?;
    let session = SessionDir::create()?;
    let own = std::env::current_exe().context("cannot find roctop's own file")?;
    let mut variables = launch::environment(&installed, session.path(), &own)?;
    variables.extend(request.variables());
    let mut command = Command::new(own);
    command
        .arg(WORKER)
        .envs(variables)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let read = command
        .spawn()
        .context("cannot start the process that lists counters")
        .and_then(|mut child| {
            let pid = child.id();
            let ended = child.wait()?;
            let mut decoder = Decoder::default();
            let exit = ended.code().map_or(Exit::Unknown, Exit::Code);
            Live::new(session.path()).exited(pid, exit, boottime(), &mut decoder)?;
            Ok((ended, sort(decoder.take_items())))
        });
    session.remove()?;
    let (ended, mut listed) = read?;
    if !ended.success() {
        listed.problems.push(format!(
            "the profiler's library ended the process that asked it ({ended})"
        ));
    }
    if listed.agents.is_empty() && listed.problems.is_empty() {
        listed
            .problems
            .push("the collector reported nothing on counters".into());
    }
    Ok(listed)
}

fn sort(items: Vec<Item>) -> Listed {
    let mut listed = Listed::default();
    for item in items {
        match item {
            Item::Agent(agent) => listed.agents.push(OnAgent {
                agent,
                counters: Vec::new(),
                sampling: Vec::new(),
            }),
            Item::CounterInfo(counter) => {
                let owner = listed.agents.iter_mut().find(|one| one.agent.id == counter.agent);
                if let Some(owner) = owner {
                    owner.counters.push(counter);
                }
            }
            Item::Sampling(one) => {
                if let Some(owner) = listed.agents.iter_mut().find(|on| on.agent.id == one.agent) {
                    owner.sampling.push(one);
                }
            }
            Item::Status { code, text, .. } if code == status::NOTE => {
                listed
                    .no_sampling
                    .extend(text.strip_prefix("PC sampling: ").map(str::to_owned));
            }
            Item::Status { code, text, .. } if code == status::UNAVAILABLE => {
                let text = text.strip_prefix("counters: ").unwrap_or(&text);
                listed.problems.push(text.to_owned());
            }
            _ => {}
        }
    }
    let is_gpu = |one: &&OnAgent| one.agent.kind == AgentKind::Gpu;
    listed.gpus = listed.agents.iter().filter(is_gpu).count();
    listed
        .agents
        .retain(|one| !one.counters.is_empty() || !one.sampling.is_empty());
    listed
}
