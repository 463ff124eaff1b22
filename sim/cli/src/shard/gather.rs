//! The parts of one campaign among many files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use lock_judge::text;
use redlock_sim::part::Part;

use super::file::{Header, Kind, Shard};

/// Maximum number of missing parts that are named one by one.
const NAMED_MAX: usize = 10;

/// The parts of one campaign.
#[derive(Debug)]
pub(crate) struct Gathered {
    /// One file for each part, by part; at least one.
    pub(crate) shards: Vec<Shard>,
    /// Reasons why the union may not be the whole campaign, in an order that does not depend on that
    /// of the files.
    pub(crate) problems: Vec<String>,
    /// True if the same runs were played twice, with different results.
    pub(crate) differs: bool,
}

/// Properties that all parts of a campaign share.
type Campaign = (Kind, String, String, u32);

fn campaign(header: &Header) -> Campaign {
    (header.kind, header.build.clone(), header.plan.clone(), header.part.of())
}

/// Chooses one file for each part of the campaign that most of the parts belong to. The choice is the
/// same in whatever order and however often the files are given.
///
/// # Errors
///
/// If no file is a shard: why not.
pub(crate) fn gather(paths: impl IntoIterator<Item = PathBuf>) -> Result<Gathered, Vec<String>> {
    let paths: BTreeSet<PathBuf> = paths.into_iter().collect();
    choose(paths.into_iter().map(|path| {
        let name = path.display().to_string();
        Shard::open(path).map_err(|error| format!("{name}: {error}"))
    }))
}

fn choose(
    opened: impl IntoIterator<Item = Result<Shard, String>>,
) -> Result<Gathered, Vec<String>> {
    let mut problems = Vec::new();
    let mut campaigns: BTreeMap<Campaign, Vec<Shard>> = BTreeMap::new();
    for shard in opened {
        match shard {
            Ok(shard) => campaigns.entry(campaign(&shard.header)).or_default().push(shard),
            Err(problem) => problems.push(problem),
        }
    }
    let parts = |shards: &Vec<Shard>| {
        shards.iter().map(|it| it.header.part).collect::<BTreeSet<Part>>().len()
    };
    // Of two with as many parts, the first.
    let most = campaigns.iter().rev().max_by_key(|(_, shards)| parts(shards));
    let Some(chosen) = most.map(|(campaign, _)| campaign.clone()) else {
        problems.sort();
        return Err(problems);
    };
    let shards = campaigns.remove(&chosen).unwrap_or_default();
    for (other, strangers) in campaigns {
        let why = strange(&chosen, &other);
        let told = |shard: Shard| format!("{}: it is {why}", shard.path.display());
        problems.extend(strangers.into_iter().map(told));
    }
    let mut parts: BTreeMap<u32, Shard> = BTreeMap::new();
    let mut differs = false;
    for shard in shards {
        let number = shard.header.part.number();
        let Some(known) = parts.get(&number) else {
            parts.insert(number, shard);
            continue;
        };
        let both = known.header.complete && shard.header.complete;
        if both && known.header.sums != shard.header.sums {
            differs = true;
            problems.push(format!(
                "shard {} was played twice, with different results: the runs are not deterministic",
                shard.header.part
            ));
        }
        if rank(&shard.header) > rank(&known.header) {
            parts.insert(number, shard);
        }
    }
    problems.extend(missing(&parts, chosen.3));
    let unfinished = parts.values().filter(|it| !it.header.complete);
    problems.extend(unfinished.map(|it| {
        let runs = text::count(it.header.runs, "run");
        format!("shard {} was stopped after {runs}", it.header.part)
    }));
    problems.sort();
    problems.dedup();
    Ok(Gathered { shards: parts.into_values().collect(), problems, differs })
}

/// Orders the files of one part: the largest is used.
fn rank(header: &Header) -> (bool, u64, &str) {
    (header.complete, header.runs, &header.sums)
}

/// Says what distinguishes a campaign from that of most files.
fn strange(chosen: &Campaign, other: &Campaign) -> String {
    if chosen.0 != other.0 {
        String::from("of another command than most of the shards")
    } else if chosen.1 != other.1 {
        format!("of another build: {}, most of the shards are of {}", other.1, chosen.1)
    } else if chosen.3 != other.3 {
        format!("one of {} parts, most of the shards are of {}", other.3, chosen.3)
    } else {
        String::from("of other scenarios, seeds or settings than most of the shards")
    }
}

/// Says which parts are missing.
fn missing(parts: &BTreeMap<u32, Shard>, of: u32) -> Option<String> {
    let mut missing = (1..=of).filter(|number| !parts.contains_key(number));
    let named: Vec<String> =
        missing.by_ref().take(NAMED_MAX).map(|number| format!("{number}/{of}")).collect();
    let others = match missing.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shards = if named.len() == 1 { "shard" } else { "shards" };
    (!named.is_empty()).then(|| format!("missing: {shards} {}{others}", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the file of the part `number` of 4, with these sums.
    fn shard(number: u32, sums: &str, complete: bool) -> Shard {
        of_plan("plan", number, sums, complete)
    }

    fn of_plan(plan: &str, number: u32, sums: &str, complete: bool) -> Shard {
        let what = (Kind::Run, Part::new(number, 4).unwrap());
        let header =
            Header::new(what, String::from("a build"), (plan, sums), (sums.len() as u64, complete));
        Shard { path: PathBuf::from(format!("{plan}-{number}-{sums}")), header }
    }

    fn chosen(shards: &[Shard]) -> (Vec<PathBuf>, Vec<String>, bool) {
        let Gathered { shards, problems, differs } =
            choose(shards.iter().cloned().map(Ok)).expect("there are shards");
        (shards.into_iter().map(|it| it.path).collect(), problems, differs)
    }

    #[test]
    fn missing_and_unfinished_parts_are_named() {
        let (paths, problems, differs) = chosen(&[shard(3, "cc", false), shard(1, "a", true)]);
        assert_eq!(paths, ["plan-1-a", "plan-3-cc"].map(PathBuf::from));
        assert_eq!(problems, ["missing: shards 2/4, 4/4", "shard 3/4 was stopped after 2 runs"]);
        assert!(!differs);
    }

    #[test]
    fn a_finished_part_replaces_an_unfinished_one() {
        let all = [1, 2, 3, 4].map(|number| shard(number, "whole", true));
        let early = shard(2, "part of it", false);
        let (paths, problems, _) = chosen(&[&[early], &all[..]].concat());
        assert_eq!((paths.len(), &paths[1]), (4, &PathBuf::from("plan-2-whole")));
        assert_eq!(problems, [""; 0]);
    }

    #[test]
    fn two_results_of_one_part_are_reported() {
        let (_, problems, differs) = chosen(&[shard(1, "a", true), shard(1, "b", true)]);
        assert!(differs && problems[1].contains("shard 1/4 was played twice"), "{problems:?}");
    }

    #[test]
    fn strangers_are_named_and_left_out() {
        let mut other_build = shard(2, "b", true);
        other_build.header.build = String::from("redlock-sim 9");
        let strangers = [of_plan("other", 2, "b", true), other_build];
        let ours = [1, 2].map(|number| shard(number, "a", true));
        let (paths, problems, _) = chosen(&[&ours[..], &strangers].concat());
        assert_eq!(paths, ["plan-1-a", "plan-2-a"].map(PathBuf::from));
        let told = problems.join("\n");
        assert!(told.contains("other-2-b: it is of other scenarios, seeds or settings"), "{told}");
        assert!(told.contains("plan-2-b: it is of another build: redlock-sim 9"), "{told}");
    }

    #[test]
    fn without_a_shard_the_reasons_are_printed() {
        let none = choose([Err(String::from("b")), Err(String::from("a"))]);
        assert_eq!(none.unwrap_err(), ["a", "b"]);
    }

    proptest! {
        #[test]
        fn neither_order_nor_repetition_matters(
            picked in proptest::collection::vec((1_u32..5, 0_usize..3, any::<bool>()), 1..12),
            again in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
            turn in any::<prop::sample::Index>(),
        ) {
            let plans = ["one", "two", "three"];
            let mut shards: Vec<Shard> = picked
                .iter()
                .map(|&(number, plan, complete)| of_plan(plans[plan], number, "sums", complete))
                .collect();
            let first = chosen(&shards);
            for index in again {
                shards.push(index.get(&shards).clone());
            }
            let turn = turn.index(shards.len());
            shards.rotate_left(turn);
            shards.reverse();
            prop_assert_eq!(chosen(&shards), first);
        }
    }
}
