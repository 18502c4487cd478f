//! Links: a discipline, a rate, a delay, and impairments.

use crate::border::{
    Handle, Message, Outcome, Quick, SJ_BAD_LENGTH, call, check_size, code, code_of, handle, read,
};
use crate::qdisc::call_visit;
use crate::snapshot::{load, save};
use crate::structs::{Packets, SJ_NEVER, reason, sj_impairments, sj_packet, sj_stats, sj_visit};
use sojourn_aqm::{LEN_MAX, LinkSpec, Rate, Span, Time, TimedLink};
use std::ffi::{c_char, c_int, c_void};

/// Link.
#[derive(Debug)]
pub struct sj_link(Handle<State>);

#[derive(Clone, Debug)]
struct State {
    link: TimedLink<u64>,
    /// Snapshot that was returned last.
    snapshot: Vec<u8>,
}

impl State {
    fn new(link: TimedLink<u64>) -> State {
        State { link, snapshot: Vec::new() }
    }

    fn save(&mut self) -> Outcome<&[u8]> {
        self.snapshot = self.link.save()?;
        Ok(&self.snapshot)
    }
}

/// Creates an idle link at time 0 with a discipline in its text form, `rate` bit/s, and a one-way
/// delay of `delay` ns. Without `limit` in the text, the queue holds at most 250 ms. `impairments`
/// may be NULL. Returns NULL on an error, and writes the message into `error`, which has
/// `error_bytes` bytes. `fq_codel` is RFC 8290's: write "fq_codel(variant=linux)" for what Linux
/// and ns-3 have.
///
/// # Safety
/// `text` ends with a null character; `error` is NULL or has `error_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_link_new(
    text: *const c_char,
    rate: u64,
    delay: u64,
    seed: u64,
    impairments: *const sj_impairments,
    error: *mut c_char,
    error_bytes: usize,
) -> *mut sj_link {
    let built = call(|| {
        // SAFETY: the caller promises the null character.
        let text = unsafe { read(text) }?;
        let builder = TimedLink::builder(text, Rate(rate), Span(delay));
        let mut builder = builder.seed(seed).keep_undelivered();
        // SAFETY: the caller promises that it is NULL or has impairments.
        if let Some(impairments) = unsafe { impairments.as_ref() } {
            builder = builder.impairments(impairments.convert()?);
        }
        let state = State::new(builder.build()?);
        Outcome::Ok(Box::into_raw(Box::new(sj_link(Handle::new(state)))))
    });
    let message = Message { start: error, bytes: error_bytes };
    message.report(built).unwrap_or(std::ptr::null_mut())
}

/// Returns a copy with the same packets, state and random numbers; NULL if `link` is NULL or has
/// panicked. Cookies are copied: mind who owns what they point to.
///
/// # Safety
/// `link` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_link_clone(link: *mut sj_link) -> *mut sj_link {
    // SAFETY: the caller promises a handle.
    let copy = unsafe { handle(link) }.ok().and_then(|link| link.0.copy());
    copy.map_or(std::ptr::null_mut(), |copy| Box::into_raw(Box::new(sj_link(copy))))
}

/// Frees a link. What the cookies of its packets point to belongs to the caller. NULL is allowed.
///
/// # Safety
/// `link` is NULL, or a handle that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_link_free(link: *mut sj_link) {
    if !link.is_null() {
        // SAFETY: the handle was made by `Box::into_raw`, and is not used again.
        drop(unsafe { Box::from_raw(link) });
    }
}

/// Enqueues a packet that arrives at `now`. Returns 0 or an error; the packet is then not on the
/// link. Take dropped packets by sj_link_next_undelivered().
///
/// # Safety
/// `link` is NULL or a handle, and `packet` is NULL or a packet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_link_push(
    link: *mut sj_link,
    now: u64,
    packet: *const sj_packet,
) -> c_int {
    // SAFETY: the caller promises a handle and a packet.
    code(unsafe { push(link, now, packet, 1) }.map(|_| 0))
}

/// Enqueues `count` packets that arrive at `now`, in order; 32 are usual. Returns `count`, or an
/// error, at which no packet is enqueued.
///
/// # Safety
/// `link` is NULL or a handle, and `packets` is NULL or has `count` packets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_link_push_burst(
    link: *mut sj_link,
    now: u64,
    packets: *const sj_packet,
    count: usize,
) -> c_int {
    // SAFETY: the caller promises a handle and `count` packets.
    code(unsafe { push(link, now, packets, count) })
}

/// # Safety
/// As [`sj_link_push_burst`].
#[inline(always)]
unsafe fn push(
    link: *mut sj_link,
    now: u64,
    packets: *const sj_packet,
    count: usize,
) -> Quick<usize> {
    // SAFETY: the caller promises a handle and `count` packets.
    let (link, packets) = unsafe { (handle(link)?, Packets::new(packets, count)?) };
    link.0.call(|State { link, .. }| {
        let is_too_long = |i| packets.get(i).len >= LEN_MAX;
        if (0..packets.count()).any(is_too_long) {
            return Err(SJ_BAD_LENGTH);
        }
        for i in 0..packets.count() {
            let packet = packets.get(i);
            let pushed = link.push(Time(now), packet.descriptor(Time(now)), packet.cookie);
            pushed.map_err(|error| code_of(&error))?;
        }
        Ok(packets.count())
    })
}

/// Writes the next packet that has reached the far end by `now` into `*packet`, whose `size` the
/// caller has set. Returns 1; 0 if there is none; or an error.
///
/// # Safety
/// `link` is NULL or a handle, and `packet` is NULL or a packet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_link_poll(
    link: *mut sj_link,
    now: u64,
    packet: *mut sj_packet,
) -> c_int {
    // SAFETY: the caller promises a handle and a packet.
    code(unsafe { poll(link, now, packet, 1) })
}

/// Writes up to `count` packets that have reached the far end by `now`. Returns the number of
/// packets or an error.
///
/// # Safety
/// `link` is NULL or a handle, and `packets` is NULL or has room for `count` packets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_link_poll_burst(
    link: *mut sj_link,
    now: u64,
    packets: *mut sj_packet,
    count: usize,
) -> c_int {
    // SAFETY: the caller promises a handle and `count` packets.
    code(unsafe { poll(link, now, packets, count) })
}

/// # Safety
/// As [`sj_link_poll_burst`].
#[inline(always)]
unsafe fn poll(
    link: *mut sj_link,
    now: u64,
    packets: *mut sj_packet,
    count: usize,
) -> Quick<usize> {
    // SAFETY: the caller promises a handle and `count` packets.
    let (link, packets) = unsafe { (handle(link)?, Packets::new(packets, count)?) };
    link.0.call(|State { link, .. }| {
        for i in 0..packets.count() {
            let arrival = link.poll(Time(now)).map_err(|error| code_of(&error))?;
            let Some(arrival) = arrival else { return Ok(i) };
            let size = packets.size();
            let packet = sj_packet::of(size, &arrival.packet, arrival.body, arrival.at);
            let wrong_bit = arrival.wrong_bit.map_or(0, |bit| bit.saturating_add(1));
            packets.set(i, sj_packet { wrong_bit, ..packet });
        }
        Ok(packets.count())
    })
}

/// Next time to call sj_link_poll(); SJ_NEVER while no packet is on the link. May be early: the
/// poll then returns 0, and this function has a later time.
///
/// # Safety
/// `link` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_link_next_poll(link: *mut sj_link) -> u64 {
    // SAFETY: the caller promises a handle.
    let next = unsafe { handle(link) }.and_then(|link| {
        link.0.call(|State { link, .. }| Quick::Ok(link.next_poll().map_or(SJ_NEVER, |at| at.0)))
    });
    next.unwrap_or(SJ_NEVER)
}

/// Writes the next packet that was dropped or lost into `*packet`. Returns 1; 0 if there is none;
/// or an error. Call it after each push and poll until it returns 0: packets are kept until then.
///
/// # Safety
/// `link` is NULL or a handle, and `packet` is NULL or a packet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_link_next_undelivered(
    link: *mut sj_link,
    packet: *mut sj_packet,
) -> c_int {
    // SAFETY: the caller promises a handle and a packet.
    let arguments = unsafe { handle(link).and_then(|l| Ok((l, Packets::new(packet, 1)?))) };
    code(arguments.and_then(|(link, packets)| {
        link.0.call(|State { link, .. }| {
            let Some(lost) = link.next_undelivered() else { return Ok(0) };
            let packet = sj_packet::of(packets.size(), &lost.packet, lost.body, lost.at);
            packets.set(0, sj_packet { reason: reason(lost.reason), ..packet });
            Ok(1)
        })
    }))
}

/// Sets rate and delay at `now`. A transmission that has started is not affected; a rate of 0 stops
/// the link. Returns 0 or an error.
///
/// # Safety
/// `link` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_link_change(
    link: *mut sj_link,
    now: u64,
    rate: u64,
    delay: u64,
) -> c_int {
    // SAFETY: the caller promises a handle.
    code(unsafe { handle(link) }.and_then(|link| {
        link.0.call(|State { link, .. }| {
            let spec = LinkSpec::new(Rate(rate), Span(delay));
            link.change(Time(now), spec).map(|()| 0).map_err(|error| code_of(&error))
        })
    }))
}

/// Sets the parameters of the discipline at `now` from a text form; packets and state are kept.
/// Returns 0 or an error, with a message.
///
/// # Safety
/// As sj_link_new(), and `link` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_link_reconfigure(
    link: *mut sj_link,
    now: u64,
    text: *const c_char,
    error: *mut c_char,
    error_bytes: usize,
) -> c_int {
    // SAFETY: the caller promises a handle, and the null character of the text.
    let arguments = unsafe { read(text).and_then(|text| Ok((handle(link)?, text))) };
    let changed: Outcome<usize> = arguments.and_then(|(link, text)| {
        link.0.call(|State { link, .. }| {
            link.reconfigure(Time(now), text)?;
            Ok(0)
        })
    });
    code(Message { start: error, bytes: error_bytes }.report(changed))
}

/// Starts the measured interval at `now`: resets all counters. Returns 0 or an error.
///
/// # Safety
/// `link` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_link_reset_stats(link: *mut sj_link, now: u64) -> c_int {
    // SAFETY: the caller promises a handle.
    code(unsafe { handle(link) }.and_then(|link| {
        link.0.call(|State { link, .. }| {
            link.reset_stats(Time(now)).map(|()| 0).map_err(|error| code_of(&error))
        })
    }))
}

/// Writes the counters into `*stats`, whose `size` the caller has set. Returns 0 or an error.
///
/// # Safety
/// `link` is NULL or a handle, and `stats` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_link_stats(link: *mut sj_link, stats: *mut sj_stats) -> c_int {
    // SAFETY: the caller promises both.
    let arguments = unsafe { handle(link).and_then(|link| Ok((link, handle(stats)?))) };
    code(arguments.and_then(|(link, stats)| {
        check_size::<sj_stats>(stats.size)?;
        link.0.call(|State { link, .. }| {
            *stats = counters(stats.size, link);
            Ok(0)
        })
    }))
}

fn counters(size: u32, link: &mut TimedLink<u64>) -> sj_stats {
    let lost_packets = link.wire_stats().map_or(0, |stats| stats.lost);
    let utilisation = link.utilisation().unwrap_or(0.0);
    let backlog = link.link().qdisc().backlog();
    let stats = link.stats();
    sj_stats {
        size,
        reserved: 0,
        arrived_packets: stats.arrived_packets,
        departed_packets: stats.departed_packets,
        dropped_packets: stats.dropped(),
        marked_packets: stats.marks.packets,
        lost_packets,
        arrived_bytes: stats.arrived_bytes,
        departed_bytes: stats.departed_bytes,
        queued_packets: backlog.packets.into(),
        queued_bytes: backlog.bytes,
        sojourn_mean_s: stats.sojourn.mean_s().unwrap_or(0.0),
        utilisation,
    }
}

/// Calls `visit` with each internal variable of the discipline. Returns 0 or an error.
///
/// # Safety
/// `link` is NULL or a handle; `visit` accepts `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_link_inspect(
    link: *mut sj_link,
    visit: sj_visit,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller promises a handle.
    code(unsafe { handle(link) }.and_then(|link| {
        link.0.call(|State { link, .. }| call_visit(visit, context, |see| link.inspect(see)))
    }))
}

/// Writes the address of a snapshot into `*start`, and its number of bytes into `*count`:
/// sj_link_load() continues from them. It has the packets with their cookies, also those that
/// sj_link_next_undelivered() has not returned. The bytes are valid until the link is saved again
/// or freed. Returns 0 or an error, and writes the message into `error`, which has `error_bytes`
/// bytes.
///
/// # Safety
/// `link` is NULL or a handle; `start` and `count` are NULL or can be written; `error` is NULL or
/// has `error_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_link_save(
    link: *mut sj_link,
    start: *mut *const u8,
    count: *mut usize,
    error: *mut c_char,
    error_bytes: usize,
) -> c_int {
    // SAFETY: the caller promises a handle.
    let link = unsafe { handle(link) }.map(|link| &mut link.0);
    let message = Message { start: error, bytes: error_bytes };
    // SAFETY: the caller promises that both can be written.
    unsafe { save(link, State::save, start, count, message) }
}

/// Creates the link of a snapshot in `*link`. It continues as the saved one, on any machine: the
/// same packets arrive and are dropped at the same times, with the same cookies. A cookie is a
/// number: a pointer is valid in the process that made it only. Returns 0, or an error and NULL in
/// `*link`: SJ_BAD_SNAPSHOT for bytes that are not a snapshot of a link, that are damaged or
/// incomplete, or that another version of the library wrote. Load only snapshots that you wrote: a
/// checksum finds accidents only. Writes the message into `error`, which has `error_bytes` bytes.
///
/// # Safety
/// `link` is NULL or can be written; `start` is NULL or has `count` bytes; `error` is NULL or has
/// `error_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_link_load(
    link: *mut *mut sj_link,
    start: *const u8,
    count: usize,
    error: *mut c_char,
    error_bytes: usize,
) -> c_int {
    let create = |snapshot: &[u8]| {
        let state = State::new(TimedLink::from_snapshot(snapshot)?);
        Ok(sj_link(Handle::new(state)))
    };
    // SAFETY: the caller promises both.
    unsafe { load(link, start, count, create, Message { start: error, bytes: error_bytes }) }
}
