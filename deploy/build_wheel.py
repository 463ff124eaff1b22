#!/usr/bin/env python3
"""Packs the command and its pytest plugin into a wheel for this platform.

    build_wheel.py target/release/redlock-sim --out dist
"""

import argparse
import base64
import hashlib
import re
import sysconfig
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The same program gives the same wheel.
TIME = (2020, 1, 1, 0, 0, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=Path)
    parser.add_argument("--out", type=Path, default=Path("dist"))
    options = parser.parse_args()
    manifest = (HERE.parent / "Cargo.toml").read_text()
    version = re.search(r'^version = "(.+)"$', manifest, re.MULTILINE).group(1)
    tag = f"py3-none-{re.sub(r'[-.]', '_', sysconfig.get_platform())}"
    info, data = f"redlock_sim-{version}.dist-info", f"redlock_sim-{version}.data"
    files = {f"{data}/scripts/redlock-sim": options.binary.read_bytes()}
    for path in sorted((HERE / "wheel").rglob("*.py")):
        files[str(path.relative_to(HERE / "wheel"))] = path.read_bytes()
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: redlock-sim\nVersion: {version}\n"
        "Summary: Runs Redis lock clients under faults on simulated servers, and judges them\n"
        "License: MIT OR Apache-2.0\nRequires-Python: >=3.9\n"
    ).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: build_wheel\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    files[f"{info}/entry_points.txt"] = b"[pytest11]\nredlock_sim = redlock_sim.pytest_plugin\n"
    record = "".join(f"{name},sha256={digest(content)},{len(content)}\n" for name, content in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    options.out.mkdir(parents=True, exist_ok=True)
    wheel = options.out / f"redlock_sim-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, TIME)
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            packed.writestr(entry, content, zipfile.ZIP_DEFLATED)
    print(wheel)


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    main()
