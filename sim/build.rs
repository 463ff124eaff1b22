//! Rebuilds the command when an embedded scenario is added or changed.

fn main() {
    println!("cargo::rerun-if-changed=scenarios");
}
