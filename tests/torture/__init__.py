"""Everything that can happen to a run or to a file happens to it here, at random: see docs/reliability.md.

::

    server.py    the command, run in forked children of a process that has imported everything
    rules.py     what must hold whatever happens: nothing of the user's is lost, nothing is executed, no traceback
    kills.py     runs killed at random moments and resumed, until they are done
    inputs.py    run folders, configurations, checkpoints, weights, data, disks, streams and command lines, damaged
    hostile.py   ways to damage files, and files that would run code
    __main__.py  the command of the harness: cases are handed to workers, broken rules are counted and kept
"""
