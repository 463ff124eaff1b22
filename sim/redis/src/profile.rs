//! Server profiles: everything in which the modelled servers differ, as data.

use crate::script::{self, Style};

/// A server product and version.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    /// Name in scenarios and on the command line.
    pub name: &'static str,
    /// Server name in the reply to `HELLO`.
    pub server: &'static str,
    /// Server version in the reply to `HELLO`.
    pub version: &'static str,
    /// Redis version in `INFO`.
    pub redis_version: &'static str,
    /// Modules in the reply to `HELLO`: name and version.
    pub modules: &'static [(&'static str, i64)],
    /// Features that not every server has.
    pub features: &'static [Feature],
    /// True if an unauthenticated client learns only that, even if its command is unknown or has a
    /// wrong number of arguments.
    pub asks_who_first: bool,
    /// True if a nested MULTI has an error of its own instead of the error for commands that are
    /// not allowed in a transaction.
    pub names_nesting: bool,
    /// Differences in the behaviour of scripts.
    pub style: &'static Style,
    /// Error texts that differ between servers.
    pub texts: Texts,
}

/// A feature that not every server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Every server has it.
    Always,
    /// `CLIENT SETINFO`.
    ClientInfo,
    /// `CLIENT CAPA`.
    ClientCapabilities,
    /// More filters in `CLIENT KILL` (names, libraries, databases, ages and others), and several
    /// ids.
    ClientFilters,
    /// `SCAN` accepts cursors with leading spaces and rejects empty and negative ones, except a
    /// negative number that overflows.
    CursorsAreNumbers,
    /// `DELIFEQ`.
    DeleteIfEqual,
    /// `DELEX`, `DIGEST`, and `SET` with `IFNE`, `IFDEQ`, `IFDNE`.
    Digests,
    /// A refused command and a change of a watched key empty the transaction: the requirements of the
    /// commands queued before, such as memory, no longer count when EXEC is checked.
    DropsRefusedTransactions,
    /// `HELLO` parses all its options before it applies any, instead of one after the other.
    HelloChecksFirst,
    /// `CLIENT LIST` has the number of watched keys.
    ListsWatches,
    /// The error for an unknown subcommand in a script names the subcommand.
    NamesSubcommandsInScripts,
    /// A message that a request causes for its own connection comes after the reply, and after the
    /// invalidations of keys that the connection tracks. Without this feature, it comes before the
    /// reply; in a transaction, before the reply of the command that caused it.
    OwnMessagesLast,
    /// While out of memory, MULTI queues only commands that allocate nothing.
    QueuesWhenFull,
    /// A closing quote may stand within a word of an inline request.
    QuotesJoin,
    /// `READONLY` and `READWRITE` succeed without effect outside a cluster.
    ReadOnlyAnywhere,
    /// `GETEX` validates the expiry before it looks up the key.
    GetexTimeFirst,
    /// `SET` with an expiry in the past deletes the key instead of setting it.
    PastDeletes,
    /// An element for a connection that waits is popped by the connection's own command, so that it
    /// is an invalidation for those who track the list. Without this feature, it is none.
    ServesByCommand,
    /// `SET` with `IFEQ`.
    SetIfEqual,
    /// Tracking registers the keys that a script reads. Without this feature, the declared keys of
    /// a script that executes any read are registered.
    TracksScriptReads,
    /// `WAITAOF`.
    WaitAof,
    /// `WAIT` and `WAITAOF` reject a timeout whose end is beyond the range of the clock.
    WaitEnds,
    /// Scripts may call `WAIT`, which does not wait there.
    WaitInScripts,
}

/// Error texts.
#[derive(Debug, PartialEq, Eq)]
pub struct Texts {
    /// Reply to other clients while a script runs too long.
    pub busy: &'static str,
    /// `HELLO` from an unauthenticated client.
    pub hello_unauthenticated: &'static str,
    /// `EVALSHA` of an unknown script.
    pub no_script: &'static str,
    /// A command that is not allowed in a transaction. `{command}` is replaced.
    pub not_in_transaction: &'static str,
    /// Reply to the sender of a script ended by `SCRIPT KILL`.
    pub script_killed: &'static str,
    /// Unknown command in a script.
    pub script_unknown: &'static str,
    /// Wrong number of arguments of a command in a script.
    pub script_arity: &'static str,
    /// Command forbidden in scripts.
    pub script_forbidden: &'static str,
    /// Reply while the data is being loaded.
    pub loading: &'static str,
    /// Reply to writes while snapshots fail.
    pub cannot_save: &'static str,
    /// `WAIT` on a replica.
    pub wait_on_replica: &'static str,
    /// A command or key that the user has no permission for.
    pub rights: &'static Rights,
    /// The same for commands in scripts.
    pub rights_in_scripts: &'static Rights,
}

/// Error texts for missing permissions. `{user}` and `{command}` are replaced.
#[derive(Debug, PartialEq, Eq)]
pub struct Rights {
    /// No permission for the command.
    pub no_command: &'static str,
    /// No permission for a key.
    pub no_key: &'static str,
    /// No permission for a channel.
    pub no_channel: &'static str,
}

const REDIS_TEXTS: Texts = Texts {
    busy: "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    hello_unauthenticated: "NOAUTH HELLO must be called with the client already authenticated, \
        otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the \
        client and select the RESP protocol version at the same time",
    no_script: "NOSCRIPT No matching script. Please use EVAL.",
    not_in_transaction: "ERR Command not allowed inside a transaction",
    script_killed: "ERR Script killed by user with SCRIPT KILL...",
    script_unknown: "ERR Unknown Redis command called from script",
    script_arity: "ERR Wrong number of args calling Redis command from script",
    script_forbidden: "ERR This Redis command is not allowed from script",
    loading: "LOADING Redis is loading the dataset in memory",
    cannot_save: "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to \
        persist to disk. Commands that may modify the data set are disabled, because this \
        instance is configured to report errors during writes if RDB snapshotting fails \
        (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the \
        RDB error.",
    wait_on_replica: "ERR WAIT cannot be used with replica instances. Please also note that since \
        Redis 4.0 if a replica is configured to be writable (which is not the default) writes to \
        replicas are just local and are not propagated.",
    rights: &Rights {
        no_command: "NOPERM User {user} has no permissions to run the '{command}' command",
        no_key: "NOPERM No permissions to access a key",
        no_channel: "NOPERM No permissions to access a channel",
    },
    rights_in_scripts: &Rights {
        no_command: "ERR ACL failure in script: User {user} has no permissions to run the \
            '{command}' command",
        no_key: "ERR ACL failure in script: No permissions to access a key",
        no_channel: "ERR ACL failure in script: No permissions to access a channel",
    },
};

/// Redis 7.0, the version in Debian.
pub const REDIS_7_0: Profile = Profile {
    name: "redis-7.0",
    server: "redis",
    version: "7.0.15",
    redis_version: "7.0.15",
    modules: &[],
    features: &[],
    asks_who_first: false,
    names_nesting: true,
    style: &script::REDIS_7_0,
    texts: Texts {
        hello_unauthenticated: "NOAUTH HELLO must be called with the client already \
            authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to \
            authenticate the client and select the RESP protocol version at the same time",
        rights: &Rights {
            no_command: "NOPERM this user has no permissions to run the '{command}' command",
            no_key: "NOPERM this user has no permissions to access one of the keys used as \
                arguments",
            no_channel: "NOPERM this user has no permissions to access one of the channels used as \
                arguments",
        },
        rights_in_scripts: &Rights {
            no_command: "ERR The user executing the script can't run this command or subcommand",
            no_key: "ERR The user executing the script can't access at least one of the keys \
                mentioned in the command arguments",
            no_channel: "ERR The user executing the script can't publish to the channel mentioned \
                in the command",
        },
        ..REDIS_TEXTS
    },
};

/// Redis 7.2; also stands for 7.4 and 8.0, which look the same to the commands that are there.
pub const REDIS_7_2: Profile = Profile {
    name: "redis-7.2",
    version: "7.2.7",
    redis_version: "7.2.7",
    features: &[
        Feature::ClientInfo,
        Feature::HelloChecksFirst,
        Feature::OwnMessagesLast,
        Feature::ServesByCommand,
        Feature::TracksScriptReads,
        Feature::WaitAof,
        Feature::WaitInScripts,
    ],
    style: &Style { version: (7, 2, 7), ..script::REDIS_7_0 },
    texts: REDIS_TEXTS,
    ..REDIS_7_0
};

/// Redis 8.4, which has compare-and-set commands of its own.
pub const REDIS_8_4: Profile = Profile {
    name: "redis-8.4",
    version: "8.4.0",
    redis_version: "8.4.0",
    features: &[
        Feature::ClientInfo,
        Feature::Digests,
        Feature::HelloChecksFirst,
        Feature::ListsWatches,
        Feature::OwnMessagesLast,
        Feature::ServesByCommand,
        Feature::SetIfEqual,
        Feature::TracksScriptReads,
        Feature::WaitAof,
        Feature::WaitInScripts,
    ],
    style: &Style { version: (8, 4, 0), ..script::REDIS_7_0 },
    texts: REDIS_TEXTS,
    ..REDIS_7_0
};

/// Valkey 9.
pub const VALKEY_9: Profile = Profile {
    name: "valkey-9",
    server: "valkey",
    version: "9.1.2",
    redis_version: "7.2.4",
    modules: &[("lua", 1)],
    features: &[
        Feature::ClientCapabilities,
        Feature::ClientFilters,
        Feature::ClientInfo,
        Feature::CursorsAreNumbers,
        Feature::DeleteIfEqual,
        Feature::DropsRefusedTransactions,
        Feature::GetexTimeFirst,
        Feature::HelloChecksFirst,
        Feature::ListsWatches,
        Feature::NamesSubcommandsInScripts,
        Feature::OwnMessagesLast,
        Feature::PastDeletes,
        Feature::QueuesWhenFull,
        Feature::QuotesJoin,
        Feature::ReadOnlyAnywhere,
        Feature::ServesByCommand,
        Feature::SetIfEqual,
        Feature::TracksScriptReads,
        Feature::WaitAof,
        Feature::WaitEnds,
        Feature::WaitInScripts,
    ],
    asks_who_first: true,
    names_nesting: false,
    style: &script::VALKEY_9,
    texts: Texts {
        busy: "BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN \
            NOSAVE.",
        no_script: "NOSCRIPT No matching script.",
        not_in_transaction: "ERR Command '{command}' not allowed inside a transaction",
        script_killed: "ERR Script killed by user with SCRIPT KILL.",
        script_unknown: "ERR Unknown command called from script",
        script_arity: "ERR Wrong number of args calling command from script",
        script_forbidden: "ERR This Valkey command is not allowed from script",
        loading: "LOADING Valkey is loading the dataset in memory",
        cannot_save: "MISCONF Valkey is configured to save RDB snapshots, but it's currently \
            unable to persist to disk. Commands that may modify the data set are disabled, \
            because this instance is configured to report errors during writes if RDB \
            snapshotting fails (stop-writes-on-bgsave-error option). Please check the Valkey logs \
            for details about the RDB error.",
        wait_on_replica: "ERR WAIT cannot be used with replica instances. Please also note that \
            if a replica is configured to be writable (which is not the default) writes to \
            replicas are just local and are not propagated.",
        ..REDIS_TEXTS
    },
};

/// All profiles.
pub const PROFILES: [&Profile; 4] = [&REDIS_7_0, &REDIS_7_2, &REDIS_8_4, &VALKEY_9];

impl Profile {
    /// Finds the profile of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        PROFILES.into_iter().find(|profile| profile.name == name)
    }

    /// Returns true if servers of this profile have the feature.
    #[must_use]
    pub fn has(&self, feature: Feature) -> bool {
        feature == Feature::Always || self.features.contains(&feature)
    }
}
