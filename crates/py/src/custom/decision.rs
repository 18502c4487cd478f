//! Decisions of disciplines that are written in Python, and what the queue does with them.

use sojourn_aqm::aqm::Verdict;
use sojourn_aqm::fifo::QueueView;
use sojourn_aqm::{Context, DropReason, Packet};

/// Decision of a method, by the numbers of `sojourn.PASS` and others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Pass,
    Mark,
    Drop,
    DropHead,
}

impl Decision {
    pub fn from_number(n: i64) -> Option<Decision> {
        let all = [Decision::Pass, Decision::Mark, Decision::Drop, Decision::DropHead];
        all.get(usize::try_from(n).ok()?).copied()
    }
}

/// Methods that the engine calls.
#[derive(Clone, Copy, Debug)]
pub enum Hook {
    Update,
    Enqueue,
    Overflow,
    Dequeue,
    Empty,
}

impl Hook {
    /// All, in the order of the type.
    pub const ALL: [Hook; 5] =
        [Hook::Update, Hook::Enqueue, Hook::Overflow, Hook::Dequeue, Hook::Empty];

    pub fn name(self) -> &'static str {
        match self {
            Hook::Update => "on_update",
            Hook::Enqueue => "on_enqueue",
            Hook::Overflow => "on_overflow",
            Hook::Dequeue => "on_dequeue",
            Hook::Empty => "on_empty",
        }
    }
}

/// End of the message about an invalid decision.
pub const ALLOWED: &str = "allowed: PASS, MARK, DROP, DROP_HEAD of sojourn, or None";

/// Message about a decision that is not [`is_promised`].
pub const BROKEN_PROMISE: &str = "decides_at_enqueue is True, so only on_enqueue may mark or drop, \
                                  and only the arriving packet";

/// True if a method may decide so: with `decides_at_enqueue`, only about arriving packets.
pub fn is_promised(hook: Hook, decision: Decision, decides_at_enqueue: bool) -> bool {
    let about_arrival = matches!(hook, Hook::Enqueue) && decision != Decision::DropHead;
    !decides_at_enqueue || decision == Decision::Pass || about_arrival
}

/// Apply a decision about an arriving packet. DROP_HEAD drops the packet at the head and passes the
/// arriving one; in an empty queue that is the arriving packet.
pub fn enqueue(decision: Decision, context: &mut Context<'_>, line: &mut QueueView<'_>) -> Verdict {
    match decision {
        Decision::Pass => Verdict::Pass,
        Decision::Mark => Verdict::Signal,
        Decision::Drop => Verdict::Drop,
        Decision::DropHead => match line.pop() {
            Some(head) => {
                context.drop(head, DropReason::Late);
                Verdict::Pass
            }
            None => Verdict::Drop,
        },
    }
}

/// Dequeue the first packet about which `decide` says that it is sent; drop those before it.
pub fn dequeue(
    context: &mut Context<'_>,
    line: &mut QueueView<'_>,
    ecn: bool,
    mut decide: impl FnMut(&mut Context<'_>, &QueueView<'_>, &Packet) -> Decision,
) -> Option<Packet> {
    // Bounded: each turn removes a packet from the queue.
    loop {
        let head = *line.front()?;
        let decision = decide(context, line, &head);
        let mut head = line.pop()?;
        let sent = match decision {
            Decision::Pass => true,
            Decision::Mark => ecn && context.mark(&mut head),
            Decision::Drop | Decision::DropHead => false,
        };
        if sent {
            return Some(head);
        }
        context.drop(head, DropReason::Late);
    }
}
