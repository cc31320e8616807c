"""python -m nearwise: the command line."""

from nearwise._command_line import main

main()
