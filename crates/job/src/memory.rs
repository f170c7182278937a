//! This process's end of a job's network: its node, or a view of all.

use crate::transport::{Alive, Answer, Clock, Questions, Reason, Subscription, Transport};
use crate::tree::{LinkId, Tree};
use crate::{Error, Identity, Name, Result, Role};
use bytes::Bytes;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// One end of a job's network, with or without a node.
#[derive(Debug)]
pub struct Member {
    pub(crate) tree: Arc<Tree>,
    node: Option<(LinkId, Name)>,
}

/// A generation that no earlier process of this node has had.
fn generation() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_nanos() as u64)
}

impl Member {
    pub(crate) fn viewer(tree: Arc<Tree>) -> Self {
        Self { tree, node: None }
    }

    pub(crate) fn node(tree: Arc<Tree>, job: &Name, node: &Name, info: Bytes) -> Result<(Self, Questions)> {
        let identity = Identity {
            job: job.clone(),
            role: Role::Node,
            name: node.clone(),
        };
        let (link, questions) = tree.open(identity);
        crate::message::bounded("information", &info, crate::MAX_INFO)?;
        // Its own key allows it.
        let _ = tree.hello(link, node, generation(), info);
        tree.link_clock(link, Clock::default());
        let node = Some((link, node.clone()));
        Ok((Self { tree, node }, Questions(questions)))
    }

    /// The node's name, if this end has one.
    pub fn name(&self) -> Option<&Name> {
        self.node.as_ref().map(|(_, name)| name)
    }

    /// The node is there no more.
    pub(crate) fn leave(&self) {
        if let Some((link, _)) = &self.node {
            self.tree.close(*link, Reason::Left);
        }
    }
}

impl Transport for Member {
    fn publish(&self, report: Bytes) -> Result<()> {
        let (link, name) = self.node.as_ref().ok_or(Error::NoNode)?;
        self.tree.report(*link, name, report)
    }

    fn subscribe(&self) -> Subscription {
        self.tree.subscribe()
    }

    fn query(&self, node: &Name, question: Bytes) -> Answer {
        self.tree.query(node, question)
    }

    fn alive(&self) -> Vec<Alive> {
        self.tree.alive()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{AnswerError, Event};
    use std::time::Duration;

    const LIMIT: Duration = Duration::from_secs(10);

    #[test]
    fn a_node_and_a_viewer_of_one_process_meet() {
        let name = |text: &str| Name::new(text).unwrap();
        let tree = Arc::<Tree>::default();
        let node = Member::node(tree.clone(), &name("77"), &name("a"), Bytes::from_static(b"8 ranks"));
        let (a, mut questions) = node.unwrap();
        let screen = Member::viewer(tree);
        let mut events = screen.subscribe();
        a.publish(Bytes::from_static(b"sums")).unwrap();
        assert!(matches!(screen.publish(Bytes::new()), Err(Error::NoNode)));
        assert!(matches!(
            a.publish(vec![0; crate::MAX_REPORT + 1].into()),
            Err(Error::TooLong { .. })
        ));
        assert!(matches!(events.try_next(), Some(Event::Known { info, .. }) if info == "8 ranks"));
        assert!(matches!(events.try_next(), Some(Event::Clock { .. })));
        assert!(matches!(events.next_within(LIMIT), Some(Event::Report { report, .. }) if report == "sums"));
        assert_eq!(events.next_within(Duration::from_millis(1)), None);

        let answering = std::thread::spawn(move || {
            let question = questions.next_within(LIMIT).unwrap();
            assert_eq!(question.payload, "top kernels");
            assert!(question.reply.send(vec![7; 3 << 20].into()));
            question.reply.complete();
            let question = questions.next_within(LIMIT).unwrap();
            question.reply.fail("no\x1bsuch question");
            drop(questions.next_within(LIMIT).unwrap());
            questions
        });
        let ask = |node: &str| screen.query(&name(node), Bytes::from_static(b"top kernels"));
        assert_eq!(ask("a").collect(4 << 20, LIMIT), Ok(vec![7; 3 << 20]));
        assert_eq!(
            ask("a").collect(9, LIMIT),
            Err(AnswerError::Failed("no such question".into()))
        );
        assert_eq!(ask("a").collect(9, LIMIT), Err(AnswerError::BrokenOff));
        assert_eq!(ask("b").collect(9, LIMIT), Err(AnswerError::UnknownNode(name("b"))));
        let questions = answering.join().unwrap();
        assert_eq!(ask("a").collect(9, Duration::from_millis(1)), Err(AnswerError::Timeout));
        drop(questions);
        assert_eq!(ask("a").collect(9, LIMIT), Err(AnswerError::Busy));
        drop(a);
        assert!(matches!(
            events.try_next(),
            Some(Event::Gone {
                reason: Reason::Left,
                ..
            })
        ));
        assert!(screen.alive().is_empty());
    }
}
