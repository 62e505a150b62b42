"""Work out what is shown of two runs and more: the rows of the account, parity, terms, evidence, and their words."""
