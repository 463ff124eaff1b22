//! Sees to it that the command is built again when a scenario that it embeds is added or changed.

fn main() {
    println!("cargo::rerun-if-changed=scenarios");
}
