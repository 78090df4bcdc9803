"""What readers ask of links: who is it, what does it mean, who refers to it, how certain."""
