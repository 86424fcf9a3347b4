"""Which Neural Turing Machine has the 1,097,340 parameters of the paper's Table 3? A search; `python` this file.

Given are 4 heads, an LSTM controller of 384 and a memory of 128 x 20; 80 symbols go in and out. Tried is every
arrangement of what papers and programs differ in: how many heads read and write, at places shared or of their own;
how far a place shifts; what a head's interface holds and is computed from; what controller and readout see, and with
how many biases; peepholes; which initial states are learned; and the remainder 2(H + n) + 3 of the paper's LSTMs.
"""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

PAPER, SYMBOLS, HIDDEN = 1_097_340, 80, 384
ERASE = {"vector": None, "number": 1, "none": 0}
"""What a head erases with: as many numbers as the memory is wide, one, or none."""


class Arrangement(NamedTuple):
    """What is chosen, in words and numbers."""

    locations: int
    width: int
    reading: int
    writing: int
    shared: bool
    shifts: int
    scalars: int
    erase: str
    heads_see: str
    head_biases: int
    controller_sees: str
    controller_biases: int
    peepholes: bool
    readout_sees: str
    readout_biases: int
    remainder: str
    learned: tuple[str, ...] = ()


def initial_states(reading: int, places: int, locations: int, width: int) -> dict[int, list[tuple[str, ...]]]:
    """The sets of initial states that may be learned, by the numbers that they have."""
    sizes = {
        "h": HIDDEN,
        "c": HIDDEN,
        "reads": reading * width,
        "memory": locations * width,
        "row": width,
        "places": places * locations,
    }
    found: dict[int, list[tuple[str, ...]]] = {}
    for count in range(len(sizes) + 1):
        for chosen in itertools.combinations(sizes, count):
            if not {"memory", "row"} <= set(chosen):
                found.setdefault(sum(sizes[name] for name in chosen), []).append(chosen)
    return found


def arrangements() -> Iterator[tuple[Arrangement, int, dict[int, list[tuple[str, ...]]]]]:
    """Every arrangement, what is missing from it to the paper's number, and the initial states that may be that."""
    heads = itertools.product(((128, 20), (20, 128)), range(1, 5), range(1, 5), (False, True))
    for (locations, width), reading, writing, shared in heads:
        if shared and reading != writing:
            continue
        places, reads = reading if shared else reading + writing, reading * width
        states = initial_states(reading, places, locations, width)
        seen_by_heads = {"h": HIDDEN, "h, reads": HIDDEN + reads, "h, x": HIDDEN + SYMBOLS}
        seen_by_heads |= {"h, x, reads": HIDDEN + SYMBOLS + reads, "h, c": 2 * HIDDEN}
        seen = {
            "x, reads": SYMBOLS + reads,
            "x": SYMBOLS,
            "x, reads, places": SYMBOLS + reads + places * locations,
        }
        shown = {"h": HIDDEN, "h, reads": HIDDEN + reads, "reads": reads}
        interfaces = itertools.product((*range(12), 20, 128), (2, 3, 4), ERASE, seen_by_heads, (0, 1))
        for shifts, scalars, erase, by_heads, head_biases in interfaces:
            erased = ERASE[erase]
            rows = places * (width + shifts + scalars) + writing * (
                width + (width if erased is None else erased)
            )
            of_heads = rows * (seen_by_heads[by_heads] + head_biases)
            rest = itertools.product(seen, (0, 1, 2), (False, True), shown, (0, 1))
            for by_controller, biases, peepholes, by_readout, readout_biases in rest:
                controller = 4 * HIDDEN * (seen[by_controller] + HIDDEN + biases) + 3 * HIDDEN * peepholes
                outputs = shown[by_readout]
                missing = PAPER - of_heads - controller - SYMBOLS * (outputs + readout_biases)
                remainders = {
                    "none": 0,
                    "of the controller": HIDDEN,
                    "of the readout": outputs,
                    "of both": HIDDEN + reads,
                }
                for remainder, size in remainders.items():
                    left = missing - (2 * (size + SYMBOLS) + 3 if size else 0)
                    if left >= 0:
                        yield Arrangement(
                            locations, width, reading, writing, shared, shifts, scalars, erase, by_heads, head_biases,
                            by_controller, biases, peepholes, by_readout, readout_biases, remainder,
                        ), left, states  # fmt: skip


def main() -> None:
    """Count the arrangements that have the number, and those among them that are an NTM as it was published."""
    tried, found = 0, []
    for arrangement, left, states in arrangements():
        tried += 1
        found += [arrangement._replace(learned=learned) for learned in states.get(left, ())]
    print(f"{tried:,} arrangements, {len(found)} with {PAPER:,} parameters")
    four = [a for a in found if (a.locations, a.reading) == (128, 4)]
    print(f"with 4 heads that read 128 locations: {len(four)}")
    print(f"without learned initial states: {sum(not a.learned for a in four)}")
    published = [
        a
        for a in four
        if (a.erase, a.scalars, a.head_biases, a.controller_biases, a.readout_biases)
        == ("vector", 3, 1, 1, 1)
    ]
    print(f"with the heads of the NTM's paper, and one bias everywhere: {len(published)}")


if __name__ == "__main__":
    main()
