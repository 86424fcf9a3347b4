"""Every experiment, listed once: the memory, learning curves in the paper's order and two of ours, studies, tables.

`alstm reproduce`, `alstm report` and the page of verdicts go through this list; nothing else names a figure. To add:

- learning curves: an entry of ``FIGURES`` in ``learning/figures.py``: a title, the task and the networks (they are in
  ``learning/curves.py``), and the claims, each with its criterion. Runs, pictures, table, verdicts, subcommand and
  section follow from that.
- what is measured without runs: a :class:`~associative_lstm.lab.experiments.experiment.Measurement`, listed here. Its
  function writes pictures, tables and ``claims.json`` to a folder, and returns the
  :class:`~associative_lstm.lab.experiments.experiment.Outcome`.
"""

from associative_lstm.lab.experiments.experiment import Experiment
from associative_lstm.lab.experiments.inside.study import INSIDE
from associative_lstm.lab.experiments.learning.figures import FIGURES
from associative_lstm.lab.experiments.memory.fig1_images import FIG1
from associative_lstm.lab.experiments.memory.fig2_error import FIG2
from associative_lstm.lab.experiments.memory.properties import PROPERTIES
from associative_lstm.lab.experiments.recall.study import RECALL
from associative_lstm.lab.experiments.tables import TABLES

EXPERIMENTS: tuple[Experiment, ...] = (FIG1, FIG2, PROPERTIES, *FIGURES, INSIDE, RECALL, *TABLES)
