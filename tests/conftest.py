"""What all tests share."""

import os

from hypothesis import settings

# CI answers for a commit, so the same commit must give the same answer; at a desk, where somebody
# is there to look at what was found, every run tries other inputs. Deadlines per example only tell
# how busy the machine is: pytest-timeout bounds the whole test.
settings.register_profile("desk", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")
