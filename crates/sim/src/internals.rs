//! Parts for the Python extension and for the tests and benches of this crate. Not part of the
//! API: names can change in any release.

pub use crate::collections::event_queue::EventQueue;
pub use crate::config::TABLES;
pub use crate::config::tc_links::import as import_tc;
pub use crate::endpoint::call::Report;
pub use crate::endpoint::cc::bbr::{Bbr, BbrState};
pub use crate::endpoint::cc::bbr3::{Bbr3, Bbr3State};
pub use crate::endpoint::cc::compound::Compound;
pub use crate::endpoint::cc::dcqcn::Dcqcn;
pub use crate::endpoint::cc::dctcp::Dctcp;
pub use crate::endpoint::cc::prague::Prague;
pub use crate::endpoint::cc::swift::Swift;
pub use crate::endpoint::cc::timely::Timely;
pub use crate::endpoint::cc::{CongestionControl, ControlAlgorithm, SentSegment};
pub use crate::endpoint::common_params::EcnFeedback;
pub use crate::endpoint::tcp;
pub use crate::endpoint::udp::Datagram;
pub use crate::engine::change_schedule::{ChangeSchedule, DueChange, link_may_change};
pub use crate::engine::flow::{ArrivedPacket, Endpoints, Flow, Outbox};
pub use crate::engine::script;
pub use crate::engine::series::LinkSeries;
pub use crate::engine::sessions::SessionGroup;
pub use crate::output::outcome;
pub use crate::parsing::keys::Table;
pub use crate::parsing::tc;
pub use crate::random_stream::random_stream;
pub use crate::traffic::application::Amount;
pub use sojourn_aqm::params::parse_call;
