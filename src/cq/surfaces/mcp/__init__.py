"""The Model Context Protocol: tools that are commands, answered by the same program over stdio or HTTP."""
