; Go. Captures are explained in cq/syntax/language.py.

(identifier) @ref
(package_identifier) @ref
(field_identifier) @ref.attribute
(type_identifier) @ref.type
(label_name) @ref.label
(comment) @comment

(package_clause (package_identifier) @name) @symbol.package
(import_declaration) @import
(const_declaration) @symbol.constant
(var_declaration) @symbol.variable
(type_declaration) @symbol.type
(function_declaration) @symbol.function
(method_declaration) @symbol.method
(field_declaration) @symbol.field
(method_elem name: (_) @name) @symbol.method_element
(func_literal parameters: (_) @params) @lambda

(short_var_declaration) @symbol.local
(range_clause left: (expression_list (identifier) @name @symbol.name) ":=")
(receive_statement left: (expression_list (identifier) @name @symbol.name) ":=")
(type_switch_statement alias: (expression_list (identifier) @name @symbol.name))

; Arguments are looked up, not captured: a chain of calls would keep a match open for each of its links.
(call_expression function: (_) @callee) @call
; `pkg.Make[int](1)` reads as a conversion to a generic type: the parser cannot know.
(type_conversion_expression type: (generic_type) @callee) @call

; A name the parser only supposes is no use of one.
(MISSING) @token
