//! Data structures of the event loop: queues of events, ring buffer, slab, prefetching.

pub(crate) mod event_queue;
pub(crate) mod link_queue;
pub(crate) mod prefetch;
pub(crate) mod ring;
pub(crate) mod slab;
pub(crate) mod slab_parts;
mod tournament;
