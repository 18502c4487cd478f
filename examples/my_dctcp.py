"""DCTCP in Python: reacts to the fraction of marks; it sends as the built-in `dctcp` does.

Source: RFC 8257, section 3.3; growth and losses as in Reno (RFC 5681, RFC 3465).
"""

import sojourn as sj


class Dctcp(sj.CongestionControl):
    """Reduce the window by half the moving average of the fraction of marked bytes."""

    g: float = 0.0625

    def start(self):
        self.alpha = 1.0
        self._window_end = 1
        self._acked = self._marked = 0
        self._grown = 0

    def on_ecn_feedback(self, tcp):
        self._acked += tcp.acked
        self._marked += tcp.marked
        if tcp.snd_una > self._window_end and self._acked > 0:
            fraction = min(self._marked / self._acked, 1.0)
            self.alpha += self.g * (fraction - self.alpha)
            self._window_end = tcp.snd_nxt
            self._acked = self._marked = 0

    def on_ack(self, tcp):
        if tcp.cwnd < tcp.ssthresh:
            tcp.cwnd += min(tcp.acked, tcp.mss)
            return
        self._grown += tcp.acked
        if self._grown >= tcp.cwnd:
            self._grown -= tcp.cwnd
            tcp.cwnd += tcp.mss

    def on_mark(self, tcp):
        tcp.ssthresh = max(tcp.cwnd - int(tcp.cwnd * self.alpha / 2), 2 * tcp.mss)

    def on_loss(self, tcp):
        self._grown = 0
        tcp.ssthresh = max(tcp.flight // 2, 2 * tcp.mss)
