//! Packet and queue as native code sees them.

/// Packet as compiled code sees it; `PACKET` of `sojourn.custom.native` has the same fields.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketRecord {
    pub size: i64,
    pub flow: i64,
    pub hash: i64,
    pub class: i64,
    pub ecn: i64,
    pub arrived: i64,
    pub sojourn: i64,
    pub markable: bool,
}

/// Queue as compiled code sees it; `QUEUE` of `sojourn.custom.native` has the same fields.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueRecord {
    pub now: i64,
    pub bytes: i64,
    pub packets: i64,
    /// Address of the random number generator during a call, otherwise 0.
    pub rng: usize,
    /// 1 after an exception.
    pub error: i64,
}
