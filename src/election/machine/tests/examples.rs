//! A candidate and a lease for tests. Calls are answered at once unless a test says otherwise.

use crate::{
    election::{
        hooks::LeaseCall,
        lease_watch::WatchNews,
        machine::{ASKED, Busy, CLAIM, Call, Gate, Machine, Next, WAITS_FOR},
        priority::Priority,
    },
    leadership::{Intent, Moment, Term},
    lease::{ErrLock, ErrLockKind, Identity, LeaseEvent, LeaseName, LeaseRecord, LeaseTiming},
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::{collections::VecDeque, ops::Range, time::Duration};

pub(super) type Answer = Result<Option<LeaseRecord>, ErrLock>;

/// A candidate `me` with the times 15/10/2 s, and the lease.
pub(super) struct Stage {
    pub(super) machine: Machine,
    pub(super) lease: Option<Value>,
    pub(super) version: u64,
    pub(super) now: Moment,
    pub(super) busy: Busy,
    /// What it has called since the last look.
    pub(super) calls: Vec<LeaseCall>,
    /// The answers to the next calls, in place of the server's.
    pub(super) answers: VecDeque<Answer>,
    /// In which pod those run that write claims, and how many seconds they have held the lease.
    pub(super) others: (&'static str, i64),
    /// Whether a write without an answer is carried out.
    pub(super) lands: bool,
    pub(super) done: Option<Result<(), &'static str>>,
}

impl Stage {
    pub(super) fn new() -> Self {
        Self::of(1, None)
    }

    pub(super) fn preferred(key: &str, precedes: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self::of(1, Priority::new(key, precedes).ok())
    }

    /// One with these times.
    pub(super) fn timed(timing: LeaseTiming) -> Self {
        Self::with(1, None, timing)
    }

    pub(super) fn of(process: u64, priority: Option<Priority>) -> Self {
        Self::with(process, priority, LeaseTiming::fast())
    }

    fn with(process: u64, priority: Option<Priority>, timing: LeaseTiming) -> Self {
        let mut machine =
            Machine::new(Identity::new("me").unwrap(), Some("here".into()), process, priority, timing);
        let now = Moment::from_nanos(1_000_000_000_000);
        machine.handle_watch(WatchNews::Up, now);
        // As it is made together with the Role.
        let lease = Some(json!({ "metadata": { "uid": "u", "resourceVersion": "100" }, "spec": {} }));
        let (busy, done) = (Busy::default(), None);
        let (calls, answers) = (vec![], VecDeque::new());
        Self {
            machine,
            lease,
            version: 100,
            now,
            busy,
            calls,
            answers,
            others: ("elsewhere", 0),
            lands: false,
            done,
        }
    }

    /// One that leads.
    pub(super) fn leading() -> Self {
        let mut stage = Self::new();
        stage.pass(100);
        assert!(stage.is_open());
        stage.calls.clear();
        stage
    }

    /// One that begins, and finds its name in the lease: a process in this pod has held it for so many seconds.
    pub(super) fn restarted(pod: &'static str, held: i64) -> Self {
        let mut stage = Self::new();
        stage.others = (pod, held);
        stage.claim("me", 77, 4, None);
        stage
    }

    /// The term in which it leads, and the term before it.
    pub(super) fn terms(&self) -> [Term; 2] {
        let Gate::Open { term, .. } = self.gate() else { panic!("it leads") };
        [0, 1].map(|before| Term::new(term.lease_uid(), term.transitions() - before))
    }

    /// The term in which it leads is given away.
    pub(super) fn give_way(&mut self) {
        let [term, _] = self.terms();
        self.machine.give_way(&term);
    }

    // --- time ---

    /// Lets so many milliseconds pass, and carries its calls out.
    pub(super) fn pass(&mut self, millis: u64) {
        self.play(millis, Self::answer);
    }

    /// Lets so many milliseconds pass. `answer` makes the answers.
    pub(super) fn play(&mut self, millis: u64, mut answer: impl FnMut(&mut Self, &Call) -> Answer) {
        let end = self.now.saturating_add(Duration::from_millis(millis));
        for _ in 0..200_000 {
            let wall = self.wall();
            match self.machine.poll(self.busy(), wall, self.now) {
                Next::Call(call) => {
                    self.calls.push(call.what);
                    let answer = answer(self, &call);
                    let _ = self.machine.handle_answer(answer, self.now);
                }
                Next::Wait(at) if at <= end => {
                    assert!(self.now < at, "it waits for the past");
                    self.now = at;
                }
                Next::Wait(_) => {
                    self.now = end;
                    return;
                }
                Next::Done(how) => {
                    (self.done, self.now) = (Some(how), end);
                    return;
                }
            }
        }
        panic!("it never waits: {:?}", self.calls.iter().rev().take(5).collect::<Vec<_>>());
    }

    pub(super) fn wall(&self) -> Timestamp {
        let since = SignedDuration::from_nanos(self.now.as_nanos().cast_signed());
        Timestamp::from_second(1_700_000_000).unwrap() + since
    }

    /// What the process still does. What its predecessor has sent may land for the safety margin.
    fn busy(&self) -> Busy {
        let settles = self.machine.predecessor_seen().map(|seen| seen.saturating_add(Duration::from_secs(5)));
        Busy { settle_at: self.busy.settle_at.max(settles.unwrap_or_default()), ..self.busy }
    }

    /// The call that it makes now, without an answer.
    pub(super) fn call(&mut self) -> Call {
        let wall = self.wall();
        match self.machine.poll(self.busy(), wall, self.now) {
            Next::Call(call) => call,
            other => panic!("{other:?}"),
        }
    }

    // --- the server ---

    pub(super) fn answer(&mut self, call: &Call) -> Answer {
        match self.answers.pop_front() {
            Some(answer) => {
                if self.lands {
                    let _ = self.carry_out(call);
                }
                answer
            }
            None => self.carry_out(call),
        }
    }

    pub(super) fn carry_out(&mut self, call: &Call) -> Answer {
        let Some(update) = &call.update else { return Ok(self.record()) };
        let present = self.record();
        if present.as_ref().map(LeaseRecord::resource_version)
            != call.seen.as_ref().map(LeaseRecord::resource_version)
        {
            return Err(error(ErrLockKind::Conflict));
        }
        let name = LeaseName::new("default", "lease").unwrap();
        let object =
            present.map_or_else(|| update.new_lease(&name), |record| record.with(update).into_json());
        self.store(Some(object));
        Ok(self.record())
    }

    pub(super) fn record(&self) -> Option<LeaseRecord> {
        self.lease.clone().map(|object| LeaseRecord::from_json(object).unwrap())
    }

    fn store(&mut self, object: Option<Value>) {
        self.version += 1;
        self.lease = object.map(|mut it| {
            it["metadata"]["resourceVersion"] = json!(self.version.to_string());
            if it["metadata"]["uid"].is_null() {
                it["metadata"]["uid"] = json!(format!("u{}", self.version));
            }
            it
        });
    }

    /// Stores this a moment later, and the watch shows it.
    pub(super) fn put(&mut self, object: Value) {
        self.now = self.now.saturating_add(Duration::from_micros(1));
        self.store(Some(object));
        let record = self.record().unwrap();
        self.machine.handle_watch(WatchNews::Event(LeaseEvent::Seen(record)), self.now);
    }

    /// A person changes the spec, and the watch shows it.
    pub(super) fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let mut object = self.lease.clone().expect("a lease");
        change(&mut object);
        self.put(object);
    }

    /// A person or another elector writes this annotation, and the watch shows it.
    pub(super) fn annotate(&mut self, name: &str, value: &str) {
        self.edit(|lease| lease["metadata"]["annotations"][name] = json!(value));
    }

    pub(super) fn delete(&mut self) {
        let last = self.lease.take().expect("a lease");
        self.version += 1;
        let mut last = last;
        last["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let last = LeaseRecord::from_json(last).unwrap();
        self.machine.handle_watch(WatchNews::Event(LeaseEvent::Deleted(last)), self.now);
    }

    // --- others ---

    /// Another elector takes the lease, or renews it, as client-go does. It keeps the annotations.
    pub(super) fn client_go(&mut self, holder: &str, transitions: u64) {
        let time = time(self.wall());
        let mut object = self.lease.clone().unwrap_or_else(|| json!({ "metadata": {} }));
        object["spec"] = json!({
            "holderIdentity": holder, "leaseDurationSeconds": if holder.is_empty() { 1 } else { 15 },
            "acquireTime": time, "renewTime": time, "leaseTransitions": transitions,
        });
        self.put(object);
    }

    /// Another candidate of this crate writes a claim. `waits_for` is the list in it.
    pub(super) fn claim(&mut self, holder: &str, process: u64, transitions: u64, waits_for: Option<&Value>) {
        let (pod, held) = self.others;
        let [acquired, time] = [held, 0].map(|ago| time(self.wall() - SignedDuration::from_secs(ago)));
        let mut object = self.lease.clone().unwrap_or_else(|| json!({ "metadata": {} }));
        let uid = object["metadata"]["uid"].as_str().unwrap_or("-").to_owned();
        object["spec"] = json!({
            "holderIdentity": holder, "leaseDurationSeconds": if holder.is_empty() { 1 } else { 15 },
            "acquireTime": acquired, "renewTime": time, "leaseTransitions": transitions,
        });
        let annotations = &mut object["metadata"]["annotations"];
        annotations[CLAIM] = json!(format!(
            "{process:016x} {time} {uid} 15s {pod} {}",
            if holder.is_empty() { "other" } else { holder }
        ));
        if !holder.is_empty() {
            annotations[ASKED] = Value::Null;
        }
        annotations[WAITS_FOR] = json!(waits_for.map_or("{}".to_owned(), Value::to_string));
        annotations.as_object_mut().unwrap().retain(|_, it| !it.is_null());
        self.put(object);
    }

    // --- what is seen ---

    pub(super) fn gate(&self) -> Gate {
        self.machine.gate(self.now)
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.gate(), Gate::Open { .. })
    }

    /// Its gate is shut for the first part of this time, and open at its end.
    #[track_caller]
    pub(super) fn opens_within(&mut self, millis: Range<u64>) {
        self.pass(millis.start);
        assert!(!self.is_open(), "too early");
        self.pass(millis.end - millis.start);
        assert!(self.is_open(), "too late");
    }

    /// The same, and it holds the lease while it waits.
    #[track_caller]
    pub(super) fn waits_as_holder(&mut self, millis: Range<u64>) {
        self.pass(millis.start);
        assert!(self.holder() == "me" && !self.is_open(), "it holds the lease, and its gate is shut");
        self.opens_within(0..millis.end - millis.start);
    }

    pub(super) fn deadline(&self) -> Moment {
        match self.gate() {
            Gate::Open { deadline, .. } | Gate::Closing { deadline } => deadline,
            Gate::Shut(loss) => panic!("shut: {loss:?}"),
        }
    }

    pub(super) fn holder(&self) -> String {
        self.record().and_then(|record| record.holder().map(str::to_owned)).unwrap_or_default()
    }

    pub(super) fn annotation(&self, name: &str) -> Option<String> {
        self.record()?.annotation(name)?.as_str().map(str::to_owned)
    }

    pub(super) fn order(&mut self, intent: Intent) {
        self.machine.handle_order(intent);
    }

    pub(super) fn fails(&mut self, times: usize, kind: ErrLockKind) {
        self.answers.extend((0..times).map(|_| Err(error(kind))));
    }
}

pub(super) fn error(kind: ErrLockKind) -> ErrLock {
    ErrLock::new(kind, "as the test has it")
}

pub(super) fn time(at: Timestamp) -> String {
    crate::lease::micro_time(at)
}

pub(super) fn seconds(seconds: u64) -> u64 {
    seconds * 1_000
}
