#!/usr/bin/env python3
"""Compares the JSON Schema of the scenario format with the parser: what one takes, the other takes, and
what the parser rejects for its structure is invalid.

    test_schema.py target/release/redlock-sim
"""

import copy
import json
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jsonschema
import tomli_w

HERE = Path(__file__).resolve().parent.parent
# Paths in the scenario, whose names are free.
FREE = {"set", "sweep", "zip"}

# A scenario with numbers in texts, and texts in their places that only a lax parser takes.
NUMBERS = {
    "schema": 1,
    "name": "numbers",
    "title": "Numbers in texts",
    "run": {"seeds": "0..1"},
    "client": [{"id": "c1", "steps": [{"at": "0s", "acquire": {}}, {"release": {}}]}],
    "fault": [{"id": "f", "at": "1s", "every": "1s", "times": "1..3", "clock-jump": {"host": "A", "by": "5s"}}],
}
LAX = [
    (("run", "seeds"), "0 .. 1"),
    (("fault", 0, "times"), "+3"),
    (("fault", 0, "clock-jump", "by"), "+5s"),
]


def places(value, at=()):
    """Yields the paths of all tables and values."""
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if key not in FREE:
            yield from places(inner, (*at, key))


def broken(tree, at):
    """Returns the tree with a key too many in a table, or a list of lists in the place of a value."""
    tree = copy.deepcopy(tree)
    parent, value = None, tree
    for key in at:
        parent, value = value, value[key]
    if isinstance(value, dict):
        value["typo"] = 1
    else:
        parent[at[-1]] = [[1]]
    return tree


def replaced(tree, at, text):
    """Returns the tree with a text in the place of a value."""
    tree = copy.deepcopy(tree)
    parent = tree
    for key in at[:-1]:
        parent = parent[key]
    parent[at[-1]] = text
    return tree


def is_parsed(binary, name, tree):
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / name
        file.write_text(tomli_w.dumps(tree))
        command = [binary, "run", file, "--seeds", "0..1", "--results-only", "--out", f"{place}/out"]
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 2


def main():
    binary = str(Path(sys.argv[1]).resolve())
    schema = json.loads(subprocess.run([binary, "schema"], stdout=subprocess.PIPE, check=True).stdout)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    files = sorted([*HERE.glob("scenarios/**/*.toml"), *HERE.glob("sim/cli/src/command/init/scenarios/*.toml")])
    trees = {path.name: tomllib.loads(path.read_text()) for path in files}
    for name, tree in trees.items():
        errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(tree)]
        assert not errors, (name, errors)
    tried = []
    for name, tree in list(trees.items())[::6]:
        for at in places(tree):
            tried.append((name, at, broken(tree, at)))
            assert not validator.is_valid(tried[-1][2]), (name, at)
    assert validator.is_valid(NUMBERS) and is_parsed(binary, "numbers.toml", NUMBERS)
    for at, text in LAX:
        tried.append(("numbers.toml", at, replaced(NUMBERS, at, text)))
        assert not validator.is_valid(tried[-1][2]), at
    with ThreadPoolExecutor(4) as pool:
        parsed = pool.map(lambda it: is_parsed(binary, it[0], it[2]), tried)
        taken = [(name, at) for (name, at, _), is_taken in zip(tried, parsed) if is_taken]
    assert not taken, taken
    print(f"schema: {len(trees)} scenarios are valid, {len(tried)} broken ones are not")


if __name__ == "__main__":
    main()
