"""Code about an idea."""
