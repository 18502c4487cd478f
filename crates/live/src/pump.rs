//! The pump: a thread per direction that reads packets from one descriptor and writes those that
//! have crossed to the other. The only place of the project where a clock is read.

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
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A moment by two clocks: [`Time::ZERO`] of a live link.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    monotonic_ns: u64,
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

/// One direction at its end.
pub struct Report {
    /// Its link, and what was counted, up to the end.
    pub hop: Hop,
    /// How long it ran.
    pub ran: Span,
    /// Processor time that it took.
    pub cpu: Span,
    /// Why it ended before it was told to, if it did.
    pub failed: Option<std::io::Error>,
}

/// A link at work, in both directions.
pub struct Pump {
    threads: [JoinHandle<Report>; 2],
    stop: Arc<OwnedFd>,
}

impl Pump {
    /// Starts to move packets: from `near` to `far` by way of `up`, and back by way of `down`.
    /// Time began at `start`. The threads inherit how the caller is scheduled.
    ///
    /// # Errors
    /// Descriptors or threads that the operating system does not give.
    pub fn start(
        near: OwnedFd,
        far: OwnedFd,
        up: Hop,
        down: Hop,
        start: Start,
    ) -> std::io::Result<Pump> {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let (near, far) = (Arc::new(near), Arc::new(far));
        for end in [&near, &far] {
            rustix::io::ioctl_fionbio(end, true)?;
        }
        let thread = |name: &str, hop: Hop, from: &Arc<OwnedFd>, to: &Arc<OwnedFd>| {
            let (from, to, stop) = (from.clone(), to.clone(), stop.clone());
            let ends = Ends { from, to, stop, start_ns: start.monotonic_ns };
            std::thread::Builder::new().name(name.into()).spawn(move || ends.work(hop))
        };
        let threads = [thread("up", up, &near, &far)?, thread("down", down, &far, &near)?];
        Ok(Pump { threads, stop })
    }

    /// Whether a direction has ended by itself: a descriptor is gone.
    pub fn failed(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Ends both directions, up first; what is on the link stays there. None for a thread that
    /// panicked.
    pub fn stop(self) -> [Option<Report>; 2] {
        // Nothing reads the event, so it wakes both; it can only fail if it was said already.
        let _ = write(&*self.stop, &1u64.to_ne_bytes());
        self.threads.map(|thread| thread.join().ok())
    }
}

/// What a thread works with.
struct Ends {
    from: Arc<OwnedFd>,
    to: Arc<OwnedFd>,
    stop: Arc<OwnedFd>,
    start_ns: u64,
}

impl Ends {
    fn now(&self) -> Time {
        Time(clock(ClockId::Monotonic) - self.start_ns)
    }

    fn work(self, mut hop: Hop) -> Report {
        // The kernel may wake a thread this much later than asked; 50 us if nothing is said.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let failed = self.pump(&mut hop).err().map(Into::into);
        let now = self.now();
        hop.advance(now);
        Report { hop, ran: now.since(Time::ZERO), cpu: Span(clock(ClockId::ThreadCPUTime)), failed }
    }

    /// Moves packets until it is told to stop.
    fn pump(&self, hop: &mut Hop) -> Result<(), Errno> {
        loop {
            let Some(readable) = self.wait(hop.wake())? else { return Ok(()) };
            if readable {
                for _ in 0..BATCH {
                    match read(&*self.from, hop.room()) {
                        Ok(0) => return Err(Errno::PIPE), // nobody is at the other end
                        Ok(len) => hop.arrive(self.now(), len),
                        Err(Errno::AGAIN) => break,
                        Err(Errno::INTR) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
            let now = self.now();
            while let Some(due) = hop.next(now) {
                let refused = write(&*self.to, hop.bytes(&due)).is_err();
                hop.sent(due, self.now(), refused);
            }
        }
    }

    /// Waits for a packet or until `due`: whether there is a packet; none when told to stop.
    fn wait(&self, due: Option<Time>) -> Result<Option<bool>, Errno> {
        let left = due.map(|due| due.since(self.now()).0);
        let timeout = left.map(|ns| Timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as i64,
        });
        let mut events =
            [PollFd::new(&*self.from, PollFlags::IN), PollFd::new(&*self.stop, PollFlags::IN)];
        match poll(&mut events, timeout.as_ref()) {
            Err(Errno::INTR) => return Ok(Some(false)),
            other => other?,
        };
        Ok(events[1].revents().is_empty().then(|| !events[0].revents().is_empty()))
    }
}
