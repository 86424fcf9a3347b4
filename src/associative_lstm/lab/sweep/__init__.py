"""Many runs: jobs by processes of this machine, or by a Ray cluster."""
