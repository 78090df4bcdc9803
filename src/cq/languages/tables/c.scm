; C. Captures are explained in cq/syntax/language.py. C++ reads this file too, then its own.

(identifier) @ref
(field_identifier) @ref.attribute
(type_identifier) @ref.type
(statement_identifier) @ref.label
(comment) @comment
(attribute_specifier) @attribute
(attribute_specifier (argument_list) @span.decorator)

(preproc_include path: (_) @module) @import.include
(preproc_def) @symbol.macro
(preproc_function_def) @symbol.macro
(preproc_params (identifier) @name @symbol.parameter)
(function_definition) @symbol.function
(declaration) @declared.variable
(field_declaration) @declared.field
(type_definition) @declared.type
(struct_specifier body: (_) @body) @symbol.struct
(union_specifier body: (_) @body) @symbol.union
(enum_specifier body: (_) @body) @symbol.enum
(enumerator name: (_) @name) @symbol.enum_member

; Arguments are looked up, not captured: a chain of calls would keep a match open for each of its links.
(call_expression function: (_) @callee) @call

; A name the parser only supposes is no use of one.
(MISSING) @token
