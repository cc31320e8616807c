"""The `nearwise` command of an installed package: the C++ program that lies in it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

import nearwise


def main() -> NoReturn:
    # An editable installation is spread over two folders.
    for folder in nearwise.__path__:
        program = Path(folder) / "bin" / "nearwise"
        if program.is_file():
            # In place of this process: signals and exit codes are the program's own.
            os.execv(program, [str(program), *sys.argv[1:]])
    sys.exit("nearwise: this package was built without the command line")
