// Links of the page lead to files in the repository, and here to places in this documentation: of
// two definitions of a link the first one counts.
#![cfg_attr(feature = "testing", doc = "[safety]: crate#what-it-guarantees")]
#![cfg_attr(feature = "testing", doc = "[extension]: crate#what-it-guarantees")]
#![cfg_attr(feature = "testing", doc = "")]
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
