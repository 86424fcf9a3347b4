"""What pictures share: colours, the look of a figure, tables, learning curves, sequences as coloured text."""
