import re
import os
import subprocess
import sys


jaxobs.install()
state = "weights"


def evaluate(state): ...


example(1)
save(state)
assert {"eval", "checkpoint"} <= {name for name, spent in jaxobs.snapshot().wall.seconds.items() if spent}

# A program that kills itself, and goes on where it was when it is started again.
with open("program.py", "w") as file:
    file.write(EXAMPLES.pop(2))
ends = [subprocess.run([sys.executable, "program.py"], capture_output=True, text=True) for _ in range(2)]
assert [each.returncode for each in ends] == [-9, 0], ends
# How many depends on when the kill comes.
assert "attempt 2" in ends[1].stdout and re.search(r"made again [1-9]\d* steps", ends[1].stdout), ends
