//! Packets of links while a simulation runs, for pictures of queues. Looking changes no result.

use super::Simulation;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::units::Time;
use sojourn_aqm::{LogEntry, Packet};

impl Simulation {
    /// Starts to log the packets of all links for [`Simulation::take_packets`].
    ///
    /// # Errors
    /// If the scenario has `packet_log`: the rows are part of its result.
    pub fn watch_packets(&mut self) -> Result<()> {
        if self.scenario.packet_log() {
            return Err(Error::new("the rows belong to the result").at("packet_log"));
        }
        self.links.iter_mut().for_each(sojourn_aqm::Link::enable_packet_log);
        Ok(())
    }

    /// Removes and returns the packets that left the queue of the link called `link` since the last
    /// call, dropped packets included. Each has the index of its group of flows. There are none
    /// without [`Simulation::watch_packets`].
    ///
    /// # Errors
    /// An unknown name.
    pub fn take_packets(&mut self, link: &str) -> Result<Vec<(usize, LogEntry)>> {
        let l = self.link_to_look_at(link)?;
        let rows =
            if self.scenario.packet_log() { Vec::new() } else { self.links[l].take_packet_log() };
        Ok(rows.into_iter().map(|row| (self.group_of(&row.packet), row)).collect())
    }

    /// Packets in the queue of the link called `link`, in the order in which they would leave it
    /// (see [`sojourn_aqm::Link::queued`]). Each has the index of its group of flows.
    ///
    /// # Errors
    /// An unknown name.
    pub fn queued(&mut self, link: &str) -> Result<Vec<(usize, Packet)>> {
        let l = self.link_to_look_at(link)?;
        let packets = self.links[l].queued();
        Ok(packets.into_iter().map(|packet| (self.group_of(&packet), packet)).collect())
    }

    /// Index of the link called `name`, after everything that happened before now.
    fn link_to_look_at(&mut self, name: &str) -> Result<usize> {
        let l = self.link_index(name)?;
        let before = Time(self.now.0.saturating_sub(1));
        let link = &mut self.links[l];
        link.advance(before.max(link.now()));
        Ok(l)
    }

    fn group_of(&self, packet: &Packet) -> usize {
        self.flows[packet.flow as usize].group as usize
    }
}
