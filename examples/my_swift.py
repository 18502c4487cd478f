"""Swift in Python: windows below one packet; it sends as the built-in `swift` does.

Source: Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the
Datacenter", SIGCOMM 2020, algorithm 1 and section 3.5.
"""

from math import sqrt

import sojourn as sj

UNPACED = 1e14  # bit/s: segments follow each other at once


class Swift(sj.CongestionControl):
    """Keep the round-trip time at a target; below one packet, pace a packet per RTT / fcwnd."""

    target: sj.Duration = "25us"
    ai: float = 1.0
    beta: float = 0.8
    max_mdf: float = 0.5
    fs_range: sj.Duration = "100us"
    fs_min: float = 0.1
    fs_max: float = 100.0
    min_cwnd: float = 0.001
    paced = True

    def start(self):
        self.fcwnd = 1.0
        self._rtt = 0
        self._decreased = -1

    def on_established(self, tcp):
        self.fcwnd = tcp.cwnd / tcp.mss
        tcp.pacing_rate = UNPACED

    def on_ack(self, tcp):
        pass

    def on_loss(self, tcp):
        self.decrease(tcp, 1.0 - self.max_mdf)
        tcp.ssthresh = self.window(tcp)

    def on_delivered(self, tcp):
        if tcp.rtt is not None:
            self._rtt = tcp.rtt
            delay, target = float(self._rtt), self.scaled_target()
            if delay >= target:
                factor = 1.0 - self.beta * (delay - target) / delay
                self.decrease(tcp, max(factor, 1.0 - self.max_mdf))
            elif tcp.flight + tcp.mss >= tcp.cwnd:
                self.fcwnd += self.ai * (tcp.acked / tcp.mss) / max(self.fcwnd, 1.0)
        tcp.cwnd = self.window(tcp)
        tcp.pacing_rate = UNPACED
        if self.fcwnd < 1.0 and self._rtt > 0:
            tcp.pacing_rate = 8.0 * (self.fcwnd * tcp.mss / (self._rtt / 1e9))

    def scaled_target(self):
        at_min, at_max = 1.0 / sqrt(self.fs_min), 1.0 / sqrt(self.fs_max)
        scaled = self.fs_range * (1.0 / sqrt(self.fcwnd) - at_max) / (at_min - at_max)
        return self.target + min(max(scaled, 0.0), float(self.fs_range))

    def decrease(self, tcp, factor):
        if self._decreased < 0 or tcp.now - self._decreased >= self._rtt:
            self.fcwnd = max(self.fcwnd * factor, self.min_cwnd)
            self._decreased = tcp.now

    def window(self, tcp):
        return max(int(self.fcwnd * tcp.mss), tcp.mss)
