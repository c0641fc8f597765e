//! What the gates of all processes may be at one moment.

use crate::{
    gateway::identity,
    net::Shared,
    replica::{Replica, lease_name},
    work,
};
use kube_leader_gate::testing::ApiServer;

/// At no moment two processes lead by the same lease. No gate is open in a process that sees another holder, or again in
/// a term in which it has closed (rule S4).
pub fn look<'a>(net: &Shared, lease: usize, replicas: impl Iterator<Item = (usize, &'a mut Replica)>) {
    let mut leaders = vec![];
    for (number, replica) in replicas {
        let (leadership, closed) = (&replica.leaderships[lease], &mut replica.closed[lease]);
        leaders.extend(leadership.is_leader().then_some(number));
        let (state, can_write) = (leadership.state(), leadership.can_write());
        let term = state.term.and_then(|term| term.fencing_token());
        if state.closing {
            *closed = term;
        }
        if can_write && term.is_some() && *closed == term {
            net.get().violate(format!("reopens: machine {number} writes in a term that it ends"));
        }
        let holder = leadership.holder();
        let is_its_own = holder.as_deref() == Some(identity(number).as_str());
        if !is_its_own && can_write {
            net.get().violate(format!("goes on: machine {number} writes, and sees the holder {holder:?}"));
        }
    }
    if leaders.len() > 1 {
        let name = lease_name(lease);
        net.get().violate(format!("two lead: machines {leaders:?} lead by {name} at once"));
    }
}

/// No gate of a new term opens while the cache that it waits for is behind (rule S16). The API server is still as it was
/// when this step began, so all that it has stored was there before the gate opened.
pub fn look_at_caches<'a>(
    net: &Shared,
    server: &ApiServer,
    lease: usize,
    replicas: impl Iterator<Item = (usize, &'a mut Replica)>,
) {
    for (number, replica) in replicas {
        let Some(cache) = &mut replica.caches[lease] else { continue };
        let Some(opening) = cache.opens(&replica.leaderships[lease].state()) else { continue };
        let (stored, cached, name) = (work::stored(server, lease), opening.cached, lease_name(lease));
        let mut net = net.get();
        net.seen.openings.opened += 1;
        net.note(&format!("m{number} opens its gate of {name} with version {cached} in its cache"));
        // A write of the process that this machine ran before may land while the gate waits. So may a write of another
        // machine if the lease may change hands while its holder leads. Then what was there when the wait began counts.
        let by_another = stored.writer != identity(number) && !net.seen.overlaps;
        let (wanted, when) = match opening.asked {
            Some(asked) if !by_another => (asked, "when the gate began to wait"),
            _ => (stored.version, "when the gate opened"),
        };
        if cached < wanted {
            net.violate(format!(
                "behind: m{number} opens its gate of {name} with version {cached} in its cache, and version {wanted} was stored {when}"
            ));
        }
    }
}
