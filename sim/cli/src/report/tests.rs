use lock_judge::history::{AttemptId, ClientId, Event, NodeId};
use lock_judge::oracle::{Blamed, Counters, Violation};
use lock_judge::scenario::{Expectation, Property, Verdict};
use lock_judge::testing::{header, histories};
use proptest::prelude::*;
use redlock_sim::search::{CaseResult, Observed, PropertyResult};

use super::*;

#[test]
fn the_results_of_the_fixture() {
    let played = fixture::jump();
    insta::assert_snapshot!(results::Results::new([&played]).to_json());
}

#[test]
fn results_read_as_they_were_written() {
    let results = results::Results::new(&[fixture::jump(), fixture::pause()]);
    let back: results::Results = serde_json::from_str(&results.to_json()).unwrap();
    assert_eq!(back, results);
}

fn blocks(played: &Played) -> String {
    let (seed, events) = &played.kept[0];
    let told = played.violations(*seed).into_iter().map(|(property, violation)| {
        let case = &played.result.case;
        let replay = replay_command(case, &case.full_name(), "event", *seed, "");
        violation_block(case, *seed, property, violation, events, &replay)
    });
    told.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_terminal_shows_who_held_what_because_of_which_fault() {
    insta::assert_snapshot!(blocks(&fixture::jump()));
}

#[test]
fn a_terminal_shows_the_pause_between_the_look_and_the_section() {
    insta::assert_snapshot!(blocks(&fixture::pause()));
}

#[test]
fn a_terminal_shows_who_came_between_a_grant_and_its_extension() {
    insta::assert_snapshot!(blocks(&fixture::recreated()));
}

#[test]
fn a_terminal_shows_what_a_failover_left_behind() {
    insta::assert_snapshot!(blocks(&fixture::failover()));
}

#[test]
fn an_extension_prolongs_the_belief_and_has_a_mark_of_its_own() {
    let played = fixture::recreated();
    let timeline = fixture::timeline(&played);
    let first = timeline.leases().next().expect("a lease");
    let beliefs: Vec<_> = first.beliefs.iter().map(|it| (it.from_ns, it.to_ns)).collect();
    assert_eq!(beliefs, [(2_000_000, 9_898_000_000), (11_002_000_000, 15_000_000_000)]);
    let page = page::draw(&[&played], true);
    assert_eq!(page.matches("class=\"extended\"").count(), 1);
    assert!(page.contains("extension 1 of L1, begun at 11.000 s, took effect at 11.002 s"));
}

#[test]
fn an_index_has_failures_first_and_a_line_a_scenario() {
    let (mut jump, pause) = (fixture::jump(), fixture::pause());
    jump.result.properties[0].failures.push(String::from("expected to hold"));
    let mut again = jump.clone();
    again.result.case.slug = Some(String::from("again"));
    again.result.properties[0].observed = Observed::Holds;
    let page = index::draw(&[jump, again, pause]);
    let (head, families) = page.split_once("<details").expect("a family");
    assert!(head.contains("2 cases not as expected"), "{head}");
    assert!(head.contains(r##"href="kleppmann-clock-jump.html#again""##), "{head}");
    assert!(head.contains("mutual-exclusion: expected to hold"), "{head}");
    assert_eq!(families.matches("<tr data-tags=").count(), 2);
    let cell = r#"<td class="sometimes failed">◐<span> mutual-exclusion</span></td>"#;
    assert!(families.contains(cell), "{families}");
}

#[test]
fn a_page_needs_no_script_and_no_network() {
    let (jump, pause) = (fixture::jump(), fixture::pause());
    let index = index::draw(&[jump.clone(), pause.clone()]);
    // The script of the index filters lines, and nothing else.
    let (before, rest) = index.split_once("<script>").expect("a filter");
    let (_, after) = rest.split_once("</script>").expect("its end");
    let index = format!("{before}{after}");
    for page in [page::draw(&[&jump], true), page::draw(&[&pause], true), index] {
        assert!(!page.contains("<script") && !page.contains("src="));
        // Plotters writes the SVG namespace, which no browser fetches.
        assert!(!page.replace("http://www.w3.org/2000/svg", "").contains("http"));
    }
}

#[test]
fn a_page_replays_a_case_by_what_selected_it() {
    let played = Played { selector: "my/jump.toml".to_owned(), ..fixture::jump() };
    let page = page::draw(&[&played], true);
    assert!(page.contains("redlock-sim replay my/jump.toml --seed 0"));
}

#[test]
fn a_page_names_each_clients_resource_if_there_are_several() {
    let mut jump = fixture::jump();
    assert!(page::draw(&[&jump], true).contains("Clients: c1 (redlock) and c2 (redlock)."));
    let scenario = &mut jump.result.case.scenario;
    scenario.lock.further_resources = vec![String::from("stock")];
    scenario.clients[1].resource = Some(String::from("stock"));
    let page = page::draw(&[&jump], true);
    let clients = "Clients: c1 (redlock, resource “res”) and c2 (redlock, resource “stock”).";
    assert!(page.contains(clients), "{page}");
}

#[test]
fn every_picture_is_well_formed_and_names_what_it_shows() {
    for played in [fixture::jump(), fixture::pause(), fixture::recreated(), fixture::failover()] {
        let page = page::draw(&[&played], true);
        let pictures: Vec<&str> = page.split("<svg").skip(1).collect();
        assert!(pictures.len() >= 3, "patterns, ownership, messages");
        for picture in &pictures {
            let end = picture.find("</svg>").expect("a picture ends");
            well_formed(&format!("<svg{}</svg>", &picture[..end]));
        }
    }
    let page = page::draw(&[&fixture::jump()], true);
    for text in
        ["overlap 8.796 s", "▷", "✕", "jump: C’s wall clock is set by +10 s", "SET L2 → nil"]
    {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn the_pictures_say_the_true_times() {
    let played = fixture::jump();
    let timeline = fixture::timeline(&played);
    let leases: Vec<_> = timeline.leases().collect();
    let span = |nth: usize| leases[nth].beliefs.iter().map(|it| (it.from_ns, it.to_ns)).next();
    assert_eq!(span(0), Some((2_000_000, 9_898_000_000)));
    assert_eq!(span(1), Some((1_102_000_000, 10_998_000_000)));
    let key = timeline.key_of(AttemptId { client: ClientId(0), number: 1 }, NodeId(2)).unwrap();
    assert_eq!(key.expected_ns, Some(10_001_000_000));
    assert_eq!(key.ended.map(|ended| ended.moment.at_ns), Some(1_000_000_000));
}

#[test]
fn sentence_and_picture_have_one_length_of_an_overlap() {
    let played = fixture::jump();
    let timeline = fixture::timeline(&played);
    let (_, violation) = played.violations(played.kept[0].0)[0];
    let violation = Violation { from_ns: 1_102_999_999, to_ns: 3_002_000_000, ..*violation };
    let story = story::of_violation(&timeline, Property::MutualExclusion, &violation);
    assert!(story.headline.contains("for 1.899 s (true"), "{}", story.headline);
    assert!(gantt::draw(&timeline, Some(&violation), None).contains(">overlap 1.899 s<"));
}

#[test]
fn the_sweep_shows_what_was_played_and_nothing_else() {
    let cell = |point, node: Option<&str>, violated| picture::Cell {
        row: picture::Row::Ours,
        point,
        node: node.map(str::to_owned),
        violated,
    };
    use lock_judge::scenario::AttemptStep;
    let cells = [
        cell(AttemptStep::T2, None, false),
        cell(AttemptStep::Enter, None, true),
        cell(AttemptStep::Reply, Some("D"), true),
    ];
    let svg = picture::sweep_svg(&cells);
    well_formed(&svg);
    assert_eq!(svg.matches(">violated</text>").count(), 2);
    assert_eq!(svg.matches(">no harm</text>").count(), 1);
    assert_eq!(svg.matches("class=\"flip\"").count(), 1);
}

#[test]
fn the_table_of_the_readme_says_what_was_not_played() {
    let table = readme_table(&[]);
    assert!(table.lines().skip(2).all(|line| line.contains("| not played |")), "{table}");
}

/// Names of leases and messages in the pictures of `page` that cover each other or leave their
/// picture.
fn illegible(page: &str) -> Vec<String> {
    use svg::{Area, PX, Taken};
    let number = |text: &str| (text.parse::<f64>().expect("a number") * PX as f64) as i64;
    let value = |tag: &str, name: &str| {
        let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
        Some(rest.split_once('"')?.0.to_owned())
    };
    let mut found = Vec::new();
    for picture in page.split("<svg class=\"").skip(1).filter(|it| it.contains("viewBox")) {
        let mut taken = Taken::default();
        let width = value(picture, "width").map_or(0, |width| number(&width));
        for tag in picture.split("<text").skip(1) {
            let class = value(tag, "class").unwrap_or_default();
            let size = match class.as_str() {
                "label" => 11 * PX,
                "l" | "l end" | "away-label" => 10 * PX,
                _ => continue,
            };
            let (_, text) = tag.split_once('>').expect("a tag ends");
            let text = text.split_once('<').map_or(text, |(text, _)| text);
            let at = ["x", "y"].map(|name| number(&value(tag, name).expect("a place")));
            let mut area = Area::of_text(text, size, (at[0], at[1]));
            area.x -= if class == "l end" { area.width } else { 0 };
            if !taken.take_free(area) || area.x < 0 || area.right() > width {
                found.push(text.to_owned());
            }
        }
    }
    found
}

#[test]
fn no_name_in_a_picture_is_covered_or_cut() {
    for played in [fixture::jump(), fixture::pause(), fixture::failover(), fixture::crowded()] {
        assert_eq!(illegible(&page::draw(&[&played], true)), [""; 0]);
    }
}

/// Checks that tags nest, attributes are quoted, and text is escaped.
fn well_formed(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = svg.trim_end();
    while let Some(start) = rest.find('<') {
        let text = &rest[..start];
        let is_escaped =
            |part: &str| ["amp;", "lt;", "gt;", "quot;"].iter().any(|it| part.starts_with(it));
        assert!(text.split('&').skip(1).all(is_escaped), "unescaped: {text}");
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        assert!(tag.matches('"').count().is_multiple_of(2), "unquoted: {tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "in {svg}");
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().expect("a tag has a name"));
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty() && rest.is_empty(), "{open:?} {rest}");
}

/// Returns a case in which the run of `events` violates every property.
fn all_violated(events: Vec<Event>, violation: Violation) -> Played {
    let property = |property| PropertyResult {
        property,
        expected: Expectation::bare(Verdict::Holds),
        observed: Observed::Violated,
        violating_seeds: 1,
        first_seed: Some(7),
        shown: Some((7, violation)),
        blames: vec![String::from("none")],
        shortest_overlap_ns: None,
        failures: vec![String::from("it is violated")],
    };
    let result = CaseResult {
        case: header().case,
        engine: "event",
        seeds: 7..8,
        runs: 1,
        distinct_histories: 1,
        first_hash: 0,
        properties: Property::ALL.map(property).to_vec(),
        quantities: Vec::new(),
        counters: Counters::default(),
        failures: Vec::new(),
    };
    Played::new(result, vec![(7, events)])
}

proptest! {
    #[test]
    fn any_history_can_be_explained_and_drawn(
        events in histories(),
        first in (0..3u8, 0..4u16),
        second in proptest::option::of((0..3u8, 0..4u16)),
        (from_ns, to_ns) in (any::<u32>(), any::<u32>()),
        node in proptest::option::of((0..5u8).prop_map(NodeId)),
    ) {
        let id = |(client, number)| AttemptId { client: ClientId(client), number };
        let violation = Violation {
            from_ns: from_ns.into(),
            to_ns: to_ns.into(),
            first: id(first),
            second: second.map(id),
            node,
            blamed: Blamed::NONE,
        };
        let played = all_violated(events, violation);
        prop_assert!(blocks(&played).lines().count() <= 26 * Property::ALL.len());
        let page = page::draw(&[&played], true);
        prop_assert!(page.ends_with("</html>\n"));
        prop_assert_eq!(illegible(&page), [""; 0]);
    }
}
