; What C++ adds to c.scm.

(namespace_identifier) @ref
(attribute_declaration) @attribute
(attribute name: (_) @span.decorator)
(field_declaration_list (access_specifier) @access)

(class_specifier body: (_) @body) @symbol.class
(namespace_definition body: (_) @body) @symbol.namespace
(alias_declaration name: (_) @name) @symbol.type
(concept_definition name: (_) @name) @symbol.type
(template_declaration parameters: (_) @params) @template
(lambda_expression declarator: (_ parameters: (_) @params)) @lambda
(for_range_loop declarator: (_) @declarator) @symbol.loop
(catch_clause parameters: (_) @params) @lambda

(new_expression type: (_) @callee) @call.new

(using_declaration) @import.using
(namespace_alias_definition name: (_) @name) @import.alias
