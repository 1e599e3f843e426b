"""One file a version of the tables, numbered; a file that was released is not changed any more."""
