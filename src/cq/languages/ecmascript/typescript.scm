; TypeScript beyond ecmascript.scm.

(type_identifier) @ref.type
(property_signature name: (property_identifier) @role.keyword)

(abstract_class_declaration) @symbol.class
(public_field_definition) @symbol.field
(interface_declaration) @symbol.interface
(type_alias_declaration) @symbol.type
(enum_declaration) @symbol.enum
(internal_module) @symbol.namespace
(module) @symbol.namespace
(ambient_declaration) @ambient
(import_alias) @alias

; Members of a named type; those of a type written in place define nothing that could be named.
(interface_body (property_signature name: (_)) @symbol.property)
(interface_body (method_signature name: (_)) @symbol.signature)
(type_alias_declaration value: (object_type (property_signature name: (_)) @symbol.property))
(type_alias_declaration value: (object_type (method_signature name: (_)) @symbol.signature))
(interface_body [(call_signature) (construct_signature) (index_signature)] @symbol.unnamed)
(type_alias_declaration
  value: (object_type [(call_signature) (construct_signature) (index_signature)] @symbol.unnamed))
(class_body (index_signature) @symbol.unnamed)
(class_body (method_signature name: (_)) @symbol.signature)
(class_body (abstract_method_signature name: (_)) @symbol.signature)
(function_signature) @symbol.signature

; Names that a signature without a body binds are no uses.
(function_type) @bodiless
(constructor_type) @bodiless
(call_signature) @bodiless
(construct_signature) @bodiless
(method_signature) @bodiless
(abstract_method_signature) @bodiless
(function_signature) @bodiless
(type_parameter name: (_) @token)
(index_signature name: (identifier) @token)
(index_signature (mapped_type_clause)) @mapped
(conditional_type) @test
(infer_type) @inferred
; The grammar takes it for a name.
((type_identifier) @token (#eq? @token "bigint"))

; Last, so that no role is given to a name that is not there.
(MISSING) @token
