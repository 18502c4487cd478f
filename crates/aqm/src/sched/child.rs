//! Disciplines inside a discipline: the parameter that names them, and the queue of a class.

use crate::build::Env;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::find_discipline;
use crate::flow_header::FlowHeader;
use crate::link::Served;
use crate::packet::Packet;
use crate::params::{ParamRow, Setting, Value, call_text, parse_call};
use crate::qdisc::{Backlog, Peek, Qdisc};
use crate::snapshot::{Reader, Snapshot, Writer};
use crate::units::{Rate, Time};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// Largest depth of the brackets in the text of a discipline: of each discipline inside another
/// one, and of lists.
const DEPTH: usize = 32;

/// Discipline of a class: an entry of the registry, and the parameters that differ from its
/// defaults. Its text form is `fq_codel` or `fq_codel(limit=100p)`.
#[derive(Clone, Debug)]
pub struct Child {
    entry: &'static QdiscEntry,
    /// By canonical name, in the order of the table.
    settings: Vec<(&'static str, String)>,
}

impl PartialEq for Child {
    fn eq(&self, other: &Child) -> bool {
        self.entry.name == other.entry.name && self.settings == other.settings
    }
}

impl Child {
    /// Creates the discipline `name` of the registry with `settings`.
    ///
    /// # Errors
    /// An unknown name or parameter, or an invalid value.
    pub fn new(name: &str, settings: &[(&str, Setting<'_>)]) -> Result<Child> {
        let entry = find_discipline(name)?;
        let differs = |(row, default): (ParamRow, ParamRow)| {
            (row.value != default.value).then_some((row.name, row.value))
        };
        let rows = entry.table(settings)?.into_iter().zip(entry.table(&[])?);
        Ok(Child { entry, settings: rows.filter_map(differs).collect() })
    }

    /// Canonical name.
    pub fn name(&self) -> &'static str {
        self.entry.name
    }

    /// All parameters with their values.
    ///
    /// # Errors
    /// An invalid value, which [`Child::new`] refuses before.
    pub fn rows(&self) -> Result<Vec<ParamRow>> {
        let settings: Vec<_> =
            self.settings.iter().map(|(name, value)| (*name, Setting::Text(value))).collect();
        self.entry.table(&settings)
    }

    /// Builds the discipline.
    ///
    /// # Errors
    /// Parameters that contradict each other or the link.
    fn build(&self, env: &Env) -> Result<Leaf> {
        let settings: Vec<_> =
            self.settings.iter().map(|(name, value)| (*name, Setting::Text(value))).collect();
        Ok(Leaf { qdisc: self.entry.build(&settings, env)?.qdisc, kept: None })
    }
}

impl Value for Child {
    type End = Self;

    fn kind() -> String {
        "discipline".to_string()
    }

    fn read(setting: Setting<'_>) -> Result<Self> {
        let Setting::Text(text) = setting else {
            let text = format!("{setting} is no discipline; one is written like \"fq_codel\"");
            return Err(Error::new(text));
        };
        let mut depth = 0usize;
        for byte in text.bytes() {
            depth += usize::from(matches!(byte, b'(' | b'['));
            depth -= usize::from(matches!(byte, b')' | b']') && depth > 0);
            if depth > DEPTH {
                return Err(Error::new(format!("has brackets that are more than {DEPTH} deep")));
            }
        }
        let (name, settings) = parse_call(text)?;
        let settings: Vec<_> =
            settings.iter().map(|(key, value)| (*key, Setting::Text(value))).collect();
        Child::new(name, &settings)
    }

    fn write(&self) -> String {
        call_text(self.entry.name, self.settings.iter().map(|(k, v)| (*k, v.as_str())))
    }

    fn is_within(&self, _: &Self::End, _: &Self::End) -> bool {
        true
    }
}

// As text: an entry of the registry has no bytes.
impl Snapshot for Child {
    fn layout() -> u64 {
        String::layout()
    }

    fn layout_of(&self) -> u64 {
        String::layout()
    }

    fn save_to(&self, out: &mut Writer) -> Result<()> {
        out.text(&self.write());
        Ok(())
    }

    fn load_from(&mut self, input: &mut Reader<'_>) -> Result<()> {
        *self = Child::create_from(input)?;
        Ok(())
    }

    fn create_from(input: &mut Reader<'_>) -> Result<Child> {
        Child::read(Setting::Text(input.text()?))
    }
}

/// Discipline of class `i`, where the last of `children` applies to all further classes.
pub(crate) fn child_of(children: &[Child], i: usize) -> Option<&Child> {
    children.get(i).or(children.last())
}

/// Builder of the queues of classes. Classes of the same rate and discipline have copies of one.
pub(crate) struct Leaves<'a> {
    children: &'a [Child],
    env: Env,
    last: Option<(usize, Rate, Leaf)>,
}

impl<'a> Leaves<'a> {
    /// Creates a builder; the last one of `children` applies to all further classes.
    pub fn new(children: &'a [Child], env: &Env) -> Leaves<'a> {
        Leaves { children, env: *env, last: None }
    }

    /// Builds the discipline of class `i`, whose rate is `rate`; None if classes have FIFO queues.
    ///
    /// # Errors
    /// Parameters of the discipline that contradict each other or the rate.
    pub fn build(&mut self, i: usize, rate: Rate) -> Result<Option<Leaf>> {
        let Some(last) = self.children.len().checked_sub(1) else { return Ok(None) };
        let i = i.min(last);
        if let Some((built, of, leaf)) = &self.last
            && (*built, *of) == (i, rate)
        {
            return Ok(Some(leaf.clone()));
        }
        let env = Env { rate, ..self.env };
        let leaf = self.children[i].build(&env).map_err(|e| e.at(i).at("children"))?;
        Ok(Some(self.last.insert((i, rate, leaf)).2.clone()))
    }
}

/// Queue of a class that has a discipline. The length of its next packet can be read before it is
/// sent. If the discipline decides at dequeue, the packet is then dequeued and kept, as in Linux;
/// it counts as queued until it is sent.
#[derive(Clone, Snapshot)]
pub(crate) struct Leaf {
    qdisc: Box<dyn Served + Send>,
    kept: Option<Packet>,
}

impl fmt::Debug for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Leaf { qdisc, kept } = self;
        let backlog = qdisc.backlog();
        f.debug_struct("Leaf").field("backlog", &backlog).field("kept", kept).finish()
    }
}

impl Leaf {
    /// Number of packets and bytes that were dequeued in advance.
    #[inline]
    fn ahead(&self) -> Backlog {
        let packet = |packet: Packet| Backlog { packets: 1, bytes: packet.len.into() };
        self.kept.map_or(Backlog::default(), packet)
    }

    /// Number of packets and bytes.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.qdisc.backlog() + self.ahead()
    }

    /// Enqueues or drops `packet`, and may drop others.
    pub fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        match self.ahead() {
            Backlog { packets: 0, .. } => self.qdisc.enqueue(context, packet),
            ahead => self.qdisc.enqueue_behind(context, packet, ahead),
        }
    }

    /// Length of the packet that is sent next; None if there is none now.
    pub fn peek(&mut self, context: &mut Context<'_>) -> Option<u32> {
        if self.kept.is_none() {
            match self.qdisc.peek(context) {
                Peek::Packet(len) => return Some(len),
                Peek::Nothing => return None,
                Peek::Undecided => self.kept = self.qdisc.dequeue(context),
            }
        }
        self.kept.map(|packet| packet.len)
    }

    /// Dequeues the next packet.
    pub fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        self.kept.take().or_else(|| self.qdisc.dequeue(context))
    }

    /// First time after `now` at which a packet may be sent, if it holds packets and did not send
    /// one at `now`.
    pub fn ready_after(&self, now: Time) -> Option<Time> {
        let held = self.qdisc.backlog().packets > 0;
        // A discipline that names no later time is asked again after the shortest time.
        held.then(|| self.qdisc.ready_at().unwrap_or(now).max(Time(now.0.saturating_add(1))))
    }

    /// True if it may change the class of a packet, see [`Qdisc::changes_class`].
    pub fn changes_class(&self) -> bool {
        self.qdisc.changes_class()
    }

    /// True if it reads headers of flows, see [`Qdisc::reads_headers`].
    pub fn reads_headers(&self) -> bool {
        self.qdisc.reads_headers()
    }

    /// States the header fields of a flow, see [`Qdisc::describe_flow`].
    pub fn describe_flow(&mut self, flow: u32, header: &FlowHeader) {
        self.qdisc.describe_flow(flow, header);
    }

    /// Takes the parameters of `fresh`, see [`Qdisc::reconfigure`].
    pub fn reconfigure(&mut self, fresh: Leaf) -> bool {
        let qdisc: &mut dyn Qdisc = &mut *self.qdisc;
        qdisc.reconfigure(fresh.qdisc)
    }

    /// Size of the state in bytes, without packets.
    pub fn state_bytes(&self) -> usize {
        self.qdisc.state_bytes()
    }
}
