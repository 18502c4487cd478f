//! Applications of TCP flows: when each opens a connection, and how much it sends. The simulated
//! TCP and real sockets serve the same applications, with the same random numbers.

use crate::traffic::pacing::PacketSchedule;
use crate::traffic::source::{Source, Transfers};
use crate::traffic::transfer::{Completion, Transfer};
use crate::traffic::video::VideoPlayer;
use sojourn_aqm::Pcg;
use sojourn_aqm::Snapshot;
use sojourn_aqm::units::{Span, Time};

/// Application of a TCP flow.
#[derive(Clone, Debug, Snapshot)]
pub(crate) enum App {
    /// Unlimited data in one connection.
    Bulk {
        /// True once the connection is open.
        open: bool,
    },
    /// Writes into one connection at times given by a schedule.
    Paced(Box<PacedWrites>),
    /// One transfer after the other, each in its own connection.
    Transfers(Box<SequentialTransfers>),
    /// Transfers requested by a session group.
    Pooled(Box<Transfer>),
    /// Segments of a video, on one connection.
    Video(Box<VideoPlayer>),
}

/// Amount of data of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub enum Amount {
    /// Unlimited.
    Unlimited,
    /// Fixed number of bytes.
    Bytes(u64),
    /// Determined by later writes.
    Written,
}

/// Action of an application on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub(crate) enum AppAction {
    /// Open a connection with this amount of data.
    Open(Amount),
    /// Write this many bytes.
    Write(u64),
    /// Open a connection for a transfer of this many bytes, or use the one that is open.
    Fetch(u64),
    /// Stop giving data.
    Stop,
}

/// State of a paced application.
#[derive(Clone, Debug, Snapshot)]
pub(crate) struct PacedWrites {
    schedule: PacketSchedule,
    rng: Pcg,
    /// Time from the start to the first write; None once the connection is open.
    first: Option<Span>,
}

/// State of repeated transfers.
#[derive(Clone, Debug, Snapshot)]
pub(crate) struct SequentialTransfers {
    params: Transfers,
    rng: Pcg,
    left: u64,
    /// Current transfer; its duration is known at the end.
    pub current: Completion,
    /// True if the current transfer has been received.
    pub received: bool,
}

/// Largest write or transfer of an external source, bytes.
pub(crate) const LARGEST_WRITE: u64 = 1_000_000_000_000;

impl App {
    /// Creates the application of a source that uses TCP and starts at `start`. `rng` is the random
    /// stream of the source.
    pub(crate) fn new(source: &Source, start: Time, mut rng: Pcg) -> App {
        match source {
            Source::Bulk(_) => App::Bulk { open: false },
            Source::Transfers(params) => {
                let left = params.number.unwrap_or(u64::MAX);
                let current = Completion::default();
                let params = params.clone();
                let all = SequentialTransfers { params, rng, left, current, received: true };
                App::Transfers(Box::new(all))
            }
            Source::Video(params) => App::Video(Box::new(VideoPlayer::new(params.clone()))),
            Source::Cbr(_) | Source::OnOff(_) | Source::External(_) => {
                let schedule = PacketSchedule::for_source(source, start, LARGEST_WRITE, &mut rng);
                let (schedule, first) = schedule.expect("the source is packet-oriented");
                App::Paced(Box::new(PacedWrites { schedule, rng, first: Some(first) }))
            }
            Source::Poisson(_)
            | Source::Cluster(_)
            | Source::Incast(_)
            | Source::Sessions(_)
            | Source::Web(_)
            | Source::Trace(_)
            | Source::Call(_) => {
                unreachable!("{} opens connections by itself, or uses UDP", source.name())
            }
        }
    }

    /// Performs the action that is due at `now`; `stop` is the end of the source. Returns the
    /// action and the time of the next one, [`Time::NEVER`] if that depends on the transport.
    pub(crate) fn act(&mut self, now: Time, stop: Time) -> (Option<AppAction>, Time) {
        let stops = now >= stop;
        match self {
            App::Bulk { open } if stops => (open.then_some(AppAction::Stop), Time::NEVER),
            App::Bulk { open } => {
                *open = true;
                (Some(AppAction::Open(Amount::Unlimited)), stop)
            }
            App::Paced(paced) if stops => {
                (paced.first.is_none().then_some(AppAction::Stop), Time::NEVER)
            }
            App::Paced(paced) => {
                if let Some(first) = paced.first.take() {
                    return (Some(AppAction::Open(Amount::Written)), now + first);
                }
                let (bytes, gap) = paced.schedule.next_packet(&mut paced.rng);
                (Some(AppAction::Write(bytes)), now + gap)
            }
            App::Transfers(all) if !stops && all.left > 0 => {
                all.left -= 1;
                let bytes = all.params.size.sample(&mut all.rng).0.max(1);
                all.current = Completion { start: now, bytes, ..Completion::default() };
                all.received = false;
                (Some(AppAction::Open(Amount::Bytes(bytes))), Time::NEVER)
            }
            App::Video(player) if !stops => {
                (Some(AppAction::Fetch(player.request(now))), Time::NEVER)
            }
            App::Transfers(_) | App::Pooled(_) | App::Video(_) => (None, Time::NEVER),
        }
    }
}

impl SequentialTransfers {
    /// Returns the number of transfers that started and are not in `done`: 0 or 1.
    pub(crate) fn unfinished(&self, done: &[Completion]) -> u64 {
        let started = self.current.bytes > 0;
        u64::from(started && done.last().is_none_or(|last| last.start < self.current.start))
    }

    /// Records that all bytes of the current transfer were received at `at`, and returns it.
    pub(crate) fn complete(&mut self, at: Time) -> Completion {
        self.received = true;
        self.current.duration = at.since(self.current.start);
        self.current
    }

    /// Time of the next transfer if all bytes of the last one were acknowledged at `at`.
    pub(crate) fn next_start(&mut self, at: Time) -> Time {
        at + self.params.gap.sample(&mut self.rng)
    }
}
