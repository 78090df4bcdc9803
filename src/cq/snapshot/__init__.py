"""What every question reads: one generation of a repository, its files, targets, links and language servers."""
