//! Keys of a scenario. The parser uses these tables, which hold every default and range; the
//! reference (`sojourn list scenario`, docs/scenario.md) and the Python classes are generated from
//! them.

use DefaultValue::{Is, Means, Required};

/// Meaning of a key that is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// The key is required.
    Required,
    /// Default value, as text.
    Is(&'static str),
    /// Default described in words.
    Means(&'static str),
}

/// Key of a table.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name.
    pub name: &'static str,
    /// Kind of value, as named by [`sojourn_aqm::params::Value::kind`].
    pub kind: &'static str,
    /// Meaning if not given.
    pub default: DefaultValue,
    /// Minimum and maximum, if bounded.
    pub range: Option<(&'static str, &'static str)>,
    /// Description.
    pub description: &'static str,
    /// Example value in TOML.
    pub example: &'static str,
}

const fn key(
    name: &'static str,
    kind: &'static str,
    unset: DefaultValue,
    about: &'static str,
    example: &'static str,
) -> Key {
    Key { name, kind, default: unset, range: None, description: about, example }
}

impl Key {
    const fn within(self, least: &'static str, largest: &'static str) -> Key {
        Key { range: Some((least, largest)), ..self }
    }
}

/// Table of a scenario.
#[derive(Debug)]
pub struct Table {
    /// Path of the table; NAME stands for a name given by the scenario.
    pub path: &'static str,
    /// Description.
    pub about: &'static str,
    /// Keys in their usual order.
    pub keys: &'static [Key],
}

impl Table {
    /// Key called `name`.
    ///
    /// # Panics
    /// If the table has no such key, which is a bug in the parser.
    pub fn key(&self, name: &str) -> &Key {
        let key = self.keys.iter().find(|key| key.name == name);
        key.unwrap_or_else(|| panic!("{} has no key {name}", self.path))
    }
}

/// Kind of a duration that can be random.
const RANDOM_DURATION: &str = "duration, or uniform|exponential|pareto|lomax|cdf(...)";

/// Top level of a scenario.
pub static SCENARIO: Table = Table {
    path: "",
    about: "Duration, recording, links, flows and changes of the experiment.",
    keys: &[
        key(
            "name",
            "text",
            Is("scenario"),
            "Name of the scenario, shown in titles: printable text.",
            "\"home-uplink\"",
        ),
        key("duration", "duration", Required, "Simulated time.", "\"60s\"")
            .within("1ns", "10000000s"),
        key(
            "warmup",
            "duration",
            Is("0s"),
            "Time at the start that is left out of the measurements; shorter than duration.",
            "\"10s\"",
        ),
        key(
            "seed",
            "integer",
            Is("1"),
            "Seed of all random numbers: equal scenarios with equal seeds give equal results.",
            "7",
        )
        // 2^53: the largest range of integers that every JSON parser represents exactly.
        .within("0", "9007199254740992"),
        key(
            "sample",
            "duration",
            Means("no time series"),
            "Sampling interval of the time series, from 1us to duration.",
            "\"100ms\"",
        ),
        key(
            "sample_flows",
            "flag",
            Is("true"),
            "True to record time series of each flow, false for links and groups only.",
            "false",
        ),
        key(
            "packet_log",
            "flag",
            Is("false"),
            "True to record a packet log: one row per packet and link.",
            "true",
        ),
        key(
            "links",
            "table of links",
            Required,
            "Links by name. A name has 1 to 64 letters, digits, \"_\" and \"-\".",
            "{ up = { rate = \"10mbit\" } }",
        ),
        key(
            "flows",
            "list of flows",
            Required,
            "Groups of flows; the flows of a group have the same settings.",
            "[{ name = \"upload\", path = [\"up\"] }]",
        ),
        key(
            "changes",
            "list of changes",
            Means("no changes"),
            "Changes during the run.",
            "[{ at = \"30s\", leave = [\"upload\"] }]",
        ),
    ],
};

/// Keys of a link.
pub static LINK: Table = Table {
    path: "links.NAME",
    about: "One-way link: a discipline with its queue, a transmitter, and a propagation delay.",
    keys: &[
        key(
            "rate",
            "rate",
            Required,
            "Rate of the transmitter. A trace of rates replaces it from its first row on. With \
             delivery opportunities it only sets defaults of disciplines.",
            "\"10mbit\"",
        )
        .within("1bit", "100tbit"),
        key("delay", "duration", Is("0s"), "One-way propagation delay.", "\"20ms\"")
            .within("0s", "100000s"),
        key(
            "burst",
            "bytes",
            Means("none: a transmission takes its time at the rate"),
            "Size of a token bucket in place of the transmitter, as behind HTB or TBF: a packet \
             leaves at once unless the bucket is overdrawn, so that after an idle time the burst \
             and one packet more leave together.",
            "\"1514B\"",
        )
        .within("0B", "1GB"),
        key(
            "qdisc",
            "name or table",
            Is("droptail"),
            "Discipline: NAME, NAME(KEY=VALUE, ...), or a table with name and parameters. The \
             parameter limit is the buffer: packets, bytes or a time; by default 1000p for most.",
            "{ name = \"codel\", limit = \"300kB\", target = \"5ms\" }",
        ),
        key(
            "loss",
            "number or table",
            Is("0"),
            "Probability that a packet is lost in transmission, like 0.01 or \"1%\"; a table for \
             losses in bursts.",
            "\"1%\"",
        )
        .within("0", "1"),
        key(
            "trace",
            "file or table",
            Means("rate and delay are constant"),
            "Recorded rates, delays or delivery opportunities: a file, or columns.",
            "{ t_ns = [0, 2000000000], rate_bps = [10000000, 2000000] }",
        ),
    ],
};

/// Keys of losses in bursts.
pub static LOSS: Table = Table {
    path: "links.NAME.loss",
    about: "Losses in bursts (Gilbert-Elliott model, gemodel in tc-netem). The link is in a good \
            or a bad state, starts in the good one, and may change it after every packet.",
    keys: &[
        key(
            "p",
            "number",
            Required,
            "Probability of a change from good to bad after a packet.",
            "0.02",
        )
        .within("0", "1"),
        key(
            "r",
            "number",
            Means("1 - p"),
            "Probability of a change from bad to good after a packet; the bad state lasts 1/r \
             packets on average.",
            "0.25",
        )
        .within("0", "1"),
        key("1-h", "number", Is("1"), "Loss probability in the bad state.", "0.8").within("0", "1"),
        key("1-k", "number", Is("0"), "Loss probability in the good state.", "0.001")
            .within("0", "1"),
    ],
};

/// Columns of a recorded link.
pub static TRACE: Table = Table {
    path: "links.NAME.trace",
    about: "Recorded link as columns of integers: rates, delays or both, or delivery \
            opportunities alone.",
    keys: &[
        key(
            "t_ns",
            "list of integers",
            Means("required, unless opportunities_ms is given"),
            "Start of each row, in ns, ascending.",
            "[0, 2000000000]",
        ),
        key(
            "rate_bps",
            "list of integers",
            Means("the rate of the link"),
            "Rate from t_ns on, in bit/s; 0 stops the link.",
            "[10000000, 2000000]",
        ),
        key(
            "delay_ns",
            "list of integers",
            Means("the delay of the link"),
            "One-way delay from t_ns on, in ns.",
            "[20000000, 35000000]",
        ),
        key(
            "repeat",
            "duration",
            Means("the last row applies until the end"),
            "Period after which the trace repeats; longer than its last row's t_ns.",
            "\"4s\"",
        ),
        key(
            "opportunities_ms",
            "list of integers",
            Means("the link sends at its rate"),
            "Times in ms, ascending, at which the link can deliver 1504 bytes, as in mahimahi. \
             They repeat after the last one. Excludes the other keys.",
            "[1, 3, 3, 8]",
        ),
    ],
};

/// Group of flows.
pub static FLOW: Table = Table {
    path: "flows",
    about: "Group of flows with the same settings: traffic source, TCP (or UDP), links crossed.",
    keys: &[
        key(
            "name",
            "text",
            Required,
            "Name of the group: 1 to 64 letters, digits, \"_\" and \"-\".",
            "\"upload\"",
        ),
        key(
            "count",
            "integer",
            Is("1"),
            "Number of flows, 0 for none; if the source opens connections itself, number of hosts.",
            "3",
        )
        .within("0", "1000000"),
        key(
            "source",
            "name or table",
            Is("bulk"),
            "Traffic source: NAME, NAME(KEY=VALUE, ...), or a table with name and parameters.",
            "{ name = \"transfers\", size = \"100kB\", gap = \"exponential(1s)\" }",
        ),
        key(
            "tcp",
            "name or table",
            Is("cubic"),
            "TCP: NAME, NAME(KEY=VALUE, ...), or a table with name and parameters. The sources \
             cbr, onoff, trace and those in Python use UDP unless this key is given.",
            "{ name = \"reno\", ecn = true }",
        ),
        key(
            "path",
            "list of names",
            Required,
            "Links crossed by the data, in order. {i} in a name stands for the index of the flow \
             in its group, from 0.",
            "[\"up\"]",
        ),
        key(
            "return_path",
            "list of names",
            Means("no queue on the return path, only delay"),
            "Links crossed by the acknowledgements, in order.",
            "[\"down\"]",
        ),
        key(
            "rtt",
            RANDOM_DURATION,
            Means("the delays of the links crossed"),
            "Round-trip propagation time, drawn per flow if random. It is at least the sum of the \
             delays of the links crossed; the rest is a delay without a queue on the way back, \
             behind the links of return_path. So data arrive after the delays of the links on path \
             alone.",
            "\"uniform(40ms, 200ms)\"",
        ),
        key(
            "class",
            "integer",
            Is("0"),
            "Traffic class of the packets, used by disciplines that separate classes. It is the \
             DSCP for cake, pfifo_fast, fq and the priomap of prio and ets; for the others, the \
             number of a queue.",
            "2",
        )
        .within("0", "65535"),
        key(
            "dscp",
            "integer or name",
            Means("that of class"),
            "DSCP of the packets, 0 to 63, or one of the names CS0 to CS7, AF11 to AF43, EF, VA, \
             LE: another way to write class.",
            "\"EF\"",
        ),
        key(
            "ecn",
            "ect0|ect1",
            Means("packets are not ECN-capable"),
            "ECN field of the packets of a UDP source, ECT(0) or ECT(1), so that disciplines mark \
             them instead of dropping them. The source does not react to marks. TCP has the \
             parameters ecn and ect1 for it.",
            "\"ect1\"",
        ),
        key(
            "sender",
            "text",
            Means("a host of its own for each flow"),
            "Host that sends the data, for disciplines that share a link among hosts. {i} stands \
             for the index of the flow in its group, from 0.",
            "\"server\"",
        ),
        key(
            "receiver",
            "text",
            Means("a host of its own for each flow"),
            "Host that receives the data, like sender.",
            "\"laptop-{i}\"",
        ),
    ],
};

/// Change during the run.
pub static CHANGE: Table = Table {
    path: "changes",
    about: "Change at a point in time, applied before all other events of that time. At least one \
            of join, leave and links is required.",
    keys: &[
        key(
            "at",
            "duration",
            Required,
            "Time of the change, before the end of the run.",
            "\"30s\"",
        ),
        key(
            "join",
            "list of names",
            Means("none"),
            "Groups of flows that start at this time; start and stop of their source are relative \
             to it.",
            "[\"upload\"]",
        ),
        key(
            "leave",
            "list of names",
            Means("none"),
            "Groups of flows that stop at this time, even in the middle of a transfer.",
            "[\"upload\"]",
        ),
        key(
            "links",
            "table of links",
            Means("none"),
            "New settings of links, by name.",
            "{ up = { rate = \"5mbit\" } }",
        ),
    ],
};

/// New properties of a link in a change.
pub static LINK_CHANGE: Table = Table {
    path: "changes.links.NAME",
    about: "New settings of a link, for transmissions that start from that time on.",
    keys: &[
        key("rate", "rate", Means("unchanged"), "New rate; 0bit stops the link.", "\"0bit\"")
            .within("0bit", "100tbit"),
        key("delay", "duration", Means("unchanged"), "New one-way delay.", "\"40ms\"")
            .within("0s", "100000s"),
        key(
            "qdisc",
            "table of parameters",
            Means("unchanged"),
            "New parameters of the discipline, which keeps its packets and its state: codel, pie, \
             red, pi, droptail, and fq_codel, fq_pie, fq_red.",
            "{ limit = \"50p\" }",
        ),
    ],
};

/// All tables of a scenario, outermost first.
pub static TABLES: [&Table; 7] = [&SCENARIO, &LINK, &LOSS, &TRACE, &FLOW, &CHANGE, &LINK_CHANGE];

/// Kind of value and its notation.
#[derive(Debug)]
pub struct Kind {
    /// Name, as used in [`Key::kind`] and in parameter tables.
    pub name: &'static str,
    /// Notation.
    pub about: &'static str,
    /// Example values in TOML.
    pub examples: &'static [&'static str],
}

/// All kinds of values.
pub static KINDS: [Kind; 9] = [
    Kind {
        name: "duration",
        about: "a number with ns, us, ms, s, min or h, in quotes",
        examples: &["\"5ms\"", "\"300us\"", "\"1.5s\"", "\"2min\""],
    },
    Kind {
        name: "rate",
        about: "a number with bit, kbit, mbit, gbit or tbit (per second), or with B/s, kB/s, ...; \
                1 kbit is 1000 bit. mbps is refused, because tc means bytes by it and others bits",
        examples: &["\"10mbit\"", "\"2.5gbit\"", "\"10Mbit/s\"", "\"1.25MB/s\""],
    },
    Kind {
        name: "bytes",
        about: "a number with B, kB (1000 B), MB, GB, or KiB (1024 B), MiB, GiB",
        examples: &["\"1500B\"", "\"300kB\"", "\"64KiB\""],
    },
    Kind { name: "size", about: "bytes, or packets", examples: &["\"300kB\"", "\"100p\""] },
    Kind { name: "number", about: "a number without a unit", examples: &["0.02", "1e-6"] },
    Kind { name: "integer", about: "a whole number from 0", examples: &["3"] },
    Kind { name: "flag", about: "true or false", examples: &["true", "false"] },
    Kind {
        name: "auto",
        about: "where the kind allows it: the value follows from other settings, see the text",
        examples: &["\"auto\""],
    },
    Kind {
        name: "distribution",
        about: "where the kind allows it, a random duration, size in bytes or integer: uniform \
                between two values, exponential or (heavy-tailed) pareto or lomax with a mean, \
                or the points of a cumulative distribution; web_search and data_mining are flow \
                sizes measured in data centres",
        examples: &[
            "\"uniform(40ms, 200ms)\"",
            "\"exponential(1s)\"",
            "\"pareto(mean=10kB, shape=1.2)\"",
            "\"lomax(mean=10kB, shape=1.2)\"",
            "\"cdf(0B 0, 10kB 0.5, 1MB 1)\"",
            "\"web_search\"",
        ],
    },
];

#[cfg(test)]
mod tests;
