//! Disciplines, for programs with a transmitter of their own.

use crate::border::{
    Failure, Handle, Message, Outcome, Quick, SJ_BAD_LENGTH, SJ_EARLIER, SJ_INVALID, SJ_NULL,
    SJ_PANICKED, call, code, handle, read, single,
};
use crate::cookies::Cookies;
use crate::structs::{Packets, SJ_NEVER, reason, sj_packet, sj_visit};
use sojourn_aqm::{Context, Dropped, LEN_MAX, Marks, Packet, Pcg, Rate, Served, Time, build_text};
use std::collections::VecDeque;
use std::ffi::{CString, c_char, c_int, c_void};

/// Discipline.
#[derive(Debug)]
pub struct sj_qdisc(Handle<State>);

/// State of a discipline.
#[derive(Clone)]
struct State {
    qdisc: Box<dyn Served + Send>,
    rate: Rate,
    rng: Pcg,
    marks: Marks,
    now: Time,
    cookies: Cookies,
    dropped: Vec<Dropped>,
    /// Dropped packets that the caller has not taken.
    returned: VecDeque<(Dropped, u64)>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("now", &self.now).finish_non_exhaustive()
    }
}

impl State {
    /// Sets the time.
    #[inline(always)]
    fn advance(&mut self, now: u64) -> Quick<()> {
        if Time(now) < self.now {
            return Err(SJ_EARLIER);
        }
        self.now = Time(now);
        Ok(())
    }

    /// Enqueues a packet. It has been checked, and the time is set.
    #[inline(always)]
    fn enqueue(&mut self, packet: &sj_packet) {
        let body = self.cookies.insert(packet.cookie);
        let packet = Packet { body, ..packet.descriptor(self.now) };
        let (rng, dropped, marks) = (&mut self.rng, &mut self.dropped, &mut self.marks);
        self.qdisc.enqueue(&mut Context { now: self.now, rng, dropped, marks }, packet);
        self.keep_dropped();
    }

    /// Dequeues into a packet of the caller; false if there is none. The time is set.
    #[inline(always)]
    fn dequeue(&mut self, size: u32, write: impl FnOnce(sj_packet)) -> bool {
        let (rng, dropped, marks) = (&mut self.rng, &mut self.dropped, &mut self.marks);
        let packet = self.qdisc.dequeue(&mut Context { now: self.now, rng, dropped, marks });
        self.keep_dropped();
        let Some(packet) = &packet else { return false };
        let cookie = self.cookies.remove(packet.body);
        write(sj_packet::of(size, packet, cookie, self.now));
        true
    }

    /// Keeps dropped packets for the caller.
    #[inline(always)]
    fn keep_dropped(&mut self) {
        if !self.dropped.is_empty() {
            self.keep_some_dropped();
        }
    }

    #[cold]
    fn keep_some_dropped(&mut self) {
        for dropped in self.dropped.drain(..) {
            self.returned.push_back((dropped, self.cookies.remove(dropped.packet.body)));
        }
    }

    fn enqueue_one(&mut self, now: u64, packet: &sj_packet) -> Quick<c_int> {
        if packet.len >= LEN_MAX {
            return Err(SJ_BAD_LENGTH);
        }
        self.advance(now)?;
        self.enqueue(packet);
        Ok(0)
    }

    fn enqueue_burst(&mut self, now: u64, packets: &Packets) -> Quick<usize> {
        let is_too_long = |i| packets.get(i).len >= LEN_MAX;
        if (0..packets.count()).any(is_too_long) {
            return Err(SJ_BAD_LENGTH);
        }
        self.advance(now)?;
        (0..packets.count()).for_each(|i| self.enqueue(packets.get(i)));
        Ok(packets.count())
    }

    fn dequeue_one(&mut self, now: u64, packet: &mut sj_packet) -> Quick<c_int> {
        self.advance(now)?;
        Ok(self.dequeue(packet.size, |dequeued| *packet = dequeued).into())
    }

    fn dequeue_burst(&mut self, now: u64, packets: &Packets) -> Quick<usize> {
        self.advance(now)?;
        let one = |i: &usize| self.dequeue(packets.size(), |packet| packets.set(*i, packet));
        Ok((0..packets.count()).take_while(one).count())
    }

    fn next_dropped(&mut self, packet: &mut sj_packet) -> Quick<c_int> {
        let Some((dropped, cookie)) = self.returned.pop_front() else { return Ok(0) };
        let packet_of = sj_packet::of(packet.size, &dropped.packet, cookie, dropped.at);
        *packet = sj_packet { reason: reason(Some(dropped.reason)), ..packet_of };
        Ok(1)
    }
}

/// Creates an empty discipline from its text form, like "codel(target=15ms)" or "tc: fq_codel limit
/// 1000", for a link of `rate` bit/s. Returns NULL on an error, and writes the message into
/// `error`, which has `error_bytes` bytes. `fq_codel` is RFC 8290's: write
/// "fq_codel(variant=linux)" for what Linux and ns-3 have.
///
/// # Safety
/// `text` ends with a null character; `error` is NULL or has `error_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_qdisc_new(
    text: *const c_char,
    rate: u64,
    seed: u64,
    error: *mut c_char,
    error_bytes: usize,
) -> *mut sj_qdisc {
    let built = call(|| {
        // SAFETY: the caller promises the null character.
        let text = unsafe { read(text) }?;
        let state = State {
            qdisc: build_text(text, Rate(rate))?.qdisc,
            rate: Rate(rate),
            rng: Pcg::new(seed),
            marks: Marks::default(),
            now: Time::ZERO,
            cookies: Cookies::default(),
            dropped: Vec::new(),
            returned: VecDeque::new(),
        };
        Outcome::Ok(Box::into_raw(Box::new(sj_qdisc(Handle::new(state)))))
    });
    let message = Message { start: error, bytes: error_bytes };
    message.report(built).unwrap_or(std::ptr::null_mut())
}

/// Returns a copy with the same packets, state and random numbers; NULL if `qdisc` is NULL or has
/// panicked. Cookies are copied: mind who owns what they point to.
///
/// # Safety
/// `qdisc` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_qdisc_clone(qdisc: *mut sj_qdisc) -> *mut sj_qdisc {
    // SAFETY: the caller promises a handle.
    let copy = unsafe { handle(qdisc) }.ok().and_then(|qdisc| qdisc.0.copy());
    copy.map_or(std::ptr::null_mut(), |copy| Box::into_raw(Box::new(sj_qdisc(copy))))
}

/// Frees a discipline. What the cookies of its packets point to belongs to the caller: dequeue them
/// first. NULL is allowed.
///
/// # Safety
/// `qdisc` is NULL, or a handle that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_qdisc_free(qdisc: *mut sj_qdisc) {
    if !qdisc.is_null() {
        // SAFETY: the handle was made by `Box::into_raw`, and is not used again.
        drop(unsafe { Box::from_raw(qdisc) });
    }
}

/// Enqueues or drops a packet that arrives at `now`. Returns 0 or an error; the packet is then not
/// in the queue. Take dropped packets by sj_qdisc_next_dropped().
///
/// # Safety
/// `qdisc` is NULL or a handle, and `packet` is NULL or a packet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_qdisc_enqueue(
    qdisc: *mut sj_qdisc,
    now: u64,
    packet: *const sj_packet,
) -> c_int {
    // SAFETY: the caller promises a handle and a packet.
    single(unsafe { handle(qdisc) }.and_then(|qdisc| {
        // SAFETY: as above.
        let packet = unsafe { sj_packet::checked(packet) }?;
        qdisc.0.call(|state| state.enqueue_one(now, packet))
    }))
}

/// Enqueues `count` packets that arrive at `now`, in order; 32 are usual. Returns `count`, or an
/// error, at which no packet is enqueued.
///
/// # Safety
/// `qdisc` is NULL or a handle, and `packets` is NULL or has `count` packets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_qdisc_enqueue_burst(
    qdisc: *mut sj_qdisc,
    now: u64,
    packets: *const sj_packet,
    count: usize,
) -> c_int {
    // SAFETY: the caller promises a handle and `count` packets.
    let arguments = unsafe { handle(qdisc).and_then(|q| Ok((q, Packets::new(packets, count)?))) };
    code(
        arguments
            .and_then(|(qdisc, packets)| qdisc.0.call(|state| state.enqueue_burst(now, &packets))),
    )
}

/// Dequeues the next packet to send into `*packet`, whose `size` the caller has set. Returns 1; 0
/// if there is none, or a shaper holds the packets back until sj_qdisc_ready_at(); or an error.
///
/// # Safety
/// `qdisc` is NULL or a handle, and `packet` is NULL or a packet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_qdisc_dequeue(
    qdisc: *mut sj_qdisc,
    now: u64,
    packet: *mut sj_packet,
) -> c_int {
    // SAFETY: the caller promises a handle and a packet.
    single(unsafe { handle(qdisc) }.and_then(|qdisc| {
        // SAFETY: as above.
        let packet = unsafe { sj_packet::checked_mut(packet) }?;
        qdisc.0.call(|state| state.dequeue_one(now, packet))
    }))
}

/// Dequeues up to `count` packets. Returns the number of packets or an error.
///
/// # Safety
/// `qdisc` is NULL or a handle, and `packets` is NULL or has room for `count` packets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_qdisc_dequeue_burst(
    qdisc: *mut sj_qdisc,
    now: u64,
    packets: *mut sj_packet,
    count: usize,
) -> c_int {
    // SAFETY: the caller promises a handle and `count` packets.
    let arguments = unsafe { handle(qdisc).and_then(|q| Ok((q, Packets::new(packets, count)?))) };
    code(
        arguments
            .and_then(|(qdisc, packets)| qdisc.0.call(|state| state.dequeue_burst(now, &packets))),
    )
}

/// Writes the next dropped packet into `*packet`. Returns 1; 0 if there is none; or an error. Call
/// it after each enqueue and dequeue until it returns 0: packets are kept until then.
///
/// # Safety
/// `qdisc` is NULL or a handle, and `packet` is NULL or a packet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_qdisc_next_dropped(
    qdisc: *mut sj_qdisc,
    packet: *mut sj_packet,
) -> c_int {
    // SAFETY: the caller promises a handle and a packet.
    single(unsafe { handle(qdisc) }.and_then(|qdisc| {
        // SAFETY: as above.
        let packet = unsafe { sj_packet::checked_mut(packet) }?;
        if qdisc.0.without_catch()?.returned.is_empty() {
            return Ok(0);
        }
        qdisc.0.call(|state| state.next_dropped(packet))
    }))
}

/// Time at which to dequeue again after a dequeue without a packet; SJ_NEVER if the discipline is
/// empty or `qdisc` is NULL.
///
/// # Safety
/// `qdisc` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_qdisc_ready_at(qdisc: *mut sj_qdisc) -> u64 {
    // SAFETY: the caller promises a handle.
    let ready = unsafe { handle(qdisc) }.and_then(|qdisc| {
        qdisc.0.call(|state| Quick::Ok(state.qdisc.ready_at().map_or(SJ_NEVER, |t| t.0)))
    });
    ready.unwrap_or(SJ_NEVER)
}

/// Writes the number of packets and bytes in the queue; either pointer may be NULL. Returns 0 or an
/// error.
///
/// # Safety
/// `qdisc` is NULL or a handle; the pointers are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_qdisc_backlog(
    qdisc: *mut sj_qdisc,
    packets: *mut u64,
    bytes: *mut u64,
) -> c_int {
    // SAFETY: the caller promises a handle.
    code(unsafe { handle(qdisc) }.and_then(|qdisc| {
        qdisc.0.call(|state| {
            let backlog = state.qdisc.backlog();
            // SAFETY: the caller promises that the pointers are NULL or can be written.
            unsafe {
                packets.as_mut().into_iter().for_each(|n| *n = backlog.packets.into());
                bytes.as_mut().into_iter().for_each(|n| *n = backlog.bytes);
            }
            Quick::Ok(0)
        })
    }))
}

/// Sets the parameters from a text form; packets and state are kept. Returns 0; or SJ_INVALID with
/// a message if the text is wrong, or the discipline cannot take these parameters while it runs.
///
/// # Safety
/// As sj_qdisc_new(), and `qdisc` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_qdisc_reconfigure(
    qdisc: *mut sj_qdisc,
    text: *const c_char,
    error: *mut c_char,
    error_bytes: usize,
) -> c_int {
    // SAFETY: the caller promises a handle, and the null character of the text.
    let arguments = unsafe { read(text).and_then(|text| Ok((handle(qdisc)?, text))) };
    let changed = arguments.and_then(|(qdisc, text)| {
        qdisc.0.call(|state| {
            let fresh = build_text(text, state.rate)?.qdisc;
            if state.qdisc.reconfigure(fresh) {
                return Ok(0);
            }
            let text = "the discipline cannot take these parameters while it runs".to_string();
            Err(Failure { code: SJ_INVALID, text })
        })
    });
    code(Message { start: error, bytes: error_bytes }.report(changed))
}

/// Calls `visit` with each internal variable of the discipline. Returns 0 or an error.
///
/// # Safety
/// `qdisc` is NULL or a handle; `visit` accepts `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sj_qdisc_inspect(
    qdisc: *mut sj_qdisc,
    visit: sj_visit,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller promises a handle.
    code(unsafe { handle(qdisc) }.and_then(|qdisc| {
        qdisc.0.call(|state| {
            let now = state.now;
            call_visit(visit, context, |see| state.qdisc.inspect_at(now, see))
        })
    }))
}

/// Passes internal variables on to a function of the caller.
pub(crate) fn call_visit(
    visit: sj_visit,
    context: *mut c_void,
    inspect: impl FnOnce(&mut dyn FnMut(&'static str, f64)),
) -> Quick<usize> {
    let visit = visit.ok_or(SJ_NULL)?;
    let mut is_valid = true;
    inspect(&mut |name, value| match CString::new(name) {
        // SAFETY: the caller promises that the function accepts `context`; the name is valid until
        // it returns.
        Ok(name) => unsafe { visit(context, name.as_ptr(), value) },
        Err(_) => is_valid = false,
    });
    if is_valid { Ok(0) } else { Err(SJ_PANICKED) }
}
