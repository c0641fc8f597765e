//! Why a kube client's call failed, without what a log must not show.

use crate::lease::{
    advice::Cause,
    error::{ErrLock, ErrLockKind},
};
use http::{StatusCode, Uri, uri::Authority};
use hyper_util::client::legacy;
use kube_client::{Error, client::AuthError};
use std::{error::Error as StdError, io, iter};
use tower::buffer::error::{Closed, ServiceError};

/// How many causes of an error are looked at.
const DEEPEST: usize = 8;

impl From<Error> for ErrLock {
    /// Why the call of a kube client failed. The text shows no [secrets](crate::extension::without_secrets).
    fn from(error: Error) -> Self {
        match error {
            Error::Api(status) => {
                let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                Self::refusal(code, None, &status.message)
            }
            Error::SerdeError(error) => {
                Self::new(ErrLockKind::BadAnswer, format!("the answer is not JSON of this kind: {error}"))
            }
            error => {
                let is_dead = is_dead(&error);
                let error = without_secrets(error);
                let (kind, cause) = kind(&error);
                let failed = Self::new(kind, text(&error)).because(cause).with_source(error);
                if is_dead { failed.of_dead_client() } else { failed }
            }
        }
    }
}

impl ErrLock {
    /// The error of a call that had no connection to the API server: the name has no address, nothing listens there, or TLS
    /// fails. It is for a client that connects by hyper-util's connector by itself, without the client of hyper-util.
    #[must_use]
    pub fn unconnected(error: &(dyn StdError + 'static)) -> Self {
        let (kind, cause) = kind_of_connecting(error);
        Self::new(kind, text(error)).because(cause)
    }
}

/// Whether the client can send nothing any more. Each kube client has a buffer with a task.
fn is_dead(error: &Error) -> bool {
    match error {
        Error::Service(error) => error.is::<Closed>() || error.is::<ServiceError>(),
        _ => false,
    }
}

/// What kept the call from its answer.
fn kind(error: &Error) -> (ErrLockKind, Option<Cause>) {
    if causes(error).any(<dyn StdError>::is::<AuthError>) {
        return (ErrLockKind::Unauthenticated, Some(Cause::NoCredentials));
    }
    if matches!(error, Error::ProxyProtocolUnsupported { .. } | Error::ProxyProtocolDisabled { .. }) {
        return (ErrLockKind::Unreachable, Some(Cause::Proxy));
    }
    let connects = |it: &(dyn StdError + 'static)| {
        it.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect)
    };
    if !causes(error).any(connects) {
        return (ErrLockKind::BadAnswer, Some(Cause::CutOff));
    }
    kind_of_connecting(error)
}

/// What kept a client from a connection.
fn kind_of_connecting(error: &(dyn StdError + 'static)) -> (ErrLockKind, Option<Cause>) {
    // hyper-util does not export these two types.
    let says = |start: &str| causes(error).any(|cause| cause.to_string().starts_with(start));
    // Of the kernel, or of a limit of time for the connection. TLS has no such error.
    let of_tcp = |it: &(dyn StdError + 'static)| {
        it.downcast_ref::<io::Error>()
            .is_some_and(|error| error.raw_os_error().is_some() || error.kind() == io::ErrorKind::TimedOut)
    };
    if says("tunnel error") || says("SOCKS error") {
        (ErrLockKind::Unreachable, Some(Cause::Proxy))
    } else if says("dns error") {
        (ErrLockKind::Unreachable, Some(Cause::NoAddress))
    } else if causes(error).any(of_tcp) {
        (ErrLockKind::Unreachable, None)
    } else {
        let is_untrusted = text(error).contains("certificate");
        (ErrLockKind::Unauthenticated, Some(if is_untrusted { Cause::Untrusted } else { Cause::NoTls }))
    }
}

/// The error and its causes, outermost first.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    iter::successors(Some(error), |&error| error.source()).take(DEEPEST)
}

/// The causes in words, without those that only say in which part of the client it failed.
fn text(error: &(dyn StdError + 'static)) -> String {
    let is_frame = |it: &&(dyn StdError + 'static)| {
        it.is::<legacy::Error>() || matches!(it.downcast_ref(), Some(Error::Service(_) | Error::Auth(_)))
    };
    let inner: Vec<_> = causes(error).filter(|cause| !is_frame(cause)).collect();
    if inner.is_empty() {
        return error.to_string();
    }
    inner.iter().fold(String::new(), |text, it| match it.to_string() {
        more if text.is_empty() => more,
        more if text.contains(&more) => text,
        more => format!("{text}: {more}"),
    })
}

/// The same error without what a log must not show: the user part of a proxy's URL, and what a credential plugin was given
/// and has printed. No error of this crate shows them.
#[must_use]
pub fn without_secrets(mut error: Error) -> Error {
    match &mut error {
        Error::ProxyProtocolUnsupported { proxy_url } | Error::ProxyProtocolDisabled { proxy_url, .. } => {
            let mut parts = proxy_url.clone().into_parts();
            let host = |it: Authority| it.as_str().rsplit('@').next()?.parse().ok();
            parts.authority = parts.authority.and_then(host);
            **proxy_url = Uri::from_parts(parts).unwrap_or_default();
        }
        Error::Auth(error) => hide_secrets(error),
        Error::Service(error) => {
            if let Some(error) = error.downcast_mut() {
                hide_secrets(error);
            }
        }
        _ => {}
    }
    error
}

fn hide_secrets(error: &mut AuthError) {
    match error {
        AuthError::AuthExecRun { cmd, out } => {
            // Variables come before the program, and arguments after it. A quote within one of them is escaped.
            let command = format!(" {cmd}");
            let program =
                command.split(" \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
            let status = out.status;
            *error = AuthError::AuthExec(format!("the credential plugin {program:?} failed ({status})"));
        }
        AuthError::AuthExecParse(_) | AuthError::ParseTokenKey(_) => {
            *error =
                AuthError::AuthExec("what the credential plugin has printed is no ExecCredential".into());
        }
        _ => {}
    }
}
