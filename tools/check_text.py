#!/usr/bin/env python3
"""Checks what no compiler sees: files too long to read in one sitting, folders with too many files, paths of one
machine, unfinished marks, and files that a program made."""
import argparse
import re
import sys
from collections import Counter
from pathlib import Path

import repository

MOST_LINES = 502
# Files of one folder below these; tests, benchmarks and docs may have more.
MOST_FILES = 30
COUNTED_FOLDERS = ("include", "src", "cli", "tools", "python/nearwise", "python/bindings")
MOST_COMMENT_COLUMNS = 110
COUNTED_SUFFIXES = {".h", ".c", ".cpp", ".cu", ".cuh", ".py"}

# Bracketed letters keep the patterns from finding themselves.
ABSOLUTE_PATH = re.compile(r"(?<![\w.~/}-])/(?:h[o]me|r[o]ot|w[o]rk|U[s]ers|m[n]t)/[\w.]")
UNFINISHED = re.compile(r"\b(?:T[O]DO|F[I]XME|X[X]X)\b")
MADE_BY_PROGRAM = re.compile(r"\bD[O] NOT EDIT\b|@g[e]nerated\b")

GENERATED_NAMES = re.compile(
    r"^(build|dist)/|(^|/)(__pycache__|CMakeFiles|[^/]+\.egg-info)/"
    r"|(^|/)(CMakeCache\.txt|compile_commands\.json|\.ninja_log|\.DS_Store)$"
    r"|\.(o|a|so|so\.[\d.]+|pyc|whl|gcda|gcno|profraw|orig|rej)$")
# Where retired terms may stand: their list, and what tests that list.
RETIRED_TERMS = Path(__file__).resolve().parent / "retired_terms.txt"
MAY_NAME_RETIRED_TERMS = {"tools/retired_terms.txt", "tests/tools/check_text_test.py"}
COMMENT = {".py": re.compile(r"^\s*#|\s#\s"), **dict.fromkeys((".h", ".c", ".cpp", ".cu", ".cuh", ".def"), re.compile(r"//|^\s*\*"))}
# Data that tests read as it is: files of released versions, inputs that once broke a reader.
BINARY_FOLDERS = ("tests/golden/", "tests/fuzz/", "tests/data/")
# What documentation shows: made by a script, but of data that a reader does not have at hand. Small, or
# clones grow.
PICTURE = re.compile(r"^docs/pictures/[\w-]+\.png$")
MOST_PICTURE_BYTES = 64 << 10


def read_retired_terms(text):
    """Patterns of the lines `retired -> say`, each with both sides and its longest word in lower case."""
    terms = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        retired, _, say = line.partition(" -> ")
        is_name = re.fullmatch(r"\w*(_|[a-z][A-Z])\w*", retired) is not None
        pattern = (re.compile(rf"(?<![A-Za-z0-9_]){retired}(?![A-Za-z0-9_])") if is_name else
                   re.compile(r"\b" + r"\s+".join(map(re.escape, retired.split())) + r"\b", re.IGNORECASE))
        terms.append((pattern, retired, say, max(retired.lower().split(), key=len)))
    return terms


RETIRED = read_retired_terms(RETIRED_TERMS.read_text(encoding="utf-8"))


def check_terms(name, text):
    """Retired terms of a text, also where a line break or a comment mark divides a phrase."""
    # Comment marks become spaces of the same length: a phrase may go on in the next line of a comment.
    plain = re.sub(r"(?m)^[ \t]*(//|#|\*)", lambda match: " " * len(match.group(0)), text)
    lowered = plain.lower()  # patterns are slow, and hardly ever match
    return [f"{name}:{plain.count(chr(10), 0, match.start()) + 1}: \"{retired}\" is retired: say \"{say}\""
            for pattern, retired, say, word in RETIRED if word in lowered for match in pattern.finditer(plain)]


def check_file(path, content):
    """Findings of one file: its path in the repository and its bytes."""
    name = str(path)
    if GENERATED_NAMES.search(name):
        return [f"{name}: a file that a program makes does not belong in the repository"]
    if b"\0" in content:
        if name.startswith(BINARY_FOLDERS):
            return []
        if PICTURE.search(name):
            if len(content) <= MOST_PICTURE_BYTES:
                return []
            return [f"{name}: {len(content)} bytes, more than the {MOST_PICTURE_BYTES} of a picture in the documentation"]
        return [f"{name}: binary; data that a script can make stays out (allowed: {', '.join(BINARY_FOLDERS)})"]
    if name == "LICENSE":
        return []
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        return [f"{name}: not UTF-8"]
    findings = [] if name in MAY_NAME_RETIRED_TERMS else check_terms(name, content.decode("utf-8"))
    comment = COMMENT.get(path.suffix)
    if path.suffix in COUNTED_SUFFIXES and len(lines) > MOST_LINES:
        findings.append(f"{name}: {len(lines)} lines, more than {MOST_LINES}: would two files explain themselves better?")
    for number, line in enumerate(lines, 1):
        if comment and len(line) > MOST_COMMENT_COLUMNS and comment.search(line):
            findings.append(f"{name}:{number}: a comment of {len(line)} columns, more than {MOST_COMMENT_COLUMNS}")
        if ABSOLUTE_PATH.search(line):
            findings.append(f"{name}:{number}: a path of one machine")
        if UNFINISHED.search(line):
            findings.append(f"{name}:{number}: an unfinished mark; finish it or file an issue")
        if MADE_BY_PROGRAM.search(line):
            findings.append(f"{name}:{number}: says that a program made this file")
        if "\r" in line:
            findings.append(f"{name}:{number}: carriage return")
    return findings


def files_per_folder(paths):
    """A Counter of the folders below COUNTED_FOLDERS."""
    return Counter(path.parent for path in paths if str(path).startswith(tuple(f"{each}/" for each in COUNTED_FOLDERS)))


def check_folders(paths):
    """Findings of folders that are too long a list to find anything in."""
    return [f"{folder}: {count} files, more than {MOST_FILES}: which of them are a subject of their own?"
            for folder, count in files_per_folder(paths).items() if count > MOST_FILES]


def check(root):
    paths = repository.files(root)
    return check_folders(paths) + [finding for path in paths for finding in check_file(path, (root / path).read_bytes())]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=repository.ROOT)
    return repository.conclude("check_text", check(parser.parse_args().root))


if __name__ == "__main__":
    sys.exit(main())
