//! A harness for test targets in which tests need programs that may be missing.
//!
//! libtest cannot report at run time that a test could not run. So these targets have `harness = false` and use this
//! as their `main`. A test whose programs are missing is shown as ignored, with what to do about it. With `CI=true`
//! it fails.
//!
//! A target names each of its tests once, in [`tests!`](crate::tests). The compiler warns of a function that is not named.
//! Do not write `#[test]` there: the compiler silently drops such a function.

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::{env, fmt::Display, process::ExitCode};

/// A program or a folder that a test needs. `Err` says what is missing and what to do about it.
pub type Need = fn() -> Result<(), String>;

/// One test.
#[derive(Debug)]
pub struct Test {
    name: String,
    needs: &'static [Need],
    run: fn() -> Result<(), String>,
}

impl Test {
    /// `name` as libtest would show it: modules and function.
    pub fn new(name: impl Into<String>, needs: &'static [Need], run: fn() -> Result<(), String>) -> Self {
        Self { name: name.into(), needs, run }
    }

    fn trial(self) -> Trial {
        Trial::ignorable_test(self.name, move || match self.needs.iter().find_map(|need| need().err()) {
            Some(missing) if is_ci() => Err(Failed::from(format!("required with CI=true: {missing}"))),
            Some(missing) => Ok(Completion::ignored_with(missing)),
            None => Ok((self.run)().map(|()| Completion::Completed)?),
        })
    }
}

fn is_ci() -> bool {
    env::var_os("CI").is_some_and(|it| it == "true")
}

/// Runs the tests that the arguments of this process select.
pub fn run(tests: Vec<Test>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    let threads = || env::var("RUST_TEST_THREADS").ok()?.parse().ok();
    arguments.test_threads = arguments.test_threads.or_else(threads);
    libtest_mimic::run(&arguments, tests.into_iter().map(Test::trial).collect()).exit_code()
}

/// Prints if the arguments of this process contain `--nocapture`, as libtest does for tests that pass.
pub fn say(what: impl Display) {
    if env::args().any(|it| it == "--nocapture") {
        println!("{what}");
    }
}

/// Runs a test as `#[tokio::test]` does.
pub fn block_on(test: impl Future<Output = ()>) -> Result<(), String> {
    on_this_thread(false, test);
    Ok(())
}

/// Runs a test in paused time, as `#[tokio::test(start_paused = true)]` does.
pub fn block_on_paused(test: impl Future<Output = ()>) -> Result<(), String> {
    on_this_thread(true, test);
    Ok(())
}

fn on_this_thread(paused: bool, test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(paused).build().expect("a runtime").block_on(test);
}

/// A list of [`Test`](crate::harness::Test)s, grouped by their needs. `plain` functions are called, `real_time` ones
/// run as with `#[tokio::test]`, and `paused` ones the same in paused time.
///
/// ```
/// mod gate {
///     pub async fn an_expired_grant_is_closed() {}
///     pub fn every_request_is_classified() {}
/// }
/// let tests = test_support::tests! {
///     needs [] {
///         paused gate::an_expired_grant_is_closed;
///         plain gate::every_request_is_classified;
///     }
/// };
/// assert_eq!(tests.len(), 2);
/// ```
#[macro_export]
macro_rules! tests {
    ($(needs $needs:tt { $($how:ident $test:path;)+ })+) => {
        vec![$($($crate::harness::Test::new(
            stringify!($test),
            { const NEEDS: &[$crate::harness::Need] = &$needs; NEEDS },
            $crate::tests!(@$how $test),
        ),)+)+]
    };
    (@plain $test:path) => { || { $test(); Ok(()) } };
    (@real_time $test:path) => { || $crate::harness::block_on($test()) };
    (@paused $test:path) => { || $crate::harness::block_on_paused($test()) };
}
