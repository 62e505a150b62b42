"""Write the ranks of a job: who is waited for and what it does differently, each rank, its collectives and phases."""
