"""The words every layer shares: frozen structs and nothing else. No I/O, no behaviour beyond reading oneself."""
