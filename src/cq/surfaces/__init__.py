"""Where people and programs meet cq. Surfaces parse arguments, call the workspace and render; they decide nothing."""
