; TypeScript beyond ecmascript.scm.

(type_identifier) @ref.type
(property_signature name: (property_identifier) @role.keyword)

(abstract_class_declaration name: (_)) @symbol.class
(public_field_definition name: (_)) @symbol.field
(interface_declaration name: (_) body: (_)) @symbol.interface
(type_alias_declaration name: (_) value: (_)) @symbol.type
(enum_declaration name: (_) body: (_)) @symbol.enum
(internal_module name: (_)) @symbol.namespace
(module name: (_)) @symbol.namespace
(ambient_declaration) @ambient
(import_alias) @alias

; Members of a named type; those of a type written in place define nothing that could be named.
(interface_body (property_signature name: (_)) @symbol.property)
(interface_body (method_signature name: (_)) @symbol.signature)
(type_alias_declaration value: (object_type (property_signature name: (_)) @symbol.property))
(type_alias_declaration value: (object_type (method_signature name: (_)) @symbol.signature))
(class_body (method_signature name: (_)) @symbol.signature)
(class_body (abstract_method_signature name: (_)) @symbol.signature)
(function_signature name: (_)) @symbol.signature

; Names that a signature without a body binds are no uses.
(function_type parameters: (_)) @bodiless
(constructor_type parameters: (_)) @bodiless
(call_signature parameters: (_)) @bodiless
(construct_signature parameters: (_)) @bodiless
(method_signature parameters: (_)) @bodiless
(abstract_method_signature parameters: (_)) @bodiless
(function_signature parameters: (_)) @bodiless
(type_parameter name: (_) @token)
(index_signature name: (identifier) @token)

; Last, so that no role is given to a name that is not there.
(MISSING) @token
