//! C border of `sojourn-aqm` and `sojourn-sim`: disciplines, links and simulations.
//! `include/sojourn.h` is generated from this crate by cbindgen, and `include/sojourn.hpp` wraps it
//! for C++.
//!
//! Panics are caught at the border. A handle at which a call has panicked refuses all further
//! calls. The unsafe code is what the border needs: names of exports, and pointers of the caller,
//! each of which is checked for null.

#![allow(unsafe_code)]
#![allow(non_camel_case_types, reason = "names of C")]

mod border;
mod cookies;
mod link;
mod qdisc;
mod sim;
mod snapshot;
mod structs;
mod tools;

pub use border::{
    SJ_BAD_LENGTH, SJ_BAD_SIZE, SJ_BAD_SNAPSHOT, SJ_EARLIER, SJ_INVALID, SJ_NULL, SJ_PANICKED,
};
pub use link::{
    sj_link, sj_link_change, sj_link_clone, sj_link_free, sj_link_inspect, sj_link_load,
    sj_link_new, sj_link_next_poll, sj_link_next_undelivered, sj_link_poll, sj_link_poll_burst,
    sj_link_push, sj_link_push_burst, sj_link_reconfigure, sj_link_reset_stats, sj_link_save,
    sj_link_stats,
};
pub use qdisc::{
    sj_qdisc, sj_qdisc_backlog, sj_qdisc_clone, sj_qdisc_dequeue, sj_qdisc_dequeue_burst,
    sj_qdisc_enqueue, sj_qdisc_enqueue_burst, sj_qdisc_free, sj_qdisc_inspect, sj_qdisc_new,
    sj_qdisc_next_dropped, sj_qdisc_ready_at, sj_qdisc_reconfigure,
};
pub use sim::{
    sj_sim, sj_sim_clone, sj_sim_end, sj_sim_free, sj_sim_load, sj_sim_new, sj_sim_now,
    sj_sim_result, sj_sim_run_until, sj_sim_save,
};
pub use structs::{SJ_NEVER, sj_impairments, sj_packet, sj_stats, sj_visit};
pub use tools::{
    SJ_ABI_VERSION, sj_abi_version, sj_discipline_count, sj_discipline_name, sj_flow_hash,
    sj_strerror, sj_version,
};
