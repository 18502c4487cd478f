//! `qfq` and its classes.

use super::super::table::Ours::Computed;
use super::super::table::{Becomes, Fixed, Kind, Rules, Unit, Word};
use super::fifo::{BY_CLASS, LEAF_TAIL, class_words};

/// Class that no word describes: it has the weight 1 and the packets of an Ethernet device.
const CLASS: &str = "a class of tc has its own";

/// `qfq`: quick fair queueing.
pub static QFQ: Kind = Kind {
    name: "qfq",
    becomes: Becomes::Discipline("qfq"),
    words: &[],
    fixed: &[
        BY_CLASS,
        LEAF_TAIL,
        Fixed { name: "weights", linux: "1", why: CLASS },
        Fixed { name: "maxpkt", linux: "1514B", why: CLASS },
        Fixed {
            name: "aggregate",
            linux: "8",
            why: "Linux takes it from txqueuelen of the device, which is 8 from 7 packets on",
        },
    ],
    rules: Rules {
        parameters: &["flows", "full", "limit", "limits"],
        words: |params, _| class_words(params, "qfq weight W maxpkt L"),
        ..Rules::FIXED
    },
    differs: "Linux drops packets that no filter assigns to a class. Classes of equal words form \
              aggregates in the order in which they were made, here in the order of their numbers",
};

/// Class of [`QFQ`].
pub static QFQ_CLASS: Kind = Kind {
    name: "qfq",
    becomes: Becomes::Nothing("is a class"),
    words: &[
        Word::new("weight", Unit::Integer, "1", Computed).within(1, 1024),
        Word::new("maxpkt", Unit::PlainBytes, "1514", Computed).within(512, 65_536),
    ],
    fixed: &[],
    rules: Rules::ALL,
    differs: "",
};
