"""Tables of the documentation."""


def table(head, rows):
    return ["| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rows]]
