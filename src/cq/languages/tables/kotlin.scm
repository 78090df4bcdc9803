; Kotlin. Captures are explained in cq/syntax/language.py.

(identifier) @ref
(line_comment) @comment
(block_comment) @comment
(annotation) @attribute
(annotation) @span.decorator
(file_annotation) @span.decorator
(user_type) @span.type
(package_header) @span.import

(package_header (qualified_identifier) @name) @symbol.package
(import) @import
(class_declaration) @symbol.class
(object_declaration) @symbol.object
(companion_object) @symbol.object
(enum_entry . (identifier) @name) @symbol.enum_member
(enum_entry . (modifiers) . (identifier) @name) @symbol.enum_member
(type_alias type: (_) @name) @symbol.type
(function_declaration) @symbol.function
(secondary_constructor) @symbol.constructor
(property_declaration) @symbol.property
(for_statement (variable_declaration (identifier) @name) @symbol.variable)
(for_statement (multi_variable_declaration (variable_declaration (identifier) @name) @symbol.variable))
(when_subject (variable_declaration (identifier) @name) @symbol.variable)
(catch_block . (identifier) @name @symbol.variable)
(lambda_parameters (variable_declaration (identifier) @name) @symbol.parameter)
(lambda_parameters (multi_variable_declaration (variable_declaration (identifier) @name) @symbol.parameter))
(anonymous_function (function_value_parameters) @params) @lambda

(call_expression . (_) @callee) @call
(delegation_specifier (constructor_invocation (user_type) @callee (value_arguments) @args) @call.super)
; `make<Int>(3)` and `make<Int> { 3 }` are read as comparisons.
(parenthesized_expression) @generic
(lambda_literal) @generic
(constructor_delegation_call (value_arguments) @args) @call.delegate

; A name the parser only supposes is no use of one.
(MISSING) @token
