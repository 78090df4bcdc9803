"""TypeScript and JavaScript: grammar queries, facts, modules and rules of linking."""
