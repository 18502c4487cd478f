"""BBR version 1 in Python, with delivery rates; it sends as the built-in `bbr` in profile rfc.

Source: draft-cardwell-iccrg-bbr-congestion-control-00; constants of Linux's tcp_bbr.
"""

import numpy as np

import sojourn as sj

STARTUP, DRAIN, PROBE_BW, PROBE_RTT = range(4)
OPEN, RECOVERY, LOSS = range(3)
CYCLE = (1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
GOLDEN = 0.6180339887498949


class Bbr(sj.CongestionControl):
    """Pace at the largest delivery rate of ten rounds, with two products of it and RTprop."""

    high_gain: float = 2.885
    cwnd_gain: float = 2.0
    margin: float = 0.99
    rtprop_window: sj.Duration = "10s"
    probe_rtt: sj.Duration = "200ms"
    pacing = True

    def start(self):
        self.mode, self.phase, self._phase_at, self._draw = STARTUP, 0, 0, -1.0
        self.bw, self.rate = 0.0, 0.0  # bit/s
        self._rates, self._rounds = np.zeros(11), np.full(11, -1)
        self.round, self._round_end, self._round_start = 0, 0, False
        self.rtprop, self._rtprop_at = -1, 0
        self._full_bw, self._full_rounds, self._full = 0.0, 0, False
        self._probe_until, self._probe_round = -1, False
        self._repair, self._lost, self._conserves = OPEN, False, False
        self._prior_cwnd = self._initial = 0

    def on_established(self, tcp):
        self._initial, self._rtprop_at = tcp.cwnd, tcp.now
        if tcp.rtt is not None:
            self.rtprop = tcp.rtt
        rtt = self.rtprop if self.rtprop > 0 else 1_000_000
        self.rate = 8 * (self.high_gain * tcp.cwnd / (rtt / 1e9))
        tcp.pacing_rate = self.rate

    def on_ack(self, tcp):
        pass

    def on_loss(self, tcp):
        self.save_cwnd(tcp.cwnd)
        self._lost = True
        tcp.ssthresh = max(tcp.cwnd, 2 * tcp.mss)

    def on_timeout(self, tcp):
        self.on_loss(tcp)
        self._full_bw, self._repair, self._conserves = 0.0, LOSS, False

    def on_rate_sample(self, tcp):
        flight = tcp.flight - tcp.acked
        lost = self._lost or tcp.in_fast_recovery or tcp.after_timeout
        self._lost = self._round_start = False
        if tcp.acked > 0:
            self.update_bandwidth(tcp)
            if self.mode == PROBE_BW:
                self.advance_cycle(tcp, lost)
            self.check_full_pipe(tcp)
        if self.mode == STARTUP and self._full:
            self.mode = DRAIN
        if self.mode == DRAIN and flight <= self.inflight(1.0, tcp.mss):
            self.enter_probe_bw(tcp)
        self.update_rtprop(tcp, flight)
        rate = self.pacing_gain() * self.bw * self.margin
        if rate > 0 and (self._full or rate > self.rate):
            self.rate = rate
        tcp.pacing_rate = self.rate
        if tcp.acked > 0:
            tcp.cwnd = self.window(tcp, flight)
        if self.mode == PROBE_RTT:
            tcp.cwnd = min(tcp.cwnd, 4 * tcp.mss)

    def update_bandwidth(self, tcp):
        self._round_start = tcp.prior_delivered >= self._round_end
        if self._round_start:
            self._round_end, self._conserves = tcp.delivered, False
            self.round += 1
        if tcp.delivery_rate is None or tcp.interval < self.rtprop:
            return  # over less than a round trip, a burst of acks
        rate = tcp.delivery_rate
        if not tcp.is_app_limited or rate >= self.bw:
            i = self.round % 11
            self._rates[i] = max(rate, self._rates[i]) if self._rounds[i] == self.round else rate
            self._rounds[i] = self.round
            self.bw = float(np.max(self._rates[self._rounds >= self.round - 10]))

    def advance_cycle(self, tcp, lost):
        gain, due = self.pacing_gain(), tcp.now - self._phase_at > self.rtprop >= 0
        if gain > 1:
            due = due and (lost or tcp.flight >= self.inflight(gain, tcp.mss))
        elif gain < 1:
            due = due or tcp.flight <= self.inflight(1.0, tcp.mss)
        if due:
            self.phase, self._phase_at = (self.phase + 1) % 8, tcp.now

    def check_full_pipe(self, tcp):
        if self._full or not self._round_start or tcp.is_app_limited:
            return
        if self.bw >= self._full_bw * 1.25:
            self._full_bw, self._full_rounds = self.bw, 0
        else:
            self._full_rounds += 1
            self._full = self._full_rounds >= 3

    def enter_probe_bw(self, tcp):
        if self._draw < 0:
            self._draw = self.draw(tcp)
        phase = int(self._draw * 7)  # any but the one that drains
        self._draw = (self._draw + GOLDEN) % 1
        self.mode, self._phase_at, self.phase = PROBE_BW, tcp.now, phase + (phase > 0)

    def draw(self, tcp):
        return tcp.random()

    def update_rtprop(self, tcp, flight):
        expired = tcp.now > self._rtprop_at + self.rtprop_window
        if tcp.rtt is not None and (expired or self.rtprop < 0 or tcp.rtt <= self.rtprop):
            self.rtprop, self._rtprop_at = tcp.rtt, tcp.now
        if expired and not tcp.idle_restart and self.mode != PROBE_RTT:
            self.save_cwnd(tcp.cwnd)
            self.mode, self._probe_until = PROBE_RTT, -1
        if self.mode != PROBE_RTT:
            return
        tcp.app_limited = True  # samples with a minimal window do not show the bandwidth
        if self._probe_until < 0:
            if flight <= 4 * tcp.mss:
                self._probe_until, self._probe_round = tcp.now + self.probe_rtt, False
                self._round_end = tcp.delivered
            return
        self._probe_round = self._probe_round or self._round_start
        if self._probe_round and tcp.now >= self._probe_until:
            self._rtprop_at = tcp.now
            tcp.cwnd = max(tcp.cwnd, self._prior_cwnd)
            self.mode = STARTUP
            if self._full:
                self.enter_probe_bw(tcp)

    def window(self, tcp, flight):
        before, self._repair = self._repair, OPEN
        if tcp.in_fast_recovery or tcp.after_timeout:
            self._repair = RECOVERY if tcp.in_fast_recovery else LOSS
        cwnd = max(tcp.cwnd - tcp.newly_lost, tcp.mss)
        if self._repair == RECOVERY and before != RECOVERY:
            self._conserves, self._round_end, cwnd = True, tcp.delivered, flight
        elif self._repair == OPEN and before != OPEN:
            self._conserves, cwnd = False, max(cwnd, self._prior_cwnd)
        if self._conserves:
            return max(cwnd, flight + tcp.acked, tcp.mss)
        target = self.inflight(self.window_gain(), tcp.mss)
        if self._full:
            cwnd = min(cwnd + tcp.acked, target)
        elif cwnd < target or tcp.delivered < self._initial:
            cwnd += tcp.acked
        return max(cwnd, 4 * tcp.mss)

    def save_cwnd(self, cwnd):
        usual = self._repair == OPEN and self.mode != PROBE_RTT
        self._prior_cwnd = cwnd if usual else max(cwnd, self._prior_cwnd)

    def inflight(self, gain, mss):
        if self.rtprop < 0 or self.bw <= 0:
            return int(gain * self._initial)
        return int(gain * self.bw * (self.rtprop / 1e9) / 8 + 3 * mss)

    def pacing_gain(self):
        return (self.high_gain, 1 / self.high_gain, CYCLE[self.phase], 1.0)[self.mode]

    def window_gain(self):
        return (self.high_gain, self.high_gain, self.cwnd_gain, 1.0)[self.mode]
