"""What all compiled kernels share."""
