"""Beside what people use today: how much networks recall with a state of the same size, and what that costs."""
