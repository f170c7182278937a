//! What a screen or a shell asks the daemon of a node, and what ranks say of themselves to it. JSON, read strictly.

use crate::model::ask::of_job::{Part, Plan};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What the roctop of a rank says first to the daemon of its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hello {
    /// The rank.
    pub(super) rank: u32,
    /// Directory of its session.
    pub(super) session: PathBuf,
}

/// A question to a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(super) enum NodeQuestion {
    /// A question of `roctop ask` to all ranks of the node, or to one.
    Ask {
        /// The question, and how answers are put together.
        plan: Plan,
        /// The rank.
        rank: Option<u32>,
    },
    /// Where the session of a rank is. The answer is a [`Place`].
    Place {
        /// The rank.
        rank: u32,
    },
    /// The last events of a rank. The answer is a recording, packed by [`super::pack`].
    Events {
        /// The rank.
        rank: u32,
        /// How much of the past, seconds.
        seconds: u32,
    },
}

/// Why a rank gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Failure {
    /// The question is none: column in characters from 0, and what was expected.
    Wrong(usize, String),
    /// Anything else, in words.
    Other(String),
}

/// The answers of a node's ranks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct NodeAnswer {
    /// Those that came, as one.
    pub(super) part: Option<Part>,
    /// Why others did not come, by rank.
    pub(super) failures: Vec<(u32, Failure)>,
}

/// Where the session of a rank is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// Directory of the session.
    pub(super) session: PathBuf,
    /// Id of the machine's boot.
    pub(super) boot: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_read_strictly() {
        let question = NodeQuestion::Events { rank: 5, seconds: 9 };
        let text = serde_json::to_string(&question).unwrap();
        assert_eq!(serde_json::from_str::<NodeQuestion>(&text).unwrap(), question);
        for wrong in [
            "",
            "{}",
            "7",
            "{\"events\":{\"rank\":5}}",
            "{\"events\":{\"rank\":-1,\"seconds\":1}}",
            "{\"place\":{\"rank\":1,\"x\":2}}",
            "{\"other\":{}}",
        ] {
            assert!(serde_json::from_str::<NodeQuestion>(wrong).is_err(), "{wrong}");
        }
    }
}
