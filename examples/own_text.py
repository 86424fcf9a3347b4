# %% [markdown]
# # Text of your own, with the lab
#
# `alstm train wikipedia --data FILE` reads any file, byte by byte: the first 96 % to train on, the rest to test. This
# is the same from Python: two networks on one text, compared. The text here is source of Python's own, which every
# installation has; put your own file in its place.

# %%
import inspect
import json
import sys
import tempfile
from pathlib import Path

from associative_lstm.lab.draw.runs import plot_runs
from associative_lstm.lab.run.config import complete
from associative_lstm.lab.run.folder import read_log
from associative_lstm.lab.run.loop import train

SMALL = "--small" in sys.argv
STEPS = 10 if SMALL else 1000

# %%
folder = Path(tempfile.mkdtemp(prefix="own-text-"))
text = folder / "text"
text.write_text("\n".join(inspect.getsource(module) for module in (json, tempfile, inspect)))
print(f"{text.stat().st_size:,} bytes")

# %% [markdown]
# A configuration is what the command line's flags say; what is not said is the recipe's choice, or the task's.

# %%
runs = []
for model, options in (("associative-lstm", {"copies": 4}), ("lstm", {})):
    config = complete(
        {
            "task": "wikipedia",
            "data": str(text),
            "recipe": "fast",
            "model": model,
            "hidden_size": 32 if SMALL else 128,
            "steps": STEPS,
            "log_every": max(1, STEPS // 10),
            "test_every": STEPS,
            **options,
        }
    )
    runs.append(train(config, folder / model))
    print(f"{model}: {read_log(runs[-1])[-1]['cost']:.2f} bits per character after {STEPS} minibatches")

# %% [markdown]
# One picture of both. `alstm sample RUN` lets a network write on; `alstm eval RUN` measures it on the test text.

# %%
plot_runs(runs, folder / "compare.png")
print(folder / "compare.png")
