; What only TypeScript has.

(function_signature) @callable
(method_signature) @callable
(abstract_method_signature) @callable
(call_signature) @callable
(construct_signature) @callable
(abstract_class_declaration) @type
(interface_declaration) @type
(type_alias_declaration) @alias
(enum_declaration) @enum
(public_field_definition) @value
(property_signature) @value
(index_signature) @value
(satisfies_expression) @satisfies
(import_alias) @bound
(import_specifier) @bound
