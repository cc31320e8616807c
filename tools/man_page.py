#!/usr/bin/env python3
"""The manual page nearwise(1), from what `--help` of every command prints.

    tools/man_page.py build/release/cli/nearwise -o nearwise.1
"""
import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent / "site"))

import help_pages  # noqa: E402  (found through the line above)

TITLE = re.compile(r"^(\w[\w ]*):$")
ENTRY = re.compile(r"^  (?P<term>\S.*?)(?:  +(?P<text>\S.*))?$")
MORE = re.compile(r"^ {10,}(?P<text>\S.*)$")
# "--lists N", "-k N=10", "base FILE REQUIRED", "--pad Excludes: --work"
TERM = re.compile(r"^(?P<names>\S+)(?: (?!REQUIRED|Excludes:|Needs:)(?P<value>[^ =]+)(?:=(?P<default>\S+))?)?(?P<several> \.\.\.)?(?P<required> REQUIRED)?"
                  r"(?: (?P<relation>(?:Excludes|Needs): .*))?$")
ESCAPES = str.maketrans({"\\": "\\e", "-": "\\-", "^": "\\(ha", "~": "\\(ti", "`": "\\(ga", "'": "\\(aq", '"': "\\(dq"})


class Entry(NamedTuple):
    """An option, an argument or a subcommand."""

    term: str
    text: str


class Help(NamedTuple):
    """The help of one command, in parts."""

    description: str
    usage: str
    entries: dict[str, list[Entry]]  # by title: "Options", ...
    examples: list[str]
    notes: list[str]  # lines


def parse(text):
    lines = text.splitlines()
    description, usage = lines[0], lines[1].removeprefix("Usage: ")
    entries, examples, notes, title = {}, [], [], None
    for line in lines[2:]:
        if found := TITLE.match(line):
            title = found[1]
        elif title == "Example" and line.startswith("  "):
            examples.append(line.strip())
        elif title in (None, "Example"):
            title = None
            notes.append(line)
        elif found := MORE.match(line):
            last = entries[title].pop()
            entries[title].append(Entry(last.term, f"{last.text} {found['text']}".strip()))
        elif found := ENTRY.match(line):
            entries.setdefault(title, []).append(Entry(found["term"], found["text"] or ""))
        elif line:
            title = None
            notes.append(line)
    return Help(description, usage, entries, examples, notes)


def escaped(text):
    return text.translate(ESCAPES)


def line_of(text):
    """A line of text: no leading control character, which roff would take for a request."""
    text = escaped(text)
    return f"\\&{text}" if text.startswith(".") else text


def entry_lines(entry):
    found = TERM.match(entry.term)
    if found is None:
        raise ValueError(f"the help has an entry of an unknown form: {entry.term!r}")
    names = ", ".join(f"\\fB{escaped(name)}\\fR" for name in found["names"].split(","))
    value = f" \\fI{escaped(found['value'])}\\fR{found['several'] or ''}" if found["value"] else ""
    remarks = [remark for remark in (
        "required" if found["required"] else "",
        f"default: {found['default']}" if found["default"] else "",
        found["relation"].replace("Excludes: ", "not with ").replace("Needs: ", "needs ") if found["relation"] else "") if remark]
    text = entry.text + (f" ({'; '.join(remarks)})" if remarks else "")
    return [".TP", f"{names}{value}", line_of(text.strip())]


def paragraphs(lines):
    text = "\n".join(lines).strip()
    return [line for part in text.split("\n\n") if part for line in (".PP", *map(line_of, part.splitlines()))]


def command_lines(command, parts, notes):
    lines = [f".SS nearwise {escaped(' '.join(command))}", line_of(parts.description + "."), ".PP", f"\\fB{escaped(parts.usage)}\\fR"]
    for title in ("Positionals", "Options"):
        for entry in parts.entries.get(title, []):
            if entry.term != "-h,--help":
                lines += entry_lines(entry)
    if parts.examples:
        lines += [".PP", "Example:", ".PP", ".nf", *(f"    {escaped(example)}" for example in parts.examples), ".fi"]
    return lines + (paragraphs(parts.notes) if notes else [])


def page(program):
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    commands = {command: parse(text) for command, text in help_pages.sections(program)}
    top = commands.pop(())
    exit_codes = " ".join(top.notes).partition("Exit codes: ")[2]
    lines = [f'.TH NEARWISE 1 "" "{escaped(version)}" "User Commands"',
             ".SH NAME", f"nearwise \\- {escaped(top.description[0].lower() + top.description[1:].rstrip('.'))}",
             ".SH SYNOPSIS", ".B nearwise", "\\fICOMMAND\\fR [\\fIOPTIONS\\fR] ...",
             ".SH DESCRIPTION", line_of(top.description),
             "Inputs are given by position, the output by \\fB\\-o\\fR. Data goes to stdout, everything else to stderr."]
    for title in ("Subcommands", "Options"):
        for entry in top.entries.get(title, []):
            lines += entry_lines(entry)
    lines.append(".SH COMMANDS")
    for command, parts in commands.items():
        # A noun repeats the notes of the program.
        lines += command_lines(command, parts, notes="Subcommands" not in parts.entries)
    lines.append(".SH EXIT STATUS")
    for code in exit_codes.split(", "):
        number, _, meaning = code.partition(" ")
        lines += [".TP", f"\\fB{number}\\fR", line_of(meaning)]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path, help="the program nearwise")
    parser.add_argument("-o", "--output", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.output.write_text(page(arguments.program.resolve()), encoding="utf-8")


if __name__ == "__main__":
    main()
