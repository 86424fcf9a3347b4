"""Words for what is printed: counted things."""


def counted(number: int, one: str, many: str | None = None) -> str:
    """So many of something, in the singular where it is one.

    >>> counted(1, "copy", "copies"), counted(4, "copy", "copies"), counted(20_000, "step")
    ('1 copy', '4 copies', '20,000 steps')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
