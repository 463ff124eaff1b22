//! Tests of the assumptions that a scenario breaks.

use super::*;
use lock_judge::history::HostId;
use lock_judge::scenario::File;

fn broken(more: &str) -> String {
    let text = format!(
        "schema = 1\nname = \"x\"\ntitle = \"x\"\n{more}\n\
         [[client]]\nid = \"c1\"\nsteps = [{{ acquire = {{}} }}]\n"
    );
    let cases = File::parse("x.toml", &text).unwrap().cases(&[]).unwrap();
    Assumptions::broken_by(&cases[0].scenario).to_string()
}

fn fault(kind: &str) -> String {
    broken(&format!("[[fault]]\nid = \"f\"\nat = \"1s\"\n{kind}\n"))
}

#[test]
fn clocks_are_bounded_by_half_the_drift() {
    assert_eq!(broken("[cluster.clocks]\nA = { rate-ppm = 5000 }"), "none");
    assert_eq!(broken("[cluster.clocks]\nA = { rate-ppm = -5001 }"), "clock");
    assert_eq!(fault("clock-rate = { host = \"c1\", ppm = 6000 }"), "clock");
    let base = "[cluster.clocks]\nA = { rate-ppm = 3000 }\n[[fault]]\nid = \"f\"\nat = \"1s\"\n";
    let both = |fault: &str| broken(&format!("{base}{fault}"));
    assert_eq!(both("clock-rate = { host = \"A\", ppm = 2000 }"), "none");
    assert_eq!(both("clock-rate = { host = \"A\", ppm = 2001 }"), "clock");
    assert_eq!(both("clock-rate = { host = \"B\", ppm = 2001 }"), "none");
    assert_eq!(both("until = \"2s\"\nclock-slew = { host = \"A\", by = \"3ms\" }"), "clock");
    assert_eq!(fault("until = \"2s\"\nclock-slew = { host = \"A\", by = \"5ms\" }"), "none");
    assert_eq!(fault("until = \"2s\"\nclock-slew = { host = \"A\", by = \"6ms\" }"), "clock");
}

#[test]
fn only_a_node_that_jumps_forward_breaks_an_assumption() {
    assert_eq!(fault("clock-jump = { host = \"A\", by = \"1s\" }"), "clock");
    assert_eq!(fault("clock-jump = { host = \"A\", by = \"-1s\" }"), "none");
    assert_eq!(fault("clock-jump = { host = \"c1\", by = \"1s\" }"), "none");
}

#[test]
fn a_restart_is_judged_by_what_was_promised() {
    let restart = |guard: &str, more: &str| {
        broken(&format!(
            "[lock]\nrestart-guard = \"{guard}\"\n{more}[[fault]]\nid = \"f\"\nat = \"1s\"\n\
             kill = {{ host = \"A\", restart-after = \"2s\" }}\n"
        ))
    };
    assert_eq!(restart("quarantine", ""), "none");
    assert_eq!(restart("durable", ""), "memory");
    assert_eq!(restart("durable", "[cluster]\npersistence = \"always\"\n"), "none");
    assert_eq!(restart("delayed-restart", ""), "memory");
    assert_eq!(restart("delayed-restart", "ttl = \"1s\"\n"), "none");
    assert_eq!(fault("kill = { host = \"c1\", restart-after = \"1s\" }"), "none");
}

#[test]
fn deletions_and_evictions_have_assumptions_of_their_own() {
    assert_eq!(fault("delete = { host = \"A\" }"), "operator");
    assert_eq!(fault("evict = { host = \"A\" }"), "memory");
    assert_eq!(fault("flush = { host = \"A\" }"), "none");
    let promised = "[lock]\nrestart-guard = \"durable\"\n\
                    [[fault]]\nid = \"f\"\nat = \"1s\"\nflush = { host = \"A\" }";
    assert_eq!(broken(promised), "memory");
    assert_eq!(fault("enabled = false\nevict = { host = \"A\" }"), "none");
    assert_eq!(broken("[cluster.disk]\nlies = true"), "memory");
}

#[test]
fn clients_share_their_nodes_in_any_order_and_nothing_else() {
    let clients = |own: &str| {
        broken(&format!("[[client]]\nid = \"c2\"\n{own}\nsteps = [{{ acquire = {{}} }}]\n"))
    };
    assert_eq!(clients("nodes = [\"E\", \"D\", \"C\", \"B\", \"A\"]"), "none");
    assert_eq!(clients("nodes = [\"A\", \"B\", \"C\"]"), "membership");
    assert_eq!(clients("copy-of = \"c1\""), "randomness");
    let own = "nodes = [\"A\", \"B\", \"B2\"]\nsteps = [{ acquire = {} }]";
    let alone = format!(
        "schema = 1\nname = \"x\"\ntitle = \"x\"\ncluster.aliases = {{ B2 = \"B\" }}\n\
         [[client]]\nid = \"c1\"\n{own}\n"
    );
    let cases = File::parse("x.toml", &alone).unwrap().cases(&[]).unwrap();
    assert_eq!(Assumptions::broken_by(&cases[0].scenario).to_string(), "membership");
}

#[test]
fn a_cause_is_looked_for_at_its_host() {
    let text = "schema = 1\nname = \"x\"\ntitle = \"x\"\n\
                [cluster.clocks]\nA = { rate-ppm = 6000 }\nB = { rate-ppm = 5000 }\n\
                [[client]]\nid = \"c1\"\nsteps = [{ acquire = {} }]\n\
                [[fault]]\nid = \"f\"\nat = \"1s\"\nevict = { host = \"C\" }\n";
    let cases = File::parse("x.toml", text).unwrap().cases(&[]).unwrap();
    let scenario = &cases[0].scenario;
    let is_broken = |cause: fn(HostId) -> Blame| {
        let hosts = scenario.host_ids().filter(|host| is_broken_at(scenario, cause(*host)));
        hosts.map(|host| scenario.host_name(host)).collect::<Vec<_>>()
    };
    assert_eq!(is_broken(Blame::Clock), ["A"]);
    assert_eq!(is_broken(Blame::Amnesia), ["C"]);
    assert!(!is_broken_at(scenario, Blame::Membership));
    let forgetful: Vec<_> =
        scenario.host_ids().filter(|host| may_forget(scenario, Blame::Amnesia(*host))).collect();
    assert_eq!(forgetful, [scenario.host_named("C").expect("a host of the scenario")]);
}

#[test]
fn a_cause_at_a_replica_is_one_at_its_node() {
    let text = "schema = 1\nname = \"x\"\ntitle = \"x\"\n\
                [cluster.clocks]\nA = { rate-ppm = 6000 }\nC2 = { rate-ppm = 6000 }\n\
                [[cluster.replica]]\nid = \"C2\"\nof = \"C\"\n\
                [[client]]\nid = \"c1\"\nsteps = [{ acquire = {} }]\n";
    let cases = File::parse("x.toml", text).unwrap().cases(&[]).unwrap();
    let scenario = &cases[0].scenario;
    let is_broken = |host: &&str| {
        let host = scenario.host_named(host).expect("a host of the scenario");
        is_broken_at(scenario, Blame::Clock(host))
    };
    let broken: Vec<_> = ["A", "B", "C", "C2"].into_iter().filter(is_broken).collect();
    assert_eq!(broken, ["A", "C", "C2"]);
}

#[test]
fn the_clock_of_a_replica_is_promised_only_where_failovers_are() {
    let is_broken = |guard: &str| {
        let text = format!(
            "schema = 1\nname = \"x\"\ntitle = \"x\"\n[lock]\nrestart-guard = \"{guard}\"\n\
             [[cluster.replica]]\nid = \"C2\"\nof = \"C\"\n\
             [[client]]\nid = \"c1\"\nsteps = [{{ acquire = {{}} }}]\n\
             [[fault]]\nid = \"f\"\nat = \"1s\"\nfailover = {{ node = \"C\", to = \"C2\" }}\n"
        );
        let cases = File::parse("x.toml", &text).unwrap().cases(&[]).unwrap();
        let scenario = &cases[0].scenario;
        let host = scenario.host_named("C2").expect("a host of the scenario");
        is_broken_at(scenario, Blame::Clock(host))
    };
    assert!(is_broken("durable"));
    assert!(!is_broken("quarantine"));
}

#[test]
fn a_misspelt_assumption_is_answered_with_the_nearest() {
    let error = "memroy".parse::<Assumption>().unwrap_err();
    assert!(error.contains("did you mean `memory`?"), "{error}");
    let error = "weather".parse::<Assumption>().unwrap_err();
    assert!(error.contains("`operator`, `membership`, `randomness`"), "{error}");
}

#[test]
fn a_lock_on_one_node_is_at_the_first_node_of_a_list() {
    let broken = |subject: &str, nodes: &str| {
        let client = |id: &str, more: &str| {
            let steps = "steps = [{ acquire = {} }]";
            format!("[[client]]\nid = \"{id}\"\nsubject = \"{subject}\"\n{more}\n{steps}\n")
        };
        let clients = client("c1", "") + &client("c2", &format!("nodes = {nodes}"));
        let text = format!("schema = 1\nname = \"x\"\ntitle = \"x\"\n{clients}");
        let cases = File::parse("x.toml", &text).unwrap().cases(&[]).unwrap();
        Assumptions::broken_by(&cases[0].scenario).to_string()
    };
    for subject in ["getset", "unique-id"] {
        assert_eq!(broken(subject, r#"["B", "A", "C", "D", "E"]"#), "membership");
        assert_eq!(broken(subject, r#"["A", "C"]"#), "none");
    }
    assert_eq!(broken("redlock-literal", r#"["B", "A", "C", "D", "E"]"#), "none");
    assert_eq!(broken("redlock-literal", r#"["A", "C"]"#), "membership");
}
