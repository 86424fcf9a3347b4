"""Speed and memory, side by side with what a user would pick instead. Equality is checked before a speed is told."""
