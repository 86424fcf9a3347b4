# %% [markdown]
# # A task of your own
#
# A file that registers a task is all that `alstm` needs: `alstm train phone-book --from examples/own_task.py`. This
# file is such a one; run by itself, it also trains on it.
#
# The task: a phone book is read out, then a name is asked for. `anna:4127,bo:93;bo=93.`

# %%
import random
import re

from associative_lstm.lab.tasks import OnlineTask, mark, register


@register
class PhoneBook(OnlineTask):
    name = "phone-book"
    description = "names and numbers, then one of the names: say its number"
    chance = 2.89  # bits: three digits and one of three lengths in the mean, over four characters

    def sequence(self, rng: random.Random) -> str:
        names = list({self.name_of(rng, 4) for _ in range(4)})
        names.sort()  # a set has no order of its own
        numbers = {
            name: "".join(str(int(rng.random() * 10)) for _ in range(2 + int(rng.random() * 3)))
            for name in names
        }
        asked = names[int(rng.random() * len(names))]
        book = ",".join(f"{name}:{number}" for name, number in numbers.items())
        return f"{book};{asked}={numbers[asked]}."

    def marks(self, text: str) -> str:
        """What is scored: the number after an equals sign, with its end."""
        return mark(re.compile(r"(?<==)\d+\."), text)


# %% [markdown]
# `alstm show phone-book --from examples/own_task.py` prints a sample with the scored characters marked. From Python:

# %%
if __name__ == "__main__":
    import sys
    import tempfile
    from pathlib import Path

    from associative_lstm.lab.run.config import complete
    from associative_lstm.lab.run.folder import read_log
    from associative_lstm.lab.run.loop import train

    task = PhoneBook(window=60)
    batch = next(task.stream(batch_size=1, seed=0))
    print(task.decode(batch.targets[:, 0]))
    print("".join(" ^"[int(scored)] for scored in batch.mask[:, 0]))

    steps = 5 if "--small" in sys.argv else 3000
    config = complete(
        {
            "task": "phone-book",
            "recipe": "fast",
            "copies": 4,
            "steps": steps,
            "log_every": max(1, steps // 10),
        }
    )
    run = train(config, Path(tempfile.mkdtemp(prefix="phone-book-")) / "run")
    for line in read_log(run):
        print(f"step {line['step']}: {line['cost']:.2f} bits, of {task.chance} for guessing")
