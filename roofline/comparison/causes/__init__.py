"""Why one run is slower: causes that take their part of the terms, and what is said of each."""
