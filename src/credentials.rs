//! User and password of the client on a node, and the provider of them.

use core::fmt;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::Poll;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use crate::panics::contain;

/// Number of credentials that are remembered, to hide them in texts of the server: those of a
/// connection and of inspections beside it.
const REMEMBERED: usize = 4;

/// User and password of the client on a node. `Debug` shows neither.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// `None` for the default user.
    pub(crate) user: Option<Vec<u8>>,
    pub(crate) password: Vec<u8>,
}

impl Credentials {
    /// Credentials of `user`. An empty name is the default user.
    pub fn new(user: impl Into<Vec<u8>>, password: impl Into<Vec<u8>>) -> Self {
        let user = Some(user.into()).filter(|user| !user.is_empty());
        Self { user, password: password.into() }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Credentials(…)")
    }
}

/// Place and address of a node. Displays the address, without user, password and query.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeName {
    /// Place of the node in the configured list.
    pub place: usize,
    /// Address of the node, without credentials.
    pub node: String,
}

impl fmt::Display for NodeName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.node)
    }
}

/// Outcome of a request for credentials.
pub(crate) type Provided = Result<Credentials, Box<dyn Error + Send + Sync>>;

/// The application's provider.
pub(crate) type Provider =
    dyn Fn(NodeName) -> Pin<Box<dyn Future<Output = Provided> + Send>> + Send + Sync;

/// The provider, for one node.
#[derive(Clone)]
pub(crate) struct NodeProvider {
    place: usize,
    provider: Arc<Provider>,
    /// The last credentials; servers may repeat them.
    recent: Arc<Mutex<Vec<Credentials>>>,
}

impl NodeProvider {
    pub(crate) fn new(place: usize, provider: &Arc<Provider>) -> Self {
        Self { place, provider: Arc::clone(provider), recent: Arc::default() }
    }

    /// Asks for the credentials of a new connection to `node`. A panic of the provider is an error:
    /// the task that dials must not end.
    pub(crate) async fn ask(&self, node: String) -> Provided {
        let name = NodeName { place: self.place, node };
        let mut asked = contain(|| (self.provider)(name)).ok_or("it panicked")?;
        let answer = poll_fn(|context| {
            let polled = contain(|| asked.as_mut().poll(context));
            polled.unwrap_or_else(|| Poll::Ready(Err("it panicked".into())))
        });
        let credentials = answer.await?;
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if !recent.contains(&credentials) {
            let excess = (recent.len() + 1).saturating_sub(REMEMBERED);
            recent.drain(..excess);
            recent.push(credentials.clone());
        }
        Ok(credentials)
    }

    /// Returns the credentials that must not be shown.
    pub(crate) fn recent(&self) -> Vec<Credentials> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
