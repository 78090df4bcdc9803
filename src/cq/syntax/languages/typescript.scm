; TypeScript beyond ecmascript.scm.

(type_identifier) @ref.type
(property_signature name: (property_identifier) @role.keyword)

(abstract_class_declaration name: (_) @name) @symbol.class
(public_field_definition name: (_) @name) @symbol.field
(interface_declaration name: (_) @name body: (_) @body) @symbol.interface
(type_alias_declaration name: (_) @name value: (_) @body) @symbol.type
(enum_declaration name: (_) @name body: (_) @body) @symbol.enum
(internal_module name: (_) @name) @symbol.namespace
(module name: (_) @name) @symbol.namespace
(ambient_declaration (_) @inner) @ambient
(import_alias) @alias

; Members of a named type; those of a type written in place define nothing that could be named.
(interface_body (property_signature name: (_) @name) @symbol.property)
(interface_body (method_signature name: (_) @name) @symbol.signature)
(type_alias_declaration value: (object_type (property_signature name: (_) @name) @symbol.property))
(type_alias_declaration value: (object_type (method_signature name: (_) @name) @symbol.signature))
(class_body (method_signature name: (_) @name) @symbol.signature)
(class_body (abstract_method_signature name: (_) @name) @symbol.signature)
(function_signature name: (_) @name) @symbol.signature

; Names that a signature without a body binds are no uses.
(function_type parameters: (_) @params) @bodiless
(constructor_type parameters: (_) @params) @bodiless
(call_signature parameters: (_) @params) @bodiless
(construct_signature parameters: (_) @params) @bodiless
(method_signature parameters: (_) @params) @bodiless
(abstract_method_signature parameters: (_) @params) @bodiless
(function_signature parameters: (_) @params) @bodiless
(type_parameter name: (_) @token)
(index_signature name: (identifier) @token)

; Last, so that no role is given to a name that is not there.
(MISSING) @token
