"""griffe extension: what the sources of the Python package say in ways of their own.

- The comment `#: text` after a field of a class is its documentation.
- `**settings: Unpack[Settings]` stands for the keywords of a `nearwise.Context`, as in nearwise._context._explicit.
"""
import re

import griffe

COMMENT = re.compile(r"#: (.*)$")
ORDER = ("context", "seed", "device", "threads", "memory_limit", "isa", "progress")


def keywords(contexts, name):
    """{keyword: annotation} of a TypedDict of nearwise._context and its bases."""
    found = {}
    for base in contexts.classes[name].bases:
        if str(base) in contexts.classes:
            found |= keywords(contexts, str(base))
    return found | {key: each.annotation for key, each in contexts.classes[name].attributes.items()}


def functions(scope):
    for each in scope.members.values():
        if each.is_alias:
            continue
        if each.is_function:
            yield each
            yield from each.overloads or ()
        elif each.is_module or each.is_class:
            yield from functions(each)


def spell_out(function, contexts):
    """Replaces `**settings` by the keywords that it stands for."""
    last = list(function.parameters)[-1:]
    if not last or last[0].kind is not griffe.ParameterKind.var_keyword or "Unpack[" not in str(last[0].annotation):
        return
    given = keywords(contexts, re.search(r"Unpack\[(\w+)\]", str(last[0].annotation))[1])
    del function.parameters[last[0].name]
    for name in ORDER:
        if name in given:
            function.parameters.add(griffe.Parameter(name, annotation=given[name], default="None",
                                                     kind=griffe.ParameterKind.keyword_only))


def own_types(function):
    """Keywords that are documented together (`context, seed, threads`) have the types of the signature, not that of the first."""
    for section in function.docstring.parsed if function.docstring else ():
        if section.kind is griffe.DocstringSectionKind.parameters:
            for parameter in section.value:
                if parameter.name in ORDER and parameter.name in function.parameters:
                    parameter.annotation = function.parameters[parameter.name].annotation


class PythonDocs(griffe.Extension):
    def on_attribute_instance(self, *, attr, **_):
        if attr.docstring is not None or attr.lineno is None:
            return
        lines = attr.lines_collection[attr.filepath][attr.lineno - 1:attr.endlineno]
        if lines and (found := COMMENT.search(lines[-1])):
            attr.docstring = griffe.Docstring(found[1], parent=attr, lineno=attr.lineno)

    def on_package(self, *, pkg, **_):
        for function in functions(pkg):
            spell_out(function, pkg["_context"])
            own_types(function)
