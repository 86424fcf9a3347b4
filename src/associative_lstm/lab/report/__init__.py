"""`alstm report`: run logs and committed results as one HTML page that needs nothing else."""
