"""Associative Long Short-Term Memory (Danihelka, Wayne, Uria, Kalchbrenner, Graves, 2016)."""

__version__ = "0.1.0"

TYPE_CHECKING = False  # type checkers take it for True; importing it takes as long as all else here

if TYPE_CHECKING:
    from associative_lstm import functional, inside
    from associative_lstm.memory import HolographicMemory, expected_error
    from associative_lstm.nn import AssociativeLSTM, AssociativeLSTMCell
else:
    # What is here is imported when it is asked for: `alstm --help` passes through, and need not wait for PyTorch.
    _MODULES = ("functional", "inside", "kernels", "memory", "nn")
    _HOMES = {
        "AssociativeLSTM": "nn",
        "AssociativeLSTMCell": "nn",
        "HolographicMemory": "memory",
        "expected_error": "memory",
    }

    def __getattr__(name):
        import importlib

        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        if name in _HOMES:
            globals()[name] = value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *_MODULES, *_HOMES})


__all__ = [
    "AssociativeLSTM",
    "AssociativeLSTMCell",
    "HolographicMemory",
    "expected_error",
    "functional",
    "inside",
]
