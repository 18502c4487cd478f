//! Virtual-time schedulers compared with simple models: a fluid server for all busy queues,
//! dedicated servers per queue, and proven bounds.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests use small numbers"
)]

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::{Ecn, Link, LinkSpec, Packet, Rate, Setting, Span, Time, build};

/// One byte takes a microsecond.
const RATE: Rate = Rate(8_000_000);
const LEN_MAX: u32 = 1500;

struct Arrival {
    at: f64,
    queue: usize,
    len: f64,
}

/// Arrivals in microseconds with busy and idle periods, and the weights of the queues.
fn trace(rng: &mut Pcg64Mcg) -> (Vec<Arrival>, Vec<f64>) {
    let n = 2 + rng.next_u32() as usize % 6;
    let weights: Vec<f64> = (0..n).map(|_| f64::from(1 + rng.next_u32() % 20)).collect();
    let mut at = 0u32;
    let arrivals = (0..200).map(|_| {
        // Bursts at one time, gaps below a packet time, and now and then a long one.
        at += match rng.next_u32() % 20 {
            0 => 20_000,
            1..8 => 0,
            _ => rng.next_u32() % 1400,
        };
        let len = f64::from(64 + rng.next_u32() % (LEN_MAX - 63));
        Arrival { at: f64::from(at), queue: rng.next_u32() as usize % n, len }
    });
    (arrivals.collect(), weights)
}

/// Times at which each packet's transmission starts and ends under `name`, in microseconds.
fn served(name: &str, arrivals: &[Arrival], weights: &[f64]) -> Vec<(f64, f64)> {
    served_with(name, &[], arrivals, weights)
}

/// The same with further parameters.
fn served_with(
    name: &str,
    further: &[(&str, &str)],
    arrivals: &[Arrival],
    weights: &[f64],
) -> Vec<(f64, f64)> {
    let list: Vec<String> = weights.iter().map(f64::to_string).collect();
    let (flows, weights) = (weights.len().to_string(), list.join(" "));
    let mut settings = vec![("flows", Setting::Text(&flows)), ("limit", Setting::Text("100000p"))];
    settings.push(("weights", Setting::Text(&weights)));
    settings.extend(further.iter().map(|(key, value)| (*key, Setting::Text(value))));
    let built = build(name, &settings, RATE).unwrap();
    let spec = LinkSpec::new(RATE, Span::ZERO);
    let mut link = Link::new(spec, built.qdisc, Pcg64Mcg::seed_from_u64(1)).unwrap();
    link.enable_packet_log();
    for (body, a) in (0..).zip(arrivals) {
        let flow = a.queue as u32;
        let packet =
            Packet { body, flow, len: a.len as u32, ecn: Ecn::NotEct, ..Packet::default() };
        link.push(Time(a.at as u64 * 1000), packet);
    }
    link.advance(Time(1 << 50));
    let mut times = vec![(0.0, 0.0); arrivals.len()];
    for row in link.packet_log() {
        let start = row.left.0 as f64 / 1000.0;
        times[row.packet.body as usize] = (start, start + f64::from(row.packet.len));
    }
    times
}

/// End of each packet if all busy queues are served at once in proportion to `weights`, computed
/// event by event.
fn fluid(arrivals: &[Arrival], weights: &[f64]) -> Vec<f64> {
    let mut ends = vec![f64::NAN; arrivals.len()];
    let mut queues: Vec<Vec<(usize, f64)>> = vec![Vec::new(); weights.len()];
    let (mut now, mut next) = (0.0, 0);
    while ends.iter().any(|e| e.is_nan()) {
        let busy: f64 =
            (0..weights.len()).filter(|i| !queues[*i].is_empty()).map(|i| weights[i]).sum();
        let due = (0..weights.len())
            .filter_map(|i| Some((queues[i].first()?.1 * busy / weights[i], i)))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let arrival = arrivals.get(next).map_or(f64::INFINITY, |a| a.at - now);
        let step = due.map_or(f64::INFINITY, |d| d.0).min(arrival);
        for i in 0..weights.len() {
            if let Some(head) = queues[i].first_mut() {
                head.1 -= step * weights[i] / busy;
            }
        }
        now += step;
        if arrival <= step {
            queues[arrivals[next].queue].push((next, arrivals[next].len));
            next += 1;
        } else if let Some((_, i)) = due {
            ends[queues[i].remove(0).0] = now;
        }
    }
    ends
}

fn each(mut body: impl FnMut(&[Arrival], &[f64])) {
    let mut rng = Pcg64Mcg::seed_from_u64(7);
    for _ in 0..300 {
        let (arrivals, weights) = trace(&mut rng);
        body(&arrivals, &weights);
    }
}

/// Times are rounded to nanoseconds and tags are floating point.
const SLACK: f64 = 0.01;

#[test]
fn wfq_lags_the_fluid_server_by_at_most_one_packet() {
    let mut worst = f64::NEG_INFINITY;
    each(|arrivals, weights| {
        let (real, ideal) = (served("wfq", arrivals, weights), fluid(arrivals, weights));
        for (r, i) in real.iter().zip(&ideal) {
            worst = worst.max(r.1 - i);
            assert!(r.1 <= i + f64::from(LEN_MAX) + SLACK, "{r:?} against {i}");
        }
    });
    assert!(worst > 1000.0, "the bound is approached: {worst}");
}

#[test]
fn wf2q_lags_a_dedicated_server_by_at_most_one_packet() {
    each(|arrivals, weights| {
        let real = served("wf2q", arrivals, weights);
        let sum: f64 = weights.iter().sum();
        let mut ends = vec![0.0f64; weights.len()];
        for (a, r) in arrivals.iter().zip(&real) {
            // Server of rate C w_i / W for this queue alone.
            let end = a.at.max(ends[a.queue]) + a.len * sum / weights[a.queue];
            ends[a.queue] = end;
            assert!(r.1 <= end + f64::from(LEN_MAX) + SLACK, "{r:?} against {end}");
        }
    });
}

#[test]
fn qfq_is_worst_case_fair_to_three_slots_and_two_packets() {
    // Checconi, Rizzo and Valente, theorem 4: after its arrival, a packet is sent in the time that
    // a server of its own needs for its queue, and the T-WFI of (3 slot W + 2 L) / R, where a slot
    // is the power of two above L / w.
    let own = [("maxpkt", "1500B"), ("aggregate", "1")];
    let mut worst = f64::NEG_INFINITY;
    let longest = f64::from(LEN_MAX);
    each(|arrivals, weights| {
        let real = served_with("qfq", &own, arrivals, weights);
        let sum: f64 = weights.iter().sum();
        for (k, (a, r)) in arrivals.iter().zip(&real).enumerate() {
            let earlier = (0..=k).filter(|j| arrivals[*j].queue == a.queue && real[*j].1 > a.at);
            let backlog: f64 = earlier.map(|j| arrivals[j].len).sum();
            let weight = weights[a.queue];
            let mut slot = 1.0;
            while slot < longest / weight {
                slot *= 2.0;
            }
            let bound = 3.0 * slot * sum + 2.0 * longest;
            let index = r.1 - a.at - backlog * sum / weight;
            worst = worst.max(index / bound);
            assert!(index <= bound + SLACK, "{index} over {bound}");
        }
    });
    assert!(worst > 0.2, "the bound is approached: {worst}");
}

/// Maximum difference of the service per weight of two queues over periods in which both are
/// backlogged, compared with `bound` for the two.
fn fairness(name: &str, bound: impl Fn(f64, f64) -> f64) {
    let mut worst = 0.0f64;
    each(|arrivals, weights| {
        let times = served(name, arrivals, weights);
        let mut order: Vec<usize> = (0..times.len()).collect();
        order.sort_by(|a, b| times[*a].0.total_cmp(&times[*b].0));
        for i in 0..weights.len() {
            for j in 0..i {
                // Scan transmissions, tracking the extremes of the difference since both queues
                // became backlogged.
                let (mut d, mut low, mut high) = (0.0f64, 0.0f64, 0.0f64);
                for k in &order {
                    let (start, _) = times[*k];
                    let waits = |q: usize, from: fn(f64, f64) -> bool| {
                        (0..times.len()).any(|m| {
                            let a = &arrivals[m];
                            a.queue == q && a.at <= start && from(times[m].0, start)
                        })
                    };
                    let here = |t, now| t >= now;
                    if !(waits(i, here) && waits(j, here)) {
                        (d, low, high) = (0.0, 0.0, 0.0);
                        continue;
                    }
                    let (queue, len) = (arrivals[*k].queue, arrivals[*k].len);
                    d += if queue == i { len / weights[i] } else { 0.0 };
                    d -= if queue == j { len / weights[j] } else { 0.0 };
                    (low, high) = (low.min(d), high.max(d));
                    let most = bound(weights[i], weights[j]);
                    assert!(high - low <= most + SLACK, "{name}: {} over {most}", high - low);
                    worst = worst.max((high - low) / most);
                    // Round robin forgets a queue when its last packet is in transmission.
                    if name == "drr" && !waits(queue, |t, now| t > now) {
                        (d, low, high) = (0.0, 0.0, 0.0);
                    }
                }
            }
        }
    });
    assert!(worst > 0.5, "{name}: the bound is approached: {worst}");
}

#[test]
fn scfq_and_stfq_are_fair_to_a_packet_each() {
    let bound = |a, b| f64::from(LEN_MAX) / a + f64::from(LEN_MAX) / b;
    fairness("scfq", bound);
    fairness("stfq", bound);
}

#[test]
fn drr_is_fair_to_a_quantum_and_a_packet_each() {
    // Shreedhar and Varghese, theorem 2, with weights: Q + L_max / w_i + L_max / w_j.
    let l = f64::from(LEN_MAX);
    fairness("drr", |a, b| 1500.0 + l / a + l / b);
}
