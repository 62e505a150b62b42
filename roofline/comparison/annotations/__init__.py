"""Names for rows of an account, one per file (`ANNOTATION`); account/annotation.py says what each holds."""
