use super::*;
use crate::report::fixture;

const NAMES: [&str; 1] = ["kleppmann-clock-jump"];

/// A temporary directory for one test, removed on drop.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gallery-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn gallery() -> Gallery {
    render(&[fixture::jump(), fixture::pause()], &NAMES).unwrap()
}

#[test]
fn blessed_pages_do_not_differ() {
    let scratch = Scratch::new("blessed");
    let first = bless_where(false, &scratch.0, &gallery()).unwrap();
    assert_eq!(first.files.len(), 2, "{first}");
    assert!(compare(&scratch.0, &gallery()).unwrap().is_empty());
}

#[test]
fn changed_pages_and_changed_verdicts_are_distinguished() {
    let scratch = Scratch::new("apart");
    bless_where(false, &scratch.0, &gallery()).unwrap();

    let mut look = gallery();
    look.files.get_mut("kleppmann-clock-jump.html").unwrap().push(' ');
    let told = compare(&scratch.0, &look).unwrap();
    assert_eq!(told.files, ["kleppmann-clock-jump.html differs"]);
    assert_eq!(told.verdicts, [""; 0]);

    let mut jump = fixture::jump();
    jump.result.properties[0].observed = Observed::Holds;
    jump.result.properties[0].blames.clear();
    let told = compare(&scratch.0, &render(&[jump, fixture::pause()], &NAMES).unwrap()).unwrap();
    let change = "kleppmann-clock-jump mutual-exclusion: was violated: clock(C), is holds";
    assert_eq!(told.verdicts, [change]);
}

#[test]
fn pages_without_a_scenario_are_reported_and_removed() {
    let scratch = Scratch::new("gone");
    bless_where(false, &scratch.0, &gallery()).unwrap();
    fs::write(scratch.0.join("old.html"), "").unwrap();
    let told = bless_where(false, &scratch.0, &gallery()).unwrap();
    assert_eq!(told.files, ["old.html is gone"]);
    assert!(!scratch.0.join("old.html").exists());
}

#[test]
fn nothing_is_blessed_in_ci() {
    let scratch = Scratch::new("ci");
    let refused = bless_where(true, &scratch.0, &gallery());
    assert!(matches!(refused, Err(GalleryError::InCi)));
    assert!(!scratch.0.exists());
}

#[test]
fn a_gallery_of_what_was_not_played_is_refused() {
    let refused = render(&[fixture::jump()], &["another"]);
    assert!(matches!(refused, Err(GalleryError::Unplayed(name)) if name == "another"));
}

#[test]
fn verdicts_has_all_cases_and_hashes_of_those_shown() {
    let verdicts: AllVerdicts = serde_json::from_str(&gallery().files[VERDICTS]).unwrap();
    assert_eq!(verdicts.len(), 2);
    assert!(verdicts["kleppmann-clock-jump"].hash.is_some());
    assert!(verdicts["kleppmann-process-pause"].hash.is_none());
}
