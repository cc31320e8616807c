"""The manifest of a set: what it was made with, how long each step took, and the hash of every file."""
import hashlib
import json
import time

from .file_formats import ELEMENT_TYPES, read_shape

NAME = "manifest.json"


class Steps:
    """Prints and remembers the seconds of each step."""

    def __init__(self):
        self.last, self.seconds = time.time(), []

    def done(self, name):
        now = time.time()
        self.seconds.append((name, round(now - self.last, 2)))
        print(f"  [{now - self.last:8.1f} s] {name}", flush=True)
        self.last = now


def file_sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe_file(path):
    entry = {"bytes": path.stat().st_size, "sha256": file_sha256(path)}
    if path.suffix in ELEMENT_TYPES:
        entry["shape"] = list(read_shape(path))
    return entry


def describe_folder(folder):
    return {path.name: describe_file(path) for path in sorted(folder.iterdir()) if path.name != NAME}


def read(folder):
    """The manifest of a finished set, or None."""
    path = folder / NAME
    return json.loads(path.read_text()) if path.exists() else None


def write(folder, manifest):
    unfinished = folder / (NAME + ".part")
    unfinished.write_text(json.dumps(manifest, indent=1))
    unfinished.replace(folder / NAME)


def missing_files(folder, manifest):
    """Files that are not there, or not of the recorded size."""
    return [name for name, entry in manifest["files"].items()
            if not (folder / name).exists() or (folder / name).stat().st_size != entry["bytes"]]


def damaged_files(folder, manifest):
    """Files whose content is not the recorded one: reads everything."""
    return [name for name, entry in manifest["files"].items()
            if file_sha256(folder / name) != entry["sha256"]]


def show(manifest):
    for name, entry in manifest["files"].items():
        print(f"  {entry['bytes']:>13,}  {entry['sha256']}  {name} {entry.get('shape', '')}".rstrip())
