; Lua. Functions stand in declarations, in assignments and in fields of tables.

(identifier) @ref
(comment) @comment

(function_declaration name: (_) @name) @symbol.function
(assignment_statement
  (variable_list . name: (_) @name) (expression_list . value: (function_definition) @value)) @symbol.function
(field name: [(identifier) (string)] @name value: (function_definition) @value) @symbol.function
(field name: [(identifier) (string)] @name value: (table_constructor) @value) @symbol.field
(chunk (variable_declaration (assignment_statement (variable_list name: (identifier) @name))) @symbol.variable)
(chunk (variable_declaration (variable_list name: (identifier) @name)) @symbol.variable)
(chunk (assignment_statement (variable_list name: (_) @name)) @symbol.variable)

(chunk (return_statement (expression_list . (identifier) @returned)))
(chunk (return_statement (expression_list . (table_constructor (field value: (identifier) @returned)))))

(function_call name: (_) @callee arguments: (_) @args) @call
