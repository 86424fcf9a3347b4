# %% [markdown]
# # A tagger: one line changed
#
# A bidirectional tagger on packed sentences of unequal length, first with `torch.nn.LSTM`, then with
# `AssociativeLSTM`: the one line that differs is in `recurrent`.
#
# The sentences are made here, and have something to look up: names are declared to be of a kind, in any order, and
# later a name without its kind must be tagged with it. `B is a bird . C is a cat . look B ! look C !`

# %%
import random
import sys

import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

from associative_lstm import AssociativeLSTM

SMALL = "--small" in sys.argv
torch.set_num_threads(1)

NAMES = [f"name{k}" for k in range(12)]
KINDS = ["bird", "cat", "dog", "fish"]
WORDS = {word: k for k, word in enumerate([*NAMES, *KINDS, "is", "a", ".", "look", "!"])}
TAGS = {tag: k for k, tag in enumerate(["-", *KINDS])}


# %%
def sentence(rng):
    """Words, and of each its tag: names that are looked at have the tag of their kind, all else has none."""
    names = rng.sample(NAMES, rng.randint(2, 5))
    kinds = {name: rng.choice(KINDS) for name in names}
    words, tags = [], []
    for name in names:
        words += [name, "is", "a", kinds[name], "."]
        tags += ["-"] * 5
    for name in rng.sample(names, len(names)):
        words += ["look", name, "!"]
        tags += ["-", kinds[name], "-"]
    return torch.tensor([WORDS[word] for word in words]), torch.tensor([TAGS[tag] for tag in tags])


# %%
def recurrent(which, inputs):
    if which == "nn.LSTM":
        return nn.LSTM(inputs, 64, bidirectional=True)
    return AssociativeLSTM(inputs, 64, bidirectional=True, num_copies=4)  # the line


class Tagger(nn.Module):
    def __init__(self, which):
        super().__init__()
        self.network = recurrent(which, len(WORDS))
        self.readout = nn.Linear(2 * 64, len(TAGS))

    def forward(self, sentences):
        packed = pack_sequence(
            [nn.functional.one_hot(s, len(WORDS)).float() for s in sentences], enforce_sorted=False
        )
        output, _ = self.network(packed)
        padded, lengths = pad_packed_sequence(output)  # (T, B, 128)
        return torch.cat([self.readout(padded[:n, b]) for b, n in enumerate(lengths.tolist())])


# %% [markdown]
# The same loop trains both: Adam, gradients clipped at norm 1.


# %%
def train(which, steps, seed=0):
    torch.manual_seed(seed)
    rng = random.Random(seed)
    model = Tagger(which)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(steps):
        words, tags = zip(*(sentence(rng) for _ in range(16)), strict=True)
        loss = nn.functional.cross_entropy(model(words), torch.cat(tags))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if (step + 1) % 100 == 0:
            print(f"{which}: step {step + 1}, loss {loss.item():.3f}")
    return model


# %%
def accuracy(model, seed=1):
    """Of the names that are looked at, how many get the right kind; guessing gives a quarter."""
    words, tags = zip(*(sentence(random.Random(seed + k)) for k in range(200)), strict=True)
    with torch.no_grad():
        said, meant = model(words).argmax(-1), torch.cat(tags)
    asked = meant != TAGS["-"]
    return (said == meant)[asked].float().mean().item()


for which in ("nn.LSTM", "AssociativeLSTM"):
    model = train(which, steps=3 if SMALL else 400)
    print(f"{which}: {accuracy(model):.1%} of the kinds right")
