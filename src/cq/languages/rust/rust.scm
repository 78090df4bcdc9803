; Rust. Captures are explained in cq/syntax/language.py; there is one in every pattern.

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
(attribute . (_)) @decorator

(function_item) @symbol.function
(function_signature_item) @symbol.function
(struct_item) @symbol.struct
(union_item) @symbol.union
(enum_item) @symbol.enum
(enum_variant) @symbol.enum_member
(field_declaration) @symbol.field
(trait_item) @symbol.trait
(impl_item) @symbol.impl
(mod_item) @symbol.module
(foreign_mod_item (extern_modifier)) @symbol.namespace
(const_item) @symbol.constant
(static_item) @symbol.constant
(type_item) @symbol.type
(associated_type) @symbol.type
(macro_definition) @symbol.macro

(type_parameter) @symbol.type_parameter
(const_parameter) @symbol.type_parameter
(parameter pattern: (_)) @parameter
(self_parameter) @parameter.self
(closure_parameters (_) @parameter.closure)

; `_` alone is no named node, and binds nothing.
; What a pattern binds; the type of a tuple struct stands first and is a use.
(let_declaration pattern: (_)) @let
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

(for_expression pattern: (_)) @loop
(match_expression) @match
(if_expression) @branch.if
(for_expression) @branch.loop
(while_expression) @branch.loop
(loop_expression) @branch.loop

(call_expression) @call
(macro_invocation macro: (_) (token_tree)) @call.macro
(struct_expression) @call.new
(macro_rule right: (token_tree) @tokens)

(use_declaration) @import.use
(extern_crate_declaration) @import.crate

(let_condition pattern: (_)) @flow.assign
(assignment_expression left: (_)) @flow.store
(compound_assignment_expr) @flow.augment
(function_item) @flow.result
(function_signature_item) @flow.result
(return_expression) @flow.return
(try_expression . (_)) @flow.try
(await_expression . (_)) @flow.await
