use super::super::testing::processed;
use super::*;

/// Control that records the calls.
#[derive(Clone, Debug, Default)]
struct Recorder(Vec<String>, bool);

impl Algorithm for Recorder {
    type Params = ();

    fn new((): &(), _: &mut dyn Random) -> Recorder {
        Recorder::default()
    }

    fn reset(&mut self) {
        self.0.clear();
    }

    fn on_established(&mut self, w: &mut Segments, now: u64, rtt_us: u64) {
        self.0.push(format!("established {now} {rtt_us}"));
        w.cwnd = 4;
    }

    fn on_acked(&mut self, _: &mut Segments, ack: &Acked) {
        let Acked { now, segments, rtt_us, delivered, sacked, state, .. } = ack;
        self.0.push(format!("acked {now} {segments} {rtt_us:?} {delivered} {sacked} {state:?}"));
    }

    fn grow(&mut self, w: &mut Segments, ack: &Acked, acked: u64) {
        self.0.push(format!("grow {acked} {}", ack.full));
        w.cwnd += acked;
    }

    fn backs_off(&self) -> bool {
        self.1
    }

    fn on_state(&mut self, state: State, now: u64) {
        self.0.push(format!("{state:?} {now}"));
    }

    fn on_recovered(&mut self, w: &mut Segments) {
        self.0.push(format!("recovered {}", w.cwnd));
        w.ssthresh = 3;
    }

    fn on_start(&mut self) {
        self.0.push("start".into());
    }
}

fn control() -> Linux<Recorder> {
    let mut rng = <sojourn_aqm::Pcg as rand_core::SeedableRng>::seed_from_u64(1);
    Linux::new(&(), &CommonParams::default(), &mut rng)
}

/// Sends segment `i` at `ms`.
fn send(c: &mut Linux<Recorder>, i: u64, ms: u64) {
    let (now, seq) = (Time::ZERO + Span::ms(ms), 1 + 1_000 * i);
    let (retransmission, was_idle, state) = (false, i == 0, RecoveryState::Open);
    c.on_sent(&SentSegment {
        now,
        seq,
        end: seq + 1_000,
        retransmission,
        padding: 0,
        was_idle,
        state,
    });
}

/// Processes an ack of everything below segment `una`, which delivers the segments `news`; grows
/// the window if the state is Open before it and after it.
fn ack(
    c: &mut Linux<Recorder>,
    w: &mut Window,
    (una, news): (u64, std::ops::Range<u64>),
    ms: u64,
    state: RecoveryState,
) {
    let now = Time::ZERO + Span::ms(ms);
    let una = 1 + 1_000 * una;
    c.on_ecn_feedback(una, una - c.ack.una.max(1), 0, 8_001);
    c.on_delivered(now, 1 + 1_000 * news.start, 1 + 1_000 * news.end);
    if state == RecoveryState::Open && c.state == State::Open {
        let (bytes, rtt, srtt) = (una - 1, None, None);
        let acked = NewDataAck { at: now, bytes, flight: w.cwnd, rtt, srtt, after_timeout: false };
        c.on_ack(w, &acked);
    }
    c.on_ack_processed(w, &ProcessedAck { srtt: None, ..processed(now, 0, 0, state) });
}

fn calls(c: &mut Linux<Recorder>) -> Vec<String> {
    std::mem::take(&mut c.algorithm.0)
}

#[test]
fn a_control_sees_what_a_module_of_the_kernel_sees() {
    use RecoveryState::{Open, Recovery};
    let mut c = control();
    let mut w = Window { cwnd: 10_500, ssthresh: 90_000, mss: 1_000 };
    let start = c.initial_window(Time::ZERO + Span::ms(7), &w, Some(Span::us(7_300)));
    assert_eq!((start, calls(&mut c)), (4_000, vec!["established 7 7300".into()]));
    (0..8).for_each(|i| send(&mut c, i, i));
    assert_eq!(calls(&mut c), ["start"]);
    ack(&mut c, &mut w, (2, 0..2), 20, Open);
    assert_eq!(calls(&mut c), ["acked 20 2 Some(19000) 2000 false Open", "grow 2 true"]);
    assert_eq!(w.cwnd, 12_000, "10 whole segments, and 2");
    // Segment 2 is lost, which the ack of the fourth shows.
    ack(&mut c, &mut w, (2, 3..4), 30, Open);
    calls(&mut c);
    let now = Time::ZERO + Span::ms(31);
    assert_eq!(c.on_congestion(now, &w, 9_900, CongestionSignal::Loss), 4_000, "half of nine");
    ack(&mut c, &mut w, (2, 4..5), 40, Recovery);
    let seen = calls(&mut c);
    assert_eq!(seen, ["Recovery 31", "acked 40 0 Some(36000) 4000 true Recovery"]);
    // The whole window, 13 since the selective ack, is acknowledged: the end of the recovery, after
    // which it may grow.
    ack(&mut c, &mut w, (8, 2..3), 50, Open);
    let seen = calls(&mut c);
    assert_eq!(seen, ["acked 50 6 Some(48000) 5000 false Recovery", "recovered 13", "Open 50"]);
    assert_eq!(w.ssthresh, 3_000);
}

#[test]
fn a_mark_lasts_until_the_data_sent_before_it_is_acknowledged() {
    let mut c = control();
    let mut w = Window { cwnd: 10_000, ssthresh: 1_000, mss: 1_000 };
    (0..9).for_each(|i| send(&mut c, i, i));
    ack(&mut c, &mut w, (1, 0..1), 20, RecoveryState::Open);
    c.on_congestion(Time::ZERO, &w, 10_000, CongestionSignal::Mark);
    calls(&mut c);
    ack(&mut c, &mut w, (8, 1..8), 21, RecoveryState::Open);
    assert_eq!(c.state, State::Cwr, "not above the last byte sent before");
    ack(&mut c, &mut w, (9, 8..9), 22, RecoveryState::Open);
    assert_eq!(c.state, State::Open);
    assert!(calls(&mut c).contains(&"recovered 11".into()));
}

#[test]
fn a_timeout_ends_without_a_recovery() {
    let mut c = control();
    let mut w = Window { cwnd: 10_000, ssthresh: 1_000, mss: 1_000 };
    (0..8).for_each(|i| send(&mut c, i, i));
    c.on_congestion(Time::ZERO, &w, 10_000, CongestionSignal::Timeout);
    assert_eq!(calls(&mut c), ["start", "Loss 0"]);
    ack(&mut c, &mut w, (8, 0..8), 22, RecoveryState::Open);
    assert_eq!(calls(&mut c), ["acked 22 8 Some(15000) 8000 false Loss", "Open 22"]);
    c.reset();
    assert_eq!((c.state, c.ack.una, c.algorithm.0.len()), (State::Open, 0, 0));
}

#[test]
fn a_back_off_is_a_reduction_for_a_round_trip() {
    let mut c = control();
    let mut w = Window { cwnd: 10_000, ssthresh: 1_000, mss: 1_000 };
    (0..9).for_each(|i| send(&mut c, i, i));
    c.algorithm.1 = true;
    ack(&mut c, &mut w, (1, 0..1), 20, RecoveryState::Open);
    // The window has grown to 11, of which the threshold is half.
    assert_eq!((w.cwnd, w.ssthresh, c.state), (5_000, 5_000, State::Cwr));
    assert!(c.takes_reduction() && !c.takes_reduction());
    ack(&mut c, &mut w, (8, 1..8), 21, RecoveryState::Open);
    assert_eq!((w.cwnd, c.state), (5_000, State::Cwr), "neither growth nor another one");
    c.algorithm.1 = false;
    ack(&mut c, &mut w, (9, 8..9), 22, RecoveryState::Open);
    assert_eq!(c.state, State::Open);
}
