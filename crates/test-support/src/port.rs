//! Ports for programs that get theirs as an option.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    io::{self, ErrorKind},
    net::{Ipv4Addr, TcpListener},
    ops::Range,
};

/// Below the ports that the kernel hands out by itself. So no socket of another process gets one before the program has
/// it, or while the program restarts. Two tests may draw the same one, but seldom: one of 20,000 by chance.
const RANGE: Range<u16> = 10_000..30_000;
const TRIES: usize = 1_000;

/// Different ports of 127.0.0.1 on which no process listens.
pub fn free<const N: usize>() -> io::Result<[u16; N]> {
    // All are held until the last one is found, so that they differ.
    let (mut held, mut ports) = (Vec::new(), [0; N]);
    for port in &mut ports {
        let (listener, found) =
            (0..TRIES).find_map(|_| by_chance()).ok_or_else(|| io::Error::from(ErrorKind::AddrInUse))?;
        held.push(listener);
        *port = found;
    }
    Ok(ports)
}

fn by_chance() -> Option<(TcpListener, u16)> {
    let chance = RandomState::new().build_hasher().finish() % u64::from(RANGE.end - RANGE.start);
    let port = RANGE.start + u16::try_from(chance).ok()?;
    Some((TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()?, port))
}
