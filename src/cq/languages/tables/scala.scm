; Scala 2 and 3.

(identifier) @ref
(type_identifier) @ref.type
(arguments (assignment_expression left: (identifier) @role.keyword))
(comment) @comment
(block_comment) @comment

(package_clause name: (_) @name) @symbol.package
(package_object name: (_) @name) @symbol.object
(class_definition name: (_) @name) @symbol.class
(object_definition name: (_) @name) @symbol.object
(trait_definition name: (_) @name) @symbol.trait
(enum_definition name: (_) @name) @symbol.enum
(simple_enum_case name: (_) @name) @symbol.enum_member
(full_enum_case name: (_) @name) @symbol.enum_member
(given_definition name: (_) @name) @symbol.object
(given_definition !name return_type: (_) @name) @symbol.object
(extension_definition) @symbol.extension
(function_definition name: (_) @name) @symbol.function
(function_declaration name: (_) @name) @symbol.function
(type_definition name: (_) @name) @symbol.type

(compilation_unit (val_definition pattern: (identifier) @name) @symbol.constant)
(compilation_unit (var_definition pattern: (identifier) @name) @symbol.variable)
(template_body (val_definition pattern: (identifier) @name) @symbol.field)
(template_body (var_definition pattern: (identifier) @name) @symbol.field)
(template_body (val_definition pattern: (tuple_pattern (identifier) @name)) @symbol.field)
(template_body (var_definition pattern: (tuple_pattern (identifier) @name)) @symbol.field)
(template_body (val_declaration name: (identifier) @name) @symbol.field)
(template_body (var_declaration name: (identifier) @name) @symbol.field)
(with_template_body (val_definition pattern: (identifier) @name) @symbol.field)
(enum_body (val_definition pattern: (identifier) @name) @symbol.field)
(class_parameter name: (_) @name) @symbol.parameter

(call_expression function: (_) @callee arguments: (_) @args) @call
(instance_expression . (_) @callee) @call.new
(infix_expression operator: (identifier) @operator) @infix

(import_declaration) @import
(export_declaration) @import.reexport
