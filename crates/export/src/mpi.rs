//! What files say of a call of MPI.

use super::view::View;
use roctop_trace::arguments::value_of;
use roctop_trace::item::ApiCall;

/// What is known of a call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Details {
    /// Rank of the process among all.
    pub(super) rank: Option<i64>,
    /// `world`, `self`, or a number in the process; empty if unknown.
    pub(super) communicator: String,
    /// Rank in the communicator that the call sends to or receives from; of a collective with a root, the root. None of a
    /// wildcard.
    pub(super) peer: Option<i64>,
    /// Tag of a message. None of a wildcard.
    pub(super) tag: Option<i64>,
    /// Bytes that this rank gives, or gets where it gives none.
    pub(super) bytes: Option<i64>,
    /// Time in the call until the last rank came that it needs, ns. None of a call that was not matched.
    pub(super) wait: Option<i64>,
}

/// What is known of a call.
pub(super) fn details(view: &View<'_>, call: &ApiCall) -> Details {
    let text = call.arguments.and_then(|id| view.text(id));
    Details {
        wait: view.matched.wait(call).map(|wait| wait.min(i64::MAX as u64) as i64),
        ..of_text(text.as_deref().unwrap_or_default(), view.process.rank)
    }
}

fn of_text(text: &str, rank: Option<u32>) -> Details {
    let number = |name| value_of(text, name).and_then(|value| value.parse().ok());
    let communicator = value_of(text, "comm").unwrap_or_default();
    let own = || number("rank").filter(|_| communicator == "world");
    Details {
        rank: rank.map(i64::from).or_else(own),
        communicator: communicator.to_owned(),
        peer: number("peer").or_else(|| number("root")),
        tag: number("tag"),
        bytes: number("bytes"),
        wait: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_what_is_known() {
        let cells = |text, rank| {
            let found = of_text(text, rank);
            let [rank, peer, tag, bytes] = [found.rank, found.peer, found.tag, found.bytes]
                .map(|cell| cell.map_or_else(String::new, |cell| cell.to_string()));
            [rank, found.communicator, peer, tag, bytes].join("|")
        };
        assert_eq!(cells("", None), "||||");
        assert_eq!(cells("empty_tests=3", Some(7)), "7||||");
        let send = "comm=world, rank=1, ranks=2, peer=0, tag=5, bytes=80";
        assert_eq!(cells(send, None), "1|world|0|5|80");
        let receive = "comm=self, rank=0, ranks=1, peer=any, tag=any, bytes=8";
        assert_eq!(cells(receive, Some(0)), "0|self|||8");
        let gather = "comm=3, rank=1, ranks=2, root=0, bytes=8";
        assert_eq!(cells(gather, None), "|3|0||8");
        assert_eq!(cells(gather, Some(4)), "4|3|0||8");
    }
}
