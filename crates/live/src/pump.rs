//! The pump: threads that read packets from descriptors and write to others those that have
//! crossed. The only place of the project where a clock is read.

use crate::hop::Hop;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use rustix::time::{ClockId, clock_gettime};
use sojourn_aqm::{Span, Time};
use std::num::NonZeroU64;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;
use std::thread::JoinHandle;

/// How many packets are read before those that are due are written.
const BATCH: usize = 64;

/// The clocks that are read, in nanoseconds: the monotonic one, that on the wall once, and the
/// processor time of a thread.
fn clock(id: ClockId) -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the one line that reads a clock")]
    let now = clock_gettime(id);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// A moment by two clocks: [`Time::ZERO`] of a live link.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Nanoseconds of the monotonic clock.
    pub monotonic_ns: u64,
    /// Nanoseconds since 1970.
    pub epoch_ns: u64,
}

impl Start {
    /// This moment.
    pub fn now() -> Start {
        Start { monotonic_ns: clock(ClockId::Monotonic), epoch_ns: clock(ClockId::Realtime) }
    }
}

/// A descriptor of this process by its number, as a duplicate: whoever owns the other keeps it.
///
/// # Errors
/// No such descriptor, or a kernel before 5.6.
pub fn duplicate(number: RawFd) -> std::io::Result<OwnedFd> {
    // To take the number at its word would be unsafe; the kernel looks it up.
    let this = pidfd_open(getpid(), PidfdFlags::empty())?;
    Ok(pidfd_getfd(this, number, PidfdGetfdFlags::empty())?)
}

/// What a pump moves packets through. It is told the time.
pub trait Carrier: Send + 'static {
    /// A packet that has crossed.
    type Due;

    /// Where the next packet is to be put, for [`Carrier::arrive`].
    fn room(&mut self) -> &mut [u8];

    /// A packet arrives at `now` from the end of that number: the first `len` bytes of the room.
    fn arrive(&mut self, end: usize, now: Time, len: usize);

    /// Does all that was due up to `now`, at the moments when it was due.
    fn advance(&mut self, now: Time);

    /// When there will next be something to do; none while there is nothing.
    fn wake(&mut self) -> Option<Time>;

    /// The next packet that has crossed by `now`. It must be given back by [`Carrier::sent`].
    fn next(&mut self, now: Time) -> Option<Self::Due>;

    /// The end that a packet which has crossed is written to, and its bytes.
    fn bytes(&mut self, due: &Self::Due) -> (usize, &[u8]);

    /// A packet was written at `now`, or its end `refused` it.
    fn sent(&mut self, due: Self::Due, now: Time, refused: bool);
}

/// What one thread does: it reads from some descriptors and writes to others.
pub struct Lane<C> {
    /// The thread's name.
    pub name: &'static str,
    /// What the packets cross.
    pub carrier: C,
    /// The ends that are read.
    pub from: Vec<Arc<OwnedFd>>,
    /// The ends that are written to.
    pub to: Vec<Arc<OwnedFd>>,
}

/// A lane at its end.
pub struct Report<C> {
    /// What its packets crossed, and what was counted, up to the end.
    pub carrier: C,
    /// How long it ran.
    pub ran: Span,
    /// Processor time that it took.
    pub cpu: Span,
    /// Why it ended before it was told to, if it did.
    pub failed: Option<std::io::Error>,
}

/// Lanes at work.
pub struct Pump<C> {
    threads: Vec<JoinHandle<Report<C>>>,
    stop: Arc<OwnedFd>,
}

impl Pump<Hop> {
    /// Starts to move packets between two ends: from `near` to `far` by way of `up`, and back by
    /// way of `down`, on a thread each. Time began at `start`.
    ///
    /// # Errors
    /// As those of [`Pump::start`].
    pub fn both_ways(
        near: OwnedFd,
        far: OwnedFd,
        up: Hop,
        down: Hop,
        start: Start,
    ) -> std::io::Result<Pump<Hop>> {
        let (near, far) = (Arc::new(near), Arc::new(far));
        let lane = |name, carrier, from: &Arc<OwnedFd>, to: &Arc<OwnedFd>| Lane {
            name,
            carrier,
            from: vec![from.clone()],
            to: vec![to.clone()],
        };
        Pump::start(vec![lane("up", up, &near, &far), lane("down", down, &far, &near)], start)
    }
}

impl<C: Carrier> Pump<C> {
    /// Starts to move packets, on a thread for each lane. Time began at `start`. The threads
    /// inherit how the caller is scheduled.
    ///
    /// # Errors
    /// Descriptors or threads that the operating system does not give.
    pub fn start(lanes: Vec<Lane<C>>, start: Start) -> std::io::Result<Pump<C>> {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let start_ns = start.monotonic_ns;
        let thread = |lane: Lane<C>| {
            let Lane { name, carrier, from, to } = lane;
            for end in from.iter().chain(&to) {
                rustix::io::ioctl_fionbio(end, true)?;
            }
            let ends = Ends { from, to, stop: stop.clone(), start_ns };
            std::thread::Builder::new().name(name.into()).spawn(move || ends.work(carrier))
        };
        let threads = lanes.into_iter().map(thread).collect::<std::io::Result<_>>()?;
        Ok(Pump { threads, stop })
    }

    /// Whether a lane has ended by itself: a descriptor is gone.
    pub fn failed(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Ends all lanes; what is on a link stays there. None for a thread that panicked.
    pub fn stop(self) -> Vec<Option<Report<C>>> {
        // Nothing reads the event, so it wakes all; it can only fail if it was said already.
        let _ = write(&*self.stop, &1u64.to_ne_bytes());
        self.threads.into_iter().map(|thread| thread.join().ok()).collect()
    }
}

/// What a thread works with.
struct Ends {
    from: Vec<Arc<OwnedFd>>,
    to: Vec<Arc<OwnedFd>>,
    stop: Arc<OwnedFd>,
    start_ns: u64,
}

impl Ends {
    fn now(&self) -> Time {
        Time(clock(ClockId::Monotonic) - self.start_ns)
    }

    fn work<C: Carrier>(self, mut carrier: C) -> Report<C> {
        // The kernel may wake a thread this much later than asked; 50 us if nothing is said.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let failed = self.pump(&mut carrier).err().map(Into::into);
        let now = self.now();
        carrier.advance(now);
        let (ran, cpu) = (now.since(Time::ZERO), Span(clock(ClockId::ThreadCPUTime)));
        Report { carrier, ran, cpu, failed }
    }

    /// Moves packets until it is told to stop.
    fn pump<C: Carrier>(&self, carrier: &mut C) -> Result<(), Errno> {
        let watch = |fd| PollFd::new(fd, PollFlags::IN);
        let ends = self.from.iter().chain([&self.stop]);
        let mut events: Vec<PollFd<'_>> = ends.map(|end| watch(&**end)).collect();
        loop {
            self.wait(carrier.wake(), &mut events)?;
            if !events[self.from.len()].revents().is_empty() {
                return Ok(());
            }
            for (end, from) in self.from.iter().enumerate() {
                if !events[end].revents().is_empty() {
                    self.read(end, from, carrier)?;
                }
            }
            let now = self.now();
            while let Some(due) = carrier.next(now) {
                let (to, bytes) = carrier.bytes(&due);
                let refused = write(&*self.to[to], bytes).is_err();
                carrier.sent(due, self.now(), refused);
            }
        }
    }

    /// Reads what is there, up to some packets.
    fn read<C: Carrier>(&self, end: usize, from: &OwnedFd, carrier: &mut C) -> Result<(), Errno> {
        for _ in 0..BATCH {
            match read(from, carrier.room()) {
                Ok(0) => return Err(Errno::PIPE), // nobody is at the other end
                Ok(len) => carrier.arrive(end, self.now(), len),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits for a packet, until `due`, or until it is told to stop.
    fn wait(&self, due: Option<Time>, events: &mut [PollFd<'_>]) -> Result<(), Errno> {
        let left = due.map(|due| due.since(self.now()).0);
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
