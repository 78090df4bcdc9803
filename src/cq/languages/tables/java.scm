; Java. Captures are explained in cq/syntax/language.py.

(identifier) @ref
(type_identifier) @ref.type
(line_comment) @comment
(block_comment) @comment
(marker_annotation) @attribute
(annotation) @attribute
(marker_annotation name: (_) @span.decorator)
(annotation name: (_) @span.decorator)
(package_declaration) @span.import

(package_declaration [(identifier) (scoped_identifier)] @name) @symbol.package
(module_declaration) @symbol.module
(import_declaration) @import
(class_declaration) @symbol.class
(interface_declaration) @symbol.interface
(enum_declaration) @symbol.enum
(record_declaration) @symbol.record
(annotation_type_declaration) @symbol.annotation_type
(method_declaration) @symbol.method
(annotation_type_element_declaration) @symbol.method
(constructor_declaration) @symbol.constructor
(compact_constructor_declaration) @symbol.constructor
(enum_constant) @symbol.enum_member
(field_declaration) @variables.field
(constant_declaration) @variables.constant
(local_variable_declaration) @variables.variable
(resource name: (_) @name) @symbol.variable
(enhanced_for_statement name: (identifier) @name @symbol.variable)
(catch_formal_parameter name: (identifier) @name) @symbol.variable
(instanceof_expression name: (identifier) @name @symbol.variable)
(lambda_expression parameters: (_) @params) @lambda

; Arguments are looked up, not captured: a chain of calls would keep a match open for each of its links.
(method_invocation) @call
(object_creation_expression type: (_) @callee) @call.new
(explicit_constructor_invocation constructor: (_) @callee) @call.super

; A name the parser only supposes is no use of one.
(MISSING) @token
