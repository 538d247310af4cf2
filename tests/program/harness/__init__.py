"""What the program tests share: private servers, the runner of prony, targets, and the check that
nothing stays behind. conftest.py makes fixtures of it."""
