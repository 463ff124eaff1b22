//! `INFO`: the server's description of itself, in sections.

use core::fmt::Write;

use super::call::is;
use super::{Call, Keys, LOADING, Outcome, STALE, Spec};
use crate::resp::Value;
use crate::subscribed::Kind;

pub(super) const COMMANDS: &[Spec] = &[Spec::new("info", -1, LOADING | STALE, Keys::None, info)];

type Section = fn(&Call<'_>, &mut String) -> core::fmt::Result;

/// Sections: the name, true if the section is part of the default output, and the function that
/// writes it.
const SECTIONS: &[(&str, bool, Section)] = &[
    ("Server", true, server),
    ("Clients", true, clients),
    ("Memory", true, memory),
    ("Persistence", true, persistence),
    ("Stats", true, stats),
    ("Replication", true, replication),
    ("CPU", true, cpu),
    ("Modules", true, nothing),
    ("Commandstats", false, command_stats),
    ("Errorstats", true, nothing),
    ("Cluster", true, |_, text| text.write_str("cluster_enabled:0\r\n")),
    ("Keyspace", true, keyspace),
];

fn info(call: &mut Call<'_>) -> Outcome {
    let asked = call.arguments();
    let named = |name: &str| asked.iter().any(|section| is(section, name));
    let usual = asked.is_empty() || named("DEFAULT");
    let all = named("ALL") || named("EVERYTHING");
    let mut text = String::new();
    for (name, is_usual, section) in SECTIONS {
        if all || (usual && *is_usual) || named(name) {
            let before = if text.is_empty() { "" } else { "\r\n" };
            let written = write!(text, "{before}# {name}\r\n");
            written.and_then(|()| section(call, &mut text)).expect("strings can be written to");
        }
    }
    Ok(Value::text(text))
}

fn nothing(_: &Call<'_>, _: &mut String) -> core::fmt::Result {
    Ok(())
}

fn server(call: &Call<'_>, text: &mut String) -> core::fmt::Result {
    let (server, profile) = (&call.server, call.server.profile());
    let introduction = server.introduction(call.wall_ms());
    write!(text, "redis_version:{}\r\n", profile.redis_version)?;
    if profile.server != "redis" {
        write!(text, "server_name:{}\r\n", profile.server)?;
        write!(text, "{}_version:{}\r\n", profile.server, profile.version)?;
    }
    text.write_str("redis_mode:standalone\r\narch_bits:64\r\nmultiplexing_api:epoll\r\n")?;
    write!(text, "process_id:{}\r\nrun_id:", server.process_id())?;
    introduction.run_id.iter().try_for_each(|byte| write!(text, "{byte:02x}"))?;
    write!(text, "\r\ntcp_port:{}\r\n", server.config().get("port"))?;
    write!(text, "server_time_usec:{}\r\n", call.turn.wall_ns / 1_000)?;
    let uptime_s = introduction.uptime_s;
    write!(text, "uptime_in_seconds:{uptime_s}\r\nuptime_in_days:{}\r\n", uptime_s / 86_400)?;
    text.write_str("hz:10\r\nconfigured_hz:10\r\nexecutable:redis-server\r\nconfig_file:\r\n")
}

fn clients(call: &Call<'_>, text: &mut String) -> core::fmt::Result {
    let server = &call.server;
    write!(text, "connected_clients:{}\r\ncluster_connections:0\r\n", server.clients().len())?;
    write!(text, "maxclients:{}\r\nblocked_clients:0\r\n", server.config().get("maxclients"))?;
    write!(text, "tracking_clients:{}\r\n", server.tracked.listener_count())?;
    text.write_str("clients_in_timeout_table:0\r\n")
}

fn memory(call: &Call<'_>, text: &mut String) -> core::fmt::Result {
    let server = &call.server;
    write!(text, "used_memory:{0}\r\nused_memory_peak:{0}\r\n", server.memory_used())?;
    write!(text, "number_of_cached_scripts:{}\r\n", server.script_count())?;
    write!(text, "maxmemory:{}\r\n", server.config().get("maxmemory"))?;
    write!(text, "maxmemory_policy:{}\r\n", server.config().get("maxmemory-policy"))?;
    text.write_str("mem_fragmentation_ratio:1.00\r\n")
}

fn persistence(call: &Call<'_>, text: &mut String) -> core::fmt::Result {
    let server = &call.server;
    write!(text, "loading:{}\r\nasync_loading:0\r\n", u8::from(server.is_loading()))?;
    if server.is_loading() {
        text.write_str("loading_eta_seconds:1\r\n")?;
    }
    text.write_str("rdb_changes_since_last_save:0\r\nrdb_bgsave_in_progress:0\r\n")?;
    write!(text, "rdb_last_save_time:{}\r\n", server.saved_wall_s())?;
    let saved = if server.is_unable_to_save() { "err" } else { "ok" };
    write!(text, "rdb_last_bgsave_status:{saved}\r\n")?;
    write!(text, "aof_enabled:{}\r\n", u8::from(server.config().is_on("appendonly")))?;
    text.write_str("aof_rewrite_in_progress:0\r\naof_last_bgrewrite_status:ok\r\n")?;
    text.write_str("aof_last_write_status:ok\r\n")
}

fn stats(call: &Call<'_>, text: &mut String) -> core::fmt::Result {
    let statistics = call.server.statistics();
    let (keys, items) = call.server.tracked.counts();
    write!(text, "total_commands_processed:{}\r\n", statistics.total())?;
    text.write_str("instantaneous_ops_per_sec:0\r\nrejected_connections:0\r\n")?;
    let named = |kind| call.server.subscribed.names(kind).count();
    write!(text, "pubsub_channels:{}\r\n", named(Kind::Channel))?;
    write!(text, "pubsub_patterns:{}\r\n", named(Kind::Pattern))?;
    write!(text, "pubsubshard_channels:{}\r\n", named(Kind::Shard))?;
    write!(text, "tracking_total_keys:{keys}\r\ntracking_total_items:{items}\r\n")?;
    text.write_str("tracking_total_prefixes:0\r\n")?;
    write!(text, "total_error_replies:{}\r\n", statistics.errors())
}

fn replication(call: &Call<'_>, text: &mut String) -> core::fmt::Result {
    let server = &call.server;
    if server.is_replica() {
        text.write_str("role:slave\r\nmaster_host:127.0.0.1\r\nmaster_port:6379\r\n")?;
        text.write_str("master_link_status:down\r\nslave_read_only:1\r\n")?;
    } else {
        text.write_str("role:master\r\n")?;
    }
    write!(text, "connected_slaves:{}\r\n", server.replica_count())?;
    text.write_str("master_failover_state:no-failover\r\nmaster_replid:")?;
    let (history, is_promoted) = server.history();
    history.iter().try_for_each(|byte| write!(text, "{byte:02x}"))?;
    let offset = server.stream().len();
    write!(text, "\r\nmaster_repl_offset:{offset}\r\n")?;
    let second = if is_promoted { i64::from(offset) + 1 } else { -1 };
    write!(text, "second_repl_offset:{second}\r\n")
}

fn cpu(_: &Call<'_>, text: &mut String) -> core::fmt::Result {
    text.write_str("used_cpu_sys:0.000000\r\nused_cpu_user:0.000000\r\n")
}

fn command_stats(call: &Call<'_>, text: &mut String) -> core::fmt::Result {
    for (name, calls) in call.server.statistics().commands() {
        let (executed, rejected, failed) = (calls.executed, calls.rejected, calls.failed);
        write!(text, "cmdstat_{name}:calls={executed},usec=0,usec_per_call=0.00,")?;
        write!(text, "rejected_calls={rejected},failed_calls={failed}\r\n")?;
    }
    Ok(())
}

fn keyspace(call: &Call<'_>, text: &mut String) -> core::fmt::Result {
    let databases = call.server.databases();
    for number in 0..databases.len() {
        let Some(keys) = databases.get(number).filter(|keys| !keys.is_empty()) else { continue };
        let expires = keys.iter().filter(|(_, entry)| entry.expires_wall_ms.is_some()).count();
        write!(text, "db{number}:keys={},expires={expires},avg_ttl=0\r\n", keys.len())?;
    }
    Ok(())
}
