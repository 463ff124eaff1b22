//! The key of one lock on every node: for people who want to know its holder, or must break it.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use redlock_protocol::{NodeCount, NodeIndex};

use super::ask_all;
use super::probe::{Answer, ProbeConnection};
use crate::client::Redlock;
use crate::dial::DialError;
use crate::driver::Driver;
use crate::resource::Resource;
use crate::resp::{self, RELEASE};

/// Key of one lock on every node, at about one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockInspection {
    /// Name of the lock.
    pub resource: Vec<u8>,
    /// The nodes, in the configured order.
    pub nodes: Vec<NodeLock>,
}

/// Key of one lock on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeLock {
    /// Place of the node in the configured list.
    pub place: usize,
    /// Address of the node, without credentials.
    pub node: String,
    /// The key, `None` if there is none, or the reason why it is not known.
    pub key: Result<Option<StoredKey>, Arc<str>>,
}

/// Value and remaining time to live of a key. `Debug` does not show the value, because it suffices
/// to release the lock.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredKey {
    /// Value of the key. For leases of this client these are the bytes of the
    /// [`OwnerToken`](crate::OwnerToken).
    pub value: Vec<u8>,
    /// Time until the key expires; `None` if it never does.
    pub remaining: Option<Duration>,
    /// True if `value` is only the beginning of a value of more than 64 KiB, which no lock client
    /// writes.
    pub is_cut: bool,
}

/// State of a lock, as far as its keys show it.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holding<'a> {
    /// No value is on a majority of the nodes: nobody holds the lock.
    Free,
    /// A majority of the nodes has this value.
    Held {
        /// Value of the keys.
        value: &'a [u8],
        /// Number of nodes that have it.
        nodes: usize,
        /// Time until too few nodes have it, if nobody extends or releases it; `None` if that never
        /// happens.
        remaining: Option<Duration>,
    },
    /// Too few nodes answered: it is unknown whether a value is on a majority of the nodes.
    Unknown,
}

impl Redlock {
    /// Reads the key of `resource` on every node, to show people who holds the lock and for how
    /// long. The answer may be outdated when it arrives: do not work without a lease because of it.
    ///
    /// Takes no longer than [`Redlock::inspect`].
    ///
    /// ```no_run
    /// # async fn example(redlock: redlock_client::Redlock) {
    /// use redlock_client::Holding;
    ///
    /// match redlock.inspect_lock("invoice/42").await.holding() {
    ///     Holding::Held { remaining, .. } => println!("taken, for another {remaining:?}"),
    ///     Holding::Free => println!("free"),
    ///     _ => println!("too few nodes answered"),
    /// }
    /// # }
    /// ```
    pub async fn inspect_lock(&self, resource: impl Into<Resource<'_>>) -> LockInspection {
        let resource: Resource<'_> = resource.into();
        let resource: Arc<[u8]> = resource.as_bytes().into();
        let name = Arc::clone(&resource);
        let keys = ask_all(self.driver(), self.settings(), |driver, node| {
            let name = Arc::clone(&name);
            async move { read(&driver, node, &name).await.map_err(|error| error.text()) }
        });
        let nodes = self.settings().nodes.iter().zip(keys.await);
        let nodes = nodes.map(|(node, key)| NodeLock {
            place: node.get(),
            node: self.driver().endpoint(node).to_string(),
            key,
        });
        LockInspection { resource: resource.to_vec(), nodes: nodes.collect() }
    }

    /// Deletes the keys in `seen`, each only if it still has the same value. Returns the state of
    /// the lock afterwards. Does not delete a key of which only the beginning of the value is known.
    ///
    /// An emergency measure: **it takes the lock away from a holder that may be at work.** A holder
    /// that uses this client learns of it if its servers push (see [`Lease::lost`]). Any other
    /// holder continues until its lease ends, and two holders can work at once until then. Without
    /// this call, the lock is free when its keys expire.
    ///
    /// [`Lease::lost`]: crate::Lease::lost
    pub async fn break_lock(&self, seen: &LockInspection) -> LockInspection {
        let resource: Arc<[u8]> = seen.resource.as_slice().into();
        let deletions = ask_all(self.driver(), self.settings(), |driver, node| {
            let key = seen.nodes.get(node.get()).and_then(|it| it.key.as_ref().ok()?.as_ref());
            let (resource, key) = (Arc::clone(&resource), key.cloned());
            async move {
                let Some(key) = key else { return Ok(()) };
                let deleted = delete(&driver, node, &resource, &key).await;
                deleted.map_err(|error| error.text())
            }
        });
        let deletions = deletions.await;
        let mut after = self.inspect_lock(&*resource).await;
        // A refused deletion says more than the key that is still there.
        for (node, deletion) in after.nodes.iter_mut().zip(deletions) {
            if let Err(refused) = deletion {
                node.key = Err(refused);
            }
        }
        after
    }
}

impl LockInspection {
    /// Returns the state of the lock.
    #[must_use]
    pub fn holding(&self) -> Holding<'_> {
        let Some(count) = NodeCount::new(self.nodes.len()) else {
            return Holding::Unknown;
        };
        let majority = count.quorum();
        let unknown = self.nodes.iter().filter(|node| node.key.is_err()).count();
        let mut most = 0;
        for key in self.keys() {
            let mut lives: Vec<Duration> = self
                .keys()
                .filter(|other| other.value == key.value)
                .map(|other| other.remaining.unwrap_or(Duration::MAX))
                .collect();
            lives.sort_unstable_by(|one, other| other.cmp(one));
            if let Some(&remaining) = lives.get(majority - 1) {
                let remaining = Some(remaining).filter(|&it| it < Duration::MAX);
                return Holding::Held { value: &key.value, nodes: lives.len(), remaining };
            }
            most = most.max(lives.len());
        }
        if most + unknown < majority { Holding::Free } else { Holding::Unknown }
    }

    /// Returns the keys that were found.
    pub fn keys(&self) -> impl Iterator<Item = &StoredKey> {
        self.nodes.iter().filter_map(|node| node.key.as_ref().ok()?.as_ref())
    }
}

async fn read(
    driver: &Driver,
    node: NodeIndex,
    resource: &[u8],
) -> Result<Option<StoredKey>, DialError> {
    let mut connection = connect(driver, node, resource).await?;
    let value = match connection.ask(|out| resp::write(out, &[b"GET", resource])).await?.0 {
        Answer::Text(value) => value,
        Answer::Nil => return Ok(None),
        answer => return Err(unexpected(answer)),
    };
    let is_cut = connection.is_cut();
    match connection.ask(|out| resp::write(out, &[b"PTTL", resource])).await?.0 {
        // The key has expired, or was released, since it was read.
        Answer::Integer(-2) => Ok(None),
        Answer::Integer(ms) => Ok(Some(StoredKey {
            value,
            is_cut,
            remaining: u64::try_from(ms).ok().map(Duration::from_millis),
        })),
        answer => Err(unexpected(answer)),
    }
}

async fn delete(
    driver: &Driver,
    node: NodeIndex,
    resource: &[u8],
    key: &StoredKey,
) -> Result<(), DialError> {
    let mut connection = connect(driver, node, resource).await?;
    if key.is_cut {
        let reason = "its value of more than 64 KiB cannot be compared: delete it by DEL";
        return Err(DialError::Refused(Arc::from(reason)));
    }
    let script: [&[u8]; 5] = [b"EVAL", RELEASE.text, b"1", resource, &key.value];
    match connection.ask(|out| resp::write(out, &script)).await?.0 {
        Answer::Integer(_) => Ok(()),
        answer => Err(unexpected(answer)),
    }
}

/// Opens a connection, unless `resource` is the canary: without it the node votes for nobody.
async fn connect<'a>(
    driver: &'a Driver,
    node: NodeIndex,
    resource: &[u8],
) -> Result<ProbeConnection<'a>, DialError> {
    if *resource == *driver.canary_key() {
        return Err(DialError::Refused(Arc::from("this key is the canary, not a lock")));
    }
    ProbeConnection::of(driver, node).await
}

fn unexpected(answer: Answer) -> DialError {
    DialError::Refused(match answer {
        Answer::Error(text) => text,
        _ => Arc::from("an answer of an unexpected type"),
    })
}

impl fmt::Debug for StoredKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = formatter.debug_struct("StoredKey");
        fields.field("remaining", &self.remaining).finish_non_exhaustive()
    }
}

impl fmt::Debug for Holding<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Free => formatter.write_str("Free"),
            Self::Held { nodes, remaining, .. } => {
                let mut fields = formatter.debug_struct("Held");
                fields.field("nodes", nodes).field("remaining", remaining).finish_non_exhaustive()
            }
            Self::Unknown => formatter.write_str("Unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inspection(keys: &[Result<Option<(&str, u64)>, &str>]) -> LockInspection {
        let nodes = keys.iter().enumerate().map(|(place, key)| NodeLock {
            place,
            node: format!("redis://{place}"),
            key: match key {
                Ok(key) => Ok(key.map(|(value, seconds)| StoredKey {
                    value: value.as_bytes().to_vec(),
                    is_cut: false,
                    remaining: (seconds > 0).then(|| Duration::from_secs(seconds)),
                })),
                Err(error) => Err(Arc::from(*error)),
            },
        });
        LockInspection { resource: b"res".to_vec(), nodes: nodes.collect() }
    }

    #[test]
    fn value_holds_the_lock_until_a_majority_has_lost_it() {
        let seen = inspection(&[Ok(Some(("a", 3))), Ok(Some(("b", 9))), Ok(Some(("a", 5)))]);
        let remaining = Some(Duration::from_secs(3));
        assert_eq!(seen.holding(), Holding::Held { value: b"a", nodes: 2, remaining });
        let seen = inspection(&[Ok(Some(("a", 3))), Ok(Some(("a", 9))), Ok(Some(("a", 5)))]);
        let remaining = Some(Duration::from_secs(5));
        assert_eq!(seen.holding(), Holding::Held { value: b"a", nodes: 3, remaining });
    }

    #[test]
    fn a_key_that_never_expires_holds_for_ever() {
        let seen = inspection(&[Ok(Some(("a", 0))), Ok(Some(("a", 0))), Ok(None)]);
        assert_eq!(seen.holding(), Holding::Held { value: b"a", nodes: 2, remaining: None });
    }

    #[test]
    fn nodes_that_do_not_answer_may_have_the_key() {
        assert_eq!(inspection(&[Ok(None), Ok(None), Err("away")]).holding(), Holding::Free);
        let seen = inspection(&[Ok(Some(("a", 3))), Ok(None), Err("away")]);
        assert_eq!(seen.holding(), Holding::Unknown);
        let seen = inspection(&[Ok(None), Err("away"), Err("away")]);
        assert_eq!(seen.holding(), Holding::Unknown);
    }

    #[test]
    fn a_split_vote_is_no_holder() {
        let seen = inspection(&[Ok(Some(("a", 3))), Ok(Some(("b", 3))), Ok(None)]);
        assert_eq!(seen.holding(), Holding::Free);
        assert_eq!(seen.keys().count(), 2);
    }

    #[test]
    fn debug_output_shows_no_token() {
        let seen = inspection(&[Ok(Some(("secret", 3)))]);
        assert!(!format!("{seen:?}{:?}", seen.holding()).contains("secret"));
        let bytes = format!("{:?}", b"secret");
        assert!(!format!("{seen:?}{:?}", seen.holding()).contains(&bytes));
    }
}
