//! Transmit queues of a device.

use super::super::table::Ours::Computed;
use super::super::table::{Arg, Becomes, Fixed, Kind, Line, Params, Rules, Unit, Word};
use super::fifo::{LEAF_TAIL, leaf_limits, lost_limits};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

const BY_HASH: Fixed =
    Fixed { name: "by", linux: "hash", why: "Linux chooses the queue by the hash of the flow" };
/// Buffers of the queues. `full` is irrelevant where each has its own.
const PARAMETERS: &[&str] = &["flows", "full", "limit", "limits"];

/// Number of queues where neither commands nor an output tell it.
const QUEUES: u64 = 4;

/// `multiq`: round robin over the transmit queues.
pub static MULTIQ: Kind = Kind {
    name: "multiq",
    becomes: Becomes::Discipline("multiq"),
    words: &[Word::new("bands", Unit::Text, "", Computed).output_only()],
    fixed: &[BY_HASH, LEAF_TAIL],
    rules: Rules {
        parameters: PARAMETERS,
        settings: |line| {
            let n = queues(line).map_or(QUEUES, u64::from);
            [vec![("flows", format!("{n}"))], leaf_limits(n)].concat()
        },
        words: |params, _| {
            let limits = lost_limits(params, params.text("flows").parse().unwrap_or(QUEUES));
            [lost_queues(params), limits].concat()
        },
        ..Rules::FIXED
    },
    differs: "the queues are as many as the device has; `filters` are its filters with the action \
              skbedit queue_mapping",
};

/// `mq`: the transmit queues of a device, each with a qdisc.
pub static MQ: Kind = Kind {
    name: "mq",
    becomes: Becomes::Discipline("mq"),
    words: &[],
    fixed: &[BY_HASH, LEAF_TAIL],
    rules: Rules {
        parameters: PARAMETERS,
        settings: |_| leaf_limits(QUEUES),
        words: |params, _| {
            let mut lost = lost_queues(params);
            if !lost.is_empty() {
                let text = "Linux gives each queue its default qdisc; name it in children";
                lost.push(format!("limits = {}: {text}", params.text("limits")));
            }
            lost
        },
        ..Rules::FIXED
    },
    differs: "the queues are as many as the commands name; the device serves them in turn, packet \
              by packet",
};

/// Returns a note about the number of queues, which a qdisc for each would show.
fn lost_queues(params: &Params<'_>) -> Vec<String> {
    let flows = params.text("flows");
    let text = format!("flows = {flows}: Linux has the transmit queues of the device");
    if params.text("children").is_empty() { vec![text] } else { Vec::new() }
}

/// Number of queues in an output of `multiq`, which has `bands 4/8`.
pub(in super::super) fn queues(line: &Line) -> Option<u16> {
    let bands = (line.kind.name == "multiq").then(|| line.given("bands")).flatten();
    let Some(Arg::Text(text)) = bands else { return None };
    text.split('/').next()?.parse().ok()
}
