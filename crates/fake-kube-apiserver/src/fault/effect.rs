//! What a fault does to a request, before and after it takes effect.

use std::time::Duration;

use crate::error::ConnectionDropped;
use crate::request::RequestInfo;
use crate::status::Refusal;
use crate::store::piece::WatchBreak;

/// What a fault does to a request.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    DelayBefore(Duration),
    DelayAfter(Duration),
    HangBefore,
    HangAfter,
    DropBefore,
    DropAfter,
    Status(u16, Option<Duration>),
    Forbidden,
    NamespaceNotFound,
    BreakWatch(WatchBreak),
    LateWatch(Duration),
}

// === impl Effect ===

impl Effect {
    /// Whether later faults no longer apply.
    pub(crate) fn ends_request(&self) -> bool {
        !matches!(self, Self::DelayBefore(_) | Self::DelayAfter(_) | Self::BreakWatch(_) | Self::LateWatch(_))
    }

    /// Delays, refuses or drops the request before it takes effect.
    pub(crate) async fn before(&self, info: &RequestInfo) -> Result<Option<Refusal>, ConnectionDropped> {
        let refusal = match self {
            Self::DelayBefore(delay) => {
                tokio::time::sleep(*delay).await;
                return Ok(None);
            }
            Self::HangBefore => std::future::pending().await,
            Self::DropBefore => return Err(ConnectionDropped),
            Self::Status(code, retry_after) => Refusal::injected(*code, *retry_after),
            Self::Forbidden => match info.target() {
                Some(target) => Refusal::forbidden(&info.user, info.verb, target),
                None => Refusal::path_forbidden(&info.user, info.verb, &info.path),
            },
            Self::NamespaceNotFound => {
                let namespace = info.target().and_then(|it| it.namespace.as_deref()).unwrap_or_default();
                Refusal::namespace_not_found(namespace)
            }
            Self::DelayAfter(_)
            | Self::HangAfter
            | Self::DropAfter
            | Self::BreakWatch(_)
            | Self::LateWatch(_) => return Ok(None),
        };
        Ok(Some(refusal))
    }

    /// Delays or drops the answer after the request has taken effect.
    pub(crate) async fn after(&self) -> Result<(), ConnectionDropped> {
        match self {
            Self::DelayAfter(delay) => tokio::time::sleep(*delay).await,
            Self::HangAfter => std::future::pending().await,
            Self::DropAfter => return Err(ConnectionDropped),
            _ => {}
        }
        Ok(())
    }
}
