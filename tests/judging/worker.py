"""A worker in a process of its own, to be killed: `python -m tests.judging.worker FOLDER URL N`."""

import sys
from pathlib import Path

from calibration.judging.pace import Rates
from tests.judging.fake_judge import traces
from tests.judging.runs import judged

if __name__ == "__main__":
    folder, url, n = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    judged(folder, url, traces(n), rates=Rates(start=4, most=4))
