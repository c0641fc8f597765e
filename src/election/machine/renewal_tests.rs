//! What others see of renewals.

use super::{
    Decision,
    examples::{at, machine, written},
};

/// Its watch is mute, so it reads, at every second renewal. The holder's wall clock stands still.
#[test]
fn s6_a_reader_of_each_second_renewal_sees_that_the_holder_lives() {
    let (mut holder, mut reader) = (machine(), machine());
    let clock = || "2026-01-01T00:00:00.000000Z".to_owned();
    let mut claim = holder.acquisition(at(0), clock());
    claim.holder = "other".to_owned();
    for renewal in 0..20 {
        let now = at(2 * renewal);
        let record = written(renewal + 1, &claim);
        holder.observe(record.clone(), now);
        if renewal % 2 == 0 {
            reader.observe_read(record, None, now);
        }
        assert!(matches!(reader.decide(now, false), Decision::WaitUntil(_)), "{renewal}");
        claim = holder.renewal(now, clock());
        claim.holder = "other".to_owned();
    }
}
