"""How Hypothesis searches: the same examples in every run of the suite, others in `make fuzz`.

A suite that draws new examples each time may fail on a commit that it passed an hour before.
"""

from hypothesis import settings

settings.register_profile("suite", derandomize=True, database=None)
settings.register_profile("fuzz", max_examples=2000, print_blob=True)
settings.load_profile("suite")
