"""Congestion controls in Python: Reno as the built-in one, and one that follows the delay."""

import sojourn as sj


class MyReno(sj.CongestionControl):
    """Reno: RFC 5681 with growth by acknowledged bytes (RFC 3465)."""

    def start(self):
        self.counted = 0

    def on_ack(self, tcp):
        if tcp.cwnd < tcp.ssthresh:
            tcp.cwnd += min(tcp.acked, tcp.mss)
            return
        self.counted += tcp.acked
        if self.counted >= tcp.cwnd:
            self.counted -= tcp.cwnd
            tcp.cwnd += tcp.mss

    def on_loss(self, tcp):
        self.counted = 0
        tcp.ssthresh = max(tcp.flight // 2, 2 * tcp.mss)


class MyNewReno(MyReno):
    """As MyReno, with the loss recovery of RFC 6582 instead of SACK."""

    recovery = "newreno"


class DelayTarget(sj.CongestionControl):
    """Keep the queueing delay near a target: grow below it, shrink above it."""

    target: sj.Duration = "10ms"
    gain: float = 1.0

    def on_ack(self, tcp):
        if tcp.rtt is None:
            return
        delay = tcp.rtt - tcp.min_rtt
        if tcp.cwnd < tcp.ssthresh and delay < self.target:
            tcp.cwnd += min(tcp.acked, tcp.mss)
            return
        tcp.ssthresh = tcp.cwnd  # slow start is over
        off = max(-1.0, (self.target - delay) / self.target)
        tcp.cwnd = max(2 * tcp.mss, tcp.cwnd + self.gain * off * tcp.acked * tcp.mss / tcp.cwnd)
