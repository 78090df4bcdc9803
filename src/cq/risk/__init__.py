"""Where data goes: rules, abstract values, summaries of functions and the flows they add up to. Pure."""
