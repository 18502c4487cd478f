//! Bulk transfers of QUIC stacks in virtual time, through one bottleneck of sojourn.

pub mod quinn;
pub mod s2n;

use sojourn_aqm::{Rate, Span, TimedLink};
use std::str::FromStr;

/// Rate of the bottleneck.
const RATE: Rate = Rate(10_000_000);

/// Delay of each direction.
const DELAY: Span = Span::ms(20);

/// UDP payload of a full packet: 1500 bytes with the headers of IPv4 and UDP.
pub const DATAGRAM: u16 = 1472;

/// Congestion control, of each stack its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// CUBIC, the default of both stacks.
    Cubic,
    /// BBR.
    Bbr,
}

impl FromStr for Control {
    type Err = String;

    fn from_str(name: &str) -> Result<Control, String> {
        match name {
            "cubic" => Ok(Control::Cubic),
            "bbr" => Ok(Control::Bbr),
            _ => Err(format!("control: {name:?} is not known, allowed: cubic, bbr")),
        }
    }
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Discipline in text form.
    pub qdisc: String,
    /// Congestion control of all transfers.
    pub control: Control,
    /// Number of transfers, each with hosts of its own.
    pub flows: usize,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Start of the measured interval.
    pub warmup: Span,
    /// Length of the measured interval.
    pub measured: Span,
}

/// Measurements after the warm-up.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Bytes of the applications per flow and second, in bit/s.
    pub goodput_bps: Vec<f64>,
    /// Median of the time in the queue, seconds.
    pub p50_s: f64,
    /// 99th percentile of the time in the queue, seconds.
    pub p99_s: f64,
    /// Share of packets that were dropped.
    pub dropped: f64,
    /// Share of packets that were marked.
    pub marked: f64,
}

impl Setup {
    /// Returns the bottleneck, and the link back.
    ///
    /// # Errors
    /// An invalid discipline.
    pub fn links<T>(&self) -> sojourn_aqm::Result<[TimedLink<T>; 2]> {
        let link = |qdisc: &str, rate| TimedLink::builder(qdisc, rate, DELAY).seed(self.seed);
        Ok([link(&self.qdisc, RATE).build()?, link("droptail", Rate(10 * RATE.0)).build()?])
    }

    /// Time at which a transfer starts: in the first second, drawn from the seed.
    pub fn start(&self, flow: usize) -> Span {
        let mut rng = sojourn_aqm::Pcg::stream(self.seed, &format!("start.{flow}"));
        Span::ms(rng.next_bits() % 1000)
    }

    /// Returns the outcome: the applications have read `bytes` in the measured interval.
    pub fn outcome<T>(&self, link: &mut TimedLink<T>, bytes: &[u64]) -> Outcome {
        let seconds = self.measured.as_secs();
        let stats = link.stats();
        let share = |packets: u64| packets as f64 / stats.arrived_packets.max(1) as f64;
        let quantile = |q| stats.sojourn.quantile_s(q).unwrap_or(0.0);
        Outcome {
            goodput_bps: bytes.iter().map(|bytes| *bytes as f64 * 8.0 / seconds).collect(),
            p50_s: quantile(0.5),
            p99_s: quantile(0.99),
            dropped: share(stats.dropped()),
            marked: share(stats.marks.packets),
        }
    }
}
