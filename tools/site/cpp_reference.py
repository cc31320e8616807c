"""The C++ reference: a page for each public header, from the XML that Doxygen makes of it."""
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SHOWN = ("class", "struct")
# Operators, and what a compiler generates, are no reading matter.
SKIPPED = re.compile(r"^(operator|~)")


def run_doxygen(root):
    output = root / "build" / "docs"
    output.mkdir(parents=True, exist_ok=True)
    run = subprocess.run(["doxygen", "tools/site/Doxyfile"], cwd=root, capture_output=True, text=True)
    if run.returncode != 0 or run.stderr.strip():
        raise RuntimeError(f"doxygen: {run.stderr.strip() or run.stdout.strip()}")
    return output / "xml"


def plain(element):
    """The text of an element with references, as code."""
    text = re.sub(r"\s+", " ", "".join(element.itertext())).strip() if element is not None else ""
    return re.sub(r"< (.*?) >", r"<\1>", re.sub(r" ([&*])", r"\1", text))


def escaped(text):
    return re.sub(r"([\[\]*|])", r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;"))


def inline(element):
    parts = [escaped(element.text or "")]
    for child in element:
        if child.tag == "computeroutput":
            parts.append(f"`{''.join(child.itertext())}`")
        elif child.tag in ("itemizedlist", "orderedlist"):
            parts.append("\n\n" + "\n".join(f"- {inline(item.find('para')).strip()}" for item in child) + "\n")
        else:
            parts.append(inline(child))
        parts.append(escaped(child.tail or ""))
    return "".join(parts)


def description(element):
    paragraphs = [inline(para).strip() for part in ("briefdescription", "detaileddescription")
                  for para in element.findall(f"{part}/para")]
    return "\n\n".join(filter(None, paragraphs))


def row(text):
    return text.replace("\n", " ")


def signature(member):
    """A function as it is declared, one parameter a line where it is long."""
    template = "".join(f"template <{', '.join(plain(each.find('type')) + ' ' + plain(each.find('declname')) for each in found)}>\n"
                       for found in member.findall("templateparamlist")).replace(" >", ">")
    words = [word for attribute, word in (("static", "static"), ("explicit", "explicit")) if member.get(attribute) == "yes"]
    start = " ".join([*words, plain(member.find("type")), plain(member.find("name"))]).replace("  ", " ").strip()
    parameters = []
    for each in member.findall("param"):
        default = plain(each.find("defval"))
        parameters.append(f"{plain(each.find('type'))} {plain(each.find('declname'))}".strip() + (f" = {default}" if default else ""))
    end = " const" if member.get("const") == "yes" else ""
    one = f"{start}({', '.join(parameters)}){end};"
    if len(one) <= 100 or not parameters:
        return template + one
    return template + f"{start}(\n    " + ",\n    ".join(parameters) + f"){end};"


def function_text(member, level):
    return [f"{'#' * level} {plain(member.find('name'))} {{ #{member.get('id')} }}", "", "```cpp", signature(member), "```", "",
            description(member), ""]


def fields(members):
    lines = ["| field | default | meaning |", "| --- | --- | --- |"]
    for member in members:
        default = plain(member.find("initializer")).removeprefix("=").strip()
        lines.append(f"| `{plain(member.find('type'))} {plain(member.find('name'))}` | {f'`{default}`' if default else ''} | "
                     f"{row(description(member))} |")
    return [*lines, ""]


def enumeration(member):
    lines = [f"## enum {plain(member.find('name'))} {{ #{member.get('id')} }}", "", description(member), "",
             "| value | meaning |", "| --- | --- |"]
    lines += [f"| `{plain(value.find('name'))}` | {row(description(value))} |" for value in member.findall("enumvalue")]
    return [*lines, ""]


def compound(element):
    """A class or struct: its text, its fields as a table, its functions."""
    name = plain(element.find("compoundname")).removeprefix("nearwise::")
    public = [member for member in element.iter("memberdef")
              if member.get("prot") == "public" and not SKIPPED.match(plain(member.find("name")))]
    variables = [member for member in public if member.get("kind") == "variable"]
    functions = [member for member in public if member.get("kind") == "function"]
    # A function that its neighbours' comment covers has none of its own: they are shown together.
    lines = [f"## {element.get('kind')} {name} {{ #{element.get('id')} }}", "", description(element), ""]
    if variables:
        lines += fields(variables)
    for member in functions:
        if "= delete" not in plain(member.find("argsstring")):
            lines += function_text(member, 3)
    return lines


def head_comment(header):
    """The comment that a header begins with, as Markdown: indented lines are code."""
    lines = []
    for line in header.read_text(encoding="utf-8").splitlines():
        if not line.startswith("//"):
            break
        lines.append(line[2:].removeprefix(" "))
    text, code = [], False
    for line in lines:
        indented = line.startswith("  ")
        if indented != code and line:
            text.append("```cpp" if indented else "```")
            code = indented
        text.append(line.removeprefix("  ") if code else escaped(line))
    if code:
        text.append("```")
    return "\n".join(text)


def entries(xml):
    """{header: [(line, lines of the page)]}"""
    found = {}
    for entry in ElementTree.parse(xml / "index.xml").getroot():
        if entry.get("kind") not in (*SHOWN, "namespace"):
            continue
        element = ElementTree.parse(xml / f"{entry.get('refid')}.xml").getroot().find("compounddef")
        if not plain(element.find("compoundname")).startswith("nearwise"):
            continue
        if entry.get("kind") == "namespace":
            for member in element.iter("memberdef"):
                if SKIPPED.match(plain(member.find("name"))):
                    continue
                if member.get("kind") == "function":
                    place(found, member, function_text(member, 2))
                elif member.get("kind") == "enum":
                    place(found, member, enumeration(member))
        elif element.get("prot") == "public":
            place(found, element, compound(element))
    return found


def place(found, element, lines):
    location = element.find("location")
    found.setdefault(location.get("declfile") or location.get("file"), []).append((int(location.get("declline") or location.get("line")), lines))


def pages(root):
    """{path below docs/: Markdown}"""
    by_header = entries(run_doxygen(root))
    found, index = {}, ["# C++ reference", "", "`#include <nearwise/nearwise.h>` has everything; the headers can be included one by one. "
                        "Every header stands for itself with the standard library.", "", "| header | what |", "| --- | --- |"]
    for header in sorted((root / "include" / "nearwise").rglob("*.h")):
        name = str(header.relative_to(root / "include"))
        content = by_header.get(str(header.relative_to(root)))
        if not content:
            continue
        page = Path(name).with_suffix(".md").name
        head = head_comment(header)
        index.append(f"| [{name}]({page}) | {row(head.split(chr(10) * 2)[0].split('. ')[0].rstrip('.'))} |")
        body = [line for _, lines in sorted(content, key=lambda each: each[0]) for line in lines]
        found[f"reference/cpp/{page}"] = "\n".join([f"# {name}", "", head, "", *body])
    found["reference/cpp/index.md"] = "\n".join(index) + "\n"
    return found
