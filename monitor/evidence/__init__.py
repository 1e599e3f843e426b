"""Evidence: final windows as a signed chain of hashes, and its verification."""
