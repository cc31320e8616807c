"""The help of every command, asked of the program itself."""
import re
import subprocess

# A command in the list of a help text: two spaces, its name, then what it does.
COMMANDS = re.compile(r"^(?:Sub)?commands:\n((?:  .*\n?)+)", re.I | re.M)


def help_of(program, command):
    run = subprocess.run([program, *command, "--help"], capture_output=True, text=True, check=True)
    return run.stdout.rstrip()


def commands_in(text):
    return [name for block in COMMANDS.findall(text) for name in re.findall(r"^  (\S+)", block, re.M)]


def sections(program, command=()):
    text = help_of(program, command)
    yield command, text
    for name in commands_in(text):
        yield from sections(program, (*command, name))


def page(program):
    lines = ["# Help of every command", "", "What `--help` prints. What the commands do, with examples and exit codes: "
             "[the command line](command-line.md).", ""]
    for command, text in sections(program):
        lines += [f"## nearwise {' '.join(command)}".rstrip(), "", "```text", text, "```", ""]
    return "\n".join(lines)
