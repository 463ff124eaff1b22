//! Tests of parsing, of expanding files into cases, and of the messages for mistakes.

use super::*;

mod mistakes;

use self::mistakes::MISTAKES;

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
    assert_eq!(cases[0].scenario.expect.properties.len(), 2);
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
fn ranges_are_drawn_by_the_seed() {
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
fn waits_and_the_pauses_between_extensions_are_ranges() {
    let steps =
        "{ acquire = { wait = \"1s..5s\" } }, { extend = { every = \"1s..2s\", times = 3 } }";
    let scenario = drawn(steps, "at = \"1s\"\nstall = { host = \"A\" }");
    let steps = &scenario.clients[0].steps;
    let wait = steps[0].acquire.unwrap().wait.unwrap();
    let every = steps[1].extend.unwrap().every.unwrap();
    assert_eq!([wait.to_string(), every.to_string()], ["1s..5s", "1s..2s"]);
}

/// Returns the message for the first problem of two clients with these keys and this cluster.
fn first_problem(cluster: &str, [one, other]: [&str; 2]) -> Option<String> {
    let client = |id: &str, keys: &str| {
        format!("[[client]]\nid = \"{id}\"\n{keys}\nsteps = [{{ acquire = {{}} }}]\n")
    };
    let text = format!(
        "schema = 1\nname = \"x\"\ntitle = \"x\"\n[cluster]\n{cluster}\n{}{}",
        client("c1", one),
        client("c2", other)
    );
    cases_of("x.toml", &text, &[]).err().map(|problems| problems.0[0].message.clone())
}

#[test]
fn an_alias_is_a_further_name_of_a_node_in_lists() {
    let lists = |cluster, list| first_problem(cluster, [list, ""]);
    let (alias, list) = ("aliases = { B2 = \"B\" }", "nodes = [\"A\", \"B\", \"B2\"]");
    assert_eq!(lists(alias, list), None);
    let said = |cluster, list| lists(cluster, list).expect("it is wrong");
    assert_eq!(said("", list), "unknown host `B2`");
    assert_eq!(said(alias, "nodes = [\"B2\", \"B2\"]"), "`B2` is listed twice");
    assert_eq!(said("aliases = { A = \"B\" }", ""), "a host has the name `A`");
    assert_eq!(said("aliases = { B2 = \"X\" }", ""), "unknown host `X`");
}

#[test]
fn a_copy_is_of_an_original_with_the_same_subject() {
    let said = |keys| first_problem("", keys);
    assert_eq!(said(["", "copy-of = \"c1\""]), None);
    assert_eq!(said(["", "copy-of = \"c2\""]).as_deref(), Some("`c2` is a copy itself"));
    assert_eq!(said(["", "copy-of = \"A\""]).as_deref(), Some("`A` is not allowed here"));
    let other = ["subject = \"redlock-literal\"", "copy-of = \"c1\""];
    assert_eq!(said(other).as_deref(), Some("`c1` runs another subject, `redlock-literal`"));
}

#[test]
fn a_zip_takes_its_lists_in_step_and_multiplies_with_a_sweep() {
    let text = "schema = 1\nname = \"x\"\ntitle = \"x\"\n\
                zip = { \"lock.ttl\" = [\"5s\", \"9s\"], \"lock.min-validity\" = [\"1s\", \"2s\"] }\n\
                sweep = { \"lock.node-timeout\" = [\"30ms\", \"40ms\"] }\n\
                [[client]]\nid = \"c1\"\nsteps = [{ acquire = {} }]";
    let cases = cases_of("x.toml", text, &[]).unwrap();
    let names: Vec<_> = cases.iter().filter_map(|case| case.slug.as_deref()).collect();
    assert_eq!(names, ["30ms-1s-5s", "30ms-2s-9s", "40ms-1s-5s", "40ms-2s-9s"]);
    let locks = cases.iter().map(|case| &case.scenario.lock);
    let ttls: Vec<_> = locks.map(|lock| (lock.ttl, lock.min_validity)).collect();
    let [one, other] = [(5_000, 1_000), (9_000, 2_000)]
        .map(|(ttl, least)| (Span::from_ms(ttl), Span::from_ms(least)));
    assert_eq!(ttls, [one, other, one, other]);
}

#[test]
fn a_path_may_refine_another_and_a_zip_may_repeat_a_value() {
    let text = "schema = 1\nname = \"x\"\ntitle = \"x\"\nsweep = { \"lock.ttl\" = [\"8s\"] }\n\
                [[client]]\nid = \"c1\"\nsteps = [{ acquire = {} }]\n\
                [[case]]\nname = \"y\"\nset = { lock = {}, \"lock.ttl\" = \"6s\" }\n\
                zip = { \"lock.node-timeout\" = [\"30ms\", \"30ms\"], \"lock.min-validity\" = [\"1s\", \"2s\"] }";
    let cases = cases_of("x.toml", text, &[]).unwrap();
    assert_eq!(names(&cases), ["x::8s", "x::y-1s-30ms", "x::y-2s-30ms"]);
    let ttls: Vec<_> = cases.iter().map(|case| case.scenario.lock.ttl).collect();
    assert_eq!(ttls, [8_000, 6_000, 6_000].map(Span::from_ms));
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
    let settings = [
        "lock.ttl=0s",
        "lock.tll=5s",
        "fault.jmp.at=5s",
        "cluster.nodes=[1",
        "cluster.replica.R.id=S",
    ];
    insta::assert_snapshot!(settings.map(said).join("\n\n"));
}

#[test]
fn a_client_too_many_and_a_file_too_large_are_refused() {
    let many = "[[client]]\nid = \"x@\"\nsteps = [{ acquire = {} }]\n";
    let more: String =
        (0..CLIENTS_MAX - 1).map(|place| many.replace('@', &place.to_string())).collect();
    let text = format!("{CLOCK_JUMP}{more}");
    let problems = cases_of("clock-jump.toml", &text, &[]).unwrap_err();
    assert_eq!(problems.0[0].message, "65 clients are too many");
    let text = format!("{CLOCK_JUMP}#{}", " ".repeat(TEXT_MAX));
    let problems = cases_of("clock-jump.toml", &text, &[]).unwrap_err();
    assert_eq!(problems.0[0].message, "the file is larger than 256 KiB");
}

#[test]
fn the_longest_ttl_may_be_that_of_one_acquisition() {
    let longest = |acquire: &str| {
        let text = CLOCK_JUMP.replacen("acquire = {}", acquire, 1);
        let cases = cases_of("scenarios/clock-jump.toml", &text, &[]).expect("a valid scenario");
        cases[0].scenario.fleet_max_ttl()
    };
    assert_eq!(longest("acquire = {}"), Span::from_ms(10_000));
    assert_eq!(longest("acquire = { ttl = \"25s\" }"), Span::from_ms(25_000));
    assert_eq!(longest("acquire = { ttl = \"5s\" }"), Span::from_ms(10_000));
}
