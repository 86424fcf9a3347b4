"""What trained networks recall: of every answer, whether it was read from the write that it should be read from."""
