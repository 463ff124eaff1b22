//! Which server a master takes itself for: everything in which servers differ, as data.

use super::script::{self, Style};
use crate::scenario::Server;

/// A server and version.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name in scenarios and on the command line.
    pub name: &'static str,
    /// What `HELLO` calls the server.
    pub server: &'static str,
    /// Its version, as `HELLO` says it.
    pub version: &'static str,
    /// The version of Redis that `INFO` claims.
    pub redis_version: &'static str,
    /// What `HELLO` names as modules: names and versions.
    pub modules: &'static [(&'static str, i64)],
    /// What it has that others have not.
    pub features: &'static [Feature],
    /// It asks who speaks before it looks at what is said.
    pub asks_who_first: bool,
    /// A MULTI within a MULTI is called that, and not a command that is not allowed there.
    pub names_nesting: bool,
    /// In what its scripts differ.
    pub style: &'static Style,
    /// The errors that are worded differently.
    pub texts: Texts,
}

/// Something that not every server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Every server has it.
    Always,
    /// `CLIENT SETINFO`.
    ClientInfo,
    /// `CLIENT CAPA`.
    ClientCapabilities,
    /// `CLIENT KILL` asks for names, libraries, databases, ages and more, and for several numbers.
    ClientFilters,
    /// Cursors may begin with spaces, and are neither nothing nor negative, unless they overflow.
    CursorsAreNumbers,
    /// `DELIFEQ`.
    DeleteIfEqual,
    /// `DELEX`, `DIGEST`, and `SET` with `IFNE`, `IFDEQ`, `IFDNE`.
    Digests,
    /// A transaction in which something was refused forgets what was queued before, and what that needs.
    DropsRefusedTransactions,
    /// `HELLO` heeds its options when all of them were understood, not one after the other.
    HelloChecksFirst,
    /// Scripts are told which subcommand there is not.
    NamesSubcommandsInScripts,
    /// Whose memory is full queues what needs none.
    QueuesWhenFull,
    /// A closed quote may stand within a word of an inline request.
    QuotesJoin,
    /// `READONLY` and `READWRITE` mean nothing without a cluster, and are no errors either.
    ReadOnlyAnywhere,
    /// `GETEX` looks at the time before it looks at the key.
    GetexTimeFirst,
    /// A key that is set to expire in the past is not set but deleted.
    PastDeletes,
    /// `SET` with `IFEQ`.
    SetIfEqual,
    /// Tracking registers the keys that a script reads. Without it, a script that executes any read
    /// has its declared keys registered.
    TracksScriptReads,
    /// `WAITAOF`.
    WaitAof,
    /// `WAIT` and `WAITAOF` refuse to wait beyond what a clock can say.
    WaitEnds,
    /// Scripts may `WAIT`, for nothing.
    WaitInScripts,
}

/// Errors.
#[derive(Debug, PartialEq, Eq)]
pub struct Texts {
    /// What others are told while a script runs for too long.
    pub busy: &'static str,
    /// `HELLO` by somebody who has not said who he is.
    pub hello_unauthenticated: &'static str,
    /// `EVALSHA` of a script that is not known.
    pub no_script: &'static str,
    /// What is no part of a transaction. `{command}` is put in.
    pub not_in_transaction: &'static str,
    /// What the sender of a script is told that somebody ended.
    pub script_killed: &'static str,
    /// What scripts are told of commands that there are not.
    pub script_unknown: &'static str,
    /// What they are told of too few words, or too many.
    pub script_arity: &'static str,
    /// What they are told of commands that are not for them.
    pub script_forbidden: &'static str,
    /// What is said while the data is loaded.
    pub loading: &'static str,
    /// What is said to writes while snapshots fail.
    pub cannot_save: &'static str,
    /// What `WAIT` is told by a replica.
    pub wait_on_replica: &'static str,
    /// What users are told who may not do something.
    pub rights: &'static Rights,
    /// The same in scripts.
    pub rights_in_scripts: &'static Rights,
}

/// What users are told who may not do something. `{user}` and `{command}` are put in.
#[derive(Debug, PartialEq, Eq)]
pub struct Rights {
    /// They may not use a command.
    pub no_command: &'static str,
    /// They may not use a key.
    pub no_key: &'static str,
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
    },
    rights_in_scripts: &Rights {
        no_command: "ERR ACL failure in script: User {user} has no permissions to run the \
            '{command}' command",
        no_key: "ERR ACL failure in script: No permissions to access a key",
    },
};

/// Redis 7.0, the version that Debian has.
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
        },
        rights_in_scripts: &Rights {
            no_command: "ERR The user executing the script can't run this command or subcommand",
            no_key: "ERR The user executing the script can't access at least one of the keys \
                mentioned in the command arguments",
        },
        ..REDIS_TEXTS
    },
};

/// Redis 7.2, and 7.4 and 8.0 as far as lock clients see.
pub const REDIS_7_2: Profile = Profile {
    name: "redis-7.2",
    version: "7.2.7",
    redis_version: "7.2.7",
    features: &[
        Feature::ClientInfo,
        Feature::HelloChecksFirst,
        Feature::TracksScriptReads,
        Feature::WaitAof,
        Feature::WaitInScripts,
    ],
    style: &Style { version: (7, 2, 7), ..script::REDIS_7_0 },
    texts: REDIS_TEXTS,
    ..REDIS_7_0
};

/// Redis 8.4, which compares by itself.
pub const REDIS_8_4: Profile = Profile {
    name: "redis-8.4",
    version: "8.4.0",
    redis_version: "8.4.0",
    features: &[
        Feature::ClientInfo,
        Feature::Digests,
        Feature::HelloChecksFirst,
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
        Feature::NamesSubcommandsInScripts,
        Feature::PastDeletes,
        Feature::QueuesWhenFull,
        Feature::QuotesJoin,
        Feature::ReadOnlyAnywhere,
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

/// All of them.
pub const PROFILES: [&Profile; 4] = [&REDIS_7_0, &REDIS_7_2, &REDIS_8_4, &VALKEY_9];

impl Profile {
    /// The profile of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        PROFILES.into_iter().find(|profile| profile.name == name)
    }

    /// Whether such a server has something.
    #[must_use]
    pub fn has(&self, feature: Feature) -> bool {
        feature == Feature::Always || self.features.contains(&feature)
    }
}

impl From<Server> for &'static Profile {
    fn from(server: Server) -> Self {
        match server {
            Server::Redis7 => &REDIS_7_0,
            Server::Redis72 => &REDIS_7_2,
            Server::Redis84 => &REDIS_8_4,
            Server::Valkey9 => &VALKEY_9,
        }
    }
}
