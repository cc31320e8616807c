"""What is searched: exact search, inverted files, graph indexes, and the filters and ids of their searches."""
