//! What the user sees during the play: a live picture on a terminal, otherwise lines.

mod lines;
mod live;

use crate::{
    cast::Cast,
    journal::{Journal, SAMPLING},
    stage::Stage,
};
use std::{
    io::{self, IsTerminal, Write},
    sync::Arc,
};
use tokio::time::{MissedTickBehavior, interval};

/// A frame is drawn for every so many samples.
const SAMPLES_PER_FRAME: usize = 2;

/// Shows the journal as it fills.
pub enum View {
    Live(live::Live),
    Lines(lines::Lines),
}

impl View {
    /// Lines if `plain`, or where there is no terminal.
    pub fn new(stage: &Stage, plain: bool) -> Self {
        let terminal = io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|it| it != "dumb");
        if plain || !terminal {
            Self::Lines(lines::Lines::new(stage))
        } else {
            Self::Live(live::Live::new(stage))
        }
    }

    /// Samples the replicas and shows them, again and again, until it is dropped. A closed terminal does not end the
    /// play.
    pub async fn show(&mut self, cast: Arc<Cast>, journal: Arc<Journal>) {
        let mut ticks = interval(SAMPLING);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            for _ in 0..SAMPLES_PER_FRAME {
                ticks.tick().await;
                journal.sample(&cast);
            }
            let _ = self.draw(&journal);
        }
    }

    /// Shows what there is now.
    pub fn draw(&mut self, journal: &Journal) -> io::Result<()> {
        let text = match self {
            Self::Live(live) => live.frame(journal),
            Self::Lines(lines) => lines.news(journal),
        };
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}
