"""Base class of congestion controls that are written in Python."""

from typing import ClassVar

from sojourn._util.public import public
from sojourn.custom.base import Custom


@public
class CongestionControl(Custom):
    """Congestion control that is written in Python: sets the window of a TCP sender.

    A subclass declares parameters as annotated class attributes with defaults, assigns its state in
    `start`, and changes the connection in its methods. An object of it is used like any other TCP.
    It also takes the parameters that all TCPs have, like `packet`, `ecn`, `pacing` and `rack`, and
    `compiled` (True to compile the methods to native code, default False; needs Numba). In the
    methods a parameter is a number: whole nanoseconds, bits per second or bytes.

    The sender is the same as for built-in controls in profile rfc: it detects and repairs losses,
    sets timers and decides when each method is called. `recovery` selects its algorithm for
    repairing losses: "sack" (default), "newreno", "reno" or "tahoe". With ``paced = True`` in the
    class, the control has a rate for every segment: `pacing` is on, the first segments of a
    connection are paced as well, the window is kept after an idle period, and acks are not delayed
    unless `delayed_ack` is set. ``pacing = True`` in the class sets the default of that parameter.

    All methods but `on_ack` are optional, and return None:

    ``start(self)``
        Assigns the state; called before every connection.
    ``on_established(self, tcp)``
        The SYN was acknowledged; `tcp.cwnd` is the initial window.
    ``on_ack(self, tcp)``
        New data was acknowledged, outside of fast recovery and without an ECN echo.
    ``on_loss(self, tcp)``
        Duplicate acks reported a loss: set `tcp.ssthresh`. It is preset to half of `tcp.flight`,
        at least two segments. The sender sets the window to it when recovery ends or begins.
    ``on_mark(self, tcp)``, ``on_timeout(self, tcp)``
        As `on_loss`, for an ECN echo and for a timeout, after which the window is one segment.
        If missing, `on_loss` is called.
    ``on_recovered(self, tcp)``
        The repair of losses has ended.
    ``on_telemetry(self, tcp, links)``
        An ack returned the telemetry of a packet (INT): `links` is a tuple of `LinkTelemetry`, one
        for each link of the path. Packets collect telemetry only if the class has this method.
    ``on_ecn_feedback(self, tcp)``
        An ack arrived: `tcp.acked` is the payload that it newly acknowledges, `tcp.marked` how much
        of it was marked. Called for every ack, before the other methods. With this method `ecn` is
        on and `ecn_feedback` is "rfc8257" unless they are set, as in `dctcp`.
    ``on_delivered(self, tcp)``
        An ack reported delivered data, in order or not, also during the repair of losses. Called
        last; `tcp.acked` is the newly delivered payload, `tcp.rtt` is measured by every such ack.
    ``on_rate_sample(self, tcp)``
        An ack arrived, with its delivery rate sample; called for every ack, after all other
        methods. With this method the sender keeps the window after an idle period, as for `bbr`.

    `tcp` has `now` (ns), `cwnd` and `ssthresh` (bytes of payload), `mss`, `packet`, `acked` and
    `flight` (bytes), `rtt`, `srtt` and `min_rtt` (ns or None), `after_timeout`,
    `window_was_full`, `pacing_rate` (bit/s; needs ``pacing=True`` or `paced`), `snd_una`,
    `snd_nxt` (of the last telemetry or ECN feedback), `path` (of the last telemetry), `marked`
    (bytes; needs `on_ecn_feedback`), and with `on_rate_sample` `delivered`, `prior_delivered`,
    `lost` and `newly_lost` (bytes), `delivery_rate` (bit/s or None), `interval` (ns),
    `is_app_limited`, `app_limited`, `idle_restart`, `in_fast_recovery`; and `random()`, a number in
    [0, 1) of the random stream of the flow; use no other source of random numbers.

    Raises
    ------
    InputError
        If there is no parameter of a name, or its value is invalid.

    Examples
    --------
    >>> import sojourn as sj
    >>> class Aimd(sj.CongestionControl):
    ...     factor: float = 0.7
    ...
    ...     def on_ack(self, tcp):
    ...         tcp.cwnd += tcp.acked * tcp.mss / tcp.cwnd
    ...
    ...     def on_loss(self, tcp):
    ...         tcp.ssthresh = max(self.factor * tcp.flight, 2 * tcp.mss)
    >>> Aimd(factor=0.8)
    Aimd(factor=0.8)
    """

    recovery: ClassVar[str] = "sack"
    paced: ClassVar[bool] = False
    pacing: ClassVar[bool] = False
    _checked_as: ClassVar[str] = "tcp"
    _common: ClassVar[tuple[str, ...]] = ("compiled",)
    _reserved: ClassVar[tuple[str, ...]] = ("name", "source", "recovery", "paced")
    _hooks: ClassVar[tuple[str, ...]] = (
        "on_established",
        "on_ack",
        "on_recovered",
        "on_loss",
        "on_mark",
        "on_timeout",
        "on_telemetry",
        "on_delivered",
        "on_ecn_feedback",
        "on_rate_sample",
    )

    @classmethod
    def _knows(cls, name: str) -> bool:
        return True  # Rust knows the parameters of all TCPs
