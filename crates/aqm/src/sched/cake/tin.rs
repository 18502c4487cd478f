//! Tins: classes by DSCP, each with a share of the rate up to which it goes first.

use super::flows::Flows;
use super::shaper::{ByteTime, TinClock};
use crate::aqm::cobalt::linux::Settings;
use crate::cast;
use crate::snapshot::Snapshot;
use crate::units::{Span, Time};

crate::choice! {
    /// Tins: how DSCPs are classified.
    pub enum Tins {
        /// One tin.
        Besteffort = "besteffort",
        /// Eight tins by the upper three bits of the DSCP.
        Precedence = "precedence",
        /// Three tins: best effort, bulk, voice.
        Diffserv3 = "diffserv3",
        /// Four tins: best effort, bulk, video, voice.
        Diffserv4 = "diffserv4" | "diffserv",
        /// Eight tins.
        Diffserv8 = "diffserv8",
    }
}

/// A tin.
#[derive(Clone, Debug, Snapshot)]
pub struct Tin {
    /// Clock at its share of the rate.
    pub clock: TinClock,
    /// Parameters of COBALT in its queues.
    pub cobalt: Settings,
    /// Bytes that a queue may send per round, before hosts are shared.
    pub quantum: u64,
    /// Bytes that the tin may send per round, if there is no shaper.
    weight: i64,
    /// Bytes that it may send in this round.
    pub deficit: i64,
    /// Bytes in its queues.
    pub backlog: u64,
    /// Its queues.
    pub flows: Flows,
}

/// Share of the rate, as a fraction of it rounded down, and the weight without a shaper.
type Share = (u64, i64);

impl Tins {
    /// Rates in bytes per second and weights of the tins at a rate of the whole.
    fn shares(self, rate: u64) -> ([Share; 8], usize) {
        let mut shares: [Share; 8] = [(rate, 65_535); 8];
        let tins = match self {
            Tins::Besteffort => 1,
            Tins::Diffserv3 => {
                shares[..3].copy_from_slice(&[(rate, 1024), (rate >> 4, 64), (rate >> 2, 256)]);
                3
            }
            Tins::Diffserv4 => {
                let [bulk, video, voice] = [(rate >> 4, 64), (rate >> 1, 512), (rate >> 2, 256)];
                shares[..4].copy_from_slice(&[(rate, 1024), bulk, video, voice]);
                4
            }
            Tins::Diffserv8 | Tins::Precedence => {
                shares[0] = (rate, 256);
                for i in 1..8 {
                    let (rate, weight) = shares[i - 1];
                    shares[i] = (cut(rate), cut(weight.unsigned_abs()).cast_signed());
                }
                8
            }
        };
        (shares, tins)
    }

    /// Number of tins.
    pub fn count(self) -> usize {
        self.shares(0).1
    }

    /// Tin of packets with `dscp`.
    pub fn of(self, dscp: u16) -> usize {
        let dscp = if dscp < 64 { dscp } else { 0 };
        match self {
            Tins::Besteffort => 0,
            Tins::Precedence => usize::from(dscp / 8),
            Tins::Diffserv3 => match dscp {
                1 | 8 => 1,
                4 | 44 | 46 | 48 | 56 => 2,
                _ => 0,
            },
            Tins::Diffserv4 => match dscp {
                1 | 8 => 1,
                4 | 16 | 18 | 20 | 22 | 24 | 26 | 28 | 30 | 34 | 36 | 38 => 2,
                32 | 40 | 44 | 46 | 48 | 56 => 3,
                _ => 0,
            },
            Tins::Diffserv8 => match dscp {
                1 => 0,
                2 | 8 | 10 | 12 | 14 => 1,
                24 | 26 | 28 | 30 | 34 | 36 | 38 => 3,
                4 | 18 | 20 | 22 => 4,
                16 => 5,
                32 | 40 | 44 | 46 => 6,
                48 | 56 => 7,
                _ => 2,
            },
        }
    }

    /// Adapts `tins` to a shaper of `rate` bytes per second, 0 for none.
    pub fn configure(self, tins: &mut [Tin], rate: u64, rtt: Span, mtu: u64) {
        for (tin, (rate, weight)) in tins.iter_mut().zip(self.shares(rate).0) {
            tin.weight = weight;
            tin.clock.byte_time = ByteTime::at(rate);
            tin.quantum = if rate == 0 { 1514 } else { (rate >> 12).clamp(300, 1514) };
            tin.cobalt = settings(tin.clock.byte_time.of(mtu), rtt);
        }
    }
}

fn cut(x: u64) -> u64 {
    cast::saturate((u128::from(x) * 7) >> 3)
}

/// Parameters of COBALT in a tin in which a packet of the largest size takes `mtu_time`.
fn settings(mtu_time: Span, rtt: Span) -> Settings {
    Settings::new(Span((rtt.0 / 20).max(1000)), rtt, mtu_time)
}

impl Tin {
    pub fn new(flows: Flows) -> Tin {
        Tin {
            clock: TinClock::default(),
            cobalt: Settings::default(),
            quantum: 0,
            weight: 0,
            deficit: 0,
            backlog: 0,
            flows,
        }
    }
}

/// Tin that sends next under a shaper: the last one that has packets and is within its share, else
/// the one that will be first; the last one of equal ones.
pub fn by_schedule(tins: &[Tin], now: Time) -> Option<usize> {
    let active = tins.iter().enumerate().filter(|(_, tin)| tin.flows.is_active());
    // Reversed: the first of equal ones is the minimum.
    active.rev().min_by_key(|(_, tin)| tin.clock.next.max(now)).map(|(i, _)| i)
}

/// Tin that sends next without a shaper, by deficit round robin from tin `current` on.
pub fn by_weight(tins: &mut [Tin], current: usize) -> Option<usize> {
    if !tins.iter().any(|tin| tin.flows.is_active()) {
        return None;
    }
    let mut i = current;
    let mut turns = 0;
    while tins[i].deficit < 0 || !tins[i].flows.is_active() {
        if tins[i].deficit <= 0 {
            tins[i].deficit += tins[i].weight;
        }
        i = (i + 1) % tins.len();
        turns += 1;
        if turns % tins.len() == 0 {
            skip_rounds(tins);
        }
    }
    Some(i)
}

/// Credits the rounds in which no tin can send.
fn skip_rounds(tins: &mut [Tin]) {
    let active = tins.iter().filter(|tin| tin.flows.is_active());
    let rounds = active.map(|tin| -tin.deficit.min(0) / tin.weight).min().unwrap_or(0);
    for tin in tins.iter_mut().filter(|tin| tin.deficit <= 0) {
        let until_positive = -tin.deficit / tin.weight + 1;
        tin.deficit += rounds.min(until_positive) * tin.weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::cake::flows::{Isolation, State};
    use std::prelude::v1::*;

    fn tins(mode: Tins, rate: u64) -> Vec<Tin> {
        let tin = |_| Tin::new(Flows::new(Isolation::Flows));
        let mut tins: Vec<Tin> = (0..mode.count()).map(tin).collect();
        mode.configure(&mut tins, rate / 8, Span::ms(100), 1514);
        tins
    }

    // The sample outputs of tc-cake(8), and the rule of the kernel for the others.
    #[test]
    fn target_interval_and_quantum_follow_the_rate_of_the_tin() {
        for (kbit, mtu_time, target, interval, quantum) in [
            (1_000, 12_112, 18_168, 113_168, 300),
            (2_000, 6_056, 9_084, 104_084, 300),
            (6_250, 1_937, 5_000, 100_000, 300),
            (10_000, 1_211, 5_000, 100_000, 305),
            (25_000, 484, 5_000, 100_000, 762),
            (50_000, 242, 5_000, 100_000, 1514),
        ] {
            let tin = &tins(Tins::Besteffort, kbit * 1000)[0];
            let us = |span: Span| (span.0 + 2) / 1000;
            let times = [tin.cobalt.mtu_time, tin.cobalt.target, tin.cobalt.interval].map(us);
            assert_eq!((times, tin.quantum), ([mtu_time, target, interval], quantum), "{kbit}");
        }
        assert_eq!(settings(Span::ZERO, Span::us(10)).target, Span::us(1), "at least 1 us");
    }

    #[test]
    fn thresholds_are_shares_of_the_rate() {
        let rates = |mode| {
            let tins = tins(mode, 16_000_000);
            tins.iter().map(|t| 1_000_000_000 / t.clock.byte_time.of(1000).0).collect::<Vec<_>>()
        };
        assert_eq!(rates(Tins::Besteffort), [2000]);
        assert_eq!(rates(Tins::Diffserv3), [2000, 125, 500]);
        assert_eq!(rates(Tins::Diffserv4), [2000, 125, 1000, 500]);
        assert_eq!(rates(Tins::Diffserv8), [2000, 1750, 1531, 1339, 1172, 1025, 897, 785]);
        let weights = |mode| tins(mode, 0).iter().map(|t| t.weight).collect::<Vec<_>>();
        assert_eq!(weights(Tins::Diffserv4), [1024, 64, 512, 256]);
        assert_eq!(weights(Tins::Precedence), [256, 224, 196, 171, 149, 130, 113, 98]);
    }

    #[test]
    fn code_points_choose_the_tin() {
        let all = |mode: Tins, tin| (0..64).filter(|d| mode.of(*d) == tin).collect::<Vec<u16>>();
        assert_eq!(all(Tins::Diffserv3, 1), [1, 8]);
        assert_eq!(all(Tins::Diffserv3, 2), [4, 44, 46, 48, 56]);
        assert_eq!(all(Tins::Diffserv4, 2), [4, 16, 18, 20, 22, 24, 26, 28, 30, 34, 36, 38]);
        assert_eq!(all(Tins::Diffserv4, 3), [32, 40, 44, 46, 48, 56]);
        assert_eq!(all(Tins::Diffserv8, 0), [1]);
        assert_eq!(all(Tins::Diffserv8, 1), [2, 8, 10, 12, 14]);
        assert_eq!(all(Tins::Diffserv8, 3), [24, 26, 28, 30, 34, 36, 38]);
        assert_eq!(all(Tins::Diffserv8, 4), [4, 18, 20, 22]);
        assert_eq!(all(Tins::Diffserv8, 5), [16]);
        assert_eq!(all(Tins::Diffserv8, 6), [32, 40, 44, 46]);
        assert_eq!(all(Tins::Diffserv8, 7), [48, 56]);
        assert_eq!(all(Tins::Precedence, 5), (40..48).collect::<Vec<_>>());
        assert_eq!(all(Tins::Besteffort, 0).len(), 64);
        assert_eq!(Tins::Diffserv3.of(u16::MAX), 0, "not a code point");
        assert_eq!([63, 64].map(|dscp| Tins::Precedence.of(dscp)), [7, 0]);
    }

    #[test]
    fn a_tin_within_its_share_goes_first_and_the_last_one_of_these() {
        let mut tins = tins(Tins::Diffserv3, 8_000_000);
        assert_eq!(by_schedule(&tins, Time(0)), None);
        tins.iter_mut().for_each(|tin| tin.flows.set_state(0, State::Bulk));
        let mut at = |next: [u64; 3], now| {
            tins.iter_mut().zip(next).for_each(|(tin, next)| tin.clock.next = Time(next));
            by_schedule(&tins, Time(now))
        };
        assert_eq!(at([1, 2, 3], 10), Some(2));
        assert_eq!(at([1, 2, 30], 10), Some(1), "bulk before best effort");
        assert_eq!(at([30, 20, 40], 10), Some(1), "none is due: the earliest");
        assert_eq!(at([20, 30, 20], 10), Some(2));
    }

    #[test]
    fn without_a_shaper_tins_share_by_weight() {
        let mut tins = tins(Tins::Diffserv4, 0);
        tins.iter_mut().for_each(|tin| tin.flows.set_state(0, State::Bulk));
        let (mut sent, mut current) = ([0; 4], 0);
        for _ in 0..18_560 {
            current = by_weight(&mut tins, current).unwrap();
            tins[current].deficit -= 1000;
            sent[current] += 1;
        }
        for (tin, weight) in [1024, 64, 512, 256].into_iter().enumerate() {
            let off = sent[tin] - 10 * weight;
            assert!((-20..=20).contains(&off), "{sent:?}");
        }
        // Rounds without a packet are skipped at once: round by round, this takes minutes.
        for _ in 0..1000 {
            current = by_weight(&mut tins, current).unwrap();
            tins[current].deficit -= 1_000_000_000;
        }
        assert_eq!(by_weight(&mut tins[..0], 0), None);
    }

    #[test]
    fn a_deficit_of_zero_suffices_to_send() {
        let mut tins = tins(Tins::Diffserv3, 0);
        tins.iter_mut().for_each(|tin| tin.flows.set_state(0, State::Bulk));
        assert_eq!((by_weight(&mut tins, 1), tins[1].deficit), (Some(1), 0));
    }

    #[test]
    fn skipped_rounds_credit_a_tin_without_packets_until_its_deficit_is_positive() {
        let mut tins = tins(Tins::Diffserv4, 0);
        tins[0].flows.set_state(0, State::Bulk);
        let deficits = [-10_240, -100, 0, 5];
        tins.iter_mut().zip(deficits).for_each(|(tin, deficit)| tin.deficit = deficit);
        skip_rounds(&mut tins);
        // Ten rounds of 1024, two of 64, one of 512.
        let deficits: Vec<i64> = tins.iter().map(|tin| tin.deficit).collect();
        assert_eq!(deficits, [0, 28, 512, 5]);
    }
}
