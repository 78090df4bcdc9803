; C#. Captures are explained in cq/syntax/language.py.

(identifier) @ref
(comment) @comment
(attribute_list) @attribute
(attribute name: (_) @span.decorator)
(base_list) @span.type
(type_argument_list) @span.type
(type_parameter_constraints_clause) @span.type
(variable_declaration type: (_) @span.type)
(parameter type: (_) @span.type)
(property_declaration type: (_) @span.type)
(indexer_declaration type: (_) @span.type)
(event_declaration type: (_) @span.type)
(delegate_declaration type: (_) @span.type)
(operator_declaration type: (_) @span.type)
(conversion_operator_declaration type: (_) @span.type)
(local_function_statement type: (_) @span.type)
(cast_expression type: (_) @span.type)
(object_creation_expression type: (_) @span.type)
(array_creation_expression type: (_) @span.type)
(declaration_pattern type: (_) @span.type)
(declaration_expression type: (_) @span.type)
(catch_declaration type: (_) @span.type)
(foreach_statement type: (_) @span.type)
(typeof_expression type: (_) @span.type)
(method_declaration returns: (_) @span.type)
(file_scoped_namespace_declaration) @span.import
(namespace_declaration name: (_) @span.import)

(using_directive) @import
(namespace_declaration) @symbol.namespace
(file_scoped_namespace_declaration) @symbol.namespace
(class_declaration) @symbol.class
(struct_declaration) @symbol.struct
(record_declaration) @symbol.record
(interface_declaration) @symbol.interface
(enum_declaration) @symbol.enum
(enum_member_declaration) @symbol.enum_member
(delegate_declaration) @symbol.delegate
(method_declaration) @symbol.method
(local_function_statement) @symbol.function
(constructor_declaration) @symbol.constructor
(destructor_declaration) @symbol.destructor
(operator_declaration) @symbol.operator
(conversion_operator_declaration) @symbol.operator
(indexer_declaration) @symbol.property
(property_declaration) @symbol.property
(event_declaration) @symbol.event
(field_declaration (variable_declaration) @list) @variables.field
(event_field_declaration (variable_declaration) @list) @variables.event
(local_declaration_statement (variable_declaration) @list) @variables.variable
(using_statement (variable_declaration) @list @variables.variable)
(for_statement initializer: (variable_declaration) @list @variables.variable)
(fixed_statement (variable_declaration) @list @variables.variable)
(foreach_statement left: (identifier) @name @symbol.variable)
(tuple_pattern name: (identifier) @name @symbol.variable)
(declaration_pattern name: (identifier) @name) @symbol.variable
(declaration_expression name: (identifier) @name) @symbol.variable
(catch_declaration name: (identifier) @name) @symbol.variable
(lambda_expression parameters: (_) @params) @lambda

; Arguments are looked up, not captured: a chain of calls would keep a match open for each of its links.
(invocation_expression function: (_) @callee) @call
(object_creation_expression type: (_) @callee) @call.new
(constructor_initializer (argument_list) @args) @call.super

; A name the parser only supposes is no use of one.
(MISSING) @token
