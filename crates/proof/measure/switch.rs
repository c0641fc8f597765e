//! Only the copy of the tree that `measure` makes has this, and the changes.
//!
//! The variable `LEADER_GATE_CHANGE` says which change is made in this process, by its number or by its name. If
//! `LEADER_GATE_REACHED` names a file, the process appends each switch to it that a call has reached.

use std::{
    collections::HashSet,
    env,
    fs::OpenOptions,
    io::Write,
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

/// Whether the change of this name is made.
#[allow(dead_code, reason = "not each file has a change of this kind")]
pub(crate) fn is_back(name: &str) -> bool {
    reached(|| name.to_owned());
    chosen().0 == name
}

/// The number of the change that is made, and 0 if there is none. `site` is the function that asks.
#[allow(dead_code, reason = "not each file has a change of this kind")]
pub(crate) fn at(site: u32) -> u32 {
    // A call in a loop must not wait for the list each time.
    static SEEN: [AtomicBool; 4096] = [const { AtomicBool::new(false) }; 4096];
    if !SEEN.get(site as usize).is_some_and(|it| it.swap(true, Ordering::Relaxed)) {
        reached(|| site.to_string());
    }
    chosen().1
}

fn chosen() -> &'static (String, u32) {
    static CHOSEN: OnceLock<(String, u32)> = OnceLock::new();
    CHOSEN.get_or_init(|| {
        let name = env::var("LEADER_GATE_CHANGE").unwrap_or_default();
        let number = name.parse().unwrap_or(0);
        (name, number)
    })
}

fn reached(switch: impl Fn() -> String) {
    static FILE: OnceLock<Option<String>> = OnceLock::new();
    static REACHED: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let Some(file) = FILE.get_or_init(|| env::var("LEADER_GATE_REACHED").ok()) else { return };
    let Ok(mut reached) = REACHED.lock() else { return };
    if reached.get_or_insert_default().insert(switch()) {
        let file = OpenOptions::new().create(true).append(true).open(file);
        let _ = file.and_then(|mut it| writeln!(it, "{}", switch()));
    }
}
