//! Simulated masters on loopback TCP, in real time: any lock client, in any language, unmodified.

mod connection;
mod hours;
mod limits;
mod node;

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

use self::hours::Hours;
use self::node::Node;
use crate::master::profile::Profile;
use crate::master::server::Server;
use crate::master::{Master, Storage, run_id};
use crate::world::HostClocks;

/// What to serve.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How many masters.
    pub nodes: usize,
    /// The port of the first master, those of the others follow; 0: any that are free.
    pub base_port: u16,
    /// Which server they are.
    pub profile: &'static Profile,
}

/// Masters that are being served, until this is dropped.
#[derive(Debug)]
pub struct Fleet {
    ports: Vec<u16>,
    // Dropped first: its tasks use everything else.
    _runtime: Runtime,
}

impl Fleet {
    /// Begins to serve.
    ///
    /// # Errors
    ///
    /// If a port is taken, or there can be no threads.
    pub fn start(setup: &Setup) -> io::Result<Self> {
        // A script may keep a worker for as long as it likes, one for each node.
        let workers = setup.nodes + 2;
        let runtime = Builder::new_multi_thread().worker_threads(workers).enable_all().build()?;
        let hours = Arc::new(Hours::begin());
        let mut ports = Vec::with_capacity(setup.nodes);
        let _guard = runtime.enter();
        for place in 0..setup.nodes {
            let clocks = HostClocks::new(hours.wall_offset_ns(), 0);
            let wall_ms = clocks.wall_ms(hours.now_ns());
            let master = Master::new(Storage::default(), run_id(place as u8, 0), wall_ms);
            let server = Server::new(master, setup.profile);
            let node = Arc::new(Node::new(Arc::clone(&hours), clocks, server));
            let port = match setup.base_port {
                0 => 0,
                base => base.saturating_add(place as u16),
            };
            let listener = node::listen(Ipv4Addr::LOCALHOST, port)?;
            ports.push(listener.local_addr()?.port());
            runtime.spawn(Arc::clone(&node).expire_keys());
            runtime.spawn(node.accept(listener));
        }
        drop(_guard);
        Ok(Self { ports, _runtime: runtime })
    }

    /// The port of each master.
    #[must_use]
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }
}
