"""Disciplines in Python: CoDel, PIE, and a limit on the sojourn time.

Try ``sojourn compare examples/home-uplink.toml --qdisc codel,examples/my_aqm.py:MyCoDel``.
CoDel and PIE decide like sojourn's own, packet by packet.
"""

import math

import sojourn as sj

NEVER = 1 << 62
"""A time after the end of every simulation, ns."""


class HeadDrop(sj.Aqm):
    """Drop every packet that has waited longer than a limit."""

    target: sj.Duration = "50ms"

    def on_dequeue(self, packet, queue):
        return sj.DROP if packet.sojourn > self.target else sj.PASS


class MyCoDel(sj.Aqm):
    """CoDel, as RFC 8289 describes it."""

    target: sj.Duration = "5ms"
    interval: sj.Duration = "100ms"

    def start(self):
        self._first_above_time = NEVER  # time of the first drop, while above target
        self._drop_next = NEVER  # time of the next drop; NEVER before the first one
        self.count = 0
        self.lastcount = 0
        self.dropping = False
        self.maxpacket = 0
        # The head was dropped: what follows depends on the packet behind it.
        self._entered = False
        self._dropped = False

    def control_law(self, t):
        return t + int(self.interval / math.sqrt(self.count))

    def ok_to_drop(self, packet, queue):
        """Return True if the sojourn time has been above target for an interval."""
        if packet.sojourn < self.target or queue.bytes - packet.size <= self.maxpacket:
            self._first_above_time = NEVER
            return False
        if self._first_above_time == NEVER:
            self._first_above_time = queue.now + self.interval
            return False
        return queue.now >= self._first_above_time

    def on_enqueue(self, packet, queue):
        self.maxpacket = max(self.maxpacket, packet.size)

    def on_dequeue(self, packet, queue):
        ok = self.ok_to_drop(packet, queue)
        if self._entered:  # the packet behind the first drop is sent
            self._entered = False
            return sj.PASS
        if self._dropped:
            self._dropped = False
            if ok:
                self._drop_next = self.control_law(self._drop_next)
        if self.dropping:
            if not ok:
                self.dropping = False
            elif queue.now >= self._drop_next:
                self.count += 1
                if packet.markable:
                    self._drop_next = self.control_law(self._drop_next)
                else:
                    self._dropped = True
                return sj.MARK
        elif ok:
            self.enter(queue.now)
            self._entered = not packet.markable
            return sj.MARK
        return sj.PASS

    def enter(self, now):
        """Enter the dropping state, at the last drop rate if that was recently."""
        recent = self._drop_next != NEVER and now - self._drop_next < 16 * self.interval
        self.count = max(self.count - self.lastcount, 1) if recent else 1
        self.dropping = True
        self._drop_next = self.control_law(now)
        self.lastcount = self.count

    def on_idle(self, queue):
        self._first_above_time = NEVER
        self.dropping = False


class MyPie(sj.Aqm):
    """PIE, as RFC 8033 describes it, with packet timestamps."""

    target: sj.Duration = "15ms"
    t_update: sj.Duration = "15ms"
    alpha: float = 0.125
    beta: float = 1.25
    max_burst: sj.Duration = "150ms"
    mark_ecnth: float = 0.1

    decides_at_enqueue = True

    def start(self):
        self.p = 0.0
        self._burst = self.max_burst
        self._qdelay_old = 0
        self._sojourn = 0
        self._next_update = NEVER

    def on_update(self, queue):
        while queue.now >= self._next_update:
            p, burst, qdelay_old = self.p, self._burst, self._qdelay_old
            self._next_update += self.t_update
            self.update(self._sojourn if queue.packets > 0 else 0)
            if p == self.p and burst == self._burst and qdelay_old == self._qdelay_old:
                # Further updates change nothing: skip them, however long the link was idle.
                due = (queue.now - self._next_update) // self.t_update + 1
                self._next_update += max(due, 0) * self.t_update

    def update(self, qdelay):
        """Change the drop probability (RFC 8033, sections 4.2 and 5.5)."""
        step = self.alpha * (qdelay / 1e9 - self.target / 1e9)
        step += self.beta * (qdelay / 1e9 - self._qdelay_old / 1e9)
        step /= self.scale()
        if self.p >= 0.1:
            step = min(step, 0.02)
        self.p += step
        if qdelay == 0 and self._qdelay_old == 0:
            self.p *= 0.98
        self.p = min(max(self.p, 0.0), 1.0)
        self._burst = max(self._burst - self.t_update, 0)
        half = self.target // 2
        if self.p == 0.0 and qdelay < half and self._qdelay_old < half:
            self._burst = self.max_burst
        self._qdelay_old = qdelay

    def scale(self):
        """Return the divisor of a step, which is larger at small probabilities."""
        if self.p < 1e-6:
            return 2048.0
        if self.p < 1e-5:
            return 512.0
        if self.p < 1e-4:
            return 128.0
        if self.p < 1e-3:
            return 32.0
        if self.p < 1e-2:
            return 8.0
        return 2.0 if self.p < 0.1 else 1.0

    def on_enqueue(self, packet, queue):
        if self._next_update == NEVER:  # updates count from the first packet
            self._next_update = queue.now + self.t_update
        quiet = self._qdelay_old < self.target // 2 and self.p < 0.2
        if self._burst > 0 or quiet or queue.bytes <= 3000 or queue.random() >= self.p:
            return sj.PASS
        return sj.MARK if self.p <= self.mark_ecnth else sj.DROP

    def on_dequeue(self, packet, queue):
        self._sojourn = packet.sojourn
