//! What a crowd of candidates on one lease costs, on a real kube-apiserver: time and lease requests of a handover, of a
//! crash and of a mass start, and what the watches cost the server. Each candidate has a client of its own, all in this
//! process, at 15/10/2 s. `make -C benches crowd`, or
//! `tests/apiserver/assets.sh cargo bench --bench crowd -- [SIZES] [ROUNDS] [CRASHES]`, for example `3,1000 12 3`.
//! `-- fan-out [WATCHERS]` measures the watches alone.

mod fan_out;
mod race;
mod server;

use std::{env, error::Error};
use test_support::apiserver::{assets, is_there};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    is_there()?;
    let arguments: Vec<String> = env::args().skip(1).filter(|it| !it.starts_with("--")).collect();
    let argument =
        |place: usize, default: &'static str| arguments.get(place).map_or(default.to_owned(), Clone::clone);
    let numbers = |text: String| text.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>();
    if argument(0, "") == "fan-out" {
        return fan_out::measure(assets(), &numbers(argument(1, "0,30,300,1000"))?).await;
    }
    let (rounds, crashes) = (argument(1, "12").parse()?, argument(2, "3").parse()?);
    println!("| | candidates | least / median / most | writes (refused) | reads | took or lasted |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for candidates in numbers(argument(0, "3,10,100,300,1000"))? {
        race::measure(assets(), candidates, rounds, crashes).await?;
    }
    Ok(())
}
