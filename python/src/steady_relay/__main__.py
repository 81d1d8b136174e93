"""``python -m steady_relay`` is the program ``steady-relay``."""

import os
import subprocess
import sys

from ._program import program

if __name__ == "__main__":
    command = [program(), *sys.argv[1:]]
    if os.name == "nt":
        sys.exit(subprocess.run(command).returncode)
    os.execv(command[0], command)
