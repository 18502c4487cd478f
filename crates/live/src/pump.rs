//! Pump: threads that read packets from descriptors and write packets that have left their link to
//! others. The only module of the project that reads a clock.

use crate::offload::{Join, READ_BYTES, RUN_PACKETS, Run, Segments, VNET_BYTES};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write, writev};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use rustix::time::{ClockId, clock_gettime};
use sojourn_aqm::{Span, Time};
use std::io::IoSlice;
use std::num::NonZeroU64;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Maximum number of packets read before due packets are written, and of packets in one batch of
/// writes.
const BATCH: usize = RUN_PACKETS;

/// Time between two wake-ups for due packets at high rates.
///
/// If [`MODERATED`] packets were due at a wake-up, the next one is this much later, as with the
/// moderated interrupts of network interfaces: packets leave together, at most this much late.
const MODERATION: Span = Span::us(100);

/// Number of packets due at a wake-up from which wake-ups are moderated: the number of full packets
/// in [`MODERATION`] at 0.7 Gbit/s.
const MODERATED: usize = 6;

/// A packet due within this time is waited for without sleeping: a sleep takes longer.
const SPIN: Span = Span::us(5);

/// Reads a clock in nanoseconds: monotonic time, wall-clock time (once), or the processor time of a
/// thread.
fn clock(id: ClockId) -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the one line that reads a clock")]
    let now = clock_gettime(id);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Start of a live link, [`Time::ZERO`], on two clocks.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Monotonic clock, nanoseconds.
    pub monotonic_ns: u64,
    /// Wall clock, nanoseconds since 1970.
    pub epoch_ns: u64,
}

impl Start {
    /// Reads both clocks.
    pub fn now() -> Start {
        Start { monotonic_ns: clock(ClockId::Monotonic), epoch_ns: clock(ClockId::Realtime) }
    }
}

/// Duplicate a descriptor of this process, given by number; the original stays open.
///
/// # Errors
/// If there is no such descriptor, or the kernel is older than 5.6.
pub fn duplicate(number: RawFd) -> std::io::Result<OwnedFd> {
    // Constructing an OwnedFd from a raw number is unsafe; pidfd_getfd lets the kernel check it.
    let this = pidfd_open(getpid(), PidfdFlags::empty())?;
    Ok(pidfd_getfd(this, number, PidfdGetfdFlags::empty())?)
}

/// Bytes in front of each IP header in packets that are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Framing {
    /// None: a TUN device.
    Ip,
    /// An Ethernet header: a veth device.
    Ethernet,
    /// A virtio header: a TUN device with segmentation offload (see [`crate::offload`]).
    Vnet,
}

impl Framing {
    /// Number of bytes.
    pub fn bytes(self) -> usize {
        match self {
            Framing::Ip => 0,
            Framing::Ethernet => 14,
            Framing::Vnet => VNET_BYTES,
        }
    }
}

/// Transport of packets between numbered ends. It is passed the time.
pub trait Transport: Send + 'static {
    /// Packet ready for delivery.
    type Due;

    /// Framing at all ends.
    fn framing(&self) -> Framing;

    /// Buffer for the next packet, for [`Transport::accept`].
    fn receive_buffer(&mut self) -> &mut [u8];

    /// Accepts a packet at `now` from end `end`: the first `len` bytes of the buffer.
    fn accept(&mut self, end: usize, now: Time, len: usize);

    /// Processes everything due up to `now`, each event at its own time.
    fn advance(&mut self, now: Time);

    /// Time of the next event; None if there is none.
    fn next_event_time(&mut self) -> Option<Time>;

    /// Next packet due for delivery by `now`. Return it with [`Transport::on_written`].
    fn next_delivery(&mut self, now: Time) -> Option<Self::Due>;

    /// Destination end and bytes of a packet.
    fn delivery_bytes(&self, due: &Self::Due) -> (usize, &[u8]);

    /// Records that a packet was written at `now`, or `refused` by its end, and frees it.
    fn on_written(&mut self, due: Self::Due, now: Time, refused: bool);
}

/// Work of one thread: reads from some descriptors and writes to others.
#[derive(Debug)]
pub struct PumpThread<C> {
    /// Thread name.
    pub name: &'static str,
    /// Transport.
    pub carrier: C,
    /// Descriptors to read, by end.
    pub from: Vec<Arc<OwnedFd>>,
    /// Descriptors to write, by end.
    pub to: Vec<Arc<OwnedFd>>,
}

/// Result of a lane.
#[derive(Debug)]
pub struct Report<C> {
    /// Transport with its counters at the end.
    pub carrier: C,
    /// Running time.
    pub ran: Span,
    /// Processor time used.
    pub cpu: Span,
    /// Error that ended the lane early, if any.
    pub failed: Option<std::io::Error>,
}

/// Running lanes.
#[derive(Debug)]
pub struct Pump<C> {
    threads: Vec<JoinHandle<Report<C>>>,
    stop: Arc<OwnedFd>,
}

impl<C: Transport> Pump<C> {
    /// Starts moving packets, with one thread per lane. `start` is time zero. Threads inherit the
    /// scheduling policy of the caller.
    ///
    /// # Errors
    /// If a descriptor cannot be set up or a thread cannot be created.
    pub fn start(lanes: Vec<PumpThread<C>>, start: Start) -> std::io::Result<Pump<C>> {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let start_ns = start.monotonic_ns;
        let thread = |lane: PumpThread<C>| {
            let PumpThread { name, carrier, from, to } = lane;
            for end in from.iter().chain(&to) {
                rustix::io::ioctl_fionbio(end, true)?;
            }
            let ends = ThreadState { from, to, stop: stop.clone(), start_ns };
            std::thread::Builder::new().name(name.into()).spawn(move || ends.run(carrier))
        };
        let threads = lanes.into_iter().map(thread).collect::<std::io::Result<_>>()?;
        Ok(Pump { threads, stop })
    }

    /// True if a lane has ended by itself, because a descriptor failed.
    pub fn has_failed(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Stops all lanes; packets on links stay there. Returns None for a thread that panicked.
    pub fn stop(self) -> Vec<Option<Report<C>>> {
        // The event is never read, so it wakes all threads; fails only if it is set already.
        let _ = write(&*self.stop, &1u64.to_ne_bytes());
        self.threads.into_iter().map(|thread| thread.join().ok()).collect()
    }
}

/// State of a thread.
struct ThreadState {
    from: Vec<Arc<OwnedFd>>,
    to: Vec<Arc<OwnedFd>>,
    stop: Arc<OwnedFd>,
    start_ns: u64,
}

impl ThreadState {
    fn now(&self) -> Time {
        Time(clock(ClockId::Monotonic) - self.start_ns)
    }

    fn run<C: Transport>(self, mut carrier: C) -> Report<C> {
        // Default timer slack is 50 us: the kernel may wake the thread that much later.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let failed = self.move_packets(&mut carrier).err().map(Into::into);
        let now = self.now();
        carrier.advance(now);
        let (ran, cpu) = (now.since(Time::ZERO), Span(clock(ClockId::ThreadCPUTime)));
        Report { carrier, ran, cpu, failed }
    }

    /// Moves packets until stopped.
    fn move_packets<C: Transport>(&self, carrier: &mut C) -> Result<(), Errno> {
        let watch = |fd| PollFd::new(fd, PollFlags::IN);
        let ends = self.from.iter().chain([&self.stop]);
        let mut events: Vec<PollFd<'_>> = ends.map(|end| watch(&**end)).collect();
        let mut large = vec![0; if carrier.framing() == Framing::Vnet { READ_BYTES } else { 0 }];
        let mut batch = Vec::with_capacity(BATCH);
        let mut next_delivery = Time::ZERO;
        loop {
            let due = carrier.next_event_time().map(|due| due.max(next_delivery));
            self.wait(due, &mut events)?;
            if !events[self.from.len()].revents().is_empty() {
                return Ok(());
            }
            for (end, from) in self.from.iter().enumerate() {
                if !events[end].revents().is_empty() {
                    self.read(end, from, carrier, &mut large)?;
                }
            }
            let now = self.now();
            if now < next_delivery {
                continue;
            }
            loop {
                batch.extend(std::iter::from_fn(|| carrier.next_delivery(now)).take(BATCH));
                if batch.is_empty() {
                    break;
                }
                if batch.len() >= MODERATED {
                    next_delivery = now + MODERATION;
                }
                self.write(carrier, &mut batch);
            }
        }
    }

    /// Reads available packets, about [`BATCH`]. `large` is a buffer for large packets.
    fn read<C: Transport>(
        &self,
        end: usize,
        from: &OwnedFd,
        carrier: &mut C,
        large: &mut [u8],
    ) -> Result<(), Errno> {
        let mut packets = 0;
        while packets < BATCH {
            let into = if large.is_empty() { carrier.receive_buffer() } else { &mut *large };
            let len = match read(from, into) {
                Ok(0) => return Err(Errno::PIPE), // the other end is closed
                Ok(len) => len,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error),
            };
            let now = self.now();
            packets += 1;
            if large.is_empty() {
                carrier.accept(end, now, len);
                continue;
            }
            let Some(mut segments) = Segments::of(&large[..len]) else {
                carrier.accept(end, now, 0); // counted as malformed
                continue;
            };
            while let Some(len) = segments.next(carrier.receive_buffer()) {
                carrier.accept(end, now, len);
                packets += 1;
            }
        }
        Ok(())
    }

    /// Writes the packets of `batch`; those that can be joined with one system call.
    fn write<C: Transport>(&self, carrier: &mut C, batch: &mut Vec<C::Due>) {
        let mut results = [None; BATCH];
        for first in 0..batch.len() {
            if results[first].is_some() {
                continue;
            }
            let mut members = [first; BATCH];
            let (to, bytes) = carrier.delivery_bytes(&batch[first]);
            let (count, run) = gather(carrier, batch, &results, &mut members);
            let members = &members[..count];
            let refused = match run {
                Some(mut run) if count > 1 => {
                    let skip = run.header_bytes();
                    let mut parts = [IoSlice::new(&[]); BATCH + 1];
                    parts[0] = IoSlice::new(run.finish());
                    for (part, i) in parts[1..].iter_mut().zip(members) {
                        *part = IoSlice::new(&carrier.delivery_bytes(&batch[*i]).1[skip..]);
                    }
                    writev(&*self.to[to], &parts[..=count]).is_err()
                }
                _ => write(&*self.to[to], bytes).is_err(),
            };
            let now = self.now();
            members.iter().for_each(|i| results[*i] = Some((now, refused)));
        }
        for (due, result) in batch.drain(..).zip(results) {
            let (now, refused) = result.expect("each packet is written");
            carrier.on_written(due, now, refused);
        }
    }

    /// Waits for a packet, the time `due`, or the stop event.
    fn wait(&self, due: Option<Time>, events: &mut [PollFd<'_>]) -> Result<(), Errno> {
        let left = due.map(|due| due.since(self.now()).0);
        let left = left.map(|ns| if ns < SPIN.0 { 0 } else { ns });
        let timeout = left.map(|ns| Timespec {
            tv_sec: (ns / 1_000_000_000).cast_signed(),
            tv_nsec: (ns % 1_000_000_000).cast_signed(),
        });
        events.iter_mut().for_each(PollFd::clear_revents);
        match poll(events, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Finds the packets of `batch` that can be written together with its packet `members[0]`, among
/// those without a result. Returns their number, and what they are joined to.
fn gather<C: Transport>(
    carrier: &C,
    batch: &[C::Due],
    results: &[Option<(Time, bool)>],
    members: &mut [usize; BATCH],
) -> (usize, Option<Run>) {
    let first = members[0];
    let (to, bytes) = carrier.delivery_bytes(&batch[first]);
    let alone = carrier.framing() != Framing::Vnet || first + 1 == batch.len();
    let Some(mut run) = (!alone).then(|| Run::start(bytes)).flatten() else { return (1, None) };
    let mut count = 1;
    for (i, due) in batch.iter().enumerate().skip(first + 1) {
        let (end, bytes) = carrier.delivery_bytes(due);
        if results[i].is_some() || end != to {
            continue;
        }
        match run.join(bytes) {
            Join::Joined => (members[count], count) = (i, count + 1),
            Join::OtherFlow => {}
            Join::After => break,
        }
    }
    (count, Some(run))
}
