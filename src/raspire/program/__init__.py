"""Programs: s-ops, selectors, elementwise primitives, the Python embedding, static facts."""
