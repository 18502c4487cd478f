//! Telemetry of packets (INT), and other feedback of a path that a segment brings to its receiver.
//!
//! Links of flows that want telemetry record the state at each dequeue. It is added to the record
//! of the packet when the packet leaves its link. The record has the index of the packet's body, so
//! it is freed with it.

use super::Simulation;
use super::in_flight::{PacketState, Payload};
use crate::config::flows::FlowConfig;
use crate::config::scenario::Scenario;
use crate::endpoint::tcp::TcpParams;
use crate::endpoint::telemetry::PathTelemetry;
use crate::engine::flow::PathFeedback;
use sojourn_aqm::{Packet, Snapshot};

/// Record of a packet.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
struct Record {
    /// Cursor after the one of the last link. No path starts there, so a record in which it is not
    /// the cursor of the next link is of an earlier packet.
    next: u32,
    telemetry: PathTelemetry,
}

/// Records of the packets in flight, by the index of the body.
#[derive(Clone, Debug, Default, Snapshot)]
pub(super) struct Telemetry {
    records: Vec<Record>,
}

impl Telemetry {
    /// Creates the records of a scenario; `None` if no sender wants telemetry.
    pub(super) fn of(scenario: &Scenario) -> Option<Box<Telemetry>> {
        links_with_telemetry(scenario).contains(&true).then(Box::default)
    }

    /// Record of packet `body`.
    fn record(&mut self, body: u32) -> &mut Record {
        let i = body as usize;
        if i >= self.records.len() {
            self.records.resize(i + 1, Record::default());
        }
        &mut self.records[i]
    }

    /// Copies the record of packet `body` to its duplicate.
    pub(super) fn duplicate(&mut self, body: u32, duplicate: u32) {
        *self.record(duplicate) = *self.record(body);
    }
}

/// For each link, true if a sender wants its telemetry: links of its path, and of the way back,
/// which requests cross; all links if its packets are spread.
pub(super) fn links_with_telemetry(scenario: &Scenario) -> Vec<bool> {
    let mut links = vec![false; scenario.links.len()];
    let wants = |def: &&FlowConfig| def.tcp.as_deref().is_some_and(TcpParams::wants_telemetry);
    for def in scenario.flows.iter().filter(wants) {
        if def.spread.is_some() {
            links.fill(true);
        }
        for way in def.routes.iter().flatten() {
            way.iter().for_each(|l| links[*l] = true);
        }
    }
    links
}

impl Simulation {
    /// Adds the state of link `l` to the record of `packet`, which leaves it.
    pub(super) fn stamp(&mut self, l: usize, packet: &Packet) {
        let Simulation { telemetry: Some(telemetry), links, flows, bodies, .. } = self else {
            return;
        };
        let Some(hop) = links[l].pop_telemetry() else { return };
        let wanted = flows[packet.flow as usize].feedback == PathFeedback::Telemetry;
        let PacketState { cursor, payload, .. } = *bodies.get(packet.body);
        if wanted && matches!(payload, Payload::Segment(_)) {
            let Record { next, telemetry } = telemetry.record(packet.body);
            if *next != cursor {
                telemetry.clear();
            }
            *next = cursor + 1;
            telemetry.path = cursor;
            telemetry.push(hop);
        }
    }

    /// Stores the feedback of the path of packet `body` in its segment, which has arrived for flow
    /// `f`: of XCP, or the number of its telemetry.
    #[cold]
    #[inline(never)]
    pub(super) fn store_feedback(&mut self, f: usize, body: u32, of_xcp: u32) {
        let Simulation { telemetry, flows, bodies, .. } = self;
        let state = bodies.get_mut(body);
        if !matches!(state.payload, Payload::Segment(_)) {
            return;
        }
        let feedback = match (flows[f].feedback, telemetry) {
            (PathFeedback::Telemetry, Some(telemetry)) => {
                flows[f].store_telemetry(&telemetry.record(body).telemetry)
            }
            _ => of_xcp,
        };
        state.payload.set_feedback(feedback);
    }
}
