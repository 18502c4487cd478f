//! PSH as Linux sets it.

use super::*;

/// Positions of the segments with PSH among those sent since the last call.
fn pushed(t: &mut Test) -> Vec<usize> {
    let sent = t.out.drain(..).enumerate();
    sent.filter_map(|(i, s)| s.push.then_some(i)).collect()
}

#[test]
fn the_last_segment_of_each_burst_has_it() {
    let mut t = Test::new("sack", &[("linux_acks", "true")]);
    t.write(100, 100_000);
    assert_eq!(pushed(&mut t), [1, 3, 5, 7, 9], "100 ms: bursts of two");
    t.ack(200, 2_001, &[]);
    assert_eq!((t.out.len(), pushed(&mut t)), (2, vec![1]));
    t.ack(201, 3_001, &[]);
    assert_eq!((t.out.len(), pushed(&mut t)), (1, vec![]), "one segment is no burst");
    let mut plain = Test::new("sack", &[]);
    plain.write(100, 100_000);
    assert_eq!((plain.out.len(), pushed(&mut plain)), (10, vec![]));
}

#[test]
fn the_last_segment_of_a_write_has_it() {
    let mut t = Test::new("sack", &[("linux_acks", "true")]);
    t.write(100, 200);
    assert_eq!((t.out.len(), pushed(&mut t)), (1, vec![0]));
    t.write(101, 3_000);
    assert_eq!(t.out.iter().map(|s| s.len).collect::<Vec<_>>(), [1_000; 3]);
    assert_eq!(pushed(&mut t), [1, 2], "a burst of two, and the end of the write");
}

#[test]
fn a_burst_is_at_most_half_a_window() {
    let mut t = Test::new("sack", &[("linux_acks", "true"), ("initial_window", "3p")]);
    t.write(100, 100_000);
    assert_eq!((t.out.len(), pushed(&mut t)), (3, vec![]));
}

#[test]
fn bursts_grow_with_the_rate() {
    // A SYN answered after 1 ms: 10 windows of 1000 B in 1 ms, twice that in slow start. A burst is
    // 1/1024 s, at most half a window.
    let mut t = Test::opened("sack", &[("linux_acks", "true"), ("tick", "1us")]);
    t.ack(1, 1, &[]);
    t.sent();
    t.write(1, 100_000);
    assert_eq!(pushed(&mut t), [4, 9]);
}

#[test]
fn bursts_are_longer_in_slow_start() {
    // 100 kB per 20 ms, times 2 or 1.2, are 9.8 or 5.9 kB in 1/1024 s.
    for (ssthresh, first) in [("1000p", 8), ("200p", 4), ("50p", 4)] {
        let more = [("linux_acks", "true"), ("initial_window", "100p")];
        let mut t = Test::opened("sack", &[more[0], more[1], ("initial_ssthresh", ssthresh)]);
        t.ack(20, 1, &[]);
        t.sent();
        t.write(20, 200_000);
        assert_eq!(pushed(&mut t)[0], first, "{ssthresh}");
    }
}

#[test]
fn bursts_are_longer_on_short_paths() {
    // 1.2 times 30 kB per 3 ms are 11,718 B in 1/1024 s. A round trip of 3 ms adds 64 KiB / 32.
    let more = [("linux_acks", "true"), ("initial_window", "30p"), ("initial_ssthresh", "50p")];
    for (rack, first) in [("false", 10), ("true", 12)] {
        let mut t = Test::opened("sack", &[more[0], more[1], more[2], ("rack", rack)]);
        t.ack(3, 1, &[]);
        t.sent();
        t.write(3, 100_000);
        assert_eq!(pushed(&mut t)[0], first, "the least round-trip time is known with RACK");
    }
}

#[test]
fn retransmissions_do_not_have_it() {
    let mut t = Test::new("sack", &[("linux_acks", "true"), ("rack", "true")]);
    t.write(100, 100_000);
    t.sent();
    t.ack(200, 1, &[(2_001, 10_001)]);
    let again = t.out.iter().filter(|s| s.retransmission);
    assert_eq!(again.map(|s| (s.seq, s.push)).collect::<Vec<_>>(), [(1, false), (1_001, false)]);
}
