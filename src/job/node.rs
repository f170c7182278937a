//! What the daemon of a node does: one report a second of the sums of its ranks, and answers from their roctops.

use super::events::last_events;
use super::question::{Failure, Hello, NodeAnswer, NodeQuestion, Place};
use super::{parts, realtime_ahead};
use crate::ask::client;
use crate::ask::protocol::{Form, Request, Response};
use crate::clocks::boottime;
use crate::model::ask::of_job::{Part, Plan};
use crate::model::job::{Reducer, decode_rank};
use anyhow::{Context, Result, bail};
use roctop_job::{Duties, Question, Rank};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Ranks of a node that are asked at a time.
const MAX_ASKED: usize = 8;
/// Reasons of ranks without an answer that are passed on.
const MAX_FAILURES: usize = 16;

/// The duties of a node's daemon.
pub(super) struct Node {
    reducer: Mutex<Reducer>,
}

impl Node {
    /// Of a host.
    pub(super) fn new(host: &str) -> Self {
        Self {
            reducer: Mutex::new(Reducer::new(host)),
        }
    }
}

impl Duties for Node {
    /// Sums count once: a rank whose roctop is stopped looks so.
    fn reduce(&self, ranks: &[Rank]) -> Option<bytes::Bytes> {
        let mut reducer = self.reducer.lock().unwrap_or_else(PoisonError::into_inner);
        let new = ranks.iter().filter(|rank| rank.is_new);
        for sums in new.filter_map(|rank| rank.sums.as_deref()) {
            for report in parts::split(sums) {
                // Damaged or foreign ones are left out.
                if let Ok(report) = decode_rank(report) {
                    reducer.take(report);
                }
            }
        }
        Some(reducer.report(boottime(), realtime_ahead()).into())
    }

    fn answer(&self, question: Question, ranks: &[Rank]) {
        let Question { payload, reply, .. } = question;
        match answer(&payload, ranks) {
            Ok(bytes) => {
                if reply.send(bytes.into()) {
                    reply.complete();
                }
            }
            Err(error) => reply.fail(&format!("{error:#}")),
        }
    }
}

/// The sessions of the ranks that have not left, by rank.
fn sessions(ranks: &[Rank]) -> Vec<Hello> {
    let live = ranks.iter().filter(|rank| rank.left.is_none());
    let mut hellos: Vec<Hello> = live
        .filter_map(|rank| serde_json::from_slice(&rank.hello).ok())
        .collect();
    hellos.sort_by_key(|hello| hello.rank);
    hellos
}

/// Errors: the question is none, or there is no such rank here.
fn answer(payload: &[u8], ranks: &[Rank]) -> Result<Vec<u8>> {
    let question = serde_json::from_slice(payload).context("this roctop knows no such question")?;
    let sessions = sessions(ranks);
    let of_rank = |wanted: u32| {
        let found = sessions.iter().find(|hello| hello.rank == wanted);
        found.with_context(|| format!("rank {wanted} is not on this node, or has ended"))
    };
    match question {
        NodeQuestion::Ask { plan, rank } => {
            let asked: Vec<&Hello> = sessions
                .iter()
                .filter(|hello| rank.is_none_or(|rank| hello.rank == rank))
                .collect();
            Ok(serde_json::to_vec(&ask_all(&plan, &asked))?)
        }
        NodeQuestion::Place { rank } => {
            let place = Place {
                session: of_rank(rank)?.session.clone(),
                boot: boot_id(),
            };
            Ok(serde_json::to_vec(&place)?)
        }
        NodeQuestion::Events { rank, seconds } => last_events(&of_rank(rank)?.session, seconds),
    }
}

/// Id of this machine's boot; empty if it is not known.
pub(super) fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    text.map_or_else(|_| String::new(), |text| text.trim().to_owned())
}

/// Asks ranks, some at a time.
fn ask_all(plan: &Plan, asked: &[&Hello]) -> NodeAnswer {
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..MAX_ASKED.min(asked.len()) {
            scope.spawn(|| {
                while let Some(hello) = asked.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let answer = ask_one(plan, hello);
                    let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
                    answers.push((hello.rank, answer));
                }
            });
        }
    });
    let mut answers = answers.into_inner().unwrap_or_else(PoisonError::into_inner);
    answers.sort_by_key(|(rank, _)| *rank);
    let (mut parts, mut failures) = (Vec::new(), Vec::new());
    for (rank, answer) in answers {
        match answer {
            Ok(part) => parts.push(part),
            Err(failure) => failures.push((rank, failure)),
        }
    }
    failures.truncate(MAX_FAILURES);
    NodeAnswer {
        part: plan.join(parts, false),
        failures,
    }
}

fn ask_one(plan: &Plan, hello: &Hello) -> Result<Part, Failure> {
    match response(plan, &hello.session) {
        Ok(Response::Answer { text, .. }) => match serde_json::from_str(&text) {
            Ok(answer) => Ok(plan.part(hello.rank, answer)),
            Err(error) => Err(Failure::Other(format!(
                "its roctop answers in another language: {error}"
            ))),
        },
        Ok(Response::Wrong { column, message }) => Err(Failure::Wrong(column, message)),
        Ok(Response::Failed { message }) => Err(Failure::Other(message)),
        Err(error) => Err(Failure::Other(format!("{error:#}"))),
    }
}

fn response(plan: &Plan, session: &Path) -> Result<Response> {
    let request = Request {
        question: plan.question.clone(),
        form: Form::Whole,
        follow: false,
        rows: Some(plan.rows),
    };
    let mut found = None;
    client::ask(session, &request, &mut |response| {
        found = Some(response);
        Ok(false)
    })?;
    match found {
        Some(response) => Ok(response),
        None => bail!("its session has ended"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::job::{RankReport, RankSums, decode_node, encode_rank};
    use std::time::Instant;

    fn rank(number: u32, is_new: bool) -> Rank {
        let report = RankReport {
            sums: RankSums {
                rank: number,
                begin: 5,
                length: 1_000_000_000,
                ..RankSums::default()
            },
            ..RankReport::default()
        };
        Rank {
            pid: number + 10,
            hello: bytes::Bytes::new(),
            sums: Some(parts::join(&[encode_rank(&report), b"damaged".to_vec()]).into()),
            is_new,
            at: Instant::now(),
            left: None,
        }
    }

    /// A rank whose session answers from an empty store.
    fn asked(number: u32, folder: &Path) -> (Rank, crate::ask::server::Server) {
        let session = folder.join(format!("s{number}"));
        std::fs::create_dir_all(&session).unwrap();
        let store = crate::model::Store::new(crate::model::Options::default());
        let store = std::sync::Arc::new(Mutex::new(store));
        let server = crate::ask::server::Server::start(&session, store, Vec::new(), None).unwrap();
        let hello = Hello { rank: number, session };
        let rank = Rank {
            hello: serde_json::to_vec(&hello).unwrap().into(),
            ..rank(number, false)
        };
        (rank, server)
    }

    #[test]
    fn a_node_answers_for_its_ranks_and_says_who_does_not() {
        let folder = std::env::temp_dir().join(format!("roctop-node-{}", std::process::id()));
        let (mut ranks, mut servers): (Vec<_>, Vec<_>) = (3..6).map(|number| asked(number, &folder)).unzip();
        servers.remove(1);
        let ask = |question: &NodeQuestion, ranks: &[Rank]| answer(&serde_json::to_vec(question).unwrap(), ranks);
        let plan = |text: &str| Plan::new(&crate::model::ask::Question::parse(text, &[]).unwrap());
        let status = |rank| NodeQuestion::Ask {
            plan: plan("status"),
            rank,
        };
        let of = |bytes: Vec<u8>| serde_json::from_slice::<NodeAnswer>(&bytes).unwrap();
        let all = of(ask(&status(None), &ranks).unwrap());
        let part = all.part.unwrap();
        assert_eq!((part.ranks, part.answer.rows.len()), (2, 2));
        assert!(matches!(&all.failures[..], [(4, Failure::Other(why))] if why.contains("no roctop answers")));
        let one = of(ask(&status(Some(5)), &ranks).unwrap()).part.unwrap();
        assert_eq!(one.ranks, 1);
        // Of another node.
        assert!(of(ask(&status(Some(9)), &ranks).unwrap()).part.is_none());
        let wrong = NodeQuestion::Ask {
            plan: plan("top kernels by nothing"),
            rank: Some(3),
        };
        let wrong = of(ask(&wrong, &ranks).unwrap());
        assert!(matches!(&wrong.failures[..], [(3, Failure::Wrong(15, _))]), "{wrong:?}");
        let place: Place = serde_json::from_slice(&ask(&NodeQuestion::Place { rank: 3 }, &ranks).unwrap()).unwrap();
        assert!(place.session.ends_with("s3") && place.boot.len() == 36);
        ranks[0].left = Some(Instant::now());
        let ended = ask(&NodeQuestion::Place { rank: 3 }, &ranks).unwrap_err().to_string();
        assert!(ended.contains("has ended"), "{ended}");
        assert!(answer(b"top kernels", &ranks).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn sums_are_reported_once() {
        let node = Node::new("n01");
        let reported = |ranks: &[Rank]| {
            let report = decode_node(&node.reduce(ranks).expect("a report")).expect("it can be read");
            let numbers: Vec<u32> = report.ranks.iter().map(|sums| sums.rank).collect();
            (report.host, numbers)
        };
        assert_eq!(
            reported(&[rank(3, true), rank(4, true)]),
            ("n01".to_owned(), vec![3, 4])
        );
        assert_eq!(reported(&[rank(3, false), rank(4, true)]).1, [4]);
        assert!(reported(&[rank(3, false)]).1.is_empty());
        assert!(reported(&[]).1.is_empty());
    }
}
