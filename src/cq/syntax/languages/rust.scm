; Rust. Captures are explained in cq/syntax/language.py.

(string_literal) @opaque
(raw_string_literal) @opaque
(char_literal) @opaque
(shebang) @opaque
(line_comment) @comment
(block_comment) @comment

; Words of the text that are no identifiers.
(primitive_type) @token
(metavariable) @token
(fragment_specifier) @token
(function_modifiers "default" @token)
(union_item "union" @token)
(reference_expression "raw" @token)

(type_identifier) @role.type
(field_pattern name: (field_identifier) @role.attribute)
(lifetime (identifier) @role.label)
(label (identifier) @role.label)
; `..x` is no attribute, though a dot stands before it.
(range_expression (_) @role.reference)
(range_pattern (_) @role.reference)
(base_field_initializer (_) @role.reference)

(attribute_item) @attribute
(attribute . (_) @callee) @decorator

(function_item name: (_) @name body: (_) @body) @symbol.function
(function_signature_item name: (_) @name) @symbol.function
(struct_item name: (_) @name) @symbol.struct
(union_item name: (_) @name) @symbol.union
(enum_item name: (_) @name) @symbol.enum
(enum_variant name: (_) @name) @symbol.enum_member
(field_declaration name: (_) @name type: (_) @type) @symbol.field
(trait_item name: (_) @name) @symbol.trait
(impl_item type: (_) @name) @symbol.impl
(mod_item name: (_) @name) @symbol.module
(foreign_mod_item (extern_modifier) @name) @symbol.namespace
(const_item name: (_) @name) @symbol.constant
(static_item name: (_) @name) @symbol.constant
(type_item name: (_) @name) @symbol.type
(associated_type name: (_) @name) @symbol.type
(macro_definition name: (_) @name) @symbol.macro

(type_parameter name: (_) @name) @symbol.type_parameter
(const_parameter name: (_) @name) @symbol.type_parameter
(parameter pattern: (_) @name) @parameter
(self_parameter) @parameter.self
(closure_parameters (_) @name) @parameter.closure

; What a pattern binds; the type of a tuple struct stands first and is a use.
(let_declaration pattern: (_) @name) @let
(let_condition pattern: (identifier) @bind)
(for_expression pattern: (identifier) @bind)
(match_pattern . (identifier) @bind)
(tuple_struct_pattern type: (_) (identifier) @bind)
(tuple_pattern (identifier) @bind)
(slice_pattern (identifier) @bind)
(or_pattern (identifier) @bind)
(ref_pattern (identifier) @bind)
(mut_pattern (identifier) @bind)
(reference_pattern (identifier) @bind)
(captured_pattern . (identifier) @bind)
(field_pattern pattern: (identifier) @bind)
(field_pattern name: (shorthand_field_identifier) @bind)

(for_expression pattern: (_) @target value: (_) @value) @loop
(match_expression value: (_) @value body: (_) @body) @match

(call_expression) @call
(macro_invocation macro: (_) @callee (token_tree) @args) @call.macro
(struct_expression name: (_) @callee body: (_) @args) @call.new
(macro_rule right: (token_tree) @tokens)

(use_declaration argument: (_) @module) @import.use
(extern_crate_declaration name: (_) @module) @import.crate

(let_condition pattern: (_) @target value: (_) @value) @flow.assign
(assignment_expression left: (_) @target right: (_) @value) @flow.store
(compound_assignment_expr left: (_) @target) @flow.augment
(function_item return_type: (_) @value) @flow.result
(function_signature_item return_type: (_) @value) @flow.result
(return_expression) @flow.return
(try_expression . (_) @value) @flow.try
(await_expression . (_) @value) @flow.await
