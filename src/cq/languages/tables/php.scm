; PHP. Captures are explained in cq/syntax/language.py.

(name) @ref
; A variable is called `$x`; the name inside it is no word of its own.
(variable_name) @ref
(variable_name (name) @token)
(variable_name (ERROR)) @token
(comment) @comment
(attribute_group) @attribute
(attribute . (_) @span.decorator)
(named_type) @span.type
(base_clause) @span.type
(class_interface_clause) @span.type
(use_declaration) @span.type
(catch_clause type: (_) @span.type)
(namespace_definition name: (_) @span.import)
(argument . name: (name) @role.keyword)
(relative_scope) @token

(namespace_definition) @symbol.namespace
(class_declaration) @symbol.class
(interface_declaration) @symbol.interface
(trait_declaration) @symbol.trait
(enum_declaration) @symbol.enum
(enum_case) @symbol.enum_member
(function_definition) @symbol.function
(method_declaration) @symbol.method
(const_declaration) @constants
(property_declaration) @properties
(expression_statement (assignment_expression left: (variable_name) @name right: (_) @value)) @assign
(expression_statement (assignment_expression left: (list_literal) @names)) @assign
(foreach_statement (pair (variable_name) @name @symbol.variable))
(foreach_statement (_) . "as" . (variable_name) @name @symbol.variable)
(static_variable_declaration name: (_) @name) @symbol.variable
(catch_clause name: (variable_name) @name @symbol.variable)
(expression_statement
  (function_call_expression
    function: (name) @word
    arguments: (arguments . (argument (string (string_content) @name))))
  (#eq? @word "define")) @symbol.constant
(anonymous_function parameters: (_) @params) @lambda
(arrow_function parameters: (_) @params) @lambda

; Arguments are looked up, not captured: a chain of calls would keep a match open for each of its links.
(function_call_expression) @call
(member_call_expression) @call
(nullsafe_member_call_expression) @call
(scoped_call_expression) @call
(object_creation_expression . (_) @callee) @call.new

(namespace_use_declaration) @import.use
(require_expression (_) @module) @import.require
(require_once_expression (_) @module) @import.require
(include_expression (_) @module) @import.include
(include_once_expression (_) @module) @import.include

; A name the parser only supposes is no use of one.
(MISSING) @token
