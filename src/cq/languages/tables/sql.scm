; SQL. What the grammar does not know, routines above all, is read by sql.py.

(identifier) @ref
(comment) @comment
(marginalia) @comment

(program) @program
(create_table (object_reference) @name) @symbol.table
(create_view (object_reference) @name) @symbol.view
(create_materialized_view (object_reference) @name) @symbol.view
(create_type (object_reference) @name) @symbol.type
(create_sequence (object_reference) @name) @symbol.variable
(create_schema (identifier) @name) @symbol.schema
(create_database (identifier) @name) @symbol.namespace
(create_index column: (identifier) @name) @symbol.index
(create_table (column_definitions (column_definition name: (identifier) @name) @symbol.column))
(alter_table (object_reference) @table (add_column (column_definition name: (identifier) @name) @symbol.column))
(enum_elements enum_element: (literal) @name @symbol.enum_member)

(invocation (object_reference) @callee) @call
