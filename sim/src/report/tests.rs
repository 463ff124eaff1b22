use super::*;

#[test]
fn the_results_of_the_fixture() {
    let played = fixture::jump();
    insta::assert_snapshot!(results::Results::new([&played.result]).to_json());
}

#[test]
fn pages_for_the_eye() {
    if let Some(out) = std::env::var_os("REPORT_PAGES") {
        write(Path::new(&out), &[fixture::jump(), fixture::pause()]).unwrap();
    }
}
