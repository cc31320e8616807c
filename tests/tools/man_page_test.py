"""tools/man_page.py reads help as CLI11 prints it, refuses what it does not know, and escapes what roff would take for its own."""
import pytest

import man_page

HELP = """Do it
Usage: program do [OPTIONS] base

Positionals:
  base FILE REQUIRED          Vectors
  more FILE ... REQUIRED      Other vectors

Options:
  -h,--help                   Print this help message and exit
  -o,--output FILE REQUIRED   Output
  --metric one|two=one Excludes: --pad
                              Which one
  --pad Needs: --metric       .hidden 'quoted' back\\slash

Example:
  program do base -o x

First line,
second line.

Another paragraph."""


def test_parts_of_a_help():
    parts = man_page.parse(HELP)
    assert parts.description == "Do it" and parts.usage == "program do [OPTIONS] base"
    assert [entry.term for entry in parts.entries["Positionals"]] == ["base FILE REQUIRED", "more FILE ... REQUIRED"]
    assert parts.entries["Options"][2] == ("--metric one|two=one Excludes: --pad", "Which one")
    assert parts.examples == ["program do base -o x"]
    assert man_page.paragraphs(parts.notes) == [".PP", "First line,", "second line.", ".PP", "Another paragraph."]


def test_lines_of_roff():
    lines = "\n".join(man_page.command_lines(("do",), man_page.parse(HELP), notes=True))
    assert "\\fBbase\\fR \\fIFILE\\fR\nVectors (required)" in lines
    assert "\\fBmore\\fR \\fIFILE\\fR ...\nOther vectors (required)" in lines
    assert "\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fIFILE\\fR\nOutput (required)" in lines
    assert "\\fIone|two\\fR\nWhich one (default: one; not with \\-\\-pad)" in lines
    assert "\n\\&.hidden \\(aqquoted\\(aq back\\eslash (needs \\-\\-metric)" in lines
    assert "    program do base \\-o x" in lines
    assert "help" not in lines


def test_an_unknown_form_is_refused():
    with pytest.raises(ValueError, match="unknown form: '--odd A B C'"):
        man_page.entry_lines(man_page.Entry("--odd A B C", "text"))
