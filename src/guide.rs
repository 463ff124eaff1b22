//! Guides, from the first server to operations.
//!
//! | guide | question |
//! | --- | --- |
//! | [`start`] | How do I get servers, on my machine, in CI and in production? |
//! | [`ttl`] | Which times do I choose? |
//! | [`fleet_max_ttl`] | What is `fleet_max_ttl`, and how is it changed? |
//! | module `testing` (feature `testing`) | How do I test code that locks? |
//! | [`operations`] | How are the servers configured, watched and replaced? |
//! | [`kubernetes`] | What is different in Kubernetes? |
//! | [`from_rslock`] | How do I replace rslock? |
//! | [`from_set_nx`] | How do I replace `SET … NX PX`? |
//! | [`systems`] | Which operating systems work, and what is missing on others? |

// Links of the pages to each other lead to files in the repository, and to modules here: of two
// definitions of a link the first one counts.
macro_rules! guides {
    ($($name:ident: $file:literal),* $(,)?) => {
        $(
            #[doc = "[getting-started]: crate::guide::start"]
            #[doc = "[what-to-promise]: crate::guide::start#what-to-promise-about-the-servers"]
            #[doc = "[fleet-max-ttl]: crate::guide::fleet_max_ttl"]
            #[doc = "[how-long-a-ttl]: crate::guide::operations#how-long-a-ttl"]
            #[doc = "[how-many-nodes]: crate::guide::operations#how-many-nodes-and-where"]
            #[doc = "[rights]: crate::guide::operations#rights"]
            #[doc = "[clocks]: crate::guide::operations#clocks"]
            #[doc = "[changing-the-nodes]: crate::guide::operations#changing-the-nodes"]
            #[doc = "[leave-until-expiry]: crate::Lease::leave_until_expiry"]
            #[doc = "[drift]: crate::Builder::drift"]
            #[doc = "[operations]: crate::guide::operations"]
            #[doc = "[kubernetes]: crate::guide::kubernetes"]
            #[doc = "[cpu-throttling]: crate::guide::kubernetes#cpu-throttling"]
            #[doc = "[safety]: crate#what-it-guarantees"]
            #[doc = "[serve]: crate#testing"]
            #[doc = "[redlock-command]: crate::guide"]
            #[doc = "[alerts]: crate::guide::operations#metrics-and-alerts"]
            #[doc = "[testing]: crate#testing"]
            #[doc = ""]
            #[doc = include_str!(concat!("../docs/", $file))]
            pub mod $name {}
        )*
    };
}

guides! {
    start: "getting-started.md",
    ttl: "guide/ttl.md",
    fleet_max_ttl: "fleet-max-ttl.md",
    operations: "operations.md",
    kubernetes: "kubernetes.md",
    from_rslock: "guide/from-rslock.md",
    from_set_nx: "guide/from-set-nx.md",
    systems: "guide/systems.md",
}
