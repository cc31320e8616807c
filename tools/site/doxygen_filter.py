"""Turns the comments of a public header into documentation for Doxygen: `//` before a declaration, or after it."""
import re
import sys

SYMBOLS = str.maketrans({"<": "\\<", ">": "\\>", "@": "\\@", "\\": "\\\\", "#": "\\#", "%": "\\%"})


def documented(line):
    found = re.match(r"^(.*?)(\s*)//(?!/) ?(.*)$", line)
    if found is None or found[1].count('"') % 2:
        return line
    before, space, text = found.groups()
    # Backticks keep their content; elsewhere symbols of Doxygen are plain text.
    parts = text.split("`")
    parts[::2] = [part.translate(SYMBOLS) for part in parts[::2]]
    return f"{before}{space}{'///<' if before.strip() else '///'} {'`'.join(parts)}"


for source in open(sys.argv[1], encoding="utf-8"):
    print(documented(source.rstrip("\n")))
