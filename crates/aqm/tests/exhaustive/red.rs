//! RED, in all its forms.

use crate::naive::{Losses, Naive, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::aqm::{SingleQueue, red};
use sojourn_aqm::{DropReason, Ecn, Packet, Span};

/// The 1993 paper with Floyd's gentle form and the documented variants, one line per rule.
#[derive(Clone)]
struct PlainRed {
    form: Form,
    min_th: f64,
    max_th: f64,
    queue: Vec<Packet>,
    avg: f64,
    /// Packets and bytes since the last drop or mark.
    count: i64,
    count_bytes: u64,
    idle_since: Option<u64>,
}

#[derive(Clone, Copy)]
struct Form {
    in_bytes: bool,
    gentle: &'static str,
    wait: &'static str,
    byte_mode: &'static str,
    ecn: bool,
    hard_drop: bool,
}

const W_Q: f64 = 0.5;
const MAX_P: f64 = 0.3;
const MEAN: u64 = 500;
const MAX_PACKET: f64 = 1500.0;
const BUFFER: u64 = 9;
/// Mean-size packets per second at 8 mbit.
const CP: u64 = 2000;

impl PlainRed {
    fn new(form: Form) -> PlainRed {
        let unit = if form.in_bytes { 500.0 } else { 1.0 };
        let (min_th, max_th) = (unit, 3.0 * unit);
        let idle_since = Some(0);
        let queue = Vec::new();
        PlainRed { form, min_th, max_th, queue, avg: 0.0, count: -1, count_bytes: 0, idle_since }
    }

    fn settings(form: Form) -> Vec<(&'static str, String)> {
        let size = |n: u64| if form.in_bytes { format!("{}B", 500 * n) } else { format!("{n}p") };
        vec![
            ("limit", size(BUFFER)),
            ("min_th", size(1)),
            ("max_th", size(3)),
            ("w_q", W_Q.to_string()),
            ("max_p", MAX_P.to_string()),
            ("packet", format!("{MEAN}B")),
            ("gentle", form.gentle.into()),
            ("wait", form.wait.into()),
            ("byte_mode", form.byte_mode.into()),
            ("ecn", form.ecn.to_string()),
            ("hard_drop", form.hard_drop.to_string()),
        ]
    }

    fn average(&mut self, now: u64) {
        if let Some(since) = self.idle_since {
            let m = (now - since) * CP / 1_000_000_000;
            for _ in 0..m {
                self.avg *= 1.0 - W_Q;
            }
            self.idle_since = Some(now);
        }
        let q =
            if self.form.in_bytes { bytes(&self.queue) as f64 } else { self.queue.len() as f64 };
        self.avg = (1.0 - W_Q) * self.avg + W_Q * q;
    }

    fn pb(&self) -> f64 {
        let beyond =
            |end: f64| MAX_P + (1.0 - MAX_P) * (self.avg - self.max_th) / (end - self.max_th);
        let unit = self.min_th;
        if self.avg < self.max_th {
            return MAX_P * (self.avg - self.min_th) / (self.max_th - self.min_th);
        }
        match self.form.gentle {
            "none" => 1.0,
            "two_max_th" => beyond(2.0 * self.max_th),
            _ => beyond(BUFFER as f64 * unit),
        }
    }

    fn pa(&self, pb: f64, len: u32) -> f64 {
        if pb >= 1.0 && self.form.byte_mode != "mean" {
            return 1.0;
        }
        let len = f64::from(len);
        let pb = if self.form.byte_mode == "max" { (pb * len / MAX_PACKET).min(1.0) } else { pb };
        let count = match self.form.byte_mode {
            "mean" => (self.count_bytes / MEAN) as f64,
            _ => self.count as f64,
        };
        let spread = count * pb;
        let pa = match self.form.wait {
            "bernoulli" => pb,
            "no" if spread < 1.0 => pb / (1.0 - spread),
            "yes" if spread < 1.0 => 0.0,
            "yes" if spread < 2.0 => pb / (2.0 - spread),
            _ => 1.0,
        };
        if self.form.byte_mode == "mean" && pa < 1.0 { pa * len / MEAN as f64 } else { pa }
    }
}

impl Naive for PlainRed {
    fn enqueue(&mut self, now: u64, u: f64, mut p: Packet, dropped: &mut Losses) {
        self.average(now);
        let (mut signal, mut certain) = (false, false);
        if self.avg < self.min_th {
            (self.count, self.count_bytes) = (-1, 0);
        } else {
            self.count += 1;
            self.count_bytes += u64::from(p.len);
            let pb = self.pb();
            certain = pb >= 1.0;
            signal = u < self.pa(pb, p.len);
            if signal {
                (self.count, self.count_bytes) = (0, 0);
            }
        }
        let full = match self.form.in_bytes {
            true => bytes(&self.queue) + u64::from(p.len) > 500 * BUFFER,
            false => self.queue.len() as u64 + 1 > BUFFER,
        };
        if full {
            (self.count, self.count_bytes) = (0, 0);
            return dropped.push((p, DropReason::Full));
        }
        if signal {
            let markable = self.form.ecn && p.ecn != Ecn::NotEct;
            if !markable || (certain && self.form.hard_drop) {
                return dropped.push((p, DropReason::AtEnqueue));
            }
            p.ecn = Ecn::Ce;
        }
        self.queue.push(p);
    }

    fn dequeue(&mut self, now: u64, _dropped: &mut Losses) -> Option<Packet> {
        if self.queue.is_empty() {
            self.idle_since = Some(now);
            return None;
        }
        self.idle_since = None;
        Some(self.queue.remove(0))
    }

    fn held(&self) -> (usize, u64) {
        (self.queue.len(), bytes(&self.queue))
    }

    fn variable(&self, name: &str) -> Option<f64> {
        match name {
            "avg" => Some(self.avg),
            "count" => Some(self.count as f64),
            _ => None,
        }
    }
}

fn forms() -> Vec<Form> {
    let mut forms = Vec::new();
    for in_bytes in [false, true] {
        for gentle in ["none", "two_max_th", "buffer"] {
            for wait in ["no", "yes", "bernoulli"] {
                for byte_mode in ["off", "mean", "max"] {
                    for (ecn, hard_drop) in [(false, false), (true, false), (true, true)] {
                        forms.push(Form { in_bytes, gentle, wait, byte_mode, ecn, hard_drop });
                    }
                }
            }
        }
    }
    forms
}

fn both(form: Form) -> impl Fn() -> (crate::naive::Real, Box<dyn Naive>) {
    let settings = PlainRed::settings(form);
    let settings: Vec<(&str, &str)> = settings.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let build = real::<SingleQueue<red::Red>>(&settings);
    move || (build(), Box::new(PlainRed::new(form)))
}

#[test]
fn red_in_every_short_interleaving() {
    // Random numbers are part of the interleaving: high, low, or near the middle.
    let ops = [
        Op::Put(1, 500, 0.0),
        Op::Put(2, 1000, 0.999_999),
        Op::Put(1, 300, 0.314_159),
        Op::Get,
        Op::Wait(Span::us(500)),
    ];
    let full = [Op::Put(2, 500, 0.999_999); 4];
    for form in forms() {
        every(4, &ops, &[], true, both(form));
        every(5, &ops, &full, true, both(form));
    }
    for form in forms().into_iter().filter(|f| f.ecn && !f.hard_drop && f.byte_mode != "max") {
        every(6, &ops, &full, true, both(form));
    }
}

#[test]
fn red_over_long_random_arrivals() {
    for form in forms() {
        for seed in 0..3 {
            let (real, naive) = both(form)();
            long(seed, 3000, real, naive);
        }
    }
}
