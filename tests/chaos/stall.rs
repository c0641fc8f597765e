//! What is slow during a freeze, besides the frozen process.

use clap::ValueEnum;
use kube_leader_gate::LeaseTiming;
use std::{fmt, time::Duration};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stall {
    /// Nothing.
    None,
    /// The line holds what the leader has sent, and delivers it at a random instant around the takeover.
    Line,
    /// An admission webhook holds the leader's writes in the server, until after the takeover.
    Server,
    /// The line delivers before the takeover, and the webhook then holds for less than the renew deadline.
    LineThenServer,
}

impl Stall {
    pub const fn is_on_line(self) -> bool {
        matches!(self, Self::Line | Self::LineThenServer)
    }

    pub const fn is_in_server(self) -> bool {
        matches!(self, Self::Server | Self::LineThenServer)
    }

    /// How long the webhook holds a write.
    pub fn holds(self, timing: LeaseTiming) -> Duration {
        match self {
            Self::None | Self::Line => Duration::ZERO,
            Self::Server => timing.lease_duration() + Duration::from_millis(500),
            Self::LineThenServer => {
                timing.renew_deadline().saturating_sub(timing.retry_period()).mul_f64(0.9)
            }
        }
    }

    /// When the line delivers, after the freeze. The holder's last renewal was at most one retry period before it.
    pub fn arrives(self, timing: LeaseTiming, chance: f64) -> Duration {
        let earliest = timing.lease_duration().saturating_sub(timing.retry_period());
        match self {
            Self::LineThenServer => {
                timing.safety_margin() + earliest.saturating_sub(timing.safety_margin()).mul_f64(chance)
            }
            _ => earliest + (timing.retry_period() * 2).mul_f64(chance),
        }
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value();
        f.pad(name.as_ref().map_or("", |it| it.get_name()))
    }
}
