//! The state of devices after a script of tc, and the answer to each command.

use super::device::Device;
use super::place::Site;
use super::script::Statement;
use crate::error::Result;
use alloc::string::String;
use alloc::vec::Vec;

/// Command of a script, and the answer to it.
#[derive(Clone, Debug)]
pub struct Executed {
    /// Number of the line.
    pub line: usize,
    /// Words.
    pub text: String,
    /// Error if the command is refused.
    pub result: Result<()>,
    /// True if the script goes on as if it were accepted: a deletion of nothing, or a command
    /// before `||`.
    pub forgiven: bool,
}

/// State after a script.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Commands for queues, in the order of their execution.
    pub commands: Vec<Executed>,
    /// Devices in the order in which they are first named.
    pub devices: Vec<Device>,
    /// Lines without an effect that belong to no device.
    pub lost: Vec<String>,
}

impl State {
    /// Records a command; returns true if it was accepted.
    pub(super) fn note(
        &mut self,
        statement: &Statement,
        result: Result<()>,
        forgiven: bool,
    ) -> bool {
        let accepted = result.is_ok();
        let (line, text) = (statement.line, statement.text());
        self.commands.push(Executed { line, text, result, forgiven });
        accepted
    }

    /// Device at `site`, created if it is new.
    pub(super) fn device(&mut self, site: &Site) -> &mut Device {
        let at = self.devices.iter().position(|device| device.site == *site);
        let index = at.unwrap_or_else(|| {
            self.devices.push(Device { site: site.clone(), ..Device::default() });
            self.devices.len() - 1
        });
        &mut self.devices[index]
    }
}
