//! Functions of RCCL that create, use or release communicators, and where their arguments are.

use crate::function::{ArgumentLocation, begins_with, place};
use hip_functions::signature::{self, is_same};

/// What a function does with a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// All ranks of the communicator take part.
    Collective,
    /// Sends to a peer.
    Send,
    /// Receives from a peer.
    Receive,
    /// Begins a group: what it contains starts at its end.
    GroupStart,
    /// Ends a group.
    GroupEnd,
    /// Creates a communicator from a unique id, which is passed by value.
    Create,
    /// Creates a communicator from unique ids, which the program has in memory.
    CreateFrom,
    /// Creates the communicators of all ranks in this process.
    CreateAll,
    /// Creates communicators from another one, by color.
    Split,
    /// Creates a communicator from another one, without some ranks.
    Shrink,
    /// Releases a communicator.
    Release,
}

/// The arguments of such a function; [`ArgumentLocation::None`] for one that it does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Communication {
    /// What it does.
    pub role: Role,
    /// The communicator.
    pub communicator: ArgumentLocation,
    /// Number of elements.
    pub count: ArgumentLocation,
    /// `ncclDataType_t`.
    pub datatype: ArgumentLocation,
    /// `ncclRedOp_t`.
    pub reduction: ArgumentLocation,
    /// Root or peer. When a communicator is created: the rank; the color of a split.
    pub peer: ArgumentLocation,
    /// When a communicator is created: the number of ranks; the number of excluded ranks of a shrunk one.
    pub size: ArgumentLocation,
    /// Where the new communicator is stored.
    pub created: ArgumentLocation,
    /// The unique id, or the list of excluded ranks.
    pub id: ArgumentLocation,
}

const ROLES: [(&str, Role); 23] = [
    ("ncclAllGather", Role::Collective),
    ("ncclAllReduce", Role::Collective),
    ("ncclAllReduceWithBias", Role::Collective),
    ("ncclAllToAll", Role::Collective),
    ("ncclAlltoAll", Role::Collective),
    ("ncclAllToAllv", Role::Collective),
    ("ncclAlltoAllv", Role::Collective),
    ("ncclBroadcast", Role::Collective),
    ("ncclBcast", Role::Collective),
    ("ncclGather", Role::Collective),
    ("ncclReduce", Role::Collective),
    ("ncclReduceScatter", Role::Collective),
    ("ncclScatter", Role::Collective),
    ("ncclSend", Role::Send),
    ("ncclRecv", Role::Receive),
    ("ncclGroupStart", Role::GroupStart),
    ("ncclGroupEnd", Role::GroupEnd),
    ("ncclCommInitRank", Role::Create),
    ("ncclCommInitRankConfig", Role::Create),
    ("ncclCommInitRankScalable", Role::CreateFrom),
    ("ncclCommInitAll", Role::CreateAll),
    ("ncclCommSplit", Role::Split),
    ("ncclCommShrink", Role::Shrink),
];

/// Functions after which a communicator's handle may be reused.
const RELEASES: [&str; 2] = ["ncclCommDestroy", "ncclCommAbort"];

const fn role(name: &str) -> Option<Role> {
    if !begins_with(name, "nccl") {
        return None;
    }
    let mut at = 0;
    while at < ROLES.len() {
        if is_same(name, ROLES[at].0) {
            return Some(ROLES[at].1);
        }
        at += 1;
    }
    if is_same(name, RELEASES[0]) || is_same(name, RELEASES[1]) {
        return Some(Role::Release);
    }
    None
}

/// The place of the first parameter that has one of these names.
const fn first(signature: &str, names: &[&str]) -> ArgumentLocation {
    let mut at = 0;
    while at < names.len() {
        if let Some(parameter) = signature::named(signature, names[at]) {
            return place(parameter.place);
        }
        at += 1;
    }
    ArgumentLocation::None
}

/// What the function of this name and signature does with communicators; `None` if nothing that concerns the collector.
pub const fn communication(name: &str, signature: &str) -> Option<Communication> {
    let Some(role) = role(name) else { return None };
    let is_new = matches!(role, Role::Create | Role::CreateFrom);
    Some(Communication {
        role,
        communicator: if is_new {
            ArgumentLocation::None
        } else {
            first(signature, &["comm"])
        },
        count: first(signature, &["count", "sendcount", "recvcount"]),
        datatype: first(signature, &["datatype"]),
        reduction: first(signature, &["op"]),
        peer: first(signature, &["root", "peer", "myrank", "color"]),
        size: first(signature, &["nranks", "ndev", "excludeRanksCount"]),
        created: if is_new {
            first(signature, &["newcomm", "comm"])
        } else {
            first(signature, &["newcomm", "comms"])
        },
        id: first(signature, &["commId", "commIds", "excludeRanksList"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::{FUNCTIONS, Function};

    fn of(name: &str) -> Communication {
        let function = FUNCTIONS.iter().find(|function| function.name == name);
        *function.and_then(Function::communication).expect(name)
    }

    #[test]
    fn every_role_is_a_function_with_the_arguments_it_needs() {
        for (name, role) in ROLES {
            let found = of(name);
            assert_eq!(found.role, role, "{name}");
            let is_new = matches!(
                role,
                Role::Create | Role::CreateFrom | Role::CreateAll | Role::Split | Role::Shrink
            );
            assert_eq!(found.created != ArgumentLocation::None, is_new, "{name}");
            let is_used = matches!(
                role,
                Role::Collective | Role::Send | Role::Receive | Role::Split | Role::Shrink
            );
            assert_eq!(found.communicator != ArgumentLocation::None, is_used, "{name}");
            if matches!(role, Role::Collective | Role::Send | Role::Receive) {
                assert_ne!(found.datatype, ArgumentLocation::None, "{name}");
            }
        }
        for name in RELEASES {
            assert_eq!(of(name).communicator, ArgumentLocation::Register(0));
        }
    }

    #[test]
    fn a_unique_id_by_value_is_on_the_stack() {
        let found = of("ncclCommInitRankConfig");
        assert_eq!(
            (found.id, found.peer, found.created),
            (
                ArgumentLocation::Stack(0),
                ArgumentLocation::Register(2),
                ArgumentLocation::Register(0)
            )
        );
        assert_eq!(of("ncclCommInitRankScalable").id, ArgumentLocation::Register(4));
        assert_eq!(of("ncclCommSplit").created, ArgumentLocation::Register(3));
    }
}
