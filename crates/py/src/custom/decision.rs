//! Methods of disciplines that are written in Python, and their decisions.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::fmt::Debug;

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

    /// Exception about an `answer` that is not a decision.
    #[cold]
    pub fn refusal(answer: impl Debug) -> PyErr {
        let allowed = "PASS, MARK, DROP, DROP_HEAD of sojourn, or None";
        PyTypeError::new_err(format!("returned {answer:?}, allowed: {allowed}"))
    }
}

/// Methods that the engine calls.
#[derive(Clone, Copy, Debug)]
pub enum Hook {
    Update,
    Enqueue,
    Overflow,
    Dequeue,
    Idle,
}

impl Hook {
    /// All, in the order of the type.
    pub const ALL: [Hook; 5] =
        [Hook::Update, Hook::Enqueue, Hook::Overflow, Hook::Dequeue, Hook::Idle];

    pub fn name(self) -> &'static str {
        match self {
            Hook::Update => "on_update",
            Hook::Enqueue => "on_enqueue",
            Hook::Overflow => "on_overflow",
            Hook::Dequeue => "on_dequeue",
            Hook::Idle => "on_idle",
        }
    }
}

/// Message about a decision that is not [`is_promised`].
pub const BROKEN_PROMISE: &str = "decides_at_enqueue is True, so only on_enqueue may mark or drop, \
                                  and only the arriving packet";

/// True if a method may decide so: with `decides_at_enqueue`, only about arriving packets.
pub fn is_promised(hook: Hook, decision: Decision, decides_at_enqueue: bool) -> bool {
    let about_arrival = matches!(hook, Hook::Enqueue) && decision != Decision::DropHead;
    !decides_at_enqueue || decision == Decision::Pass || about_arrival
}
