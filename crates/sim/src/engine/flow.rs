//! Endpoints of a flow: TCP sender and receiver, or UDP source and sink, with the application that
//! drives them.

mod arrivals;
mod feedback;
mod halves;
mod leave;
mod outbox;
mod pooled;

pub(crate) use feedback::PathFeedback;
pub use outbox::{ArrivedPacket, Outbox};

use crate::config::flows::FlowConfig;
use crate::endpoint::ack_queue::AckQueue;
use crate::endpoint::call::Report;
use crate::endpoint::cc::ControlParams;
use crate::endpoint::tcp::{Ack, Receiver, Segment, SenderStats, Tcp, UNLIMITED};
use crate::endpoint::udp::{Datagram, UdpEndpoints};
use crate::random_stream::random_stream;
use crate::traffic::application::{Amount, App, AppAction};
use crate::traffic::source::Source;
use crate::traffic::transfer::Completion;
use crate::traffic::video::VideoStats;
use sojourn_aqm::Ecn;
use sojourn_aqm::Pcg;
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::random;
use sojourn_aqm::units::{Span, Time};
use std::collections::VecDeque;

/// Flow with both of its endpoints.
#[derive(Clone, Debug, Snapshot)]
pub struct Flow {
    /// Name.
    pub name: String,
    /// Index of its group in the scenario's flows.
    pub group: u32,
    /// Index of its route.
    pub route: u32,
    /// The only link of the flow, if a segment needs no event between sender and receiver.
    pub direct_link: Option<u32>,
    /// Flow hash, for disciplines that hash flows.
    pub hash: u32,
    /// Traffic class of the packets.
    pub class: u16,
    /// ECN field of ECN-capable packets: ECT(0) or ECT(1).
    pub ect: Ecn,
    /// Keys of the hosts that send and receive the data.
    pub hosts: [u32; 2],
    /// ECN field of acks: ECT(1) if all packets of the flow are L4S packets, otherwise Not-ECT.
    pub ack_ecn: Ecn,
    /// Feedback of the path that segments bring to the receiver, and acks to the sender.
    pub feedback: PathFeedback,
    /// Round-trip propagation delay.
    pub rtt: Span,
    /// Part of `rtt` that the links do not account for; added to the delay of every ack.
    extra_delay: Span,
    /// Time between the instant at which a delayed ack is due at the receiver and the event in
    /// which the flow sends it: `extra_delay` if the receiver processes arrivals early.
    delayed_ack_lag: Span,
    /// True if acks, or the reports of a call, cross links on the return path.
    pub acks_cross_links: bool,
    /// True if the receiver processes an arrival as soon as its time is known, instead of when it
    /// is due. This is possible when acks return with a constant delay: only the sender observes
    /// the receiver, and it sees each ack at the right time. A packet then needs no event of its
    /// own, only its ack does.
    processes_early: bool,
    /// Arrivals at the receiver in order, with time and connection; used if not `processes_early`.
    inbox: VecDeque<(Time, u32, ArrivedPacket)>,
    /// Payload delivered in order up to the next sample; later totals are in `later_totals`.
    delivered: u64,
    /// Bytes on the wire received up to the next sample, including duplicates.
    received: u64,
    /// As `received`, including arrivals known in advance.
    received_known: u64,
    /// Totals delivered and received, with their times, after the next sample; used if
    /// `processes_early`.
    later_totals: VecDeque<(Time, u64, u64)>,
    /// Acks on the last hop to the sender.
    acks: AckQueue,
    /// Number of the connection; packets of earlier connections are ignored.
    pub connection: u32,
    /// Time of the next action of the application.
    next_action: Time,
    stop: Time,
    /// Endpoints.
    pub ends: Endpoints,
}

/// Endpoints of a flow.
#[expect(clippy::large_enum_variant, reason = "TCP is the rule, and one look at memory less")]
#[derive(Clone, Debug, Snapshot)]
pub enum Endpoints {
    /// TCP.
    Tcp(TcpEndpoints),
    /// UDP.
    Udp(Box<UdpEndpoints>),
    /// None: both are in other parts of the simulation.
    Absent,
}

/// TCP sender and receiver with their application.
#[derive(Clone, Debug, Snapshot)]
pub struct TcpEndpoints {
    /// Sender.
    pub sender: Tcp,
    /// Receiver.
    pub receiver: Receiver,
    app: App,
    /// Completed transfers.
    pub completions: Vec<Completion>,
    /// Counters of the sender and delivered bytes at the start of the measured interval.
    base: (SenderStats, u64),
}

/// Returns the flow hash of a connection, made from the hash of the previous connection: a new
/// connection has new port numbers.
fn hash_of_connection(before: u32, connection: u32) -> u32 {
    cast::low32(random::mix(u64::from(before) << 32 | u64::from(connection)))
}

impl Flow {
    /// Creates the `i`-th flow of the group `def`; its links have a total propagation delay of
    /// `of_links`.
    pub fn new(def: &FlowConfig, group: usize, i: u64, of_links: Span, seed: u64) -> Flow {
        let name = def.flow_name(i);
        let own_stream = |what: &str| random_stream(seed, &format!("flows.{name}.{what}"));
        let mut due = def.source_start(i, seed);
        let ends = if def.tcp.is_some() {
            let app = App::new(&def.source, due, own_stream("source"));
            let rtt = || Flow::rtt_of(def, i, of_links, seed);
            Endpoints::Tcp(TcpEndpoints::new(def, rtt, app, &mut own_stream("tcp")))
        } else {
            let udp = UdpEndpoints::new(&def.source, i, due, own_stream("source"));
            due = udp.first;
            Endpoints::Udp(Box::new(udp))
        };
        Flow::from_parts(def, group, i, of_links, seed, due, ends)
    }

    /// Round-trip propagation delay of the `i`-th flow of `def`; its links have `of_links` in
    /// total.
    pub fn rtt_of(def: &FlowConfig, i: u64, of_links: Span, seed: u64) -> Span {
        let mut rng = random_stream(seed, &format!("flows.{}.rtt", def.flow_name(i)));
        def.rtt.as_ref().map_or(of_links, |d| d.sample(&mut rng))
    }

    fn from_parts(
        def: &FlowConfig,
        group: usize,
        i: u64,
        of_links: Span,
        seed: u64,
        due: Time,
        ends: Endpoints,
    ) -> Flow {
        let name = def.flow_name(i);
        let rtt = Flow::rtt_of(def, i, of_links, seed);
        let hash = random::stream_key(seed, &format!("flows.{name}.hash"));
        let tcp = def.tcp.is_some();
        let call = matches!(*def.source, Source::Call(_));
        let back = &def.routes[def.route_index(i)][1];
        let (extra_delay, processes_early) = (Span(rtt.0 - of_links.0), tcp && back.is_empty());
        Flow {
            group: cast::number(group),
            hash: u32::from_le_bytes([hash[0], hash[1], hash[2], hash[3]]),
            class: def.class,
            ect: match &def.tcp {
                None => def.ecn(),
                Some(tcp) if tcp.settings().ect1 == Some(true) => Ecn::Ect1,
                Some(_) => Ecn::Ect0,
            },
            hosts: def.host_keys(i),
            ack_ecn: match def.tcp.as_ref().map(|tcp| tcp.control()) {
                Some(ControlParams::Prague(_)) => Ecn::Ect1, // RFC 9331 §4.1
                _ => Ecn::NotEct,
            },
            feedback: PathFeedback::of(def.tcp.as_deref()),
            rtt,
            extra_delay,
            delayed_ack_lag: if processes_early { extra_delay } else { Span::ZERO },
            acks_cross_links: (tcp || call) && !back.is_empty(),
            processes_early,
            next_action: due,
            stop: def.source_stop(),
            name,
            ends,
            ..Flow::absent()
        }
    }

    /// Sets the index of the route. `direct` is its only link, if that computes the departures of
    /// its packets and acks return with a pure delay.
    pub fn set_route(&mut self, route: u32, direct: Option<u32>) {
        self.route = route;
        self.direct_link =
            direct.filter(|_| self.processes_early && self.feedback == PathFeedback::None);
    }

    /// True if it sends nothing but segments: acks return with a constant delay.
    #[inline]
    pub fn sends_only_segments(&self) -> bool {
        self.processes_early
    }

    /// Time at which [`Flow::process_due`] is next due.
    #[inline(always)]
    pub fn next_event_time(&self) -> Time {
        let inbox = self.inbox.front().map_or(Time::NEVER, |i| i.0);
        match &self.ends {
            Endpoints::Tcp(tcp) => {
                inbox.min(self.next_ack_time()).min(self.next_action).min(tcp.sender.next_timer())
            }
            Endpoints::Udp(udp) => inbox.min(self.next_action).min(udp.next_report()),
            Endpoints::Absent => Time::NEVER,
        }
    }

    /// Time of the next ack: one that reaches the sender, or a delayed one that is sent.
    #[inline]
    pub fn next_ack_time(&self) -> Time {
        let Endpoints::Tcp(tcp) = &self.ends else { return Time::NEVER };
        self.acks.next().min(tcp.receiver.timer() + self.delayed_ack_lag)
    }

    /// Processes everything due at `now`: arrivals, acks, the sender's timer, the application.
    #[inline(always)]
    pub fn process_due(&mut self, now: Time, out: &mut Outbox) {
        while self.inbox.front().is_some_and(|i| i.0 <= now) {
            self.process_arrival(out);
        }
        if let Endpoints::Tcp(tcp) = &mut self.ends {
            let timer = tcp.receiver.timer();
            if timer + self.delayed_ack_lag <= now
                && let Some(ack) = tcp.receiver.on_timer(timer)
            {
                if self.processes_early {
                    self.acks.push(timer + self.extra_delay, self.connection, ack);
                } else {
                    out.acks.push(*ack);
                }
            }
        }
        if let Endpoints::Udp(udp) = &mut self.ends {
            udp.process_reports(now);
        }
        let Flow { ends, acks, connection, .. } = self;
        if let Endpoints::Tcp(tcp) = ends {
            if out.reached.is_some() {
                out.note_acks(acks, now);
            }
            let mut ack = Ack::default();
            while let Some(of) = acks.pop(now, &mut ack) {
                if of == *connection {
                    tcp.sender.on_ack(now, &ack, &mut out.segments);
                }
            }
            if tcp.sender.next_timer() <= now {
                tcp.sender.on_timer(now, &mut out.segments);
            }
            match &mut tcp.app {
                App::Transfers(all) if self.next_action == Time::NEVER && tcp.sender.is_done() => {
                    self.next_action = all.next_start(now);
                }
                App::Video(player) if self.next_action == Time::NEVER && tcp.sender.is_done() => {
                    self.next_action = player.next_request(now);
                }
                App::Pooled(transfer) if transfer.busy && tcp.sender.is_done() => {
                    (transfer.busy, transfer.acked) = (false, true);
                }
                _ => {}
            }
        }
        if self.next_action <= now {
            self.run_application(now, out);
        }
    }

    /// Prefetch memory outside of the flow that its next event will need.
    pub fn prefetch(&self) {
        self.acks.prefetch();
        if let Endpoints::Tcp(tcp) = &self.ends {
            tcp.receiver.fetch();
        }
    }

    /// Runs the application.
    fn run_application(&mut self, now: Time, out: &mut Outbox) {
        self.next_action = Time::NEVER;
        match &mut self.ends {
            Endpoints::Absent => {}
            Endpoints::Udp(udp) => {
                if now < self.stop {
                    let (datagram, due) = udp.send_datagram(now);
                    out.datagram = Some(datagram);
                    self.next_action = due;
                }
            }
            Endpoints::Tcp(tcp) => {
                if matches!(tcp.app, App::Transfers(_)) && !out.is_empty() {
                    self.next_action = now; // the outbox holds packets of one connection only
                    return;
                }
                let (action, next) = tcp.app.act(now, self.stop);
                self.next_action = next;
                match action {
                    Some(AppAction::Open(amount)) => {
                        self.connection += 1;
                        if self.connection > 1 {
                            self.hash = hash_of_connection(self.hash, self.connection);
                        }
                        tcp.open(now, amount, &mut out.segments);
                    }
                    Some(AppAction::Write(bytes)) => {
                        tcp.sender.write(now, bytes, &mut out.segments);
                    }
                    Some(AppAction::Fetch(bytes)) => {
                        if self.connection == 0 {
                            self.connection = 1;
                            tcp.open(now, Amount::Written, &mut out.segments);
                        }
                        tcp.sender.write(now, bytes, &mut out.segments);
                    }
                    Some(AppAction::Stop) => tcp.sender.stop_writing(),
                    None => {}
                }
            }
        }
    }

    /// Schedules an ack that crosses its last link at `at`; returns its arrival time at the sender.
    pub fn schedule_ack(&mut self, at: Time, connection: u32, ack: &Ack) -> Time {
        self.acks.push(at + self.extra_delay, connection, ack);
        at + self.extra_delay
    }

    /// Schedules a report that crosses its last link at `at`; returns its arrival time at the
    /// sender.
    pub fn schedule_report(&mut self, at: Time, report: Report) -> Time {
        if let Endpoints::Udp(udp) = &mut self.ends {
            udp.schedule_report(at + self.extra_delay, report);
        }
        at + self.extra_delay
    }

    /// Counts a lost datagram.
    pub fn on_datagram_lost(&mut self, datagram: &Datagram) {
        if let Endpoints::Udp(udp) = &mut self.ends {
            udp.on_loss(datagram);
        }
    }

    /// Starts the measured interval at `now`.
    pub fn begin(&mut self, now: Time) {
        let delivered = self.delivered_bytes();
        match &mut self.ends {
            Endpoints::Tcp(tcp) => tcp.base = (*tcp.sender.stats(), delivered),
            Endpoints::Udp(udp) => udp.start_measuring(now),
            Endpoints::Absent => {}
        }
    }

    /// Statistics of its video from `warm` to `end`; None if it carries none.
    pub fn video_stats(&self, warm: Time, end: Time) -> Option<VideoStats> {
        match &self.ends {
            Endpoints::Tcp(TcpEndpoints { app: App::Video(player), .. }) => {
                Some(player.stats(warm, end, self.stop))
            }
            _ => None,
        }
    }

    /// Payload delivered in the measured interval, bytes.
    pub fn goodput_bytes(&self) -> u64 {
        match &self.ends {
            Endpoints::Tcp(tcp) => self.delivered_bytes() - tcp.base.1,
            Endpoints::Udp(udp) => udp.goodput_bytes(),
            Endpoints::Absent => 0,
        }
    }
}

impl TcpEndpoints {
    /// Creates the endpoints of a flow of `def`, whose propagation delay is `rtt`.
    fn new(def: &FlowConfig, rtt: impl FnOnce() -> Span, app: App, rng: &mut Pcg) -> TcpEndpoints {
        let tcp = def.tcp.as_ref().expect("a scenario sets a TCP for every source that needs one");
        let tcp = tcp.on_path(def.line_rate, || rtt() + def.transmission);
        TcpEndpoints {
            sender: Tcp::new(&tcp, rng),
            receiver: Receiver::new(&tcp, rng),
            app,
            completions: Vec::new(),
            base: (SenderStats::default(), 0),
        }
    }

    /// Opens a new connection for this amount of data.
    fn open(&mut self, now: Time, amount: Amount, out: &mut Vec<Segment>) {
        self.receiver.reset();
        self.sender.open(now, out);
        match amount {
            Amount::Unlimited => self.sender.write(now, UNLIMITED, out),
            Amount::Bytes(bytes) => {
                self.sender.write(now, bytes, out);
                self.sender.close(now, out);
            }
            Amount::Written => {}
        }
    }

    /// Processes a segment at the receiver; returns the ack, if one is due.
    #[inline(always)]
    fn receive(&mut self, at: Time, segment: &Segment, ce: bool) -> Option<&Ack> {
        let calls_for_ack = self.receiver.on_segment(at, segment, ce).is_some();
        match &mut self.app {
            App::Transfers(all)
                if !all.received && self.receiver.received_in_connection() >= all.current.bytes =>
            {
                all.current.startup = self.sender.established().since(all.current.start);
                self.completions.push(all.complete(at));
            }
            App::Pooled(transfer) if self.receiver.received_in_connection() >= transfer.target => {
                transfer.target = u64::MAX;
                transfer.received = Some(at);
                transfer.startup = self.sender.established().since(transfer.open.requested_at);
            }
            App::Video(player) if player.completes(self.receiver.received_in_connection()) => {
                player.on_received(at);
                let (start, bytes) = player.last_request();
                let startup = self.sender.established().since(start);
                let duration = at.since(start);
                self.completions.push(Completion { start, duration, startup, bytes });
            }
            _ => {}
        }
        calls_for_ack.then(|| self.receiver.last_ack())
    }

    /// Number of transfers that started and did not finish; None unless it repeats transfers.
    pub fn unfinished(&self) -> Option<u64> {
        match &self.app {
            App::Transfers(all) => Some(all.unfinished(&self.completions)),
            _ => None,
        }
    }

    /// Counters of the sender in the measured interval.
    pub fn stats(&self) -> SenderStats {
        let (now, base) = (self.sender.stats(), self.base.0);
        SenderStats {
            sent_packets: now.sent_packets - base.sent_packets,
            retransmitted_packets: now.retransmitted_packets - base.retransmitted_packets,
            timeouts: now.timeouts - base.timeouts,
        }
    }
}
