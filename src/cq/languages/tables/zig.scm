; Zig. A container is a value: `const T = struct { … }` defines T.

(identifier) @ref
(comment) @comment

(function_declaration name: (identifier) @name) @symbol.function
(test_declaration [(string) (identifier)] @name) @symbol.function
(source_file (variable_declaration . (identifier) @name) @symbol.variable)
(struct_declaration (variable_declaration . (identifier) @name) @symbol.variable)
(union_declaration (variable_declaration . (identifier) @name) @symbol.variable)
(enum_declaration (variable_declaration . (identifier) @name) @symbol.variable)
(opaque_declaration (variable_declaration . (identifier) @name) @symbol.variable)
(container_field name: (identifier) @name) @symbol.field

(variable_declaration . (identifier) @local
  (builtin_function (builtin_identifier) @word (arguments (string (string_content) @module)))
  (#any-of? @word "@import" "@cImport")) @import
(call_expression function: (_) @callee) @call
