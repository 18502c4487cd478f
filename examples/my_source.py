"""Traffic sources in Python: constant rate and short flows as the built-in ones, and a game."""

import sojourn as sj

SECOND = 1_000_000_000  # ns


class MyCbr(sj.TrafficSource):
    """Packets of one size at a constant rate, as `cbr`."""

    rate: sj.Rate = "64kbit"
    packet: sj.Bytes = "200B"

    def start(self):
        self.sent = 0
        self.first = 0

    def next_arrival(self, flow):
        if self.sent == 0:
            self.first = flow.now + int(flow.random() * (self.packet * 8 * SECOND // self.rate))
        # Whole seconds and the rest: all numbers fit into 64 bits, also when compiled.
        bits = self.sent * self.packet * 8
        time = bits // self.rate * SECOND + bits % self.rate * SECOND // self.rate
        self.sent += 1
        return self.first + time, self.packet


class MyFlows(sj.TrafficSource):
    """Transfers at random times, each on a new connection.

    As `poisson` with interval = "uniform(0s, 200ms)" and size = "uniform(5kB, 15kB)".
    """

    connections = True
    interval: sj.Duration = "200ms"
    smallest: sj.Bytes = "5kB"
    largest: sj.Bytes = "15kB"

    def next_arrival(self, flow):
        time = flow.now + int(flow.random() * self.interval)
        return time, self.smallest + flow.random() * (self.largest - self.smallest)


class Game(sj.TrafficSource):
    """Updates at a constant frequency, in rounds with a pause after each."""

    update: sj.Duration = "33ms"
    round: sj.Duration = "60s"
    pause: sj.Duration = "10s"
    smallest: sj.Bytes = "80B"
    largest: sj.Bytes = "300B"

    def start(self):
        self.end = -1

    def next_arrival(self, flow):
        if self.end < 0:
            self.end = flow.now + self.round
        time = flow.now + self.update
        if time > self.end:
            time += self.pause
            self.end = time + self.round
        return time, self.smallest + flow.random() * (self.largest - self.smallest)
