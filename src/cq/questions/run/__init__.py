"""Several questions of a plan, asked over one snapshot and merged; plans by name are reports."""
