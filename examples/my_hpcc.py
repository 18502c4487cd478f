"""HPCC in Python, which reads the telemetry of links; it sends as the built-in `hpcc` does.

Source: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, algorithm 1.
"""

import numpy as np

import sojourn as sj


class Hpcc(sj.CongestionControl):
    """Set the rate by the load of the most loaded link, once per ack, from a reference."""

    line_rate: sj.Rate = "10gbit"
    base_rtt: sj.Duration = "20us"
    rate_ai: sj.Rate = "4mbit"
    eta: float = 0.95
    max_stage: int = 0
    paced = True

    def start(self):
        self.line = float(self.line_rate)
        self.rate = self.reference = self.line
        self.load = 1.0
        self.stage = 0
        self.update_after = 0
        self.path = -1
        self.at, self.sent, self.queue = (np.zeros(8, np.int64) for _ in range(3))

    def on_established(self, tcp):
        tcp.cwnd = self.window(tcp)
        tcp.pacing_rate = self.rate * (tcp.mss / tcp.packet)

    def on_ack(self, tcp):
        tcp.cwnd = self.window(tcp)

    def on_loss(self, tcp):
        tcp.ssthresh = self.window(tcp)

    def on_telemetry(self, tcp, links):
        known = tcp.path == self.path
        for i, link in enumerate(links):
            if known and link.at <= self.at[i]:
                return  # a packet has overtaken another one
        due = tcp.snd_una > self.update_after
        if known:
            self.update(links, due)
        if self.path < 0 or (known and due):
            self.update_after = max(self.update_after, tcp.snd_nxt)
        self.path = tcp.path
        for i, link in enumerate(links):
            self.at[i], self.sent[i], self.queue[i] = link.at, link.sent_bytes, link.queue_bytes
        tcp.cwnd = self.window(tcp)
        tcp.pacing_rate = self.rate * (tcp.mss / tcp.packet)

    def update(self, links, due):
        load, time = 0.0, 0
        for i, link in enumerate(links):
            gap = link.at - self.at[i]
            sent = (link.sent_bytes - self.sent[i]) * 8e9 / gap
            queue = min(link.queue_bytes, self.queue[i])
            u = sent / link.rate + queue * self.line / link.rate / self.line_window()
            if u > load:
                load, time = u, min(gap, self.base_rtt)
        self.load = (self.load * (self.base_rtt - time) + load * time) / self.base_rtt
        follows = self.load / self.eta >= 1.0 or self.stage >= self.max_stage
        base = self.reference / (self.load / self.eta if follows else 1.0)
        self.rate = min(max(base + self.rate_ai, self.line / 100), self.line)
        if due:
            self.reference = self.rate
            self.stage = 0 if follows else self.stage + 1

    def line_window(self):
        return self.line * self.base_rtt / 8e9

    def window(self, tcp):
        sent = max(1, int(self.line_window() * self.rate / self.line))
        return -(-sent // tcp.mss) * tcp.mss
