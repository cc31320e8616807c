"""What the check programs share: the files of the repository, and how a finding is reported."""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def files(root):
    """Paths relative to `root`, in order: tracked files and new ones that are not ignored."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, check=True, capture_output=True).stdout.decode()
    return [Path(name) for name in sorted(set(listed.split("\0")) - {""}) if (root / name).is_file()]


def conclude(program, findings):
    """Print the findings ("file:line: message") and return the exit status."""
    for finding in findings:
        print(finding, file=sys.stderr)
    print(f"{program}: {len(findings)} findings" if findings else f"{program}: ok")
    return 1 if findings else 0
