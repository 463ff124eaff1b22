//! Features that only a master in a process of its own has, as a replacement for `redis-server`: a
//! working directory, and a TLS port.

#![expect(clippy::disallowed_methods, reason = "masters on real sockets in real time")]

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use redis_sim::server::Server;
use tokio::task::JoinHandle;

use super::Node;
use crate::serve::executor::begins_with;
use crate::serve::socket::Door;
use crate::serve::tls::Settings;

/// The process of a master that works in its own directory.
#[derive(Debug)]
pub(in crate::serve) struct Process {
    ip: IpAddr,
    secured: Mutex<Secured>,
}

/// The TLS settings in force, and the task that accepts TLS connections, if any.
#[derive(Debug, Default)]
struct Secured {
    settings: Settings,
    door: Option<JoinHandle<()>>,
}

impl Process {
    pub(in crate::serve) fn at(ip: IpAddr) -> Self {
        Self { ip, secured: Mutex::default() }
    }

    /// Prepares the execution of `request`.
    pub(in crate::serve) fn begin(&self, server: &mut Server, request: &[Bytes]) {
        if begins_with(request, b"BGSAVE") || begins_with(request, b"SAVE") {
            // Nothing is written to disk, but a directory called `dump.rdb` must make saving fail
            // as in Redis.
            server.set_unable_to_save(Path::new("dump.rdb").is_dir());
        }
    }

    /// Applies TLS settings that may have changed.
    ///
    /// # Errors
    ///
    /// If the new settings cannot be applied. Then `tls-port` is set back.
    pub(in crate::serve) fn configured(
        &self,
        node: &Arc<Node>,
        server: &mut Server,
    ) -> io::Result<()> {
        let mut secured = self.secured.lock().unwrap_or_else(PoisonError::into_inner);
        let settings = Settings::of(server.config());
        if settings == secured.settings {
            return Ok(());
        }
        match self.secure(node, &settings) {
            Ok(door) => {
                let before = core::mem::replace(&mut *secured, Secured { settings, door });
                before.door.inspect(JoinHandle::abort);
                Ok(())
            }
            Err(error) => {
                let port = secured.settings.port.to_string();
                server.config_mut().insist("tls-port", port);
                Err(error)
            }
        }
    }

    fn secure(&self, node: &Arc<Node>, settings: &Settings) -> io::Result<Option<JoinHandle<()>>> {
        if settings.port == 0 {
            return Ok(None);
        }
        let address = SocketAddr::from((self.ip, settings.port));
        let config = settings.load()?;
        let door = Door::secure(address, config)
            .map_err(|error| io::Error::new(error.kind(), format!("{address}: {error}")))?;
        Ok(Some(tokio::spawn(Arc::clone(node).accept(door))))
    }
}
