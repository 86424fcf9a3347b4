# %% [markdown]
# # A key-value store in a vector
#
# The memory as a building block: a symbol table, a scene, analogies. Nothing is learned: all that a memory holds is a
# sum of vectors, and what is read is cleaned up by looking for the nearest known symbol.

# %%
import torch

from associative_lstm import HolographicMemory, expected_error
from associative_lstm import functional as F

N = 512
generator = torch.Generator().manual_seed(0)


# %%
class Symbols:
    """Words as random unit vectors: any two are nearly orthogonal, and each is a key as well as a value."""

    def __init__(self, words):
        self.words = list(words)
        self.vectors = F.random_key(N, len(self.words), generator=generator)

    def __getitem__(self, word):
        return self.vectors[self.words.index(word)]

    def nearest(self, vector):
        """The known word that a noisy vector is most like, and how like it is."""
        likeness = F.similarity(vector, self.vectors)
        return self.words[int(likeness.argmax())], likeness.max().item()


# %% [markdown]
# ## A symbol table
#
# Twenty variables in eight copies. `expected_error` says how noisy a read will be, before anything is stored.

# %%
variables, values = [f"x{k}" for k in range(20)], [f"value{k}" for k in range(100)]
symbols = Symbols([*variables, *values])
table = HolographicMemory(N, num_copies=8, permutation="shift", generator=generator)
power = 0.5  # a number of modulus 1 has mean square 1/2 in each of its two parts
print(f"expected error of a read: {expected_error(20, 8, size=N, power=power, permutation='shift'):.2f}")

assigned = {name: values[3 * k] for k, name in enumerate(variables)}
for name, value in assigned.items():
    table.write(symbols[name], symbols[value])
read = {name: symbols.nearest(table.read(symbols[name]))[0] for name in variables}
print(f"{sum(read[name] == assigned[name] for name in variables)} of {len(variables)} variables read back")

# A variable is changed by taking its old value out: writing is an addition.
table.write(symbols["x3"], symbols["value99"] - symbols[assigned["x3"]])
print("x3 is now", *symbols.nearest(table.read(symbols["x3"])))

# %% [markdown]
# ## A scene
#
# An object is a sum of role-filler pairs, bound in one vector; a scene is a sum of objects, each under its place.
# Reading a place gives the object, and unbinding a role from it gives the filler.

# %%
symbols = Symbols(
    [
        "left",
        "right",
        "middle",
        "shape",
        "colour",
        "size",
        "cube",
        "ball",
        "cone",
        "red",
        "green",
        "blue",
        "big",
        "small",
    ]
)


def thing(**roles):
    return sum(F.bind(symbols[role], symbols[filler]) for role, filler in roles.items())


scene = HolographicMemory(N, num_copies=16, permutation="shift", generator=generator)
scene.write(symbols["left"], thing(shape="cube", colour="red", size="big"))
scene.write(symbols["middle"], thing(shape="ball", colour="green", size="small"))
scene.write(symbols["right"], thing(shape="cone", colour="blue", size="big"))
for place in ("left", "middle", "right"):
    seen = scene.read(symbols[place])
    answers = {
        role: symbols.nearest(F.unbind(symbols[role], seen))[0] for role in ("size", "colour", "shape")
    }
    print(f"{place}: {' '.join(answers.values())}")

# %% [markdown]
# ## Analogies
#
# Kanerva's question: what is the dollar of Mexico? Bind what is known of one country to that of another; the products
# of like roles are a mapping between the two.

# %%
symbols = Symbols(
    ["country", "capital", "money", "usa", "washington", "dollar", "mexico", "mexico-city", "peso"]
)
usa = thing(country="usa", capital="washington", money="dollar")
mexico = thing(country="mexico", capital="mexico-city", money="peso")
mapping = F.unbind(usa, mexico)
for word in ("dollar", "washington", "usa"):
    print(f"{word} is to the usa as {symbols.nearest(F.bind(symbols[word], mapping))[0]} is to mexico")
