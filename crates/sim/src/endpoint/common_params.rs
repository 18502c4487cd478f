//! Parameters that all TCPs have.

use sojourn_aqm::Snapshot;
use sojourn_aqm::units::{Bytes, Size, Span};
use sojourn_aqm::{choice, params};

choice! {
    /// Set of rules that a flow follows. Do not mix profiles in one figure: the same TCP name then
    /// means two things.
    pub enum Profile {
        /// Byte counting with the settings of Linux, which hosts run today.
        Linux = "linux",
        /// Byte counting: RFC 5681, 6582, 6675, 6298, 3042, 3465 and 3168.
        Rfc = "rfc",
        /// Packet counting: the one-way agents of ns-2.35.
        Ns2 = "ns2",
        /// QUIC: packet numbers, loss detection and probe timeouts of RFC 9002.
        Quic = "quic",
    }
}

/// Loss recovery algorithm; selected by the name of the TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
#[non_exhaustive]
pub enum LossRecovery {
    /// Slow start from one packet.
    Tahoe,
    /// Halve the window; recovery ends with the first ack of new data.
    Reno,
    /// Halve the window; recovery ends when all data outstanding at its start is acknowledged.
    NewReno,
    /// As NewReno, with selective acknowledgements.
    Sack,
}

choice! {
    /// Form in which the receiver reports ECN marks to the sender.
    pub enum EcnFeedback {
        /// One bit, set from a mark until the sender confirms it (RFC 3168).
        Rfc3168 = "rfc3168",
        /// One bit that follows the marks of the packets (RFC 8257).
        Rfc8257 = "rfc8257",
        /// Counter of marked packets in every ack (AccECN, RFC 9768).
        Accurate = "accurate",
    }
}

params! {
    /// Parameters of a TCP. [`super::tcp::parse`] resolves `auto` from the profile.
    pub struct CommonParams {
        /// Rules to follow: linux (what hosts run today), rfc (the RFCs without extensions), ns2
        /// (the packet counting agents of ns-2.35), or quic (RFC 9002; for bbr, cubic, newreno,
        /// reno and sack). It sets the defaults of other parameters. Without it: rfc for compound,
        /// dcqcn, hpcc, ledbat, ledbatpp, newreno, powertcp, sack, swift, tahoe, timely, vegas, xcp
        /// and TCPs in Python, linux for the others.
        profile: Profile = Profile::Rfc, [], "", [];
        /// Size of a full data packet on the wire, including the header.
        packet: Bytes = Bytes(1500), [Bytes(41) => Bytes(65_535)], "", ["mtu"];
        /// Header size; also the size of a SYN and of an ack (each SACK block adds 8 B; in quic,
        /// the ranges of an ACK frame their encoded size). In quic 62B: IPv4 and UDP 28, short
        /// header with connection id 11, STREAM frame 7, AEAD tag 16.
        header: Bytes = Bytes(40), [Bytes(1) => Bytes(1_000)], "", [];
        /// Initial congestion window; auto: 10p (RFC 6928; in quic fewer if they exceed 14,720 B,
        /// as in RFC 9002 7.2), in ns2 2p.
        initial_window: Option<Size> = None,
            [Size::Packets(1) => Size::Packets(1_000_000_000)], "IW", ["iw"];
        /// Receive window: upper bound on the data in flight.
        receive_window: Size = Size::Packets(1_000_000),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "rwnd", ["rwnd"];
        /// Initial slow-start threshold; auto: the receive window.
        initial_ssthresh: Option<Size> = None,
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)],
                "ssthresh", ["ssthresh"];
        /// Minimum retransmission timeout; auto: 1s (RFC 6298), in linux and ns2 200ms, but at most
        /// rto_max.
        rto_min: Option<Span> = None, [Span(1) => Span::s(60)], "RTO_min", [];
        /// Retransmission timeout before the first RTT sample, between rto_min and rto_max; auto:
        /// 1s (RFC 6298), in ns2 3s, limited to these bounds.
        rto_initial: Option<Span> = None, [Span(1) => Span::s(3600)], "", [];
        /// Maximum retransmission timeout, including backoff; in ns2 at least two ticks.
        rto_max: Span = Span::s(60), [Span(1) => Span::s(3600)], "RTO_max", [];
        /// Clock granularity; auto: 1ms, in ns2 10ms (where all times are whole ticks). See also
        /// jiffies.
        tick: Option<Span> = None, [Span(1) => Span::s(1)], "G", ["granularity"];
        /// If true, the receiver acks only every second packet; auto: yes (RFC 5681), in ns2 and
        /// for dcqcn, hpcc, powertcp, swift and timely no.
        delayed_ack: Option<bool> = None, [], "", ["delack"];
        /// Maximum delay of an ack; auto: 40ms (as in Linux), in ns2 100ms, in quic 25ms (RFC
        /// 9000).
        delayed_ack_timeout: Option<Span> = None, [Span(1) => Span::ms(500)], "", [];
        /// If true, both ends use ECN (RFC 3168); auto: only for dcqcn, dctcp and prague.
        ecn: Option<bool> = None, [], "", [];
        /// If true, ECN-capable packets carry ECT(1) in place of ECT(0): they claim to be L4S (RFC
        /// 9331), and disciplines such as dualpi2 treat them so; auto: only for prague. Needs ecn.
        ect1: Option<bool> = None, [], "", [];
        /// Feedback of marks by the receiver: one bit until the sender confirms it (rfc3168), one
        /// bit that follows the marks (rfc8257), or their exact number in every ack (accurate:
        /// AccECN, RFC 9768); auto: rfc3168, for dctcp rfc8257, for dcqcn and prague accurate.
        /// Profile ns2 has only rfc3168, profile quic only accurate.
        ecn_feedback: Option<EcnFeedback> = None, [], "", ["feedback"];
        /// If true, each of the first two duplicate acks sends one new packet (limited transmit,
        /// RFC 3042).
        limited_transmit: bool = true, [], "", ["singledup"];
        /// If true, duplicate acks reduce the window at most once per window of data (RFC 6582 step
        /// 2, ns-2's bugFix_). If false, Reno halves once per loss. NewReno and SACK in rfc always
        /// behave as if true.
        careful: bool = true, [], "", ["bugfix"];
        /// Limit on the growth of the window per ack in slow start, packets (RFC 3465); not in ns2.
        abc_limit: u64 = 1, [1 => 2], "L", [];
        /// If true, receivers acknowledge as in Linux: the delay follows the gaps between segments,
        /// from delayed_ack_timeout to a round-trip time; the first 16 segments, 16 after a pause
        /// or a duplicate, 2 after a mark, those with PSH (the last of a burst) or CWR, and those
        /// that let the receive window grow are acknowledged at once. While data is missing, acks
        /// after the third duplicate are compressed: one per 5 % of a round-trip time, at most 1
        /// ms. No effect without delayed_ack; not in ns2.
        linux_acks: bool = false, [], "", [];
        /// If true, segments are paced (at two windows per round trip in slow start, then 1.2)
        /// instead of sent in bursts; auto: only for bbr, bbr3, dcqcn, hpcc, powertcp, prague,
        /// swift and timely, which set their own rate, and in quic (1.25 windows per round trip,
        /// RFC 9002 7.7). With linux_acks, the sender paces bursts of two segments or a
        /// millisecond, longer with round-trip times below 4 ms, as Linux does. Not in ns2.
        pacing: Option<bool> = None, [], "", ["paced"];
        /// If true, recovery reduces the window gradually (PRR, RFC 9937); SACK only, not in ns2.
        prr: bool = false, [], "", [];
        /// If true, a segment is lost as soon as a segment sent after it is delivered (RACK, RFC
        /// 8985); SACK only, not in ns2.
        rack: bool = false, [], "", [];
        /// If true, the first loss of a window must be confirmed by three selectively acknowledged
        /// segments or a quarter of the round-trip time (RFC 8985 6.2 step 4, as in Linux); no
        /// effect without rack.
        reordering_window: bool = false, [], "", [];
        /// If true, every ack gives a round-trip time, and the timeout is at least rto_min longer
        /// than the smoothed one, as in Linux; if false, one segment per round trip is timed (RFC
        /// 6298). No effect without rack.
        rtt_per_ack: bool = false, [], "", [];
        /// If true, segments carry timestamps (RFC 7323) and acks their echo: they give round-trip
        /// times of retransmitted data, and a reduction is undone if the echo shows that a segment
        /// was late, not lost (RFC 4015). The header must have room for the option (12 bytes).
        /// No effect without rack.
        timestamps: bool = false, [], "", [];
        /// If true, receivers report duplicate data (DSACK, RFC 2883): a reduction is undone if
        /// every retransmission was a duplicate (RFC 3708), and the reordering window grows (RFC
        /// 8985). No effect without rack.
        dsack: bool = false, [], "", [];
        /// If true, new data is sent after a timeout until it is known whether the timeout was
        /// justified (F-RTO, RFC 5682). No effect without rack.
        frto: bool = false, [], "", [];
        /// If true, two round-trip times without an ack send new data or the last segment again
        /// (tail loss probe, RFC 8985 7). No effect without rack.
        tlp: bool = false, [], "", [];
        /// If true, timers of more than a tick expire at whole ticks of the clock of their host, up
        /// to one tick early, as in Linux; if false, they are exact. The phase of each clock is
        /// drawn at random. Senders need rack, receivers linux_acks.
        jiffies: bool = false, [], "", [];
        /// If true, a SYN that is sent again asks for no ECN, as in Linux (RFC 3168 6.1.1.1): the
        /// connection then goes without. No effect without rack.
        ecn_fallback: bool = false, [], "", [];
        /// If true, SYNs are as in Linux: they and their answers are 8 bytes longer than the header
        /// of data, the first four timeouts do not double the timeout, and only the loss of two
        /// SYNs reduces the initial window to one segment. If false, each timeout doubles it, and
        /// the loss of one SYN reduces the window (RFC 5681 3.1). No effect without rack; the
        /// answer has its options with linux_acks.
        linux_syn: bool = false, [], "", [];
        /// If true, the sender acknowledges the answer to its SYN, and a connection of limited data
        /// ends with a FIN, which the sender repeats like data, and an ack of the receiver's FIN:
        /// packets of header size, as in Linux. The last data carries the FIN if it has to wait.
        /// Without it, these packets do not exist. No effect without rack.
        fin: bool = false, [], "", [];
        /// If true, a loss reduces the window itself, as in Linux, and a timeout during fast
        /// recovery does not reduce the threshold again; if false, a loss reduces the data in
        /// flight (RFC 5681 equation 4), which is less by up to a segment and what is lost; not in
        /// ns2.
        reduce_cwnd: bool = false, [], "", [];
        /// If true, a segment of any size counts as a full one, in the window, in flight and in
        /// delivery rates, as in Linux: applications that write little at a time fill their window
        /// sooner. A delivery rate is limited by the application if less than a segment waits when
        /// the application writes. No effect without rack.
        count_packets: bool = false, [], "", [];
        /// If true, slow start ends when round-trip times grow (HyStart++, RFC 9406; with variant =
        /// "linux" of cubic Linux's HyStart); auto: only for cubic (RFC 9438). For cubic and Reno's
        /// window; not in ns2.
        hystart: Option<bool> = None, [], "", ["hystart++", "hystartpp"];
    }
}
