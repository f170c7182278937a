//! What files say of a call of MPI.

use super::view::View;
use roctop_trace::arguments::value_of;
use roctop_trace::item::ApiCall;

/// Cells of a call; what is unknown is empty.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Details {
    /// Rank of the process among all.
    pub(super) rank: String,
    /// `world`, `self`, or a number in the process.
    pub(super) communicator: String,
    /// Rank in the communicator that the call sends to or receives from; of a collective with a root, the root.
    pub(super) peer: String,
    /// Tag of a message.
    pub(super) tag: String,
    /// Bytes that this rank gives, or gets where it gives none.
    pub(super) bytes: String,
}

/// What is known of a call.
pub(super) fn details(view: &View<'_>, call: &ApiCall) -> Details {
    let text = call.arguments.and_then(|id| view.text(id));
    of_text(text.as_deref().unwrap_or_default(), view.process.rank)
}

fn of_text(text: &str, rank: Option<u32>) -> Details {
    let value = |name| value_of(text, name).unwrap_or_default().to_owned();
    // Not a wildcard.
    let number = |name| value_of(text, name).filter(|value| value.parse::<i64>().is_ok());
    let communicator = value("comm");
    let own = || {
        if communicator == "world" {
            value("rank")
        } else {
            String::new()
        }
    };
    Details {
        rank: rank.map_or_else(own, |rank| rank.to_string()),
        peer: number("peer").or_else(|| number("root")).unwrap_or_default().to_owned(),
        tag: number("tag").unwrap_or_default().to_owned(),
        bytes: value("bytes"),
        communicator,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_what_is_known() {
        let cells = |text, rank| {
            let Details {
                rank,
                communicator,
                peer,
                tag,
                bytes,
            } = of_text(text, rank);
            [rank, communicator, peer, tag, bytes].join("|")
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
