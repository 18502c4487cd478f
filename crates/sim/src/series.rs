//! Series for figures: every link and flow looked at once per interval. Looking changes nothing.

use crate::outcome::Column;
use crate::scenario::Scenario;
use sojourn_aqm::Link;
use sojourn_aqm::units::Time;

/// What is recorded of a link.
#[derive(Default)]
struct OfLink {
    queue_bytes: Vec<u64>,
    queue_packets: Vec<u64>,
    sojourn_s: Vec<f64>,
    departed_bytes: Vec<u64>,
    dropped_packets: Vec<u64>,
    gauges: Vec<(&'static str, Vec<f64>)>,
    /// The running counts at the last look.
    last: [u128; 4],
}

/// The running counts of a link: sojourn ns, packets and bytes sent, packets lost.
fn counts(link: &mut Link) -> [u128; 4] {
    let t = link.tally();
    let [sent, bytes, lost] = [t.sojourn.count(), t.departed_bytes, t.dropped()].map(u128::from);
    [t.sojourn.sum_ns(), sent, bytes, lost]
}

/// `a - b` place by place, wrapping: the running counts start again from zero after a warm-up.
fn minus(a: [u128; 4], b: [u128; 4]) -> [u128; 4] {
    std::array::from_fn(|i| a[i].wrapping_sub(b[i]))
}

/// What is recorded of a flow.
#[derive(Default)]
struct OfFlow {
    delivered_bytes: Vec<u64>,
    cwnd_packets: Vec<f64>,
    last: u64,
}

/// The recorder.
pub struct Series {
    time_s: Vec<f64>,
    links: Vec<OfLink>,
    flows: Vec<OfFlow>,
}

impl Series {
    /// A recorder for so many links and flows.
    pub fn new(links: usize, flows: usize) -> Series {
        Series {
            time_s: Vec::new(),
            links: (0..links).map(|_| OfLink::default()).collect(),
            flows: (0..flows).map(|_| OfFlow::default()).collect(),
        }
    }

    /// Looks at the links at `now`.
    pub fn look_at_links(&mut self, now: Time, links: &mut [Link]) {
        self.time_s.push(now.0 as f64 / 1e9);
        for (of, link) in self.links.iter_mut().zip(links) {
            link.advance(now);
            let counts = counts(link);
            let [sojourn_ns, sent, bytes, lost] = minus(counts, of.last);
            of.last = counts;
            of.sojourn_s.push(sojourn_ns as f64 / sent as f64 / 1e9);
            of.departed_bytes.push(bytes as u64);
            of.dropped_packets.push(lost as u64);
            let (packets, bytes) = link.tally().waiting();
            of.queue_bytes.push(bytes);
            of.queue_packets.push(packets);
            let gauges = &mut of.gauges;
            let mut i = 0;
            link.gauges(&mut |name, value| {
                if i == gauges.len() {
                    gauges.push((name, Vec::new()));
                }
                gauges[i].1.push(value);
                i += 1;
            });
        }
    }

    /// Looks at the `i`-th flow, which has had so much delivered; its window, if there is one.
    pub fn look_at_flow(&mut self, i: usize, delivered: u64, cwnd_packets: Option<f64>) {
        let of = &mut self.flows[i];
        of.delivered_bytes.push(delivered - of.last);
        of.last = delivered;
        of.cwnd_packets.extend(cwnd_packets);
    }

    /// The links' counters are about to start anew: what they have counted since the last look is
    /// kept for the next.
    pub fn begin(&mut self, links: &mut [Link]) {
        for (of, link) in self.links.iter_mut().zip(links) {
            of.last = minus(of.last, counts(link));
        }
    }

    /// The columns; `names` are those of the flows.
    pub fn columns(self, scenario: &Scenario, names: &[&str], columns: &mut Vec<(String, Column)>) {
        columns.push(("series/time_s".into(), Column::F64(self.time_s)));
        for (of, link) in self.links.into_iter().zip(&scenario.links) {
            let mut put = |what: &str, column| {
                columns.push((format!("links/{}/{what}", link.name), column));
            };
            put("queue_bytes", Column::U64(of.queue_bytes));
            put("queue_packets", Column::U64(of.queue_packets));
            put("sojourn_s", Column::F64(of.sojourn_s));
            put("departed_bytes", Column::U64(of.departed_bytes));
            put("dropped_packets", Column::U64(of.dropped_packets));
            for (name, values) in of.gauges {
                put(&format!("gauge/{name}"), Column::F64(values));
            }
        }
        for (of, name) in self.flows.into_iter().zip(names) {
            let mut put = |what: &str, column| {
                columns.push((format!("flows/{name}/{what}"), column));
            };
            put("delivered_bytes", Column::U64(of.delivered_bytes));
            if !of.cwnd_packets.is_empty() {
                put("cwnd_packets", Column::F64(of.cwnd_packets));
            }
        }
    }
}
