//! The nodes that one process knows: itself, and those that report to it directly or through relays. It has no network:
//! links bring what others say, sinks take it further.

use crate::message::{MAX_INFO, MAX_QUESTION, MAX_REPORT, bounded};
use crate::transport::{Alive, Answer, AnswerError, Clock, Event, Question, Reason, Refusal, Sink, Subscription};
use crate::{Identity, Name, Result};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Maximum number of nodes.
const MAX_NODES: usize = 1 << 14;
/// Questions that wait for one link.
const QUESTIONS: usize = 16;
/// Refusals of one reason are reported once in this time.
const REFUSAL_INTERVAL: Duration = Duration::from_secs(1);
/// Reports that wait in a subscription of a screen.
const REPORTS: usize = 1 << 12;
/// A node's clock is reported once in this time.
const CLOCK_INTERVAL: Duration = Duration::from_secs(5);

/// Number of a connection, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LinkId(u64);

#[derive(Debug)]
struct Node {
    /// The connection that speaks for it.
    link: LinkId,
    generation: u64,
    info: Bytes,
    heard: Instant,
    report: Option<Bytes>,
    /// Against the other end of the link; none for that end itself.
    clock: Clock,
    clock_reported: Option<Instant>,
}

#[derive(Debug)]
struct Link {
    identity: Identity,
    questions: mpsc::Sender<Question>,
    clock: Option<Clock>,
    /// The nodes that it speaks for.
    nodes: BTreeSet<Name>,
}

#[derive(Clone, Debug, Default)]
struct Tally {
    from: String,
    count: u64,
    reported: Option<Instant>,
}

#[derive(Debug, Default)]
struct State {
    nodes: BTreeMap<Name, Node>,
    links: HashMap<LinkId, Link>,
    sinks: Vec<Sink>,
    next_link: u64,
    refusals: HashMap<Refusal, Tally>,
}

impl State {
    fn emit(&mut self, event: &Event) {
        self.sinks.retain(|sink| sink.push(event.clone()));
    }

    /// The connection that speaks for a node does so no more.
    fn take_from_link(&mut self, node: &Name) {
        let link = self.nodes.get(node).map(|node| node.link);
        if let Some(link) = link.and_then(|link| self.links.get_mut(&link)) {
            link.nodes.remove(node);
        }
    }

    fn remove(&mut self, node: &Name, reason: Reason) {
        self.take_from_link(node);
        self.nodes.remove(node);
        self.emit(&Event::Gone {
            node: node.clone(),
            reason,
        });
    }

    /// The node's clock against this one.
    fn clock(&self, node: &Node) -> Option<Clock> {
        Some(node.clock.behind(self.links.get(&node.link)?.clock?))
    }

    fn report_clock(&mut self, name: &Name, now: Instant) {
        let Some(node) = self.nodes.get(name) else { return };
        let is_due = node
            .clock_reported
            .is_none_or(|at| now.saturating_duration_since(at) >= CLOCK_INTERVAL);
        let Some(clock) = self.clock(node).filter(|_| is_due) else {
            return;
        };
        if let Some(node) = self.nodes.get_mut(name) {
            node.clock_reported = Some(now);
        }
        self.emit(&Event::Clock {
            node: name.clone(),
            clock,
        });
    }

    fn report_refusals(&mut self, reason: Refusal, now: Instant) {
        let tally = self.refusals.entry(reason).or_default();
        let is_due = tally
            .reported
            .is_none_or(|at| now.saturating_duration_since(at) >= REFUSAL_INTERVAL);
        if tally.count == 0 || !is_due {
            return;
        }
        tally.reported = Some(now);
        let event = Event::Refused {
            from: tally.from.clone(),
            reason,
            count: std::mem::take(&mut tally.count),
        };
        self.emit(&event);
    }
}

/// The nodes that one process knows.
#[derive(Debug, Default)]
pub(crate) struct Tree(Mutex<State>);

impl Tree {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new connection, and the questions to nodes that it speaks for.
    pub(crate) fn open(&self, identity: Identity) -> (LinkId, mpsc::Receiver<Question>) {
        let (sender, questions) = mpsc::channel(QUESTIONS);
        let mut state = self.state();
        state.next_link += 1;
        let id = LinkId(state.next_link);
        let link = Link {
            identity,
            questions: sender,
            clock: None,
            nodes: BTreeSet::new(),
        };
        state.links.insert(id, link);
        (id, questions)
    }

    /// A node is there. It may have been known by another connection, which then speaks for it no more.
    ///
    /// Errors: the connection's key does not allow it, or the node has a newer connection.
    pub(crate) fn hello(&self, link: LinkId, node: &Name, generation: u64, info: Bytes) -> Result<(), Refusal> {
        let mut state = self.state();
        let Some(known) = state.links.get(&link) else {
            return Err(Refusal::Older);
        };
        let Identity { role, name, .. } = &known.identity;
        if !role.may_report(name, node) {
            return Err(Refusal::WrongNode);
        }
        bounded("information", &info, MAX_INFO).map_err(|_| Refusal::BadMessage)?;
        match state.nodes.get(node) {
            Some(old) if generation < old.generation => return Err(Refusal::Older),
            None if state.nodes.len() >= MAX_NODES => return Err(Refusal::TooMany),
            _ => {}
        }
        let entry = Node {
            link,
            generation,
            info: info.clone(),
            heard: Instant::now(),
            report: None,
            clock: Clock::default(),
            clock_reported: None,
        };
        state.take_from_link(node);
        state.nodes.insert(node.clone(), entry);
        if let Some(link) = state.links.get_mut(&link) {
            link.nodes.insert(node.clone());
        }
        state.emit(&Event::Known {
            node: node.clone(),
            generation,
            info,
        });
        Ok(())
    }

    /// Raises the generation of a node before it says hello over a new connection.
    pub(crate) fn renew(&self, node: &Name) {
        if let Some(node) = self.state().nodes.get_mut(node) {
            node.generation += 1;
        }
    }

    /// The sums of a node. Those of a node that the connection does not speak for any more are dropped.
    ///
    /// Errors: they are too long.
    pub(crate) fn report(&self, link: LinkId, node: &Name, report: Bytes) -> Result<()> {
        bounded("a report", &report, MAX_REPORT)?;
        let mut state = self.state();
        let Some(known) = state.nodes.get_mut(node).filter(|node| node.link == link) else {
            return Ok(());
        };
        known.heard = Instant::now();
        known.report = Some(report.clone());
        state.emit(&Event::Report {
            node: node.clone(),
            report,
        });
        Ok(())
    }

    /// The clock at the other end of a connection has been compared.
    pub(crate) fn link_clock(&self, link: LinkId, clock: Clock) {
        let now = Instant::now();
        let mut state = self.state();
        let Some(known) = state.links.get_mut(&link) else {
            return;
        };
        known.clock = Some(clock);
        let names = known.nodes.clone();
        for name in names {
            if let Some(node) = state.nodes.get_mut(&name) {
                node.heard = now;
            }
            state.report_clock(&name, now);
        }
    }

    /// A relay has compared a node's clock with its own.
    pub(crate) fn node_clock(&self, link: LinkId, node: &Name, clock: Clock) {
        let mut state = self.state();
        if let Some(known) = state.nodes.get_mut(node).filter(|node| node.link == link) {
            known.clock = clock;
            state.report_clock(node, Instant::now());
        }
    }

    /// A node is there no more. This of a connection that does not speak for it any more says nothing.
    pub(crate) fn gone(&self, link: LinkId, node: &Name, reason: Reason) {
        let mut state = self.state();
        if state.nodes.get(node).is_some_and(|node| node.link == link) {
            state.remove(node, reason);
        }
    }

    /// A connection has ended, and with it the nodes that it spoke for.
    pub(crate) fn close(&self, link: LinkId, reason: Reason) {
        let mut state = self.state();
        let Some(closed) = state.links.remove(&link) else {
            return;
        };
        for name in closed.nodes {
            let reason = if name == closed.identity.name || reason == Reason::Left {
                reason
            } else {
                Reason::RelayLost
            };
            state.remove(&name, reason);
        }
    }

    /// `count` connections were refused.
    pub(crate) fn refused(&self, from: &str, reason: Refusal, count: u64) {
        let mut state = self.state();
        let tally = state.refusals.entry(reason).or_default();
        tally.count = tally.count.saturating_add(count);
        from.clone_into(&mut tally.from);
        state.report_refusals(reason, Instant::now());
    }

    /// Reports refusals that were counted since the last report; called about once a second.
    pub(crate) fn tick(&self) {
        let mut state = self.state();
        let reasons: Vec<Refusal> = state.refusals.keys().copied().collect();
        for reason in reasons {
            state.report_refusals(reason, Instant::now());
        }
    }

    /// Events from now on, of which at most `limit` reports wait.
    pub(crate) fn subscribe_at_most(&self, limit: usize) -> Subscription {
        let (sink, subscription) = Subscription::new(limit);
        let mut state = self.state();
        for (name, node) in &state.nodes {
            sink.push(Event::Known {
                node: name.clone(),
                generation: node.generation,
                info: node.info.clone(),
            });
            if let Some(clock) = state.clock(node) {
                sink.push(Event::Clock {
                    node: name.clone(),
                    clock,
                });
            }
            if let Some(report) = &node.report {
                sink.push(Event::Report {
                    node: name.clone(),
                    report: report.clone(),
                });
            }
        }
        state.sinks.push(sink);
        subscription
    }

    pub(crate) fn subscribe(&self) -> Subscription {
        self.subscribe_at_most(REPORTS)
    }

    /// Asks a node, by the connection that speaks for it.
    pub(crate) fn query(&self, node: &Name, payload: Bytes) -> Answer {
        if let Err(error) = bounded("a question", &payload, MAX_QUESTION) {
            return Answer::failed(AnswerError::Failed(error.to_string()));
        }
        let state = self.state();
        let link = state.nodes.get(node).and_then(|node| state.links.get(&node.link));
        let Some(link) = link else {
            return Answer::failed(AnswerError::UnknownNode(node.clone()));
        };
        let (reply, answer) = Answer::new();
        let question = Question {
            node: node.clone(),
            payload,
            reply,
        };
        match link.questions.try_send(question) {
            Ok(()) => answer,
            Err(_) => Answer::failed(AnswerError::Busy),
        }
    }

    pub(crate) fn alive(&self) -> Vec<Alive> {
        let state = self.state();
        let nodes = state.nodes.iter();
        nodes
            .map(|(name, node)| Alive {
                node: name.clone(),
                info: node.info.clone(),
                heard: node.heard.elapsed(),
                clock: state.clock(node),
            })
            .collect()
    }

    /// Ends all subscriptions.
    pub(crate) fn end(&self) {
        self.state().sinks.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn identity(role: Role, text: &str) -> Identity {
        Identity {
            job: name("77"),
            role,
            name: name(text),
        }
    }

    fn all(subscription: &mut Subscription) -> Vec<Event> {
        std::iter::from_fn(|| subscription.try_next()).collect()
    }

    #[test]
    fn the_end_of_an_old_connection_keeps_the_new_one() {
        let tree = Tree::default();
        let a = name("a");
        let (old, _) = tree.open(identity(Role::Node, "a"));
        tree.hello(old, &a, 1, Bytes::new()).unwrap();
        let (new, _) = tree.open(identity(Role::Node, "a"));
        tree.hello(new, &a, 2, Bytes::new()).unwrap();
        let mut events = tree.subscribe();
        assert_eq!(all(&mut events).len(), 1);
        tree.report(old, &a, Bytes::from_static(b"late")).unwrap();
        tree.gone(old, &a, Reason::Closed);
        tree.close(old, Reason::Closed);
        assert_eq!(all(&mut events), []);
        assert_eq!(tree.alive().len(), 1);
        tree.close(new, Reason::Silent);
        let gone = Event::Gone {
            node: a,
            reason: Reason::Silent,
        };
        assert_eq!(all(&mut events), [gone]);
    }

    #[test]
    fn an_older_hello_is_refused_while_the_newer_lasts() {
        let tree = Tree::default();
        let a = name("a");
        let (new, _) = tree.open(identity(Role::Relay, "r1"));
        tree.hello(new, &a, 5, Bytes::new()).unwrap();
        let (old, _) = tree.open(identity(Role::Relay, "r2"));
        assert_eq!(tree.hello(old, &a, 4, Bytes::new()), Err(Refusal::Older));
        tree.close(new, Reason::Closed);
        assert_eq!(tree.hello(old, &a, 4, Bytes::new()), Ok(()));
    }

    #[test]
    fn a_node_key_speaks_for_its_node_alone() {
        let tree = Tree::default();
        let (link, _) = tree.open(identity(Role::Node, "a"));
        assert_eq!(tree.hello(link, &name("b"), 1, Bytes::new()), Err(Refusal::WrongNode));
        let long = Bytes::from(vec![0; MAX_INFO + 1]);
        assert_eq!(tree.hello(link, &name("a"), 1, long), Err(Refusal::BadMessage));
        assert!(tree.alive().is_empty());
    }

    #[test]
    fn a_lost_relay_is_the_reason_for_its_nodes() {
        let tree = Tree::default();
        let (link, _) = tree.open(identity(Role::Relay, "r"));
        for node in ["a", "r"] {
            tree.hello(link, &name(node), 1, Bytes::new()).unwrap();
        }
        let mut events = tree.subscribe();
        tree.close(link, Reason::Silent);
        let gone = |node: &str, reason| Event::Gone {
            node: name(node),
            reason,
        };
        assert_eq!(
            all(&mut events)[2..],
            [gone("a", Reason::RelayLost), gone("r", Reason::Silent)]
        );
    }

    #[test]
    fn refusals_of_one_reason_are_counted_together() {
        let tree = Tree::default();
        let mut events = tree.subscribe();
        for _ in 0..100 {
            tree.refused("10.0.0.9", Refusal::NoKey, 1);
        }
        let refused = |count| Event::Refused {
            from: "10.0.0.9".into(),
            reason: Refusal::NoKey,
            count,
        };
        assert_eq!(all(&mut events), [refused(1)]);
        tree.tick();
        assert_eq!(all(&mut events), []);
        std::thread::sleep(REFUSAL_INTERVAL);
        tree.tick();
        assert_eq!(all(&mut events), [refused(99)]);
    }

    #[test]
    fn a_subscriber_that_does_not_read_costs_bounded_memory() {
        let tree = Tree::default();
        let a = name("a");
        let (link, _) = tree.open(identity(Role::Node, "a"));
        tree.hello(link, &a, 1, Bytes::new()).unwrap();
        let mut slow = tree.subscribe_at_most(16);
        for second in 0..100u8 {
            tree.report(link, &a, Bytes::from(vec![second])).unwrap();
        }
        assert_eq!((all(&mut slow).len(), slow.missed()), (16, 85));
        tree.report(link, &a, Bytes::from_static(b"x")).unwrap();
        assert_eq!(all(&mut slow).len(), 1);
        // One that comes late knows at once what is there.
        assert_eq!(all(&mut tree.subscribe()).len(), 2);
        // Nodes that come and go by the thousand end it.
        for generation in 2..40_000 {
            tree.hello(link, &a, generation, Bytes::new()).unwrap();
        }
        assert!(all(&mut slow).len() <= 20_000 && slow.is_closed());
    }

    #[test]
    fn clocks_add_up_over_a_relay() {
        let tree = Tree::default();
        let (link, _) = tree.open(identity(Role::Relay, "r"));
        for node in ["a", "r"] {
            tree.hello(link, &name(node), 1, Bytes::new()).unwrap();
        }
        let clock = |offset_ns, error_ns| Clock { offset_ns, error_ns };
        tree.node_clock(link, &name("a"), clock(5, 2));
        assert_eq!(tree.alive()[0].clock, None);
        tree.link_clock(link, clock(-100, 10));
        let clocks: Vec<_> = tree.alive().into_iter().map(|alive| alive.clock).collect();
        assert_eq!(clocks, [Some(clock(-95, 12)), Some(clock(-100, 10))]);
    }
}
