#![cfg_attr(feature = "testing", doc = include_str!("../docs/more-than-one.md"))]
#![cfg_attr(not(feature = "testing"), doc = "More than one lock: `docs/more-than-one.md`.")]

mod lease_set;
mod passes;
mod permits;
mod resources;
mod together;

pub use self::lease_set::{LeaseSet, LostAny};
pub use self::permits::{PERMITS_MAX, Permits, Semaphore};
pub use self::resources::{RESOURCES_MAX, Resources};
