//! Data structures of the event loop: queue of events, slab, prefetching.

pub(crate) mod event_queue;
pub(crate) mod link_queue;
pub(crate) mod prefetch;
pub(crate) mod slab;
pub(crate) mod slab_parts;
mod tournament;
