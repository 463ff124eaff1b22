//! The parts of the files of `init` that depend on the language.

use super::Language;

/// Files and commands for one language.
pub(super) struct Template {
    /// The files in the folder: paths and texts. The first is the worker.
    pub(super) files: &'static [(&'static str, &'static str)],
    /// Command that builds the worker, from the root of the repository.
    pub(super) build: Option<&'static str>,
    /// Command that runs the worker, from the root of the repository.
    pub(super) run: &'static str,
    /// Everything that the worker needs.
    pub(super) needs: &'static str,
    /// Steps of the workflow that install the language and build the worker.
    pub(super) steps: &'static str,
    /// Language of a block of code in Markdown.
    pub(super) highlight: &'static str,
    /// Declaration of the worker's script, with the bug of the README.
    pub(super) bug: &'static str,
}

impl Language {
    pub(super) const fn template(self) -> &'static Template {
        match self {
            Self::Python => &PYTHON,
            Self::Node => &NODE,
            Self::Php => &PHP,
            Self::Ruby => &RUBY,
            Self::Go => &GO,
            Self::Rust => &RUST,
        }
    }
}

const PYTHON: Template = Template {
    files: &[("worker.py", include_str!("python/worker.py"))],
    build: None,
    run: "python3 lock-tests/worker.py",
    needs: "Python’s standard library",
    steps: include_str!("python/steps.yml"),
    highlight: "python",
    bug: r#"RELEASE = "return redis.call('DEL', KEYS[1])""#,
};

const NODE: Template = Template {
    files: &[("worker.cjs", include_str!("node/worker.cjs"))],
    build: None,
    run: "node lock-tests/worker.cjs",
    needs: "node",
    steps: include_str!("node/steps.yml"),
    highlight: "js",
    bug: r#"const RELEASE = "return redis.call('DEL', KEYS[1])";"#,
};

const PHP: Template = Template {
    files: &[("worker.php", include_str!("php/worker.php"))],
    build: None,
    run: "php lock-tests/worker.php",
    needs: "PHP 8.1 or newer, without extensions",
    steps: include_str!("php/steps.yml"),
    highlight: "php",
    bug: r#"const RELEASE = "return redis.call('DEL', KEYS[1])";"#,
};

const RUBY: Template = Template {
    files: &[("worker.rb", include_str!("ruby/worker.rb"))],
    build: None,
    run: "ruby lock-tests/worker.rb",
    needs: "Ruby’s standard library",
    steps: include_str!("ruby/steps.yml"),
    highlight: "ruby",
    bug: r#"RELEASE = "return redis.call('DEL', KEYS[1])""#,
};

// Compiled before the runs: a compiler within a run would take the time of the scenario's faults.
const GO: Template = Template {
    files: &[("worker.go", include_str!("go/worker.go")), (".gitignore", "/worker\n")],
    build: Some("go build -o lock-tests/worker lock-tests/worker.go"),
    run: "lock-tests/worker",
    needs: "Go’s standard library",
    steps: include_str!("go/steps.yml"),
    highlight: "go",
    bug: r#"const releaseScript = "return redis.call('DEL', KEYS[1])""#,
};

const RUST: Template = Template {
    files: &[
        ("worker/src/main.rs", include_str!("rust/main.rs")),
        // Under its own name the manifest would be a package of this repository.
        ("worker/Cargo.toml", include_str!("rust/manifest.toml")),
        (".gitignore", "/target\n"),
    ],
    build: Some(
        "cargo build --manifest-path lock-tests/worker/Cargo.toml --target-dir lock-tests/target",
    ),
    run: "lock-tests/target/debug/lock-worker",
    needs: "Rust’s standard library",
    steps: include_str!("rust/steps.yml"),
    highlight: "rust",
    bug: r#"const RELEASE: &str = "return redis.call('DEL', KEYS[1])";"#,
};
