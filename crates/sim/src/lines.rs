//! Access lines by name: the links `down` and `up` of a line, each parameter with its source.
//!
//! ```
//! let line = sojourn_sim::lines::line("starlink")?;
//! let links = sojourn_sim::config::parse_links(&line.links())?;
//! let process = links[0].process().expect("its rate and its delay vary");
//! let (at, change) = process.link_changes(1, "down").nth(1).expect("endless");
//! assert_eq!(at.0, 15_000_000_000);
//! assert!(change.rate.is_some() && change.delay.is_some());
//! # Ok::<(), sojourn_aqm::Error>(())
//! ```

use serde_json::{Map, Value as Json, json};
use sojourn_aqm::error::{Error, Result};

/// Parameter of a line: a key of a link, with its value in each direction.
#[derive(Clone, Copy, Debug)]
pub struct LineRow {
    /// Path of the key below the link, like `process.every`.
    pub key: &'static str,
    /// Value of the downlink; empty if the downlink does not have the key.
    pub down: &'static str,
    /// Value of the uplink; empty if the uplink does not have the key.
    pub up: &'static str,
    /// Source of the values.
    pub source: &'static str,
}

/// Model of an access line.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Name.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Variation of rate and delay, with their statistics.
    pub model: &'static str,
    /// Effects that the model leaves out.
    pub omits: &'static str,
    /// Parameters.
    pub rows: &'static [LineRow],
}

impl Line {
    /// All fields, and the links, as JSON.
    pub fn json(&self) -> Json {
        let row = |row: &LineRow| {
            let LineRow { key, down, up, source } = *row;
            json!({ "key": key, "down": down, "up": up, "source": source })
        };
        json!({
            "name": self.name, "about": self.about, "model": self.model, "omits": self.omits,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(), "links": self.links(),
        })
    }

    /// Links `down` and `up` as in a scenario, for [`crate::config::parse_links`].
    pub fn links(&self) -> Json {
        let mut links = Map::new();
        for (way, value) in [("down", (|row| row.down) as fn(&LineRow) -> _), ("up", |row| row.up)]
        {
            let mut link = Map::new();
            for row in self.rows.iter().filter(|row| !value(row).is_empty()) {
                let (table, key) = row.key.rsplit_once('.').unwrap_or(("", row.key));
                let place = match table {
                    "" => &mut link,
                    table => link
                        .entry(table)
                        .or_insert_with(|| Map::new().into())
                        .as_object_mut()
                        .expect("a key is a value or a table"),
                };
                place.insert(key.into(), value(row).into());
            }
            links.insert(way.into(), link.into());
        }
        links.into()
    }
}

/// Returns the line called `name`.
///
/// # Errors
/// If there is none; with the nearest name.
pub fn line(name: &str) -> Result<&'static Line> {
    let line = LINES.iter().find(|line| line.name == name);
    line.ok_or_else(|| Error::unknown("line", name, LINES.iter().map(|line| line.name)))
}

const CHOICE: &str = "our choice";
const SPROUT: &str = "Winstein, Sivaraman and Balakrishnan, NSDI 2013";
const STARLINK_RATE: &str = "SpaceX to users of the beta, October 2020: 50 to 150 Mbit/s; a tenth \
                             of it up is our choice";
const STARLINK_DELAY: &str = "SpaceX, the same: a latency of 20 to 40 ms; each direction has a \
                              half";
const STARLINK_15S: &str = "Tanveer et al., CoNEXT Companion 2023; Mohan et al., WWW 2024";
const DCTCP: &str = "Alizadeh et al., SIGCOMM 2010";
const RFC2488: &str = "RFC 2488, section 2: 279 ms to the edge of the view and back to Earth";

macro_rules! rows {
    ($($key:literal: $down:literal, $up:literal, $source:expr;)*) => {
        &[$(LineRow { key: $key, down: $down, up: $up, source: $source }),*]
    };
}

/// All lines.
pub static LINES: &[Line] = &[
    Line {
        name: "lte",
        about: "cellular line (LTE) with a single user's queue at the base station",
        model: "The rate is a random walk that is reflected at its ends: uniform between them in \
                the long run (mean 6.3 Mbit/s, standard deviation 3.29 Mbit/s), with a \
                correlation that falls to 1/e within 4.6 s. Packets arrive in subframes of 1 ms.",
        omits: "times without coverage (add outages), retransmissions of the radio link, the wait \
                for a grant of the uplink, and idle states of the radio",
        rows: rows! {
            "rate": "12mbit", "12mbit", "the greatest rate, which sets defaults of disciplines";
            "delay": "20ms", "20ms", SPROUT;
            "process.every": "20ms", "20ms", SPROUT;
            "process.rate_min": "600kbit", "600kbit", CHOICE;
            "process.rate_max": "12mbit", "12mbit",
                "Winstein et al.: at most 1,000 packets of 1,500 bytes a second";
            "process.walk": "2400kbit", "2400kbit",
                "Winstein et al.: 200 packets a second in the square root of a second";
            "slot.min": "1ms", "1ms", "subframe, 3GPP TS 36.211, section 4";
            "qdisc.name": "droptail", "droptail", CHOICE;
            "qdisc.limit": "1s", "1s", CHOICE;
        },
    },
    Line {
        name: "starlink",
        about: "line over satellites in low orbits (Starlink)",
        model: "Every 15 s the terminal is given another satellite, and rate and delay of each \
                direction are drawn anew, uniformly: a mean of 100 Mbit/s down and 10 Mbit/s up, \
                round trips of 20 to 40 ms with a mean of 30 ms.",
        omits: "losses at the reallocations, frames of about a millisecond, and a common delay of \
                both directions: here they are independent",
        rows: rows! {
            "rate": "150mbit", "15mbit", "the greatest rate, which sets defaults of disciplines";
            "delay": "15ms", "15ms", "the mean";
            "process.every": "15s", "15s", STARLINK_15S;
            "process.rate_min": "50mbit", "5mbit", STARLINK_RATE;
            "process.rate_max": "150mbit", "15mbit", STARLINK_RATE;
            "process.delay_min": "10ms", "10ms", STARLINK_DELAY;
            "process.delay_max": "20ms", "20ms", STARLINK_DELAY;
            "qdisc.name": "droptail", "droptail", CHOICE;
            "qdisc.limit": "100ms", "100ms", CHOICE;
        },
    },
    Line {
        name: "dsl",
        about: "VDSL2 line of 50 and 10 Mbit/s with PPPoE and a VLAN",
        model: "Rate and delay are constant. Each packet has the framing of the line: a full \
                packet of 1,492 bytes uses 96.3 % of the gross rate.",
        omits: "resynchronisation, and impulse noise",
        rows: rows! {
            "rate": "50mbit", "10mbit", CHOICE;
            "delay": "10ms", "10ms", CHOICE;
            "overhead": "34 ptm", "34 ptm", "tc-cake(8): pppoe-ptm, ether-vlan";
            "qdisc.name": "droptail", "droptail", CHOICE;
            "qdisc.limit": "150ms", "600ms", CHOICE;
        },
    },
    Line {
        name: "cable",
        about: "DOCSIS line of 250 and 25 Mbit/s",
        model: "The rate is constant. Packets of the uplink arrive in intervals of 2 ms, at which \
                the head-end grants transmissions.",
        omits: "other users of the segment, bursts above the rate, and low-latency DOCSIS",
        rows: rows! {
            "rate": "250mbit", "25mbit", CHOICE;
            "delay": "5ms", "5ms", CHOICE;
            "overhead": "docsis", "docsis", "tc-cake(8): docsis, 18 bytes, at least 64";
            "slot.min": "", "2ms", "our choice, a usual interval of MAP messages";
            "qdisc.name": "droptail", "droptail", CHOICE;
            "qdisc.limit": "100ms", "250ms", CHOICE;
        },
    },
    Line {
        name: "satellite",
        about: "line over a geostationary satellite",
        model: "Rate and delay are constant; a round trip takes 558 ms.",
        omits: "fading in rain, shared access of the uplink, and proxies that split connections",
        rows: rows! {
            "rate": "20mbit", "3mbit", CHOICE;
            "delay": "279ms", "279ms", RFC2488;
            "qdisc.name": "droptail", "droptail", CHOICE;
            "qdisc.limit": "558ms", "558ms", "our choice: one bandwidth-delay product";
        },
    },
    Line {
        name: "datacentre",
        about: "port of a switch in a data centre at 1 Gbit/s",
        model: "Rate and delay are constant; a round trip takes 100 us.",
        omits: "a buffer that ports share by need, and the other hops",
        rows: rows! {
            "rate": "1gbit", "1gbit", DCTCP;
            "delay": "50us", "50us", "our choice, within the 250 us of Alizadeh et al.";
            "qdisc.name": "droptail", "droptail", CHOICE;
            "qdisc.limit": "83kB", "83kB",
                "Alizadeh et al.: a 48th of 4 MB, the buffer and the ports of their switch";
        },
    },
];

#[cfg(test)]
mod tests;
