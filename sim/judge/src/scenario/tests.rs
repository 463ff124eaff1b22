//! Tests of parsing, of expanding files into cases, and of the messages for mistakes.

use super::*;

const CLOCK_JUMP: &str = include_str!("testdata/clock-jump.toml");
const PAUSE_SWEEP: &str = include_str!("testdata/pause-sweep.toml");

const POINTS: [&str; 14] = [
    "before-t1",
    "before-write-a",
    "before-write-b",
    "before-write-c",
    "before-execute-a",
    "before-execute-b",
    "before-execute-c",
    "before-reply-a",
    "before-reply-b",
    "before-reply-c",
    "before-t2",
    "before-deliver",
    "before-look",
    "before-enter",
];
const TWO_BY_TWO: [&str; 4] =
    ["two-points-t1-5s", "two-points-t1-10s", "two-points-t2-5s", "two-points-t2-10s"];

/// Returns the cases of `text`, or all its problems.
fn cases_of(path: &str, text: &str, overrides: &[&str]) -> Result<Vec<Case>, Problems> {
    let overrides: Vec<Override> = overrides.iter().map(|it| it.parse().unwrap()).collect();
    File::parse(path, text)?.cases(&overrides)
}

/// Returns the error message for the valid scenario with `from` replaced by `to`.
fn complaint(from: &str, to: &str) -> String {
    let text = CLOCK_JUMP.replacen(from, to, 1);
    assert_ne!(text, CLOCK_JUMP, "nothing to replace");
    cases_of("scenarios/clock-jump.toml", &text, &[]).expect_err("it is wrong").to_string()
}

/// Returns the clock jump of the scenario of these tests.
fn jump(case: &Case) -> &ClockBy {
    match &case.scenario.faults[1].kind {
        FaultKind::ClockJump(by) => by,
        other => panic!("{other:?}"),
    }
}

fn names(cases: &[Case]) -> Vec<String> {
    cases.iter().map(Case::full_name).collect()
}

#[test]
fn a_file_is_its_base_and_its_cases() {
    let cases = cases_of("clock-jump.toml", CLOCK_JUMP, &[]).unwrap();
    assert_eq!(
        names(&cases),
        [
            "clock-jump",
            "clock-jump::a-jump-inside-the-drift-allowance-is-harmless",
            "clock-jump::five-votes-survive-one-forgetful-node",
        ]
    );
    let jumps = cases.iter().map(|case| jump(case).by.max);
    let seconds = |ms: i64| SignedSpan(ms * 1_000_000);
    assert_eq!(jumps.collect::<Vec<_>>(), [seconds(10_000), seconds(90), seconds(10_000)]);
    assert_eq!(cases[0].scenario.expect.len(), 2);
    assert!(cases[1].scenario.expect.is_empty(), "a case's expectations replace the base's");
    assert!(cases[2].scenario.expect.is_empty(), "also when it has none");
    assert!(!cases[2].scenario.faults[0].enabled);
}

#[test]
fn a_star_is_every_point_and_a_sweep_is_every_combination() {
    let cases = cases_of("pause-sweep.toml", PAUSE_SWEEP, &[]).unwrap();
    let slugs: Vec<&str> = cases.iter().filter_map(|case| case.slug.as_deref()).collect();
    assert_eq!(slugs, POINTS.into_iter().chain(TWO_BY_TWO).collect::<Vec<_>>());
    let At::Point(point) = &cases[9].scenario.faults[0].at else { panic!("a point") };
    assert_eq!((point.before, point.node.as_deref()), (AttemptStep::Reply, Some("C")));
}

/// Puts `hold` and `point` into the sweep scenario and returns the parsed values. Also checks that
/// the written scenario parses to the same value.
fn read_as(hold: &str, point: &str) -> (Hold, WhichAttempt) {
    let (base, _) = PAUSE_SWEEP.split_once("[[case]]").unwrap();
    let text = base.replace("\"1s\"", hold).replace("before = \"*\"", point);
    let mut cases = cases_of("pause-sweep.toml", &text, &[]).unwrap();
    let scenario = cases.swap_remove(0).scenario;
    let written = toml::to_string(&scenario).unwrap();
    assert_eq!(cases_of("pause-sweep.toml", &written, &[]).unwrap()[0].scenario, scenario);
    let At::Point(point) = &scenario.faults[0].at else { panic!("a point") };
    (scenario.clients[0].steps[1].hold.unwrap(), point.attempt)
}

#[test]
fn a_hold_and_an_attempt_have_more_than_one_form() {
    let length = SpanRange::exactly(Span::from_ms(20_000));
    for (hold, point, expected) in [
        ("\"20s\"", "before = \"t2\"", (false, WhichAttempt::Nth(1))),
        ("{ for = \"20s\" }", "before = \"t2\", attempt = 3", (false, WhichAttempt::Nth(3))),
        (
            "{ for = \"20s\", or-lost = true }",
            "before = \"t2\", attempt = \"any\"",
            (true, WhichAttempt::Any),
        ),
        ("\"20s\"", "before = \"look\", attempt = \"granted\"", (false, WhichAttempt::Granted)),
    ] {
        let (or_lost, attempt) = expected;
        assert_eq!(
            read_as(hold, point),
            (Hold::For { length, or_lost }, attempt),
            "{hold} {point}"
        );
    }
}

/// Returns what a file with one client of these steps and one fault says, read and written again.
fn drawn(steps: &str, fault: &str) -> Scenario {
    let text = format!(
        "schema = 1\nname = \"x\"\ntitle = \"x\"\n[[client]]\nid = \"c1\"\nsteps = [{steps}]\n\
         [[fault]]\nid = \"f\"\n{fault}"
    );
    let scenario = cases_of("x.toml", &text, &[]).unwrap().remove(0).scenario;
    let written = toml::to_string(&scenario).unwrap();
    assert_eq!(cases_of("x.toml", &written, &[]).unwrap()[0].scenario, scenario);
    scenario
}

#[test]
fn what_is_left_to_the_seed_is_a_range() {
    let steps = "{ repeat = { times = \"3..20\", steps = [{ acquire = {} }, \
                 { hold = { for = \"5ms..3s\", or-lost = true } }, { sleep = \"1s..2s\" }] } }";
    let fault = "at = \"5ms..3s\"\nevery = \"1s..2s\"\ntimes = 3\nchance = \"25%\"\n\
                 clock-jump = { host = \"A\", by = \"-1s..2s\" }";
    let scenario = drawn(steps, fault);
    let repeat = scenario.clients[0].steps[0].repeat.as_ref().unwrap();
    assert_eq!((repeat.times.min, repeat.times.max, repeat.steps.len()), (3, 20, 3));
    let fault = &scenario.faults[0];
    assert_eq!((fault.times_max(), fault.chance.ppm()), (3, 250_000));
    assert_eq!(fault.last_start(), Some(Span::from_ms(7_000)));
    assert_eq!(scenario.clients[0].all_steps().count(), 4);
}

#[test]
fn a_fault_at_a_time_may_have_a_length_instead_of_an_end() {
    let fault = "at = \"1s\"\nlasts = \"1s..2s\"\nstall = { host = \"A\" }";
    assert_eq!(drawn("{ acquire = {} }", fault).faults[0].until, None);
}

#[test]
fn an_override_comes_last_and_is_remembered() {
    let overrides = ["lock.ttl=5s", "fault.jump.clock-jump.by=-2s", "run.seeds=0..3"];
    let cases = cases_of("clock-jump.toml", CLOCK_JUMP, &overrides).unwrap();
    for case in cases {
        assert_eq!(case.scenario.lock.ttl, Span::from_ms(5_000));
        assert_eq!(case.scenario.run.seeds, SeedRange(0..3));
        assert_eq!(jump(&case).by.to_string(), "-2s");
        assert_eq!(case.overrides, overrides);
    }
}

#[test]
fn a_written_scenario_reads_as_it_was() {
    for (path, text) in [("clock-jump.toml", CLOCK_JUMP), ("pause-sweep.toml", PAUSE_SWEEP)] {
        for case in cases_of(path, text, &[]).unwrap() {
            let written = toml::to_string(&case.scenario).unwrap();
            let read = cases_of(path, &written, &[]).unwrap();
            assert_eq!(read[0].scenario, case.scenario);
        }
    }
}

/// Pairs `(from, to)`: the text to replace in the valid scenario, and the mistake to put there.
const MISTAKES: &[(&str, &str)] = &[
    // Not TOML, or with unknown or missing keys.
    ("schema = 1", "schema = 1 1"),
    ("ttl      =", "tll      ="),
    ("ttl      = \"10s\"", "ttl      = 10"),
    ("ttl      = \"10s\"", "ttl      = \"10 s\""),
    ("clock-jump =", "clock-jmp ="),
    ("release = {}", "relaese = {}"),
    ("delay = \"1ms..5ms\"", "delay = \"5ms..1ms\""),
    ("at = \"1s\"", "at = { client = \"c1\", before = \"t3\" }"),
    ("mutual-exclusion ", "mutual-exclusoin "),
    ("verdict = \"violated\"", "verdict = \"violatd\""),
    ("name   = \"clock-jump\"\n", ""),
    ("seeds = \"0..100\"", "seeds = \"5..5\""),
    // Names.
    ("schema = 1", "schema = 2"),
    ("name   = \"clock-jump\"", "name   = \"clock-jumps\""),
    ("name   = \"clock-jump\"", "name   = \"Clock Jump\""),
    ("id    = \"c2\"", "id    = \"c1\""),
    ("id    = \"c2\"", "id    = \"A\""),
    ("id    = \"c2\"", "id    = \"probe\""),
    ("id    = \"c2\"", "id    = \"2c\""),
    ("id = \"jump\"", "id = \"c1-sees-abc\""),
    ("\"E\"]\nnetwork", "\"D\"]\nnetwork"),
    ("id    = \"c1\"", "id    = \"c1\"\nsubject = \"redlock-litteral\""),
    ("id    = \"c1\"", "id    = \"c1\"\nconnections = \"pooled\""),
    ("id    = \"c1\"", "id    = \"c1\"\nsubject = \"php-redlock\"\nconnections = \"pooled\""),
    // Numbers.
    ("\"E\"]\nnetwork", "\"E\", \"F\", \"G\", \"H\", \"I\", \"J\"]\nnetwork"),
    ("[\"A\", \"B\", \"C\", \"D\", \"E\"]\nnetwork", "[]\nnetwork"),
    ("ttl      = \"10s\"", "ttl      = \"0s\""),
    ("ttl      = \"10s\"", "ttl      = \"1500us\""),
    ("ttl      = \"10s\"", "ttl      = \"10s\"\nnode-timeout = \"0ms\""),
    ("ttl      = \"10s\"", "ttl      = \"10s\"\nfleet-max-ttl = \"5s\""),
    ("ttl      = \"10s\"", "ttl      = \"10s\"\nplain-extensions = true"),
    ("ttl      = \"10s\"", "ttl      = \"10s\"\nplain-extension = true"),
    ("network = {", "server = \"redis-8\"\nnetwork = {"),
    ("acquire = {}", "acquire = { keep-alive = \"0s\" }"),
    ("acquire = {}", "acquire = { keep-alive = \"10001s\" }"),
    ("acquire = {}", "acquire = { keepalive = \"30s\" }"),
    (
        "steps = [ { at = \"0s\", acquire = {} }",
        "subject = \"redlock-literal\"\nsteps = [ { at = \"0s\", acquire = { keep-alive = \"30s\" } }",
    ),
    ("[run]", "[cluster.clocks]\nC = { rate-ppm = -1000000 }\n[run]"),
    ("[run]", "[cluster.clocks]\nF = { rate-ppm = 1 }\n[run]"),
    ("at = \"1s\"", "at = \"1000000000m\""),
    ("ttl      = \"10s\"", "ttl      = \"20m\""),
    ("until = \"12s\" } }", "until = \"50m\" } }"),
    // Steps.
    ("[ { at = \"0s\", acquire = {} }, { hold = \"until-deadline\" }, { release = {} } ]", "[]"),
    ("acquire = {}", "acquire = {}, hold = \"1s\""),
    ("{ hold = \"2s\" }", "{ }"),
    ("{ hold = \"2s\" }", "{ leave = {} }"),
    ("until = \"12s\" } }", "until = \"12s\", attempts = 2 } }"),
    ("until = \"12s\" } }", "until = \"1s\" } }"),
    ("{ at = \"0s\", acquire = {} }, ", ""),
    // Faults.
    ("until = \"12s\"\npartition", "until = \"0s\"\npartition"),
    ("until = \"12s\"\npartition", "until = \"12s\"\nlasts = \"12s\"\npartition"),
    ("at = \"0s\"\nuntil", "at = { client = \"c1\", before = \"t2\" }\nuntil"),
    ("at = \"1s\"", "at = { client = \"c3\", before = \"t2\" }"),
    ("at = \"1s\"", "at = { client = \"c2\", before = \"t2\", node = \"A\" }"),
    ("at = \"1s\"", "at = \"1s\"\nuntil = \"2s\""),
    ("clock-jump = { host = \"C\", by = \"10s\" }", ""),
    ("clock-jump =", "flush = { host = \"A\" }\nclock-jump ="),
    ("clock-jump =", "clock-slew ="),
    ("clock-jump = { host = \"C\", by = \"10s\" }", "pause = { host = \"C\" }"),
    ("clock-jump = { host = \"C\", by = \"10s\" }", "stall = { host = \"c1\" }"),
    ("host = \"C\"", "host = \"F\""),
    ("by = \"10s\"", "by = \"0s\""),
    ("[[\"c1\"], [\"D\", \"E\"]]", "[[\"c1\"], []]"),
    ("[[\"c1\"], [\"D\", \"E\"]]", "[[\"c1\"], [\"D\", \"c1\"]]"),
    // Repetition and chance.
    ("until = \"12s\"\npartition", "until = \"12s\"\nevery = \"1s\"\npartition"),
    ("until = \"12s\"\npartition", "until = \"12s\"\ntimes = 2\npartition"),
    ("until = \"12s\"\npartition", "until = \"12s\"\nevry = \"1s\"\npartition"),
    ("until = \"12s\"\npartition", "until = \"12s\"\nevery = \"1s\"\ntimes = 2\npartition"),
    ("until = \"12s\"\npartition", "every = \"1s\"\ntimes = 2\npartition"),
    ("until = \"12s\"\npartition", "lasts = \"1s..2s\"\nevery = \"2s\"\ntimes = 2\npartition"),
    ("until = \"12s\"\npartition", "lasts = \"1s\"\nevery = \"2s\"\ntimes = 0\npartition"),
    ("until = \"12s\"\npartition", "lasts = \"1s\"\nevery = \"2s\"\ntimes = \"9..3\"\npartition"),
    ("until = \"12s\"\npartition", "lasts = \"1s\"\nevery = \"50m\"\ntimes = 3\npartition"),
    ("at = \"1s\"", "at = \"1s\"\nchance = 0.25"),
    ("at = \"1s\"", "at = \"1s\"\nchance = \"125%\""),
    ("at = \"1s\"", "at = \"1s\"\nchance = \"0%\""),
    ("at = \"1s\"", "at = \"3s..1s\""),
    ("at = \"0s\"\nuntil", "at = \"0s..12s\"\nuntil"),
    ("by = \"10s\"", "by = \"10s..-10s\""),
    ("{ hold = \"2s\" }", "{ hold = \"2s..1s\" }"),
    ("{ hold = \"2s\" }", "{ repeat = { times = 0, steps = [{ hold = \"2s\" }] } }"),
    ("{ hold = \"2s\" }", "{ repeat = { times = \"2\", steps = [] } }"),
    ("{ hold = \"2s\" }", "{ repeat = { steps = [{ hold = \"2s\" }] } }"),
    ("{ hold = \"2s\" }", "{ repeat = { times = 2, step = [{ hold = \"2s\" }] } }"),
    ("{ hold = \"2s\" }", "{ repeat = { times = 2, steps = [{ enter = {} }] } }"),
    (
        "{ hold = \"2s\" }",
        "{ repeat = { times = 2, steps = [{ repeat = { times = 2, steps = [] } }] } }",
    ),
    (
        "{ hold = \"2s\" }",
        "{ repeat = { times = 1000, steps = [{ acquire = { attempts = 100 } }] } }",
    ),
    // Disks.
    ("clock-jump = { host = \"C\", by = \"10s\" }", "kill = { host = \"C\", torn = true }"),
    (
        "clock-jump = { host = \"C\", by = \"10s\" }",
        "power = { host = \"C\", measured-on = \"wall\" }",
    ),
    ("clock-jump = { host = \"C\", by = \"10s\" }", "power = { host = \"C\", backup-of = \"2s\" }"),
    ("clock-jump = { host = \"C\", by = \"10s\" }", "kill = { host = \"c1\", backup-of = \"0s\" }"),
    ("clock-jump = { host = \"C\", by = \"10s\" }", "snapshot = { host = \"C\" }"),
    ("clock-jump = { host = \"C\", by = \"10s\" }", "shutdown = { host = \"c1\" }"),
    ("network = {", "disk = { sync-at = \"1s\" }\nnetwork = {"),
    ("network = {", "disk = { sync-take = \"1s\" }\nnetwork = {"),
    ("network = {", "persistence = \"everysecond\"\nnetwork = {"),
    // Replicas.
    ("[lock]", "[[cluster.replica]]\nid = \"R\"\nof = \"F\"\n[lock]"),
    ("[lock]", "[[cluster.replica]]\nid = \"c1\"\nof = \"C\"\n[lock]"),
    ("clock-jump = { host = \"C\", by = \"10s\" }", "failover = { node = \"C\", to = \"D\" }"),
    (
        "clock-jump = { host = \"C\", by = \"10s\" }",
        "failover = { node = \"C\", to = \"C\", told = [\"c3\"] }",
    ),
    // Roles, databases and proxies.
    ("clock-jump = { host = \"C\", by = \"10s\" }", "demote = { host = \"C\", of = \"D\" }"),
    ("clock-jump = { host = \"C\", by = \"10s\" }", "demote = { host = \"c1\" }"),
    ("clock-jump = { host = \"C\", by = \"10s\" }", "attach = { host = \"C\" }"),
    ("clock-jump = { host = \"C\", by = \"10s\" }", "flush = { host = \"C\", database = 16 }"),
    ("clock-jump = { host = \"C\", by = \"10s\" }", "swap = { host = \"C\", databases = [1, 1] }"),
    (
        "clock-jump = { host = \"C\", by = \"10s\" }",
        "kill = { host = \"C\", behind-a-proxy = true }",
    ),
    (
        "clock-jump = { host = \"C\", by = \"10s\" }",
        "kill = { host = \"c1\", restart-after = \"1s\", behind-a-proxy = true }",
    ),
    // Groups of hosts.
    ("host = \"C\"", "host = []"),
    ("host = \"C\"", "host = [\"C\", \"C\"]"),
    ("host = \"C\"", "host = [\"C\", \"F\"]"),
    ("host = \"C\"", "host = 3"),
    // Points.
    ("at = \"1s\"", "at = { client = \"c1\", before = \"t1\", attempt = 0 }"),
    ("at = \"1s\"", "at = { client = \"c1\", before = \"t1\", attempt = \"granted\" }"),
    ("at = \"1s\"", "at = { client = \"c1\", before = \"t1\", attempt = \"all\" }"),
    // Holds.
    ("{ hold = \"2s\" }", "{ hold = \"until\" }"),
    ("{ hold = \"2s\" }", "{ hold = { or-lost = true } }"),
    ("{ hold = \"2s\" }", "{ hold = { for = \"61m\", or-lost = true } }"),
    // Extensions.
    ("{ hold = \"2s\" }", "{ extend = { times = 0 } }"),
    ("{ hold = \"2s\" }", "{ extend = { ttl = \"1500us\" } }"),
    ("{ hold = \"2s\" }", "{ extend = { evry = \"1s\" } }"),
    ("{ hold = \"2s\" }", "{ extend = {}, hold = \"2s\" }"),
    ("ttl      = \"10s\"", "ttl      = \"10s\"\nextensions-max = -1"),
    ("network = {", "active-expiry = \"early\"\nnetwork = {"),
    // Expectations.
    ("{ verdict = \"violated\", blame = [\"clock(C)\"] }", "\"sometimes\""),
    (
        "{ verdict = \"violated\", blame = [\"clock(C)\"] }",
        "{ verdict = \"holds\", blame = [\"pause\"] }",
    ),
    ("blame = [\"clock(C)\"]", "blame = [\"clock(F)\"]"),
    ("blame = [\"clock(C)\"]", "blame = [\"clock\"]"),
    ("blame = [\"clock(C)\"]", "blame = [\"paus\"]"),
    ("blame = [\"clock(C)\"]", "blame = [\"none\", \"clock(C)\", \"none\"]"),
    ("exclusive-section = {", "tidy = { overlap-at-least = \"1s\","),
    // Cases.
    ("fault.jump.clock-jump.by", "fault.jmp.clock-jump.by"),
    ("fault.jump.clock-jump.by", "fault.jump.clock-jmp.by"),
    ("fault.jump.clock-jump.by", "fault.jump.at.before"),
    ("fault.jump.clock-jump.by\" = \"90ms\"", "fault.jump.clock-jump.by\" = \"0ms\""),
    ("fault.jump.clock-jump.by", "name"),
    ("five votes survive one forgetful node", "a jump inside the DRIFT allowance is harmless!"),
    ("five votes survive one forgetful node", "…"),
    ("set    = { \"fault.c1", "sweep = { \"lock.ttl\" = [] }\nset = { \"fault.c1"),
    ("set    = { \"fault.c1", "sweep = { \"lock.ttl\" = [\"1s\", \"0s\"] }\nset = { \"fault.c1"),
];

#[test]
fn every_mistake_is_shown_where_it_is() {
    let all = MISTAKES.iter().map(|(from, to)| complaint(from, to)).collect::<Vec<_>>();
    insta::assert_snapshot!(all.join("\n\n"));
}

#[test]
fn a_setting_that_is_wrong_is_shown_as_it_was_given() {
    let said = |setting: &str| {
        cases_of("clock-jump.toml", CLOCK_JUMP, &[setting]).unwrap_err().0[0].to_string()
    };
    let settings = ["lock.ttl=0s", "lock.tll=5s", "fault.jmp.at=5s", "cluster.nodes=[1"];
    insta::assert_snapshot!(settings.map(said).join("\n\n"));
}

#[test]
fn a_client_too_many_and_a_file_too_large_are_refused() {
    let many = "[[client]]\nid = \"x@\"\nsteps = [{ acquire = {} }]\n";
    let more: String = (0..CLIENTS_MAX - 1).map(|place| many.replace('@', &place.to_string())).collect();
    let text = format!("{CLOCK_JUMP}{more}");
    let problems = cases_of("clock-jump.toml", &text, &[]).unwrap_err();
    assert_eq!(problems.0[0].message, "65 clients are too many");
    let text = format!("{CLOCK_JUMP}#{}", " ".repeat(TEXT_MAX));
    let problems = cases_of("clock-jump.toml", &text, &[]).unwrap_err();
    assert_eq!(problems.0[0].message, "the file is larger than 256 KiB");
}
