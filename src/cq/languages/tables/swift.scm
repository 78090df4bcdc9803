; Swift. The grammar calls types `name` too, so the name of a definition is its first one.

(simple_identifier) @ref
(type_identifier) @ref.type
(value_argument_label (simple_identifier) @role.keyword)
(comment) @comment
(multiline_comment) @comment

(class_declaration declaration_kind: _ @kind) @symbol.class
(protocol_declaration) @symbol.protocol
(function_declaration) @symbol.function
(protocol_function_declaration) @symbol.function
(init_declaration) @symbol.constructor
(deinit_declaration "deinit" @name) @symbol.destructor
(subscript_declaration "subscript" @name) @symbol.accessor
(typealias_declaration) @symbol.type
(associatedtype_declaration) @symbol.type
(operator_declaration) @operator
(macro_declaration (simple_identifier) @name) @symbol.macro
(enum_entry name: (simple_identifier) @name) @symbol.enum_member
(protocol_property_declaration name: (pattern bound_identifier: (_) @name)) @symbol.property
(source_file (property_declaration name: (pattern bound_identifier: (_) @name)) @symbol.variable)
(class_body (property_declaration name: (pattern bound_identifier: (_) @name)) @symbol.property)
(enum_class_body (property_declaration name: (pattern bound_identifier: (_) @name)) @symbol.property)

(call_expression . (_) @callee (call_suffix) @args) @call
(constructor_expression constructed_type: (_) @callee (constructor_suffix) @args) @call
(macro_invocation (simple_identifier) @callee (call_suffix) @args) @call.macro

(import_declaration (identifier) @module) @import
