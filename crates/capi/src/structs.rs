//! Structs of the border.

use crate::border::{Outcome, Quick, SJ_NULL, check_size};
use sojourn_aqm::wire::{Chance, Impairments, Jitter, LossModel, Reorder};
use sojourn_aqm::{DropReason, Ecn, Packet, Span, Time};
use std::ffi::{c_char, c_void};

/// Time that never comes.
pub const SJ_NEVER: u64 = u64::MAX;

/// Receives the name and the value of an internal variable, in SI units. The name is valid during
/// the call. It must not call the library with the same handle.
pub type sj_visit =
    Option<unsafe extern "C" fn(context: *mut c_void, name: *const c_char, value: f64)>;

/// Packet. The library returns `cookie` and the fields that the caller has set; it changes `ecn`
/// (3 if the packet was marked), and sets `arrived`, `at`, `reason` and `wrong_bit`. Set fields
/// that are not used to 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sj_packet {
    /// Set it to `sizeof(struct sj_packet)`, in packets that the library fills in as well. In a
    /// burst, the size of the first packet holds for all.
    pub size: u32,
    /// Length in bytes, below 2^30.
    pub len: u32,
    /// Number of the flow: small and dense, for disciplines with a queue per flow (drr, wfq).
    pub flow: u32,
    /// Hash of the flow, for hashed queues (fq_codel, cake): see sj_flow_hash().
    pub hash: u32,
    /// Key of the host that sends, for cake.
    pub source: u32,
    /// Key of the host that receives, for cake.
    pub destination: u32,
    /// Traffic class or DSCP.
    pub traffic_class: u16,
    /// ECN field of the IP header: 0 not ECN-capable, 1 ECT(1), 2 ECT(0), 3 CE.
    pub ecn: u8,
    /// Of a packet that is not delivered: 1 the buffer was full, 2 dropped by the AQM algorithm at
    /// enqueue, 3 dropped later, 4 lost on the wire. 0 otherwise.
    pub reason: u8,
    /// 1 + the number of the bit that is wrong in a corrupted packet; 0 otherwise.
    pub wrong_bit: u32,
    /// Value of the caller, like a pointer.
    pub cookie: u64,
    /// Time of arrival at the queue.
    pub arrived: u64,
    /// Time at which the packet left the queue, arrived at the far end, or was dropped.
    pub at: u64,
}

/// Reads a field by itself. The compiler would join neighbours into one wide read, which waits
/// until the narrower writes of a moment ago have left the store buffer: 3 ns per packet.
#[inline(always)]
fn field<T: Copy>(value: &T) -> T {
    // SAFETY: a reference can be read.
    unsafe { std::ptr::from_ref(value).read_volatile() }
}

impl sj_packet {
    /// Checks a packet that the caller passes.
    ///
    /// # Safety
    /// `packet` is null, or a packet that does not change during the call.
    #[inline(always)]
    pub(crate) unsafe fn checked<'a>(packet: *const sj_packet) -> Quick<&'a sj_packet> {
        // SAFETY: the caller promises it.
        let packet = unsafe { packet.as_ref() }.ok_or(SJ_NULL)?;
        check_size::<sj_packet>(packet.size)?;
        Ok(packet)
    }

    /// Checks a packet that the library fills in.
    ///
    /// # Safety
    /// `packet` is null, or a packet that nothing else uses during the call.
    #[inline(always)]
    pub(crate) unsafe fn checked_mut<'a>(packet: *mut sj_packet) -> Quick<&'a mut sj_packet> {
        // SAFETY: the caller promises it.
        let packet = unsafe { packet.as_mut() }.ok_or(SJ_NULL)?;
        check_size::<sj_packet>(packet.size)?;
        Ok(packet)
    }

    /// Descriptor of the packet, without its cookie.
    #[inline(always)]
    pub(crate) fn descriptor(&self, now: Time) -> Packet {
        Packet {
            arrived: now,
            len: self.len,
            flow: self.flow,
            hash: self.hash,
            source: self.source,
            destination: self.destination,
            class: self.traffic_class,
            ecn: Ecn::from_bits(self.ecn),
            ..Packet::default()
        }
    }

    /// Packet of a descriptor.
    #[inline(always)]
    pub(crate) fn of(size: u32, packet: &Packet, cookie: u64, at: Time) -> sj_packet {
        sj_packet {
            size,
            len: field(&packet.len),
            flow: field(&packet.flow),
            hash: field(&packet.hash),
            source: field(&packet.source),
            destination: field(&packet.destination),
            traffic_class: field(&packet.class),
            ecn: field(&packet.ecn).bits(),
            reason: 0,
            wrong_bit: 0,
            cookie,
            arrived: field(&packet.arrived).0,
            at: at.0,
        }
    }
}

/// Value of `reason` for a dropped packet; `None` is a loss on the wire.
pub(crate) fn reason(reason: Option<DropReason>) -> u8 {
    match reason {
        None => 4,
        // No function of this library shares a buffer.
        Some(DropReason::SharedBuffer) => 5,
        Some(reason) => reason as u8,
    }
}

/// Packets of the caller, one after the other.
pub(crate) struct Packets {
    start: *mut u8,
    /// Bytes from one packet to the next.
    stride: usize,
    size: u32,
    count: usize,
}

impl Packets {
    /// Checks the packets at `start`.
    ///
    /// # Safety
    /// `start` is null, or `count` packets of the size that the first one has are there.
    #[inline]
    pub(crate) unsafe fn new(start: *const sj_packet, count: usize) -> Quick<Packets> {
        if count == 0 {
            return Ok(Packets { start: std::ptr::null_mut(), stride: 0, size: 0, count });
        }
        if start.is_null() {
            return Err(SJ_NULL);
        }
        // SAFETY: not null, and the caller promises a packet there, whose first field this is.
        let size = unsafe { start.cast::<u32>().read() };
        let stride = check_size::<sj_packet>(size)?;
        Ok(Packets { start: start.cast_mut().cast(), stride, size, count })
    }

    /// Number of packets.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Size of a packet, as the caller has set it.
    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// Returns a packet.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> &sj_packet {
        assert!(index < self.count);
        // SAFETY: `new` was promised `count` packets at this distance; a packet has at least the
        // fields of this version, and the distance is a multiple of their alignment. The caller
        // does not change them during the call.
        unsafe { &*self.start.add(index * self.stride).cast::<sj_packet>() }
    }

    /// Writes a packet.
    #[inline]
    pub(crate) fn set(&self, index: usize, packet: sj_packet) {
        assert!(index < self.count);
        // SAFETY: as `get`; functions that write take the packets by a pointer to mutable ones.
        unsafe { self.start.add(index * self.stride).cast::<sj_packet>().write(packet) }
    }
}

/// Impairments of a link, behind its queue. Fields that are 0 have no effect.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sj_impairments {
    /// Set it to `sizeof(struct sj_impairments)`.
    pub size: u32,
    /// 1 if jitter may reorder packets, 0 if a packet waits for the earlier ones.
    pub jitter_reorders: u32,
    /// Jitter: the delay varies uniformly by plus or minus this time.
    pub jitter_ns: u64,
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Probability that a packet is sent without the delay of the link, before earlier ones.
    pub reorder: f64,
    /// Probability that a bit of a packet is wrong.
    pub corrupt: f64,
}

impl sj_impairments {
    /// Converts to impairments of the library.
    pub(crate) fn convert(&self) -> Outcome<Impairments> {
        check_size::<sj_impairments>(self.size)?;
        let mut impairments = Impairments::default();
        if self.jitter_ns > 0 {
            let mut jitter = Jitter::new(Span(self.jitter_ns));
            jitter.reorders = self.jitter_reorders != 0;
            impairments.jitter = Some(jitter);
        }
        if self.reorder != 0.0 {
            impairments.reorder = Some(Reorder::new(Chance::new(self.reorder)));
        }
        impairments.loss = LossModel::Random(self.loss);
        impairments.corrupt = Chance::new(self.corrupt);
        Ok(impairments)
    }
}

/// Counters of a link since the last sj_link_reset_stats().
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct sj_stats {
    /// Set it to `sizeof(struct sj_stats)`.
    pub size: u32,
    /// Always 0.
    pub reserved: u32,
    /// Packets that arrived at the queue.
    pub arrived_packets: u64,
    /// Packets that left the queue.
    pub departed_packets: u64,
    /// Packets dropped by the discipline.
    pub dropped_packets: u64,
    /// Packets marked with CE.
    pub marked_packets: u64,
    /// Packets lost on the wire.
    pub lost_packets: u64,
    /// Bytes that arrived at the queue.
    pub arrived_bytes: u64,
    /// Bytes that left the queue.
    pub departed_bytes: u64,
    /// Packets in the queue now.
    pub queued_packets: u64,
    /// Bytes in the queue now.
    pub queued_bytes: u64,
    /// Mean time of a packet in the queue, in seconds; 0 if none has left.
    pub sojourn_mean_s: f64,
    /// Share of the time in which the link was sending.
    pub utilisation: f64,
}
