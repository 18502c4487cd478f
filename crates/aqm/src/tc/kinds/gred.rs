//! GRED: a command that sets it up, and one for each virtual queue.

use super::super::table::Ours::Computed;
use super::super::table::{Arg, Becomes, Change, Kind, Line, Params, Rules, Unit, Word};
use super::super::units::size;
use super::red::{self, most_log, set_burst};
use crate::error::{Error, Result};
use crate::params::{Setting, Value, nth};
use crate::sorting::sort_by_key;
use crate::units::{Bytes, Rate};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

const fn flag(name: &'static str, words: &'static [(&'static str, &'static str)]) -> Word {
    Word::new(name, Unit::Choice(words), "", Computed)
}

/// `gred`: RED with a virtual queue per drop precedence.
pub static GRED: Kind = Kind {
    name: "gred",
    becomes: Becomes::Discipline("gred"),
    words: &[
        flag("setup", &[("", ""), ("setup", "")]),
        Word::new("vqs", Unit::Integer, "", Computed).also(&["DPs", "VQs"]).within(1, 16),
        Word::new("default", Unit::Integer, "", Computed).within(0, 15),
        flag("grio", &[("", ""), ("grio", "")]),
        Word::new("vq", Unit::Integer, "", Computed).also(&["DP", "VQ"]).within(0, 15),
        Word::new("prio", Unit::Integer, "", Computed),
        Word::new("limit", Unit::Bytes, "1514000", Computed),
        Word::new("min", Unit::Bytes, "", Computed),
        Word::new("max", Unit::Bytes, "", Computed),
        Word::new("avpkt", Unit::Bytes, "", Computed).within(1, 65_535),
        Word::new("burst", Unit::Integer, "", Computed),
        Word::new("ewma", Unit::Integer, "", Computed).within(1, 31).output_only(),
        Word::new("probability", Unit::Probability, "0.02", Computed),
        Word::new("Scell_log", Unit::Integer, "", Computed).output_only(),
        Word::new("bandwidth", Unit::Rate, "10mbit", Computed),
        flag("ecn", &[("", ""), ("ecn", "")]),
        flag("harddrop", &[("", ""), ("harddrop", "")]),
        // The virtual queues that commands have configured.
        Word::new("queues", Unit::Several(&[Unit::Integer]), "", Computed).output_only(),
    ],
    fixed: &[],
    rules: Rules {
        parameters: &[
            "vqs",
            "default",
            "grio",
            "prio",
            "limits",
            "min_th",
            "max_th",
            "max_p",
            "w_q",
            "packet",
            "bandwidth",
            "ecn",
            "hard_drop",
            "unassigned_limit",
        ],
        check,
        complete,
        settings,
        words,
        merge,
        shown,
        change: Change::Named(&[], &[]),
        ..Rules::NONE
    },
    differs: "each virtual queue has a command of its own, tc qdisc change ... gred vq N; Linux \
              takes the drop precedence from tc_index, which filters of clsact set, here it is the \
              class of the flow",
};

/// Priority of a virtual queue for which no command states one.
const PRIO: u64 = 8;

/// Words that configure the qdisc.
const OF_SETUP: [&str; 3] = ["vqs", "default", "grio"];
/// Words that configure a virtual queue.
const OF_QUEUE: [&str; 8] =
    ["vq", "prio", "min", "max", "avpkt", "burst", "probability", "bandwidth"];

/// Virtual queue as commands configure it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct VirtualQueue {
    dp: u64,
    prio: u64,
    /// Limit and thresholds in bytes.
    limit: u64,
    min: u64,
    max: u64,
    /// Weight of the average as a negative power of two.
    ewma: u64,
    probability: f64,
    flags: [bool; 2],
    avpkt: u64,
    bandwidth: u64,
}

impl VirtualQueue {
    fn arg(&self) -> Arg {
        let [ecn, hard_drop] = self.flags.map(|on| Arg::Whole(on.into()));
        let VirtualQueue { dp, prio, limit, min, max, ewma, probability, .. } = *self;
        let [dp, prio, limit, min, max, ewma] = [dp, prio, limit, min, max, ewma].map(Arg::Whole);
        let [avpkt, bandwidth] = [self.avpkt, self.bandwidth].map(Arg::Whole);
        let probability = Arg::Number(probability);
        Arg::Several(
            [dp, prio, limit, min, max, ewma, probability, ecn, hard_drop, avpkt, bandwidth].into(),
        )
    }

    fn of_arg(arg: &Arg) -> Option<VirtualQueue> {
        let Arg::Several(parts) = arg else { return None };
        let whole = |i: usize| match parts.get(i) {
            Some(Arg::Whole(n)) => *n,
            _ => 0,
        };
        Some(VirtualQueue {
            dp: whole(0),
            prio: whole(1),
            limit: whole(2),
            min: whole(3),
            max: whole(4),
            ewma: whole(5),
            probability: if let Some(Arg::Number(x)) = parts.get(6) { *x } else { 0.0 },
            flags: [whole(7) > 0, whole(8) > 0],
            avpkt: whole(9),
            bandwidth: whole(10),
        })
    }

    /// Virtual queue of the words of its command.
    fn of_command(line: &Line) -> Result<VirtualQueue> {
        let [limit, min, max] = ["limit", "min", "max"].map(|name| line.whole(name));
        let avpkt = Some(line.whole("avpkt")).filter(|n| *n > 0).unwrap_or(1000);
        let probability = line.number("probability");
        let delta = max.checked_sub(min);
        let delta =
            delta.ok_or_else(|| Error::new(format!("{max} is below min, {min}")).at("max"))?;
        if delta > 0 && probability <= least_probability(delta) {
            let text = format!("{probability} is too small for min {min} and max {max}");
            return Err(Error::new(text).at("probability"));
        }
        let ewma = if line.given("ewma").is_some() {
            line.whole("ewma")
        } else {
            let burst = Some(line.whole("burst")).filter(|burst| *burst > 0);
            let burst = burst.unwrap_or((2 * min + max) / (3 * avpkt));
            red::weight(min, avpkt, burst)?
        };
        if ewma > most_log(max) {
            let text = format!("{max} is too large for the kernel's 32 bits");
            let text = format!("{text} with a weight of 2^-{ewma}; make burst smaller");
            return Err(Error::new(text).at("max"));
        }
        let (dp, flags, bandwidth) = (line.whole("vq"), flags(line), line.whole("bandwidth"));
        // The kernel has 8 bits for it.
        let prio = line.whole("prio") & 0xff;
        Ok(VirtualQueue { dp, prio, limit, min, max, ewma, probability, flags, avpkt, bandwidth })
    }

    /// Words of the command that configures it.
    pub(in super::super) fn command(&self, grio: bool) -> Line {
        let mut line = Line::new(&GRED);
        line.set("vq", Arg::Whole(self.dp));
        if grio {
            line.set("prio", Arg::Whole(self.prio));
        }
        for (word, value) in [
            ("limit", self.limit),
            ("min", self.min),
            ("max", self.max),
            ("avpkt", self.avpkt),
            ("bandwidth", self.bandwidth),
        ] {
            line.set(word, Arg::Whole(value));
        }
        line.set("probability", Arg::Number(self.probability));
        set_flags(&mut line, self.flags);
        let _ = set_burst(&mut line, self.min as f64 / self.avpkt as f64, weight(self.ewma));
        line
    }

    fn shown(&self) -> String {
        let [limit, min, max] = [self.limit, self.min, self.max].map(size);
        let VirtualQueue { dp, prio, flags, .. } = self;
        let flags = flag_words(*flags);
        format!("\n vq {dp} prio {prio} limit {limit} min {min} max {max}{flags}")
    }

    fn shown_json(&self) -> String {
        let VirtualQueue { dp, prio, limit, min, max, flags: [ecn, hard], .. } = self;
        format!(
            "{{\"vq\":{dp},\"prio\":{prio},\"limit\":{limit},\"min\":{min},\"max\":{max},\
             \"ecn\":{ecn},\"harddrop\":{hard}}}"
        )
    }
}

/// Largest probability that tc cannot send for thresholds that differ by `delta` bytes.
fn least_probability(delta: u64) -> f64 {
    delta as f64 / f64::from(1u32 << 31)
}

fn weight(ewma: u64) -> f64 {
    1.0 / (1u64 << ewma.min(63)) as f64
}

/// Flags `ecn` and `harddrop` of a command.
fn flags(line: &Line) -> [bool; 2] {
    ["ecn", "harddrop"].map(|name| line.says(name, name))
}

fn set_flags(line: &mut Line, flags: [bool; 2]) {
    for (name, on) in ["ecn", "harddrop"].into_iter().zip(flags) {
        line.set(name, Arg::Word(if on { name } else { "" }));
    }
}

fn flag_words([ecn, hard_drop]: [bool; 2]) -> String {
    format!("{}{}", if ecn { " ecn" } else { "" }, if hard_drop { " harddrop" } else { "" })
}

/// Virtual queues that commands have configured, in the order of their drop precedences.
pub(in super::super) fn queues(line: &Line) -> Vec<VirtualQueue> {
    match line.given("queues") {
        Some(Arg::Several(list)) => list.iter().filter_map(VirtualQueue::of_arg).collect(),
        _ => Vec::new(),
    }
}

fn set_queues(line: &mut Line, mut queues: Vec<VirtualQueue>) {
    sort_by_key(&mut queues, |queue| queue.dp);
    line.set("queues", Arg::Several(queues.iter().map(VirtualQueue::arg).collect()));
}

/// True for a command that sets up the qdisc, not a virtual queue.
pub(in super::super) fn is_setup(line: &Line) -> bool {
    line.kind.name == "gred" && line.says("setup", "setup")
}

/// Checks that a command has the words that tc needs, and no word of the other kind of command.
fn check(line: &Line) -> Result<()> {
    let other = |words: &[&'static str]| {
        words.iter().find(|word| line.given(word).is_some_and(|arg| *arg != Arg::Word(""))).copied()
    };
    if is_setup(line) {
        if let Some(word) = other(&OF_QUEUE) {
            let text = "is a word of a virtual queue: write it into a command of its own, like tc \
                        qdisc change ... gred vq 0 limit 60k min 15k max 45k avpkt 1000";
            return Err(Error::new(text).at(word));
        }
        line.require("vqs", "vqs 3")?;
        line.require("default", "default 0")?;
        let [vqs, default] = ["vqs", "default"].map(|name| line.whole(name));
        if default >= vqs {
            let text = format!("{default} is no virtual queue: vqs {vqs} has 0 to {}", vqs - 1);
            return Err(Error::new(text).at("default"));
        }
        return Ok(());
    }
    if let Some(word) = other(&OF_SETUP) {
        return Err(Error::new("follows setup: write gred setup vqs 3 default 0").at(word));
    }
    for (word, example) in
        [("vq", "vq 0"), ("limit", "limit 60k"), ("min", "min 15k"), ("max", "max 45k")]
    {
        let arg = line.given(word).filter(|arg| word == "vq" || **arg != Arg::Whole(0));
        if arg.is_none() {
            let text = format!("is required, like {example}; the first command is gred setup");
            return Err(Error::new(text).at(word));
        }
    }
    line.require("avpkt", "avpkt 1000")?;
    VirtualQueue::of_command(line).map(|_| ())
}

fn complete(line: &mut Line) -> Result<()> {
    if is_setup(line) {
        return Ok(());
    }
    let text = "the first command is gred setup vqs N default N; vq is for tc qdisc change";
    Err(Error::new(text).at("vq"))
}

/// Changes the setup, or one virtual queue.
fn merge(old: &Line, new: Line) -> Result<Line> {
    let mut line = Line::new(&GRED);
    let mut all = queues(old);
    let (before, after) = (flags(old), flags(&new));
    if is_setup(&new) {
        for word in ["setup", "vqs", "default", "limit"] {
            if let Some(arg) = new.given(word) {
                line.set(word, arg.clone());
            }
        }
        line.set("grio", Arg::Word(if new.says("grio", "grio") { "grio" } else { "" }));
        let own = before == [false; 2] && all.iter().any(|queue| queue.flags != [false; 2]);
        if own && after != [false; 2] {
            let text = "virtual queues have flags of their own, which exclude flags of all";
            return Err(Error::new(text).at("setup"));
        }
        set_flags(&mut line, after);
        all.retain(|queue| queue.dp < new.whole("vqs"));
        if before != after {
            all.iter_mut().for_each(|queue| queue.flags = after);
        }
    } else {
        let mut queue = VirtualQueue::of_command(&new)?;
        let vqs = old.whole("vqs");
        if queue.dp >= vqs {
            let text = format!("{} is no virtual queue: vqs {vqs} has 0 to {}", queue.dp, vqs - 1);
            return Err(Error::new(text).at("vq"));
        }
        if before != [false; 2] && after != before {
            let flags = flag_words(before);
            let text = format!("all virtual queues have{flags} by setup: write the same here");
            return Err(Error::new(text).at("vq"));
        }
        queue.limit = queue.limit.min(old.whole("limit"));
        let grio = old.says("grio", "grio");
        if !grio || queue.prio == 0 {
            let default = all.iter().find(|other| other.dp == old.whole("default"));
            queue.prio = default.filter(|_| grio).map_or(PRIO, |default| default.prio);
        }
        all.retain(|other| other.dp != queue.dp);
        all.push(queue);
    }
    set_queues(&mut line, all);
    Ok(line)
}

/// The output has no word `setup`.
fn shown(words: &[&str]) -> Vec<String> {
    let setup = words.first().is_some_and(|word| *word == "vqs").then_some("setup");
    setup.into_iter().chain(words.iter().copied()).map(str::to_string).collect()
}

/// Adds a virtual queue from a line of output.
///
/// # Errors
/// Words that the output does not have.
pub(in super::super) fn add_shown(line: &mut Line, shown: &Line) -> Result<()> {
    let queue = VirtualQueue::of_command(shown).map_err(|e| e.at("gred"))?;
    let mut all = queues(line);
    all.retain(|other| other.dp != queue.dp);
    all.push(queue);
    set_queues(line, all);
    Ok(())
}

/// Text of `tc qdisc show` for the words of `line`.
pub(in super::super) fn text(line: &Line) -> String {
    let [vqs, default] = ["vqs", "default"].map(|name| line.whole(name));
    let grio = if line.says("grio", "grio") { " grio" } else { "" };
    let limit = size(line.whole("limit"));
    let flags = flag_words(flags(line));
    let queues = queues(line).iter().map(VirtualQueue::shown).collect::<String>();
    format!("vqs {vqs} default {default}{grio} limit {limit}{flags}{queues}")
}

/// Object `options` of `tc -j qdisc show`.
pub(in super::super) fn json(line: &Line) -> String {
    let [vqs, default, limit] = ["vqs", "default", "limit"].map(|name| line.whole(name));
    let (grio, [ecn, hard]) = (line.says("grio", "grio"), flags(line));
    let queues = queues(line).iter().map(VirtualQueue::shown_json).collect::<Vec<_>>().join(",");
    format!(
        "{{\"dp_cnt\":{vqs},\"dp_default\":{default},\"grio\":{grio},\"limit\":{limit},\
         \"ecn\":{ecn},\"harddrop\":{hard},\"vqs\":[{queues}]}}"
    )
}

fn settings(line: &Line) -> Vec<(&'static str, String)> {
    let queues = queues(line);
    let list = |value: &dyn Fn(&VirtualQueue) -> String| {
        let values: Vec<String> = queues.iter().map(value).collect();
        super::super::parameters::trimmed(values).join(" ")
    };
    let grio = line.says("grio", "grio");
    let mut settings = Vec::from([
        ("vqs", queues.iter().map(|q| q.dp.to_string()).collect::<Vec<_>>().join(" ")),
        ("default", line.whole("default").to_string()),
        ("grio", grio.to_string()),
        ("unassigned_limit", Bytes(line.whole("limit")).to_string()),
    ]);
    if queues.is_empty() {
        return settings;
    }
    settings.extend([
        ("limits", list(&|q| Bytes(q.limit).to_string())),
        ("min_th", list(&|q| Bytes(q.min).to_string())),
        ("max_th", list(&|q| Bytes(q.max).to_string())),
        ("max_p", list(&|q| q.probability.to_string())),
        ("w_q", list(&|q| weight(q.ewma).to_string())),
        ("packet", list(&|q| Bytes(q.avpkt).to_string())),
        ("bandwidth", list(&|q| Rate(q.bandwidth).to_string())),
        ("ecn", list(&|q| q.flags[0].to_string())),
        ("hard_drop", list(&|q| q.flags[1].to_string())),
    ]);
    if grio {
        settings.push(("prio", list(&|q| q.prio.to_string())));
    }
    settings
}

/// Entry `i` of a list of a parameter, the last one applying to all further ones.
fn entry<T: Value + Copy>(params: &Params<'_>, name: &str, i: usize) -> Option<T> {
    let list = Vec::<T>::read(Setting::Text(params.text(name))).unwrap_or_default();
    nth(&list, i)
}

fn words(params: &Params<'_>, line: &mut Line) -> Vec<String> {
    let mut lost = Vec::new();
    let dps: Vec<u64> = params.text("vqs").split(' ').filter_map(|dp| dp.parse().ok()).collect();
    let default: u64 = params.text("default").parse().unwrap_or(0);
    let vqs = dps.iter().copied().max().unwrap_or(0).max(default) + 1;
    let grio = params.text("grio") == "true";
    let bytes = |name: &str, i: usize| entry::<Bytes>(params, name, i).unwrap_or_default().0;
    let mut all = Vec::new();
    for (i, dp) in dps.iter().enumerate() {
        let avpkt = bytes("packet", i).clamp(1, 65_535);
        let (min, max) = (bytes("min_th", i), bytes("max_th", i));
        let wanted: f64 = entry(params, "w_q", i).unwrap_or(1.0);
        let max_p: f64 = entry(params, "max_p", i).unwrap_or_default();
        let probability = max_p.max(2.0 * least_probability(max.saturating_sub(min)));
        if probability != max_p {
            lost.push(format!("max_p = {max_p}: the nearest value of tc is {probability}"));
        }
        if min == 0 {
            lost.push("min_th = 0B: the nearest value of tc is 1".to_string());
        }
        let bandwidth = entry::<Rate>(params, "bandwidth", i).or(params.rate);
        let mut queue = VirtualQueue {
            dp: *dp,
            prio: entry(params, "prio", i).unwrap_or(PRIO),
            limit: bytes("limits", i),
            min: min.max(1),
            max,
            ewma: 1,
            probability,
            flags: ["ecn", "hard_drop"].map(|name| entry(params, name, i).unwrap_or(false)),
            avpkt,
            bandwidth: bandwidth.unwrap_or(Rate(10_000_000)).0 / 8 * 8,
        };
        let mut command = queue.command(grio);
        lost.extend(set_burst(&mut command, queue.min as f64 / avpkt as f64, wanted));
        queue.ewma = command.whole("ewma");
        all.push(queue);
    }
    let limit = bytes("unassigned_limit", 0);
    let most = all.iter().map(|queue| queue.limit).max().unwrap_or(0).max(limit);
    if most != limit {
        let text = format!("unassigned_limit = {}: Linux has no virtual queue", Bytes(limit));
        lost.push(format!("{text} with a larger limit, taken as {}", Bytes(most)));
    }
    line.set("setup", Arg::Word("setup"));
    line.set("vqs", Arg::Whole(vqs));
    line.set("default", Arg::Whole(default));
    line.set("grio", Arg::Word(if grio { "grio" } else { "" }));
    line.set("limit", Arg::Whole(most));
    set_queues(line, all);
    lost
}
