//! What an election costs its user: time to build, size, idle processor time and memory.

mod build;
mod idle;
mod many;
mod process;
mod results;

use self::results::Results;
use crate::{article, failure::Failure, machine, site::Site};
use std::{sync::Arc, time::Duration};

pub(crate) async fn run(window: Duration, elections: u32, builds: bool) -> Result<(), Failure> {
    let minutes = window.as_secs() / 60;
    let options = if builds { "" } else { " --no-builds" };
    let conditions = machine::conditions(&format!(
        "make -C benches cost MINUTES={minutes} OPTIONS=\"--elections {elections}{options}\""
    ));
    let results = Results::create(&conditions)?;
    let mut failures = 0;
    if builds {
        failures += build::measure(&results)?;
    }
    // After the builds, which would disturb it.
    let site = Arc::new(Site::open().await?);
    failures += idle::measure(&site, window, &results).await?;
    failures += many::measure(&site, elections, &results).await?;
    article::render_cost()?;
    if failures > 0 {
        return Err(format!("{failures} failures; all other results are written").into());
    }
    Ok(())
}
