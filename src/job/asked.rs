//! Questions to a job: to the daemons of all its nodes, whose answers are put together here.

use super::pack::MAX_PACKED;
use super::question::{Failure, NodeAnswer, NodeQuestion, Place};
use crate::cli::usage_error::UsageError;
use crate::model::ask::of_job::Plan;
use crate::model::ask::{Answer, Question};
use anyhow::{Context, Result, anyhow, bail};
use roctop_job::{Connection, Daemon, Event, Name, Subscription, Transport};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// Before the name of a job where a question can be put to other things.
const PREFIX: &str = "job:";
/// How long the nodes of a job may take to appear.
const APPEAR: Duration = Duration::from_secs(10);
/// No further node has come for this time: all are known.
const QUIET: Duration = Duration::from_millis(300);
/// How long a node may take for its answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// Maximum length of a node's answer, bytes.
const MAX_ANSWER: usize = 64 << 20;
/// Nodes that are asked at a time.
const MAX_ASKED: usize = 8;
/// Ranks and nodes without an answer that are named.
const MAX_NAMED: usize = 5;

/// What of a job is asked: all ranks, or one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The job.
    pub(crate) job: String,
    /// The rank.
    pub(crate) rank: Option<u32>,
}

impl Target {
    /// Of `job:ID` or `job:ID/RANK`; `None` of other texts.
    ///
    /// Errors: the rank is no number.
    pub(crate) fn of_text(text: &str) -> Result<Option<Self>> {
        let Some(rest) = text.strip_prefix(PREFIX) else {
            return Ok(None);
        };
        let (job, rank) = rest
            .split_once('/')
            .map_or((rest, None), |(job, rank)| (job, Some(rank)));
        let number = |rank: &str| {
            let number = rank.parse::<u32>();
            number.map_err(|_| UsageError(format!("{rank:?} is no rank: job:{job}/5 asks rank 5")))
        };
        Ok(Some(Self {
            job: job.to_owned(),
            rank: rank.map(number).transpose()?,
        }))
    }
}

/// A job that is asked.
pub(crate) struct AskedJob {
    name: Name,
    network: Daemon,
}

impl AskedJob {
    /// A job of the user, once its nodes are known.
    ///
    /// Errors: there is no such job, its keys are not the user's alone, or no node appears.
    pub(crate) fn find(name: &str) -> Result<Self> {
        let (name, network) = super::watch::network(name)?;
        let mut events = network.subscribe();
        if !all_known(&mut events) {
            let why = network
                .connections()
                .into_iter()
                .find_map(|connection| match connection {
                    Connection::Failed(why) => Some(format!(": {why}")),
                    Connection::Pending | Connection::Open => None,
                });
            bail!("no node of job {name} appears{}", why.unwrap_or_default());
        }
        Ok(Self { name, network })
    }

    /// The answer of all ranks, or of one.
    ///
    /// Errors: no rank answers; if the question is none for the ranks, with its column.
    pub(crate) fn ask(&self, question: &Question, rank: Option<u32>) -> Result<Answer> {
        let plan = Plan::new(question);
        let asked = NodeQuestion::Ask {
            plan: plan.clone(),
            rank,
        };
        let (mut parts, mut failures) = (Vec::new(), Vec::new());
        for (node, answer) in self.all_nodes(&asked) {
            match answer {
                Ok(NodeAnswer { part, failures: of }) => {
                    parts.extend(part);
                    failures.extend(of.into_iter().map(|(rank, why)| (format!("rank {rank}"), why)));
                }
                Err(error) => failures.push((format!("node {node}"), Failure::Other(format!("{error:#}")))),
            }
        }
        let Some(mut whole) = plan.join(parts, true) else {
            return Err(no_answer(&self.name, question, rank, failures));
        };
        let answer = &mut whole.answer;
        answer.question.clone_from(&question.source);
        answer.title = match (rank, whole.ranks) {
            (Some(rank), _) => format!("job {}, rank {rank}", self.name),
            (None, 1) => format!("job {}, 1 rank", self.name),
            (None, ranks) => format!("job {}, {ranks} ranks", self.name),
        };
        let rest = failures.len().saturating_sub(MAX_NAMED);
        for (who, why) in failures.into_iter().take(MAX_NAMED) {
            let (Failure::Wrong(_, why) | Failure::Other(why)) = why;
            answer.notes.push(format!("{who} is missing: {why}"));
        }
        if rest > 0 {
            answer.notes.push(format!("{rest} more are missing"));
        }
        Ok(whole.answer)
    }

    /// The answers of all nodes, by name.
    fn all_nodes(&self, question: &NodeQuestion) -> Vec<(Name, Result<NodeAnswer>)> {
        let nodes = Mutex::new(self.network.alive().into_iter().map(|alive| alive.node));
        let answers = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..MAX_ASKED {
                scope.spawn(|| {
                    loop {
                        let Some(node) = nodes.lock().unwrap_or_else(PoisonError::into_inner).next() else {
                            return;
                        };
                        let answer = ask_node(&self.network, &node, question, MAX_ANSWER)
                            .and_then(|bytes| serde_json::from_slice(&bytes).context("it answers in another language"));
                        answers
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push((node, answer));
                    }
                });
            }
        });
        let mut answers = answers.into_inner().unwrap_or_else(PoisonError::into_inner);
        answers.sort_by(|a, b| a.0.cmp(&b.0));
        answers
    }
}

/// Where the session of a rank is, as its node says.
pub(super) fn place_of(network: &Daemon, node: &Name, rank: u32) -> Result<Place> {
    let bytes = ask_node(network, node, &NodeQuestion::Place { rank }, MAX_ANSWER)?;
    serde_json::from_slice(&bytes).context("the node answers in another language")
}

/// The last events of a rank, packed.
pub(super) fn events_of(network: &Daemon, node: &Name, rank: u32, seconds: u32) -> Result<Vec<u8>> {
    ask_node(network, node, &NodeQuestion::Events { rank, seconds }, MAX_PACKED)
}

fn ask_node(network: &Daemon, node: &Name, question: &NodeQuestion, most: usize) -> Result<Vec<u8>> {
    let answer = network.query(node, serde_json::to_vec(question)?.into());
    Ok(answer.collect(most, ANSWER_LIMIT)?)
}

/// Waits until all nodes are known that the root knows; false if none is.
fn all_known(events: &mut Subscription) -> bool {
    let began = Instant::now();
    let mut last: Option<Instant> = None;
    loop {
        // Reports of those that are known come all the time.
        let rest = last.map_or(APPEAR.saturating_sub(began.elapsed()), |last| {
            QUIET.saturating_sub(last.elapsed())
        });
        match events.next_within(rest) {
            Some(Event::Known { .. }) => last = Some(Instant::now()),
            Some(_) if !rest.is_zero() => {}
            _ => return last.is_some(),
        }
    }
}

/// The error when no rank has answered.
fn no_answer(job: &Name, question: &Question, rank: Option<u32>, failures: Vec<(String, Failure)>) -> anyhow::Error {
    match failures.into_iter().next() {
        Some((_, Failure::Wrong(column, message))) => {
            let source = &question.source;
            UsageError(format!("{message} (column {} of '{source}')", column + 1)).into()
        }
        Some((who, Failure::Other(why))) => anyhow!("{who} of job {job} gives no answer: {why}"),
        None => match rank {
            Some(rank) => anyhow!("there is no rank {rank} in job {job}, or it has ended"),
            None => anyhow!("no rank of job {job} runs any more; ask the recordings of its ranks"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_or_one_rank_of_it_is_asked() {
        let target = |text: &str| Target::of_text(text).unwrap();
        let of = |job: &str, rank| Some(Target { job: job.into(), rank });
        assert_eq!(target("job:4711"), of("4711", None));
        assert_eq!(target("job:4711/5"), of("4711", Some(5)));
        assert_eq!(target("run"), None);
        assert!(Target::of_text("job:4711/x").is_err() && Target::of_text("job:1/-1").is_err());
    }
}
